"""Generated operations, stopped anywhere, and a person at work before the recovery."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.killpoints import Aborted, LastingFuse, lit
from tests.storage.palace import House, everything, notes, operation, pen
from vault_palace.storage import files
from vault_palace.storage.operations import Step, carry_out, recover

KINDS = ("create", "replace", "move", "patched move", "remove")


@contextlib.contextmanager
def _fresh(exchange: bool) -> Iterator[Path]:
    """A vault on a file system that can exchange two names, or on one that only has hard links."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    root = Path(tempfile.mkdtemp(dir=shared))
    try:
        with pytest.MonkeyPatch.context() as patch:
            if not exchange:
                patch.setattr(files, "_renameat2", _unsupported)
            yield root
    finally:
        shutil.rmtree(root)


def _unsupported(src: Path, dst: Path, flags: int) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _step(number: int, kind: str) -> Step:
    path, to = f"01_Shallow/n{number}.md", f"02_Sediment/room {number}/n{number}.md"
    old, new = b"old %d\n" % number, b"new %d\n" % number
    return {
        "create": Step(kind="put", path=path, after=new),
        "replace": Step(kind="put", path=path, before=old, after=new),
        "move": Step(kind="move", path=path, to=to, before=old),
        "patched move": Step(kind="move", path=path, to=to, before=old, after=new),
        "remove": Step(kind="remove", path=path, before=old),
    }[kind]


def _worlds(steps: list[Step]) -> tuple[dict[str, bytes], dict[str, bytes]]:
    old = {step.path: step.before for step in steps if step.before is not None}
    new = {
        step.to or step.path: data
        for step in steps
        if step.kind != "remove" and (data := step.after or step.before) is not None
    }
    return old, new


def _stopped(root: Path, steps: list[Step], at: int) -> None:
    def blow(name: str) -> None:
        raise Aborted(name)

    with lit(LastingFuse(at, blow)), contextlib.suppress(Aborted):
        carry_out(*House(root).parts, operation(*steps))


steps_of_any_kind = st.lists(st.sampled_from(KINDS), min_size=1, max_size=4).map(
    lambda kinds: [_step(number, kind) for number, kind in enumerate(kinds)]
)


@given(steps_of_any_kind, st.integers(1, 120), st.booleans())
def test_an_operation_stopped_anywhere_is_all_done_or_undone(
    steps: list[Step], at: int, exchange: bool
) -> None:
    """RC-03"""
    old, new = _worlds(steps)
    with _fresh(exchange) as root:
        pen(old)(root)
        _stopped(root, steps, at)

        recover(*House(root).parts)

        assert notes(root) in (old, new)
        seen = everything(root)
        assert recover(*House(root).parts) == []
        assert everything(root) == seen


@given(
    steps_of_any_kind,
    st.integers(1, 120),
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1, max_size=3),
    st.booleans(),
)
def test_what_a_person_did_before_the_recovery_is_never_undone(
    steps: list[Step], at: int, acts: list[tuple[int, bool, bool]], exchange: bool
) -> None:
    """RC-05: at either name of a moved note, by an edit or a deletion."""
    old, new = _worlds(steps)
    with _fresh(exchange) as root:
        pen(old)(root)
        _stopped(root, steps, at)
        done: dict[str, bytes | None] = {}
        for number, (which, at_new_name, edits) in enumerate(acts):
            step = steps[which % len(steps)]
            path = step.to if step.to and at_new_name else step.path
            place = root / path
            if edits:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(b"the person's %d\n" % number)
                done[path] = place.read_bytes()
            elif place.exists() and path not in done:  # deleting one's own new file leaves the name free
                place.unlink()
                done[path] = None

        recover(*House(root).parts)

        found = notes(root)
        for path, data in done.items():
            assert found.get(path) == data
        for path, data in found.items():
            assert data in (old.get(path), new.get(path), done.get(path))
        assert not any(files.is_temp(Path(path).name) for path in found)
        seen = everything(root)
        assert recover(*House(root).parts) == []
        assert everything(root) == seen


@given(steps_of_any_kind, st.integers(1, 120), st.booleans())
def test_no_words_are_lost_whatever_happens(steps: list[Step], at: int, exchange: bool) -> None:
    """SPEC §6.6: what is not in the vault any more is among the kept versions."""
    old, _ = _worlds(steps)
    with _fresh(exchange) as root:
        pen(old)(root)
        _stopped(root, steps, at)

        recover(*House(root).parts)

        house = House(root)
        for data in old.values():
            assert data in notes(root).values() or house.versions.get(files.fingerprint(data)) == data
