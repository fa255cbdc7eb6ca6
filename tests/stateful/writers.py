"""The stage for two writers: a vault, three processes, a pen, a clock, and the judge of every call."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from tests.services.conftest import Clock
from tests.stateful.world import BOM, World, known, look, unlinked
from tests.storage.killpoints import Fuse, lit
from vault_palace.core.errors import MalformedNote, VaultError
from vault_palace.core.model import Layer
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.storage import files

LAYERS = tuple(layer.folder for layer in Layer)
START = datetime(2031, 3, 1, 12, tzinfo=UTC)
POLICY = """---
timezone: UTC
max_destructive_per_minute: 10000
max_archive_share: 1
versions_keep_days: 36500
---
"""

Who = str


Check = Callable[[str, str], bool]


def unchanged(old: str, new: str) -> bool:
    return new == old


@dataclass
class Call:
    """One call of the program, and all that it may do."""

    run: Callable[[Palace], Any]
    bodies: dict[str, Check] = field(default_factory=dict)  # notes whose body shall change, and how
    movers: frozenset[str] | None = frozenset()  # notes that may move; None: any
    born: str = ""
    links: dict[str, str] = field(default_factory=dict)  # new links
    after: Callable[[World, Any], object] = lambda _world, _answer: None


class Writers(RuleBasedStateMachine):
    """Two agents' processes on one machine, one on another that shares the folder, a person, a clock."""

    def __init__(self) -> None:
        super().__init__()
        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.base = Path(tempfile.mkdtemp(dir=shared))
        self.root = self.base / "vault"
        for folder in (*LAYERS, "_System"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "_System/Policy.md").write_text(POLICY, encoding="utf-8")
        self.clock = Clock(START)
        self.latest = START
        self.count = 0
        self.palaces = {who: self.open(who) for who in ("one", "two", "elsewhere")}
        self.world = look(self.root)

    def open(self, who: Who, *, cache: str = "") -> Palace:
        state = "elsewhere" if who == "elsewhere" else "here"
        return Palace.open(
            self.root,
            settings=PalaceSettings(
                cache_dir=self.base / (cache or f"{state}-cache"),
                state_dir=self.base / f"{state}-state",
                session=who,
                clock=self.clock,
                sleep=self.clock.sleep,
            ),
        )

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def teardown(self) -> None:
        try:
            self.the_end()
        finally:
            for palace in self.palaces.values():
                palace.close()
            shutil.rmtree(self.base)

    # -- the program -----------------------------------------------------------------------------------------

    def judge(self, call: Call, *, done: bool | None) -> None:
        """Compare the vault with what it was; *done* None: nobody knows whether the call came to be."""
        old, new = self.world, look(self.root)
        self.world = new
        born = set(new.notes) - set(old.notes)
        assert not set(old.notes) - set(new.notes)
        assert born <= {call.born}
        assert done is None or bool(born) == bool(done and call.born)
        for mark, was in old.notes.items():
            now = new.notes[mark]
            grown = call.bodies.get(mark, unchanged)(was.body, now.body)
            assert grown or (not done and now.body == was.body), f"{mark}: {was.body!r} became {now.body!r}"
            assert now.theirs == was.theirs
            assert not was.broken or now.header == was.header
            assert now.data.startswith(BOM) == was.data.startswith(BOM)
            assert now.value("id") == was.value("id") or not was.value("id")
            if done is False or (call.movers is not None and mark not in call.movers):
                assert now.path == was.path
            if now.data != was.data or now.path != was.path:
                kept = self.palaces["one"].house.versions.get(files.fingerprint(was.data))
                assert kept == was.data
        assert new.aside == old.aside
        changed = {
            alias: mark
            for alias, mark in new.links.items()
            if old.links.get(alias) != mark and not (old.links.get(alias) == "" and mark == call.born)
        }
        assert changed == {} if done is False or (done is None and not changed) else changed == call.links
        assert set(old.links) <= set(new.links)

    def call(self, who: Who, call: Call) -> Any:
        answer = call.run(self.palaces[who])
        self.judge(call, done=True)
        call.after(self.world, answer)
        return answer

    def refused(self, who: Who, call: Call, kind: type[VaultError]) -> None:
        with pytest.raises(kind):
            call.run(self.palaces[who])
        self.judge(call, done=False)

    def settle(self, who: Who, call: Call, *concerned: str) -> None:
        """The call, or its refusal where a header that cannot be read is in the way."""
        if any(self.world.notes[mark].broken for mark in concerned):
            self.refused(who, call, MalformedNote)
        else:
            self.call(who, call)

    def path(self, mark: str) -> str:
        return self.world.notes[mark].path

    def link(self, mark: str) -> tuple[str, dict[str, str]]:
        """A link to *mark*, as its name is at the moment; empty when several notes have that name."""
        stem = Path(self.path(mark)).stem
        same = [seen for seen in self.world.notes.values() if Path(seen.path).stem == stem]
        if len(same) > 1:
            return "", {}
        alias = self.new("L")
        return f"[[{stem}|{alias}]]", {alias: mark}

    def writing(self, title: str, layer: str, to: str | None) -> Call:
        mark = self.new("K")
        link, leads = self.link(to) if to else ("", {})
        content = f"# {mark}\n\n<{mark}> agent words {link}\n"

        def found(world: World, answer: Any) -> None:
            seen = world.notes[mark]
            assert answer["saved_path"] == seen.path
            assert seen.body.strip() == unlinked(content).strip()
            assert seen.value("id") == answer["id"]

        return Call(
            lambda palace: palace.write(content, title=title, layer=layer),
            born=mark,
            links=leads,
            after=found,
        )

    def appending(self, mark: str, to: str | None = None) -> Call:
        said = self.new("W")
        link, leads = self.link(to) if to else ("", {})
        addition = f"agent said {said} {link}\n"
        plain = unlinked(addition).strip()

        def grown(old: str, new: str) -> bool:
            return new.startswith(old) and new[len(old) :].strip() == plain

        return Call(
            lambda palace: palace.write(addition, mode="append", path=self.path(mark)),
            bodies={mark: grown},
            links=leads,
        )

    def moving(self, mark: str, layer: str, name: str | None) -> Call:
        return Call(
            lambda palace: palace.move(self.path(mark), layer, new_path=name),
            movers=frozenset({mark}),
            after=lambda world, answer: self.same(answer["destination"], world.notes[mark].path),
        )

    def purging(self, mark: str) -> Call:
        return Call(
            lambda palace: palace.purge(self.path(mark), confirm=True),
            movers=frozenset({mark}),
            after=lambda world, answer: self.same(answer["archived_to"], world.notes[mark].path),
        )

    def restoring(self, mark: str) -> Call:
        return Call(
            lambda palace: palace.restore(self.path(mark)),
            movers=frozenset({mark}),
            after=lambda world, answer: self.same(answer["restored_to"], world.notes[mark].path),
        )

    def rating(self, mark: str, density: float) -> Call:
        return Call(
            lambda palace: palace.rate(path=self.path(mark), density=density),
            after=lambda world, _: self.same(float(world.notes[mark].value("density")), density),
        )

    @staticmethod
    def same(one: object, other: object) -> None:
        assert one == other

    def pick(self, data: st.DataObject, *folders: str) -> str:
        return data.draw(st.sampled_from(self.world.of(*(folders or LAYERS))))

    def remembered(self) -> bool:
        return bool(self.world.of(*LAYERS))

    def archived(self) -> bool:
        return bool(self.world.of("_Archive"))

    def after_a_person(self, call: Call, mark: str) -> None:
        """As `judge`; but the bytes that the person saved over are theirs to lose."""
        data = self.world.notes[mark].data
        self.palaces["one"].house.versions.keep(data)
        self.judge(call, done=None)

    def killed(self, call: Call, number: int) -> None:
        """Run the call in a process of its own that kills itself at its n-th change of the disk."""
        child = os.fork()
        if child == 0:

            def blow(_name: str) -> NoReturn:
                os.kill(os.getpid(), signal.SIGKILL)
                raise AssertionError("still alive")

            try:
                with lit(Fuse(number, blow)), contextlib.suppress(VaultError):
                    call.run(self.open("one", cache="child-cache"))
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def edited(self, mark: str, change: Callable[[str], str], *, atomic: bool = False) -> None:
        """Save a note with an editor, at the clock's time."""
        place = self.root / self.path(mark)
        with place.open(encoding="utf-8", newline="") as file:
            text = change(file.read())
        if atomic:
            beside = place.with_name("4913")
            beside.write_text(text, encoding="utf-8", newline="")
            os.replace(beside, place)
        else:
            place.write_text(text, encoding="utf-8", newline="")
        self.dated(place)
        self.world = look(self.root)

    def dated(self, place: Path) -> None:
        at = self.clock.at.timestamp()
        os.utime(place, (at, at))

    def the_end(self) -> None:
        here = self.palaces["one"]
        before = look(self.root)
        assert here.recover()["recovered_count"] == 0
        assert look(self.root) == before
        fresh = self.open("one", cache="fresh")
        try:
            assert known(here) == known(fresh)
        finally:
            fresh.close()
