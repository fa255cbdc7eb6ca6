"""Failure cases of recovery and concurrent work, as far as storage answers for them (RC-02 … RC-12)."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.storage.killpoints import every_kill_point
from tests.storage.palace import NOW, House, as_person, everything, notes, operation, pen
from vault_palace.core.errors import NoteChanged, StorageFailed
from vault_palace.storage import files
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.operations import Operation, Step, carry_out, recover
from vault_palace.storage.records import Entry, Trace

NOTE = "01_Shallow/n.md"


def _killed(root: Path, op: Operation, call: str) -> None:
    """Leave the vault as a kill right before the n-th swap, or right after it, leaves it."""
    child = os.fork()
    if child == 0:
        name, _, when = call.partition(" ")
        real = getattr(files if name.startswith("_") else os, name)

        def die(*args: object, **more: object) -> object:
            if when == "after":
                real(*args, **more)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        setattr(files if name.startswith("_") else os, name, die)
        carry_out(*House(root).parts, op)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def test_rc_02_every_step_looks_again_just_before_it_acts(vault: Path) -> None:
    """What people and agents did since the plan was made stays; the rest is carried out."""
    path = "01_Shallow/n{:03}.md".format
    pen({path(n): b"note %d\n" % n for n in range(1, 201)})(vault)
    house = House(vault)
    plan = [
        operation(
            Step(
                kind="move",
                path=path(n),
                to=f"02_Sediment/n{n:03}.md",
                before=b"note %d\n" % n,
                after=b"up\n",
            ),
            id=f"op-{n}",
        )
        for n in range(1, 201)
    ]
    (vault / path(5)).write_bytes(b"edited\n")
    (vault / path(201)).write_bytes(b"new\n")
    (vault / path(7)).unlink()
    archive = Step(kind="move", path=path(9), to=f"_Archive/{path(9)}", before=b"note 9\n")
    carry_out(*house.parts, operation(archive, id="agent"))
    (vault / "03_Bedrock/n011.md").write_bytes((vault / path(11)).read_bytes())
    (vault / path(11)).unlink()

    skipped = []
    for op in plan:
        try:
            carry_out(*house.parts, op)
        except NoteChanged as error:
            skipped.append(error.facts["path"])

    found = notes(vault)
    assert skipped == [path(n) for n in (5, 7, 9, 11)]
    assert found.pop(path(5)) == b"edited\n"
    assert found.pop(path(201)) == b"new\n"
    assert found.pop(f"_Archive/{path(9)}") == b"note 9\n"
    assert found.pop("03_Bedrock/n011.md") == b"note 11\n"
    assert found == {f"02_Sediment/n{n:03}.md": b"up\n" for n in range(1, 201) if n not in (5, 7, 9, 11)}


@pytest.mark.parametrize("closed", ["01_Shallow", "02_Sediment"], ids=["old folder", "new folder"])
def test_rc_03_a_folder_without_permission_leaves_one_whole_copy(vault: Path, closed: str) -> None:
    pen({NOTE: b"text\n"})(vault)
    move = operation(Step(kind="move", path=NOTE, to="02_Sediment/n.md", before=b"text\n", after=b"risen\n"))
    for above in (vault, *vault.parents):
        if "pytest-of-" in str(above):
            above.chmod(0o755)
    for folder, _, names in os.walk(vault):
        for place in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(place, 65534, 65534) if os.geteuid() == 0 else None

    def act() -> None:
        (vault / closed).chmod(0o555)
        house = House(vault)
        with pytest.raises(StorageFailed) as caught:
            carry_out(*house.parts, move)
        assert caught.value.facts["reason"] == "no permission"
        (vault / closed).chmod(0o755)
        assert notes(vault) == {NOTE: b"text\n"}
        assert [one.status for one in recover(*house.parts)] == []
        assert notes(vault) == {NOTE: b"text\n"}
        carry_out(*house.parts, operation(*move.steps, id="again"))
        assert notes(vault) == {"02_Sediment/n.md": b"risen\n"}

    as_person(act)


@pytest.mark.parametrize(
    ("verb", "path", "to"),
    [
        ("promote", NOTE, "02_Sediment/n.md"),
        ("archive", NOTE, f"_Archive/{NOTE}"),
        ("restore", f"_Archive/{NOTE}", NOTE),
        ("rename", NOTE, "01_Shallow/m.md"),
    ],
)
def test_rc_03_every_kind_of_move_killed_anywhere_leaves_one_copy(
    memory_path: Path, verb: str, path: str, to: str
) -> None:
    before, after = b"text\n", b"text, moved\n"

    def act(root: Path) -> None:
        house = House(root)
        with WriteLock(house.vault, timeout=5):
            carry_out(
                *house.parts,
                operation(Step(kind="move", path=path, to=to, before=before, after=after), verb=verb),
            )

    def check(root: Path, stop: object) -> None:
        house = House(root)
        with WriteLock(house.vault, timeout=5, now=lambda: 9e9):
            recover(*house.parts)
            assert notes(root) in ({path: before}, {to: after}), stop
            assert recover(*house.parts) == []
        states = [entry.state for entry in house.journal.entries()]
        assert states in ([], ["done"], ["undone"]), stop
        assert (states == ["done"]) == (notes(root) == {to: after}), stop

    assert every_kill_point(memory_path, pen({path: before}), act, check) > 20


def _edit(root: Path) -> dict[str, bytes]:
    (root / NOTE).write_bytes(b"v3")
    return {NOTE: b"v3"}


def _delete(root: Path) -> dict[str, bytes]:
    (root / NOTE).unlink()
    return {}


def _rename(root: Path) -> dict[str, bytes]:
    data = (root / NOTE).read_bytes()
    (root / NOTE).rename(root / "01_Shallow/mine.md")
    return {"01_Shallow/mine.md": data}


@pytest.mark.parametrize("call", ["_renameat2 before", "_renameat2 after"])
@pytest.mark.parametrize("person", [_edit, _delete, _rename], ids=["edits", "deletes", "renames"])
def test_rc_05_the_newest_human_state_wins(
    vault: Path, call: str, person: Callable[[Path], dict[str, bytes]]
) -> None:
    pen({NOTE: b"v1"})(vault)
    _killed(vault, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2")), call)
    expected = person(vault)
    house = House(vault)

    (found,) = recover(*house.parts)

    assert notes(vault) == expected
    assert (found.status, found.path) == ("superseded", NOTE)
    assert house.journal.entries()[0].state == "superseded"
    assert (
        house.versions.has(files.fingerprint(b"v2")) or b"v2" in expected.values() or call.endswith("after")
    )
    assert recover(*house.parts) == []


@pytest.mark.parametrize("call", ["_renameat2 before", "_renameat2 after"])
def test_rc_05_an_untouched_note_gets_what_was_meant(vault: Path, call: str) -> None:
    pen({NOTE: b"v1"})(vault)
    _killed(vault, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2")), call)

    (found,) = recover(*House(vault).parts)

    assert found.status == "finished"
    assert notes(vault) == {NOTE: b"v2"}


@pytest.mark.parametrize(
    "damage",
    [b'{"op":"mo', b"\0" * 4096, b'{"v":9,"op":"x","state":"begin"}\n', b"\xef\xbb\xbf", b"\n\n", b"}{"],
    ids=["half a record", "zero bytes", "unknown version", "byte order mark", "blank lines", "braces"],
)
def test_rc_06_work_goes_on_after_any_damage_to_the_journal_s_end(vault: Path, damage: bytes) -> None:
    pen({NOTE: b"v1"})(vault)
    journal = vault / "_System/journal/here.jsonl"
    carry_out(
        *House(vault).parts, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2"), id="one")
    )
    _killed(
        vault,
        operation(Step(kind="put", path=NOTE, before=b"v2", after=b"v3"), id="two"),
        "_renameat2 before",
    )
    with journal.open("ab") as stream:
        stream.write(damage)

    found = recover(*House(vault).parts)  # start
    carry_out(
        *House(vault).parts, operation(Step(kind="put", path=NOTE, before=b"v3", after=b"v4"), id="three")
    )
    again = recover(*House(vault).parts)  # stop, start

    assert [(one.op, one.status) for one in found] == [("two", "finished")]
    assert again == []
    assert notes(vault) == {NOTE: b"v4"}
    assert [(entry.op, entry.state) for entry in House(vault).journal.entries()] == [
        ("one", "done"),
        ("two", "done"),
        ("three", "done"),
    ]


@pytest.mark.parametrize("state", ["empty", "missing"])
def test_rc_06_an_empty_or_missing_journal_is_a_beginning(vault: Path, state: str) -> None:
    pen({NOTE: b"v1"})(vault)
    if state == "empty":
        (vault / "_System/journal").mkdir()
        (vault / "_System/journal/here.jsonl").write_bytes(b"")

    found = recover(*House(vault).parts)
    carry_out(*House(vault).parts, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2")))

    assert found == []
    assert [entry.state for entry in House(vault).journal.entries()] == ["done"]


def test_rc_08_the_next_start_takes_the_lock_of_a_killed_one_and_recovers(vault: Path) -> None:
    pen({NOTE: b"v1"})(vault)
    child = os.fork()
    if child == 0:
        house = House(vault)
        with WriteLock(house.vault, timeout=0):
            _killed_inside(house)
    os.waitpid(child, 0)
    house = House(vault)

    with WriteLock(house.vault, timeout=0) as lock:
        holder = lock.holder()
        (found,) = recover(*house.parts)

    assert holder is not None
    assert holder.pid == os.getpid()
    assert found.status == "finished"
    assert notes(vault) == {NOTE: b"v2"}


def _killed_inside(house: House) -> None:
    def die(src: Path, dst: Path, flags: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    files._renameat2 = die
    carry_out(*house.parts, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2")))


MARKERS = b"""---
title: T
<<<<<<< HEAD
status: open
=======
status: done
>>>>>>> other
---
body
```
<<<<<<< HEAD
x
=======
y
>>>>>>> other
```
[[After]]
"""


def test_rc_09_storage_never_looks_into_a_note(vault: Path) -> None:
    """Flagging and blocking are the services'; a move by a person's command keeps every byte."""
    pen({NOTE: MARKERS})(vault)
    house = House(vault)

    carry_out(*house.parts, operation(Step(kind="move", path=NOTE, to="02_Sediment/n.md", before=MARKERS)))

    assert notes(vault) == {"02_Sediment/n.md": MARKERS}


def test_rc_11_an_older_journal_replays_nothing_over_newer_notes(vault: Path) -> None:
    pen({NOTE: b"v1"})(vault)
    journal = vault / "_System/journal/here.jsonl"
    there, back = ("02_Sediment/n.md", NOTE)
    carry_out(*House(vault).parts, operation(Step(kind="move", path=NOTE, to=there, before=b"v1"), id="up"))
    older = journal.read_bytes().splitlines(keepends=True)[0]  # begun, as it stood for a moment
    carry_out(*House(vault).parts, operation(Step(kind="move", path=there, to=back, before=b"v1"), id="down"))
    journal.write_bytes(older)
    house = House(vault)

    (found,) = recover(*house.parts)

    assert found.status == "superseded"
    assert "older" in found.detail
    assert notes(vault) == {NOTE: b"v1"}
    assert recover(*house.parts) == []


def test_rc_11_an_older_journal_keeps_what_a_killed_run_had_staged(vault: Path) -> None:
    pen({NOTE: b"v1"})(vault)
    house = House(vault)
    staged = files.stage(vault / NOTE, b"v2")
    trace = Trace(
        kind="put",
        path=NOTE,
        before=files.fingerprint(b"v1"),
        after=files.fingerprint(b"v2"),
        staged=house.vault.rel(staged),
    )
    house.journal.begin(Entry(op="one", verb="write", at=NOW, steps=(trace,)))
    older = (vault / "_System/journal/here.jsonl").read_bytes()
    house.versions.keep(b"x")  # makes the state folder, where the newest operation is remembered
    house.journal.begin(Entry(op="two", verb="write", at=NOW))
    (vault / "_System/journal/here.jsonl").write_bytes(older)

    (found,) = recover(*House(vault).parts)

    assert found.status == "superseded"
    assert notes(vault) == {NOTE: b"v1"}
    assert house.versions.get(files.fingerprint(b"v2")) == b"v2"


def test_rc_11_no_state_file_is_readable_by_others_and_no_journal_holds_text(vault: Path) -> None:
    before = os.umask(0o022)
    try:
        house = House(vault)
        with WriteLock(house.vault, timeout=0):
            step = Step(kind="put", path=NOTE, after=b"the password is hunter2")
            carry_out(*house.parts, operation(step, id="one"))
            step = Step(kind="remove", path=NOTE, before=b"the password is hunter2")
            carry_out(*house.parts, operation(step, id="two"))
            modes = {
                place.relative_to(vault).as_posix(): stat.S_IMODE(place.stat().st_mode) & 0o077
                for place in [*(vault / ".palace").rglob("*"), *(vault / "_System/journal").rglob("*")]
            }
    finally:
        os.umask(before)

    assert ".palace/lock" in modes
    assert set(modes.values()) == {0}
    for place in vault.rglob("*"):
        assert place.is_dir() or b"hunter2" not in place.read_bytes(), place
    assert house.versions.forget(files.fingerprint(b"the password is hunter2"))


def test_rc_11_two_machines_append_to_journals_of_their_own(vault: Path) -> None:
    pen({NOTE: b"v1"})(vault)
    here, there = House(vault, "here"), House(vault, "there")
    carry_out(*here.parts, operation(Step(kind="put", path=NOTE, before=b"v1", after=b"v2"), id="one"))
    carry_out(*there.parts, operation(Step(kind="put", path=NOTE, before=b"v2", after=b"v3"), id="two"))

    for house in (here, there):
        assert [entry.op for entry in house.journal.entries()] == ["one", "two"]
        assert house.journal.accounts_for(files.fingerprint(b"v3"))
        assert recover(*house.parts) == []


HUB = "01_Shallow/hub.md"
FIFTY = tuple(f"01_Shallow/r{n:02}/note.md" for n in range(50))


def _rename_hub() -> Operation:
    return operation(
        Step(kind="move", path=HUB, to="01_Shallow/wheel.md", before=b"hub\n"),
        *(Step(kind="put", path=path, before=b"[[hub]]\n", after=b"[[wheel]]\n") for path in FIFTY),
        verb="move",
    )


OLD_NAMES = {HUB: b"hub\n", **dict.fromkeys(FIFTY, b"[[hub]]\n")}
NEW_NAMES = {"01_Shallow/wheel.md": b"hub\n", **dict.fromkeys(FIFTY, b"[[wheel]]\n")}


def test_rc_12_a_referrer_that_cannot_be_written_stops_the_rename_whole(vault: Path) -> None:
    pen(OLD_NAMES)(vault)
    (vault / FIFTY[20]).chmod(0o444)

    with pytest.raises(StorageFailed) as caught:
        carry_out(*House(vault).parts, _rename_hub())

    assert caught.value.facts["path"] == FIFTY[20]
    assert notes(vault) == OLD_NAMES
    (vault / FIFTY[20]).chmod(0o644)
    carry_out(*House(vault).parts, _rename_hub())
    assert notes(vault) == NEW_NAMES


def test_rc_12_a_referrer_saved_meanwhile_keeps_the_save(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen(OLD_NAMES)(vault)
    real = files.put

    def saving(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        if target == vault / FIFTY[29]:
            target.write_bytes(b"[[hub]], says the person\n")
        return real(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", saving)

    with pytest.raises(NoteChanged) as caught:
        carry_out(*House(vault).parts, _rename_hub())

    assert caught.value.facts["path"] == FIFTY[29]
    assert notes(vault) == {**OLD_NAMES, FIFTY[29]: b"[[hub]], says the person\n"}


def test_rc_12_a_rename_killed_after_25_referrers_is_finished(vault: Path) -> None:
    pen(OLD_NAMES)(vault)
    child = os.fork()
    if child == 0:
        real = files._renameat2
        count: list[int] = []

        def dying(src: Path, dst: Path, flags: int) -> None:
            if len(count) == 26:
                os.kill(os.getpid(), signal.SIGKILL)
            count.append(flags)
            real(src, dst, flags)

        files._renameat2 = dying
        carry_out(*House(vault).parts, _rename_hub())
        os._exit(1)
    os.waitpid(child, 0)
    assert notes(vault) not in (OLD_NAMES, NEW_NAMES)

    (found,) = recover(*House(vault).parts)

    assert found.status == "finished"
    assert notes(vault) == NEW_NAMES


def test_recovery_with_nothing_to_do_changes_nothing(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pen(OLD_NAMES)(vault)
    seen = everything(vault)

    def never(*args: object, **more: object) -> None:
        raise AssertionError("an idle recovery writes")

    for name in ("write", "rename", "replace", "unlink", "mkdir", "fsync"):
        monkeypatch.setattr(os, name, never)

    assert recover(*House(vault).parts) == []
    assert everything(vault) == seen
