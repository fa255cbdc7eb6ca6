"""Agents and a person on one vault, in any order, with kills and the calendar between them.

The model is the vault as it was a moment ago. Whatever the program does, every note is there once and whole,
says what it said but for what the call was to change, keeps the lines that are the person's, and all links
lead where they led; what it replaced can be had back. (Calls are interleaved whole, or killed at any system
call; what happens inside one is in `test_races.py`.)
"""

from __future__ import annotations

import re
import shutil
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from tests.stateful.world import World, look, unlinked
from tests.stateful.writers import LAYERS, Call, Who, Writers, unchanged
from vault_palace.core.errors import Conflict
from vault_palace.core.model import Layer

EXPECTED = {"duplicate_id", "duplicate_name", "unresolved_link", "conflict_copy", "bad_header"}
CONFLICT = "sync-conflict-20310301-120000-ABCDEFG"


whos = st.sampled_from(["one", "two", "elsewhere"])
layers = st.sampled_from([layer.value for layer in Layer])
titles = st.sampled_from(["Pump", "pump", "Kafka topics", "Größe", ""])


class TwoWriters(Writers):
    """What agents and the person may do, each rule once; the order is hypothesis' affair."""

    @initialize(who=whos)
    def first(self, who: Who) -> None:
        self.call(who, self.writing("First", "shallow", None))

    @rule(who=whos, title=titles, layer=layers, linked=st.booleans(), data=st.data())
    def agent_writes(self, who: Who, title: str, layer: str, linked: bool, data: st.DataObject) -> None:
        to = self.pick(data) if linked and self.remembered() else None
        call = self.writing(title or self.new("T"), layer, to)
        answer = self.call(who, call)
        hits = self.palaces[who].search(call.born, limit=100)
        assert [hit["path"] for hit in hits["matches"]] == [answer["saved_path"]]

    @precondition(Writers.remembered)
    @rule(who=whos, linked=st.booleans(), data=st.data())
    def agent_appends(self, who: Who, linked: bool, data: st.DataObject) -> None:
        self.call(who, self.appending(self.pick(data), self.pick(data) if linked else None))

    @precondition(Writers.remembered)
    @rule(who=whos, person_first=st.booleans(), data=st.data())
    def agent_replaces(self, who: Who, person_first: bool, data: st.DataObject) -> None:
        mark = self.pick(data)
        read = self.palaces[who].read(path=self.path(mark), touch=False)
        kept = " ".join(re.findall(r"\[\[[^\]]*\|L\d+\]\]", read["content"]))
        content = f"<{mark}> anew {self.new('W')} {kept}\n"
        plain = unlinked(content).strip()
        call = Call(
            lambda palace: palace.write(content, mode="replace", path=self.path(mark), if_rev=read["rev"]),
            bodies={mark: lambda _old, new: new.strip() == plain},
        )
        if person_first:
            self.edited(mark, lambda text: f"{text}\nperson {self.new('P')}\n")
            self.refused(who, call, Conflict)
        else:
            self.settle(who, call, mark)

    @precondition(Writers.remembered)
    @rule(who=whos, data=st.data())
    def agent_reads(self, who: Who, data: st.DataObject) -> None:
        mark = self.pick(data)
        answer = self.call(who, Call(lambda palace: palace.read(path=self.path(mark))))
        assert f"<{mark}>" in answer["content"]

    @precondition(Writers.remembered)
    @rule(who=whos, density=st.sampled_from([0.0, 0.4, 0.55, 0.9]), data=st.data())
    def agent_rates(self, who: Who, density: float, data: st.DataObject) -> None:
        mark = self.pick(data)
        self.settle(who, self.rating(mark, density), mark)

    @precondition(Writers.remembered)
    @rule(who=whos, layer=layers, renamed=st.booleans(), data=st.data())
    def agent_moves(self, who: Who, layer: str, renamed: bool, data: st.DataObject) -> None:
        mark = self.pick(data)
        self.settle(who, self.moving(mark, layer, f"room/{self.new('R')}" if renamed else None), mark)

    @precondition(Writers.remembered)
    @rule(who=whos, data=st.data())
    def agent_purges(self, who: Who, data: st.DataObject) -> None:
        mark = self.pick(data)
        self.settle(who, self.purging(mark), mark)

    @precondition(Writers.archived)
    @rule(who=whos, data=st.data())
    def agent_restores(self, who: Who, data: st.DataObject) -> None:
        mark = self.pick(data, "_Archive")
        self.settle(who, self.restoring(mark), mark)

    @rule(who=whos)
    def agent_metabolizes(self, who: Who) -> None:
        def whole(world: World, answer: Any) -> None:
            assert not [skip for skip in answer["skipped"] if "does not parse" not in skip["reason"]]
            paths = {seen.path for seen in world.notes.values()}
            assert {*answer["promoted"], *answer["archived"]} <= paths

        self.clock.turn(hours=1)  # nobody is at work
        dry = self.palaces[who].metabolize(dry_run=True)
        self.judge(Call(lambda _palace: None), done=True)
        answer = self.call(
            who, Call(lambda palace: palace.metabolize(confirm=True), movers=None, after=whole)
        )
        assert dry["archived_count"] == answer["archived_count"]

    @precondition(Writers.remembered)
    @rule(who=whos, data=st.data())
    def agent_maps(self, who: Who, data: st.DataObject) -> None:
        link, leads = self.link(self.pick(data))
        if link:
            self.call(who, Call(lambda palace: palace.update_map("add_link", link), links=leads))

    @precondition(Writers.remembered)
    @rule(
        verb=st.sampled_from(["write", "append", "move", "rename", "purge", "rate", "metabolize"]),
        number=st.integers(1, 60),
        edits=st.booleans(),
        data=st.data(),
    )
    def agent_is_killed(self, verb: str, number: int, edits: bool, data: st.DataObject) -> None:
        """SPEC §8; a person may be at the note before anything recovers it."""
        mark = self.pick(data)
        call = {
            "write": lambda: self.writing(self.new("T"), "shallow", mark),
            "append": lambda: self.appending(mark, mark),
            "move": lambda: self.moving(mark, "bedrock", None),
            "rename": lambda: self.moving(mark, "sediment", self.new("R")),
            "purge": lambda: self.purging(mark),
            "rate": lambda: self.rating(mark, 0.7),
            "metabolize": lambda: Call(lambda palace: palace.metabolize(confirm=True), movers=None),
        }[verb]()
        self.killed(call, number)
        place = self.root / self.path(mark)
        edited = edits and place.exists()
        if edited:
            saved = place.read_bytes() + b"\nperson after the kill\n"
            place.write_bytes(saved)

        recovered = self.palaces["one"].recover()

        assert not [item for item in recovered["recovered"] if item["status"] == "open"]
        if edited:
            assert any(seen.data == saved for seen in look(self.root).notes.values())
            grown = call.bodies.get(mark, unchanged)
            call.bodies[mark] = lambda old, new: (
                new.endswith("person after the kill\n")
                and (grown(old, plain := new.removesuffix("\nperson after the kill\n")) or plain == old)
            )
            call.movers = None if call.movers is None else call.movers | {mark}
            self.after_a_person(call, mark)
        else:
            self.judge(call, done=None)

    # -- the person ------------------------------------------------------------------------------------------

    @rule(layer=st.sampled_from(LAYERS), linked=st.booleans(), data=st.data())
    def person_writes(self, layer: str, linked: bool, data: st.DataObject) -> None:
        mark = self.new("K")
        link = self.link(self.pick(data))[0] if linked and self.remembered() else ""
        place = self.root / layer / f"Mine {mark}.md"
        place.write_text(f"<{mark}> my own words {link}\n", encoding="utf-8")
        self.dated(place)
        self.world = look(self.root)

    @precondition(Writers.remembered)
    @rule(atomic=st.booleans(), data=st.data())
    def person_types(self, atomic: bool, data: st.DataObject) -> None:
        words = f"person {self.new('P')}"
        self.edited(self.pick(data), lambda text: f"{text.rstrip()}\n{words}\n", atomic=atomic)

    @precondition(Writers.remembered)
    @rule(
        change=st.sampled_from(
            ["comment", "density", "streak", "pin", "break", "mend", "crlf", "bom", "no newline", "strip"]
        ),
        data=st.data(),
    )
    def person_edits_properties(self, change: str, data: st.DataObject) -> None:
        mark = self.pick(data)
        line = {
            "comment": f'mood: "so: so"  # why {self.new("P")}',
            "density": "density: 0.8",
            "streak": "streak: 3",
            "pin": "pinned: true",
            "break": "density: [1",
        }.get(change)

        def changed(text: str) -> str:
            if change == "mend":
                return text.replace("density: [1", "density: 0.3")
            if change == "crlf":
                return text.replace("\r\n", "\n").replace("\n", "\r\n")
            if change == "bom":
                return "\ufeff" + text.removeprefix("\ufeff")
            if change == "no newline":
                return text.rstrip()
            if change == "strip":  # some editor lost the header
                return re.sub(r"\A\ufeff?---\r?\n.*?^---\r?\n", "", text, flags=re.DOTALL | re.MULTILINE)
            assert line is not None
            key = line.partition(":")[0]
            lines = text.splitlines(keepends=True)
            end = "\r\n" if "\r\n" in text else "\n"
            if not text.removeprefix("\ufeff").startswith("---"):
                bom = "\ufeff" * text.startswith("\ufeff")
                return f"{bom}---{end}{line}{end}---{end}{text.removeprefix(bom)}"
            close = next(n for n, old in enumerate(lines[1:], 1) if old.rstrip() == "---")
            kept = [old for old in lines[1:close] if not old.startswith(f"{key}:")]
            return "".join([lines[0], *kept, line + end, *lines[close:]])

        self.edited(mark, changed)

    @precondition(Writers.remembered)
    @rule(layer=st.sampled_from([*LAYERS, "_Archive/01_Shallow"]), renamed=st.booleans(), data=st.data())
    def person_moves(self, layer: str, renamed: bool, data: st.DataObject) -> None:
        place = self.root / self.path(self.pick(data))
        to = self.root / layer / (f"{self.new('N')}.md" if renamed else place.name)
        if not to.exists():
            to.parent.mkdir(parents=True, exist_ok=True)
            place.rename(to)
            self.world = look(self.root)

    @precondition(Writers.remembered)
    @rule(data=st.data())
    def person_deletes(self, data: st.DataObject) -> None:
        (self.root / self.path(self.pick(data))).unlink()
        self.world = look(self.root)

    @precondition(Writers.remembered)
    @rule(layer=st.sampled_from(LAYERS), same_name=st.booleans(), data=st.data())
    def person_copies(self, layer: str, same_name: bool, data: st.DataObject) -> None:
        mark, copy = self.pick(data), self.new("K")
        place = self.root / self.path(mark)
        to = self.root / layer / (place.name if same_name else f"{place.stem} copy {copy}.md")
        if not to.exists():
            text = place.read_text(encoding="utf-8").replace(f"<{mark}>", f"<{copy}>")
            to.write_text(re.sub(r"\[\[[^\]]*\]\]", "", text), encoding="utf-8")
            self.dated(to)
            self.world = look(self.root)

    @precondition(Writers.remembered)
    @rule(data=st.data())
    def sync_leaves_a_conflict_copy(self, data: st.DataObject) -> None:
        place = self.root / self.path(self.pick(data))
        shutil.copy(place, place.with_name(f"{place.stem}.{CONFLICT}.md"))
        self.world = look(self.root)

    @rule(days=st.sampled_from([0.3, 1, 8, 40]))
    def time_passes(self, days: float) -> None:
        self.clock.turn(days=days)
        self.latest = max(self.latest, self.clock.at)

    @precondition(lambda self: self.clock.at >= self.latest)
    @rule()
    def the_clock_is_set_back(self) -> None:
        """By less than a day: what is further ahead counts as a date in the future, and is reported."""
        self.latest = max(self.latest, self.clock.at)
        self.clock.turn(days=-0.9)

    # -- what must be true -----------------------------------------------------------------------------------

    @rule(who=whos)
    def a_start_changes_nothing(self, who: Who) -> None:
        self.palaces[who].close()
        self.judge(Call(lambda _palace: None), done=True)  # the close may write uses that waited
        self.palaces[who] = self.open(who)
        self.judge(Call(lambda _palace: None), done=True)

    @rule(who=whos)
    def check_says_nothing_false(self, who: Who) -> None:
        codes = {problem.code for problem in self.palaces[who].check()}
        copies = len({seen.value("id") for seen in self.world.notes.values()}) < len(self.world.notes)
        assert codes <= EXPECTED
        assert ("bad_header" in codes) == any(seen.broken for seen in self.world.notes.values())
        assert ("conflict_copy" in codes) == bool(self.world.aside)
        assert "duplicate_id" not in codes or copies

    @invariant()
    def nothing_is_unfinished(self) -> None:
        for palace in self.palaces.values():
            assert palace.house.journal.unfinished() == []


TestTwoWriters = TwoWriters.TestCase
TestTwoWriters.settings = settings(
    max_examples=max(settings.default.max_examples // 4, 5) if settings.default else 15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
