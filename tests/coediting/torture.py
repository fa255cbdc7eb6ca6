"""A person, two agents, the ageing and the keeper at one vault: what they do in a run, and in what order.

`Torture(base, seed).run(operations)` does it, and `judgement.judge` says what was lost. One seed gives one
course of events, ids aside. Calls of the product have gaps in them: before each of its system calls, and
while it sleeps, the person's programs may act, and while it sleeps without the lock the other agent may call.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.coediting.editor import PlainEditor
from tests.coediting.ledger import LINK, MARK, Ledger, marks, words
from tests.coediting.obsidian import Edit, Obsidian
from tests.coediting.stage import Clock
from vault_palace.core.errors import VaultError
from vault_palace.core.model import ARCHIVE, Layer
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace, PalaceSettings

LAYERS = tuple(layer.folder for layer in Layer)
ROOMS = ("", "", "ideas", "work")
MOST_NOTES = 30
PLAIN = [
    "water",
    "pump",
    "kafka",
    "topic",
    "event",
    "audit",
    "trail",
    "ledger",
    "garden",
    "stone",
    "river",
    "window",
    "number",
    "letter",
    "people",
    "winter",
    "morning",
    "engine",
    "colour",
    "island",
    "paper",
    "window",
    "school",
    "doctor",
    "music",
    "family",
    "system",
    "question",
    "money",
    "country",
    "valve",
    "gauge",
    "torque",
    "signal",
    "thread",
    "socket",
    "buffer",
    "packet",
    "mirror",
    "candle",
    "forest",
    "harbour",
    "needle",
    "orchard",
]
DAY = 86_400.0
COPY = "(conflicted copy"
PERSON_FIRST = 5.0  # seconds for which a density that a person set may still be on its way to the disk
POLICY = """---
timezone: UTC
auto_metabolize: daily
max_destructive_per_minute: 10000
max_archive_share: 1
versions_keep_days: 36500
---
"""


class Torture:
    """One run. `ledger` is its record."""

    def __init__(self, base: Path, seed: int, *, keeper: bool = True) -> None:
        self.base = base
        self.root = base / "vault"
        for folder in (*LAYERS, "_System"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "_System/Policy.md").write_text(POLICY, encoding="utf-8")
        self.rng = Random(seed)
        self.clock = Clock(Random(seed + 1))
        self.ledger = Ledger(rng=Random(seed + 3))
        self.ledger.wrote = self._register
        self.app = Obsidian(self.root, self.clock, self.ledger, Random(seed + 2))
        self.editor = PlainEditor(self.root, self.clock, self.ledger)
        self.clock.between = self._while_others_wait
        self.targets: dict[str, str] = {}  # a link's alias -> the mark it was written for
        self.set_at: dict[str, float] = {}  # mark -> when the person last set its density in a buffer
        self._nested = False
        with self.clock.running():
            self.agents = [self._open(f"agent-{number}") for number in (1, 2)]
            self.house = self._open("keeper")
            self.keeper = Keeper(self.house.house) if keeper else None
            for _ in range(4):
                self._agent_creates()

    def _open(self, session: str) -> Palace:
        settings = PalaceSettings(
            cache_dir=self.base / "cache",
            state_dir=self.base / "state",
            session=session,
            clock=self.clock,
            sleep=self.clock.sleep,
        )
        return Palace.open(self.root, settings=settings)

    def close(self) -> None:
        self.clock.between = None
        self.clock.lookers.clear()
        for palace in (*self.agents, self.house):
            palace.close()
        shutil.rmtree(self.base)

    # -- the vault as a bystander sees it --------------------------------------------------------------------

    def paths(self, *folders: str) -> list[str]:
        """The notes below these folders (the layers), in order; conflict copies are none."""
        found: list[str] = []
        for folder in folders or LAYERS:
            for above, below, names in os.walk(self.root / folder):
                below[:] = sorted(name for name in below if not name.startswith("."))
                here = Path(above).relative_to(self.root).as_posix()
                kept = [name for name in sorted(names) if self._is_note(name)]
                found += [f"{here}/{name}" for name in kept]
        return found

    @staticmethod
    def _is_note(name: str) -> bool:
        return name.endswith(".md") and not name.startswith(".") and COPY not in name

    def copies(self) -> list[Path]:
        """The conflict copies, which the product keeps aside and shows among the problems."""
        return [place for place in sorted(self.root.rglob(f"*{COPY}*.md")) if ".palace" not in place.parts]

    def text(self, path: str) -> str:
        try:
            return (self.root / path).read_bytes().decode("utf-8")
        except FileNotFoundError:
            return ""

    def mark_at(self, path: str) -> str:
        found = MARK.search(self.text(path))
        return found[0] if found else ""

    def pick(self, *folders: str) -> str:
        """Any note; often one that the person has open, for that is where it gets tight."""
        there = self.paths(*folders)
        shown = [path for path in self.app.views if path in there]
        if shown and self.rng.random() < 0.5:
            return self.rng.choice(shown)
        return self.rng.choice(there) if there else ""

    def _register(self, text: str) -> None:
        """Remember the links in *text*, now on the disk, that lead where they were written for."""
        for stem, alias in LINK.findall(text):
            mark = self.targets.get(alias, "")
            if alias in self.ledger.links or not mark:
                continue
            there = [path for path in self.paths(*LAYERS, ARCHIVE) if Path(path).stem == stem]
            if len(there) == 1 and self.mark_at(there[0]) == mark:
                self.ledger.links[alias] = mark
            else:
                self.ledger.counts["links whose target was renamed before they were saved"] += 1
                self.targets[alias] = ""

    def _sentence(self, word: str) -> str:
        """A sentence around *word*, as unlike others as people's are: Obsidian merges by likeness."""
        said = self.rng.choices(PLAIN, k=self.rng.randrange(3, 9))
        said.insert(self.rng.randrange(len(said)), word)
        return " ".join(said)

    def _link(self) -> str:
        """A link to some note, in one case of three; else nothing."""
        path = self.pick() if self.rng.random() < 0.35 else ""
        mark = self.mark_at(path) if path else ""
        if (
            not mark
            or len([one for one in self.paths(*LAYERS, ARCHIVE) if Path(one).stem == Path(path).stem]) > 1
        ):
            return ""
        alias = f"L{self.ledger.number():05}L"
        self.targets[alias] = mark
        return f" [[{Path(path).stem}|{alias}]]"

    # -- one operation ---------------------------------------------------------------------------------------

    def run(self, operations: int) -> None:
        acts, weights = zip(*ACTS, strict=True)
        with self.clock.running():
            for number in range(operations):
                (act,) = self.rng.choices(acts, weights)
                self.do(act, number)

    def do(self, act: Callable[[Torture], object], number: int = 0) -> None:
        self.ledger.counts["operations"] += 1
        self.ledger.counts[act.__name__.strip("_")] += 1
        self.ledger.tell(self.clock.at, f"#{number} {act.__name__}")
        act(self)
        self.clock.turn(self.rng.choice((0.05, 0.3, 0.8, 1.5, 2.5)))

    def ask(self, what: str, call: Callable[[], Any]) -> Any:
        """A call of the product: its answer, or None where it refused."""
        try:
            answer = call()
        except VaultError as error:
            self.ledger.counts[f"refused: {error.code}"] += 1
            self.ledger.tell(self.clock.at, f"{what} refused: {error}")
            return None
        self.ledger.tell(self.clock.at, f"{what} done")
        return answer

    def _while_others_wait(self) -> None:
        """The other agent calls while one waits, where it does not hold the lock."""
        if self._nested or self.rng.random() > 0.1 or self.house.house.lock_holder():
            return
        self._nested = True
        try:
            act = self.rng.choice((Torture._agent_appends, Torture._agent_rates, Torture._agent_reads))
            act(self, self.agents[1])
        finally:
            self._nested = False

    def agent(self) -> Palace:
        return self.rng.choice(self.agents)

    # -- agents ----------------------------------------------------------------------------------------------

    def _agent_creates(self) -> None:
        if len(self.paths()) >= MOST_NOTES:
            return
        number = self.ledger.number()
        mark = f"K{number:05}K"
        word = self.ledger.word("c", mark)
        content = f"# About {mark}\n\n{self._sentence(word)}{self._link()}\n"
        layer = self.rng.choice(("shallow", "shallow", "sediment"))
        room = self.rng.choice(ROOMS)
        path = f"{room}/Memo {number}.md" if room else f"Memo {number}.md"
        answer = self.ask(
            f"create {mark}", lambda: self.agent().write(content, layer=layer, path=path, density=0.4)
        )
        if answer is not None:
            self.ledger.answered.add(word)
            self.ledger.ratings[mark] = 0.4
            self._register(content)

    def _agent_appends(self, agent: Palace | None = None) -> None:
        path = self.pick()
        if not path:
            return
        mark = self.mark_at(path)
        word = self.ledger.word("a", mark)
        content = f"{self._sentence(word)}{self._link()}\n"
        palace = agent or self.agent()
        if self.ask(f"append {word} to {path}", lambda: palace.write(content, mode="append", path=path)):
            self.ledger.answered.add(word)
            self._register(content)

    def _agent_replaces(self) -> None:
        path = self.pick()
        palace = self.agent()
        read = path and self.ask(
            f"read {path}", lambda: palace.read(path=path, touch=False, max_tokens=100_000)
        )
        if not read:
            return
        self.clock.turn(self.rng.choice((0.0, 0.2, 3.0)))
        old = read["content"]
        word = self.ledger.word("r", self.mark_at(path))
        kept = [line for line in old.splitlines() if MARK.search(line) or self.rng.random() < 0.7]
        new = "\n".join([*kept, self._sentence(word)])
        answer = self.ask(
            f"replace {path} with {word}",
            lambda: palace.write(new, mode="replace", path=path, if_rev=read["rev"]),
        )
        if answer is not None:
            self.ledger.answered.add(word)
            self.ledger.replaced |= words(old) - words(new)

    def _agent_rates(self, agent: Palace | None = None) -> None:
        path = self.pick()
        if not path:
            return
        mark, density = self.mark_at(path), self.rng.choice((0.1, 0.3, 0.6, 0.9))
        palace = agent or self.agent()
        answer = self.ask(f"rate {path} {density}", lambda: palace.rate(path=path, density=density))
        if answer is not None and mark:
            late = self.clock.at - self.set_at.get(mark, float("-inf")) < PERSON_FIRST
            self.ledger.ratings[mark] = None if late else density
            self.ledger.rated_at[mark] = self.clock.at

    def _agent_reads(self, agent: Palace | None = None) -> None:
        path = self.pick()
        palace = agent or self.agent()
        if path:
            self.ask(f"read {path}", lambda: palace.read(path=path))

    def _agent_searches(self) -> None:
        known = sorted(self.ledger.answered)
        if known:
            self.ask("search", lambda: self.agent().search(self.rng.choice(known)))

    def _agent_moves(self) -> None:
        path = self.pick()
        if not path:
            return
        layer = self.rng.choice([layer.value for layer in Layer])
        name = (
            f"{self.rng.choice(ROOMS) or 'room'}/Moved {self.ledger.number()}"
            if self.rng.random() < 0.5
            else None
        )
        self.ask(f"move {path} to {layer} {name}", lambda: self.agent().move(path, layer, new_path=name))

    def _agent_purges(self) -> None:
        path = self.pick()
        if path:
            self.ask(f"purge {path}", lambda: self.agent().purge(path, confirm=True))

    def _agent_restores(self) -> None:
        path = self.pick(ARCHIVE)
        if path:
            self.ask(f"restore {path}", lambda: self.agent().restore(path))

    def _metabolizes(self) -> None:
        self.ask("metabolize", lambda: self.agent().metabolize(confirm=True, force=True))

    # -- the keeper and the calendar -------------------------------------------------------------------------

    def _keeper_looks(self) -> float | None:
        return self.keeper.step() if self.keeper is not None else None

    def pass_time(self, seconds: float, *, kept: bool = True) -> None:
        """Let time pass, with the keeper at work as often as it asks to be, or with none alive."""
        until = self.clock.at + seconds
        look = True
        while kept and self.keeper is not None and self.clock.at < until:
            wait = self.keeper.step(None if look else ())
            if wait is None:
                break
            look = False  # nobody changes anything meanwhile but who was at it already
            self.clock.turn(min(max(wait, 0.2), max(until - self.clock.at, 0.0)))
        self.clock.turn(max(until - self.clock.at, 0.0))

    def _time_passes(self) -> None:
        seconds = self.rng.choice((3, 3, 10, 30, 60, 300, 700, 1500, 3600))
        self.pass_time(seconds, kept=self.rng.random() < 0.7)

    def _days_pass(self) -> None:
        self.pass_time(DAY * self.rng.choice((1, 1, 2, 4)), kept=self.rng.random() < 0.7)

    # -- the person in Obsidian ------------------------------------------------------------------------------

    def _shown(self) -> str:
        """A note in a tab; opened if there is none."""
        if self.app.views and self.rng.random() < 0.8:
            return self.rng.choice(list(self.app.views))
        path = self.pick()
        if path:
            self.app.open(path)
        return path

    def _person_opens(self) -> None:
        path = self.pick()
        if path:
            self.app.open(path)

    def _person_types(self) -> None:
        """A burst of words, some of them while others act."""
        path = self._shown()
        for number in range(self.rng.choice((1, 1, 2, 4)) if path else 0):
            delay = 0.0 if number == 0 else self.rng.random() * 4
            self.clock.after(delay, lambda: self._types(path))
        self.clock.turn(0.001)

    def _types(self, path: str) -> None:
        if path in self.app.views:
            self.app.type(path, self._typing(self.mark_at(path)))

    def _typing(self, mark: str) -> Edit:
        word = self.ledger.word("p", mark)
        said = f"{self._sentence(word)}{self._link()}"
        where = self.rng.random()
        spot = self.rng.random()

        def edit(text: str) -> str:
            header, lines = split(text)
            if where < 0.4 or not lines:
                return f"{header}{join(lines)}{said}\n"
            at = int(spot * len(lines))
            if where < 0.7:
                lines[at] = f"{lines[at]} {said}" if lines[at].strip() else said
            else:
                lines[at:at] = [said, ""]
            return f"{header}{join(lines)}"

        return edit

    def _cutting(self) -> Edit:
        spot = self.rng.random()

        def edit(text: str) -> str:
            header, lines = split(text)
            may = [number for number, line in enumerate(lines) if words(line) and not MARK.search(line)]
            if not may:
                return text
            del lines[may[int(spot * len(may))]]
            return f"{header}{join(lines)}"

        return edit

    def _person_cuts(self) -> None:
        """Delete a paragraph in the app."""
        path = self._shown()
        if path:
            self.app.type(path, self._cutting())

    def _person_sets_a_property(self) -> None:
        path = self._shown()
        if not path:
            return
        mark = self.mark_at(path)
        with contextlib.suppress(ValueError):
            if self.rng.random() < 0.3 and mark:
                self.app.set_property(path, "density", self.rng.choice((0.2, 0.5, 0.7)))
                self.ledger.ratings[mark] = None
                self.set_at[mark] = self.clock.at
            else:
                self.app.set_property(path, "mood", self.ledger.word("p", mark))

    def _person_closes(self) -> None:
        if self.app.views:
            path = self.rng.choice(list(self.app.views))
            self.app.close(path)
            self.ledger.tell(self.clock.at, f"obsidian closed {path}")

    def _person_renames(self) -> None:
        path = self.pick()
        if path:
            self._renames(path, f"{path.rpartition('/')[0]}/Named {self.ledger.number()}.md")

    def _renames(self, path: str, to: str) -> None:
        self.app.rename(path, to)
        self.ledger.tell(self.clock.at, f"obsidian renamed {path} to {to}")

    def _person_drags(self) -> None:
        path = self.pick()
        if path:
            room = self.rng.choice(ROOMS)
            folder = "/".join(part for part in (self.rng.choice(LAYERS), room) if part)
            to = f"{folder}/{Path(path).name}"
            if not (self.root / to).exists():
                self._renames(path, to)

    def _person_deletes(self) -> None:
        path = self.pick()
        if path and len(self.paths()) > 5 and marks(self.text(path)):
            self.app.delete(path)
            self.ledger.tell(self.clock.at, f"obsidian deleted {path}")

    def _person_creates(self) -> None:
        if len(self.paths()) < MOST_NOTES:
            number = self.ledger.number()
            mark = f"K{number:05}K"
            word = self.ledger.word("p", mark)
            folder = "/".join(part for part in (self.rng.choice(LAYERS[:2]), self.rng.choice(ROOMS)) if part)
            self.app.create(
                f"{folder}/Mine {number}.md", f"# Mine {mark}\n\n{self._sentence(word)}{self._link()}\n"
            )

    # -- the person in another editor ------------------------------------------------------------------------

    def _editor_opens(self) -> None:
        path = self.pick()
        if path:
            self.editor.save()
            self.editor.open(path)

    def _editor_types(self) -> None:
        if self.editor.path:
            mark = next(iter(sorted(marks(self.editor.loaded))), "")
            self.editor.edit(self._cutting() if self.rng.random() < 0.15 else self._typing(mark))

    def _editor_saves(self) -> None:
        if self.editor.path:
            self.editor.save()

    def _person_moves_with_a_shell(self) -> None:
        path = self.pick()
        if path:
            to = f"{self.rng.choice(LAYERS)}/{Path(path).name}"
            if self.rng.random() < 0.4:
                to = f"{path.rpartition('/')[0]}/Shell {self.ledger.number()}.md"
            self._keeper_looks()  # of a name that came and went between two looks nobody can know anything
            if not (self.root / to).exists() and (self.root / path).exists():
                self.editor.move(path, to)
                self.ledger.tell(self.clock.at, f"shell moved {path} to {to}")

    # -- the end ---------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everybody saves and goes; the keeper does what is left to do."""
        with self.clock.running():
            self.app.quit()
            self.editor.save()
            self.clock.turn(5)
            for _ in range(4):
                self.pass_time(900)
            for palace in (*self.agents, self.house):
                palace.recover()
            self.pass_time(60)


def split(text: str) -> tuple[str, list[str]]:
    """Header and lines of a note, for a person's hand in the body."""
    if text.startswith("---\n"):
        header, found, body = text[4:].partition("\n---\n")
        if found:
            return f"---\n{header}\n---\n", body.splitlines()
    return "", text.splitlines()


def join(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


ACTS: tuple[tuple[Callable[[Torture], object], int], ...] = (
    (Torture._agent_creates, 5),
    (Torture._agent_appends, 12),
    (Torture._agent_replaces, 8),
    (Torture._agent_rates, 6),
    (Torture._agent_reads, 5),
    (Torture._agent_searches, 2),
    (Torture._agent_moves, 4),
    (Torture._agent_purges, 1),
    (Torture._agent_restores, 2),
    (Torture._metabolizes, 1),
    (Torture._keeper_looks, 14),
    (Torture._time_passes, 5),
    (Torture._days_pass, 1),
    (Torture._person_opens, 6),
    (Torture._person_types, 22),
    (Torture._person_cuts, 4),
    (Torture._person_sets_a_property, 4),
    (Torture._person_closes, 4),
    (Torture._person_renames, 2),
    (Torture._person_drags, 2),
    (Torture._person_deletes, 1),
    (Torture._person_creates, 3),
    (Torture._editor_opens, 3),
    (Torture._editor_types, 6),
    (Torture._editor_saves, 4),
    (Torture._person_moves_with_a_shell, 1),
)
