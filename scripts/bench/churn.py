"""What other programs do to a vault, and how many writes of ours follow: none, or few, and then rest.

    python -m scripts.bench.churn [--notes 5000]

A clock that is turned by hand; each scenario starts from a vault at rest and must end at rest. Writes are
counted twice: from what changes on disk in each step, and from the journal. `tests/services/test_churn.py`
runs the same scenarios on few notes and says which counts are right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scripts.bench.make_vault import complete, make
from tests.services.conftest import Clock
from tests.services.keeping import Person
from vault_palace.core.policy import Policy
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.storage.records import Entry, Trace

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
REST = 60.0  # a keeper that asks for more than this waits for a day or a window, not for a note to be quiet
# Versions are as old as their files, which do not know of the turned clock.
POLICY = "---\ntimezone: UTC\nauto_metabolize: daily\nversions_keep_days: 36500\n---\n"
MAPS = ("PALACE_MAP.md", "PALACE_MAP.svg")
FOR_PEOPLE = "_System/Journal.md"
DUMPER = """
const fs = require('fs'), yaml = require('yaml');
for (const path of fs.readFileSync(0, 'utf8').split('\\n').filter(Boolean)) {
  const text = fs.readFileSync(path, 'utf8'), end = text.indexOf('\\n---\\n', 4);
  const block = yaml.stringify(yaml.parse(text.slice(4, end + 1)), {defaultStringType: 'QUOTE_DOUBLE',
    defaultKeyType: 'PLAIN'});
  fs.writeFileSync(path, '---\\n' + block + text.slice(end + 1));
}
"""


class MissingError(Exception):
    """What the scenario needs is not on this machine."""


@dataclass
class Tally:
    """The product's writes since the counting began."""

    seen: Counter[str] = field(default_factory=Counter)  # by path: changes on disk, at most one a step
    told: Counter[str] = field(default_factory=Counter)  # by path: steps of journalled operations
    verbs: Counter[str] = field(default_factory=Counter)  # journalled operations
    lines: int = 0  # journal lines; an operation has two
    steps: int = 0

    @property
    def notes(self) -> Counter[str]:
        """Writes of memories, by path."""
        return Counter({path: count for path, count in self.told.items() if path[:2] in ("01", "02", "03")})

    @property
    def maps(self) -> int:
        return max(self.told[path] for path in MAPS)


class Stage:
    """A vault, a person's hands, the clock, and one or more keepers on one thread."""

    def __init__(self, folder: Path, *, keepers: int = 1) -> None:
        self.folder, self.root, self.clock = folder, folder / "vault", Clock(START)
        for name in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
            (self.root / name).mkdir(parents=True)
        (self.root / "_System/Policy.md").write_text(POLICY, encoding="utf-8")
        self.person = Person(self.root, self.clock)
        self.after_step: Callable[[], None] = lambda: None  # what another program does then
        self._wanted = keepers
        self.palaces: list[Palace] = []
        self.keepers: list[Keeper] = []
        self.tally = Tally()
        self._journal_at: dict[Path, int] = {}

    def open(self) -> None:
        """Start the keepers, each as a process of its own would be."""
        for number in range(self._wanted):
            settings = PalaceSettings(
                cache_dir=self.folder / f"cache {number}",
                state_dir=self.folder / f"state {number}",
                session=f"churn-{number}",
                clock=self.clock,
                sleep=self.clock.sleep,
            )
            self.palaces.append(Palace.open(self.root, settings=settings))
            self.keepers.append(Keeper(self.palaces[-1].house))

    def close(self) -> None:
        for palace in self.palaces:
            palace.close()
        self.palaces, self.keepers = [], []

    # -- notes ---------------------------------------------------------------------------------------------

    def furnish(self, count: int) -> list[str]:
        """*count* memories with all their properties, written with nobody looking."""
        paths = make(self.root, count, today=START)
        complete(self.root, paths, START, Policy(timezone="UTC"))
        self.stamp(paths, START - timedelta(hours=1))
        return paths

    def _tell_the_journal(self, paths: Sequence[str]) -> None:
        """Put the notes on record as if the program had written them."""
        house = self.palaces[0].house
        with house.locked():
            for number, path in enumerate(paths):
                file = house.vault.read(path)
                made = Entry(
                    op=f"{number:016x}",
                    verb="keep",
                    at=START,
                    steps=(Trace(kind="put", path=path, after=file.fingerprint),),
                    notes=tuple(house.note_facts(path, file.data)),
                    machine=house.machine,
                )
                house.journal.begin(made)
                house.journal.close(made.op, "done")

    def stamp(self, paths: Sequence[str], at: datetime | None = None) -> None:
        """Give the files the clock's time: other programs know only the machine's."""
        when = int((at or self.clock.at).timestamp() * 1e9)
        for path in paths:
            os.utime(self.root / path, ns=(when, when))

    def stamp_new(self) -> list[str]:
        """Stamp the notes that another program just wrote, told by the machine's own time."""
        floor = START - timedelta(days=1)
        found = [
            path
            for path, mark in self._marks().items()
            if path.endswith(".md") and mark[0] < floor.timestamp() * 1e9 and not path.startswith("_System")
        ]
        self.stamp(found)
        return found

    # -- counting ------------------------------------------------------------------------------------------

    def count_from_now(self) -> None:
        self.tally = Tally()
        for _ in self._journalled():
            pass
        self.tally = Tally()

    def _marks(self) -> dict[str, tuple[int, int, int]]:
        found: dict[str, tuple[int, int, int]] = {}
        folders = [str(self.root)]
        while folders:
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in (".palace", ".git", "journal"):
                            folders.append(entry.path)
                        continue
                    seen = entry.stat(follow_symlinks=False)
                    path = os.path.relpath(entry.path, self.root).replace(os.sep, "/")
                    found[path] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        return found

    def _journalled(self) -> Iterator[dict[str, Any]]:
        for place in sorted((self.root / "_System/journal").glob("*.jsonl")):
            data = place.read_bytes()
            new = data[self._journal_at.get(place, 0) :]
            self._journal_at[place] = len(data)
            for line in new.splitlines():
                self.tally.lines += 1
                yield json.loads(line)

    def _count(self, before: dict[str, tuple[int, int, int]]) -> None:
        after = self._marks()
        for path in before.keys() | after.keys():
            if before.get(path) != after.get(path):
                self.tally.seen[path] += 1
        for record in self._journalled():
            if record.get("state") != "begin":
                continue
            self.tally.verbs[record["verb"]] += 1
            for step in record["steps"]:
                self.tally.told[step.get("to") or step["path"]] += 1

    # -- time ----------------------------------------------------------------------------------------------

    def step(self, paths: Sequence[str] | None = None) -> float | None:
        """Each keeper looks once; the seconds until the first of them wants to look again."""
        waits = []
        for keeper in self.keepers:
            before = self._marks()
            waits.append(keeper.step(paths))
            self.tally.steps += 1
            self._count(before)
            self.after_step()
        return min((wait for wait in waits if wait is not None), default=None)

    def rest(self, most: int = 2000) -> None:
        """Step until nothing is due soon. A vault that never comes to rest fails."""
        for _ in range(most):
            wait = self.step()
            if wait is None or wait > REST:
                return
            self.clock.at += timedelta(seconds=max(wait, 0.01))
        raise AssertionError(f"the vault does not come to rest: {self.tally}")

    def run(self, seconds: float, *, every: float) -> None:
        """Look at everything again and again for so long."""
        end = self.clock.at + timedelta(seconds=seconds)
        while self.clock.at < end:
            self.step()
            self.clock.at += timedelta(seconds=every)

    def later(self, **by: float) -> None:
        self.clock.at += timedelta(**by)

    def begin(self, count: int) -> list[str]:
        """A vault of so many memories, known to the journal and at rest; the counting starts."""
        paths = self.furnish(count)
        self.open()
        self._tell_the_journal(paths)
        self.rest()
        self.later(minutes=20)
        self.rest()
        self.count_from_now()
        return paths


# -- the scenarios ------------------------------------------------------------------------------------------


def two_keepers(stage: Stage, count: int) -> None:
    """Half of the notes are plain files by hand; two keepers meet them at once."""
    stage.furnish(count - count // 2)
    for number in range(count // 2):
        stage.person.writes(f"01_Shallow/by hand/Hand {number:04d}.md", f"# Hand {number}\n\nWords.\n")
    stage.open()
    stage.rest()


def idle_hour(stage: Stage, count: int) -> None:
    """Nobody does anything; everything is compared once a minute."""
    stage.begin(count)
    stage.run(3600, every=60)


def redumped_by_ruamel(stage: Stage, count: int) -> None:
    """Every header written anew by a YAML 1.2 library: comments lost, lists and quotes as it likes them."""
    paths = stage.begin(count)
    dump_with_ruamel(stage.root, paths)
    stage.stamp(paths)
    stage.rest()


def redumped_by_npm(stage: Stage, count: int) -> None:
    """The same by npm's `yaml`, every text in double quotes: what Obsidian itself uses."""
    modules = npm_yaml()
    paths = stage.begin(count)
    subprocess.run(
        ["node", "-e", DUMPER],
        input="\n".join(str(stage.root / path) for path in paths),
        env={**os.environ, "NODE_PATH": modules},
        encoding="utf-8",
        check=True,
    )
    stage.stamp(paths)
    stage.rest()


def formatter(stage: Stage, count: int, *, key: str = "modified") -> None:
    """A plugin that sets its own date in every note that anybody changed, a second later (WT-03)."""
    paths = stage.begin(count)
    other = Formatter(stage, lambda text, now: with_line(text, key, now))
    stage.after_step = other.look
    stage.person.edits(paths[0], ".\n", ". And more.\n")
    stage.run(60, every=1)
    stage.after_step = lambda: None
    stage.rest()


def checkout(stage: Stage, count: int) -> None:
    """git switches to a branch where every note's text is another, and back."""
    paths = stage.begin(count)
    with_git(stage, paths)
    stage.rest()
    git(stage, "checkout", "-q", "main")
    stage.stamp_new()
    stage.rest()


def checkout_of_new(stage: Stage, count: int) -> None:
    """git switches to a branch with as many plain new notes."""
    stage.begin(max(count // 4, 10))
    git_start(stage)
    git(stage, "checkout", "-q", "-b", "more")
    for number in range(count):
        stage.person.writes(f"01_Shallow/from git/New {number:05d}.md", f"# New {number}\n\nWords.\n")
    git(stage, "add", "01_Shallow")
    git(stage, "commit", "-q", "-m", "more")
    git(stage, "checkout", "-q", "main")
    stage.rest()
    stage.count_from_now()
    git(stage, "checkout", "-q", "more")
    stage.stamp_new()
    stage.rest()


def synced(stage: Stage, count: int) -> None:
    """A sync tool's temporary files, whole and renamed one by one, while the keeper looks at each step."""
    stage.begin(10)
    forms = (".syncthing.{}.md.tmp", "~syncthing~{}.md.tmp", "{}.md.part")
    room = stage.root / "01_Shallow/synced"
    room.mkdir()
    for number in range(count):
        name = f"Came {number:04d}"
        temporary = room / forms[number % len(forms)].format(name)
        temporary.write_text("# Ca", encoding="utf-8")
        stage.step([f"01_Shallow/synced/{temporary.name}"])
        temporary.write_text(f"# {name}\n\nFrom another machine.\n", encoding="utf-8")
        stage.step([f"01_Shallow/synced/{temporary.name}"])
        temporary.rename(room / f"{name}.md")
        stage.stamp([f"01_Shallow/synced/{name}.md"])
        stage.step([f"01_Shallow/synced/{temporary.name}", f"01_Shallow/synced/{name}.md"])
        stage.later(seconds=0.5)
    stage.rest()


def unmounted(stage: Stage, count: int) -> None:
    """The vault's folder is gone, then an empty one is there instead, then it is back (WT-08)."""
    stage.begin(count)
    hold = stage.folder / "hold"
    stage.root.rename(hold)
    stage.run(60, every=5)
    stage.root.mkdir()
    stage.run(60, every=5)
    stage.root.rmdir()
    hold.rename(stage.root)
    stage.later(minutes=10)
    stage.rest()


def layer_unmounted(stage: Stage, count: int) -> None:
    """One layer's folder is gone, then empty, then back (WT-08)."""
    stage.begin(count)
    layer, hold = stage.root / "01_Shallow", stage.folder / "hold"
    layer.rename(hold)
    stage.run(60, every=5)
    layer.mkdir()
    stage.run(60, every=5)
    layer.rmdir()
    hold.rename(layer)
    stage.later(minutes=10)
    stage.rest()


def copied_in(stage: Stage, count: int) -> None:
    """A populated folder appears at once (WT-05): `cp -r`; the event names the folder alone."""
    stage.begin(10)
    pack(stage.folder / "pack", count)
    subprocess.run(["cp", "-r", stage.folder / "pack", stage.root / "01_Shallow/pack"], check=True)
    stage.stamp_new()
    stage.step(["01_Shallow/pack"])
    stage.rest()


def quarrel(stage: Stage, count: int, *, dated: bool = True) -> None:
    """Another program takes our line out again each time; *dated*: no two of its texts are the same."""
    paths = stage.begin(count)

    def without(text: str, now: str) -> str:
        bare = text.replace(f"layer: {own_layer(paths[0])}\n", "")
        return with_line(bare, "modified", now) if dated and bare != text else bare

    other = Formatter(stage, without)
    stage.after_step = other.look
    stage.person.writes(paths[0], without(stage.person.reads(paths[0]), "2031-03-01T12:00:00"))
    stage.run(300, every=1)
    stage.after_step = lambda: None


def quarrel_of_few_words(stage: Stage, count: int) -> None:
    """The same with the same bytes each time."""
    quarrel(stage, count, dated=False)


SCENARIOS: dict[str, Callable[[Stage, int], None]] = {
    "two keepers at once, half of the notes plain": two_keepers,
    "an idle hour": idle_hour,
    "every header re-dumped by ruamel.yaml": redumped_by_ruamel,
    "every header re-dumped by npm's yaml": redumped_by_npm,
    "a formatter's own date, 60 s": formatter,
    "git checkout of other texts, and back": checkout,
    "git checkout of plain new notes": checkout_of_new,
    "a sync tool's files, one by one": synced,
    "the vault unmounted and back": unmounted,
    "a layer unmounted and back": layer_unmounted,
    "a folder copied in": copied_in,
    "a program that takes our line out, 300 s": quarrel,
    "the same, by the same bytes each time": quarrel_of_few_words,
}
FEW: dict[Callable[[Stage, int], None], int] = {
    synced: 100,
    formatter: 200,
    quarrel: 200,
    quarrel_of_few_words: 200,
}  # their size is not the number of notes


# -- what they do ------------------------------------------------------------------------------------------


class Formatter:
    """A program that changes each note that changed since it looked last, one second later."""

    def __init__(self, stage: Stage, change: Callable[[str, str], str]) -> None:
        self.stage, self.change = stage, change
        self.writes = 0
        self._known = self._look()
        self._due: dict[str, datetime] = {}

    def _look(self) -> dict[str, tuple[int, int, int]]:
        return {path: mark for path, mark in self.stage._marks().items() if path.endswith(".md")}

    def look(self) -> None:
        now = self.stage.clock.at
        there = self._look()
        for path, mark in there.items():
            if self._known.get(path) != mark:
                self._due.setdefault(path, now + timedelta(seconds=1))
        self._known = there
        for path in [path for path, at in self._due.items() if at <= now]:
            del self._due[path]
            text = self.stage.person.reads(path)
            changed = self.change(text, now.isoformat(timespec="seconds"))
            if changed != text:
                self.stage.person.writes(path, changed)
                self.writes += 1
        self._known = self._look()  # not what it did itself


def with_line(text: str, key: str, value: str) -> str:
    """*text* with this property, as a formatter writes it."""
    if not text.startswith("---\n"):
        return f"---\n{key}: {value}\n---\n{text}"
    head, _, rest = text[4:].partition("---\n")
    lines = [line for line in head.splitlines(keepends=True) if not line.startswith(f"{key}:")]
    return f"---\n{''.join(lines)}{key}: {value}\n---\n{rest}"


def own_layer(path: str) -> str:
    return path.split("/")[0].split("_")[1].lower()


def dump_with_ruamel(root: Path, paths: Sequence[str]) -> None:
    """Read each header without its comments, and write it with block lists and quoted texts."""
    from io import StringIO

    from ruamel.yaml import YAML

    reader = YAML(typ="safe", pure=True)
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    for path in paths:
        place = root / path
        text = place.read_text(encoding="utf-8")
        head, _, body = text[4:].partition("\n---\n")
        block = StringIO()
        writer.dump(reader.load(head), block)
        place.write_text(f"---\n{block.getvalue()}---\n{body}", encoding="utf-8")


def npm_yaml() -> str:
    """The folder of node modules with npm's `yaml`."""
    here = Path(__file__).resolve().parents[2] / ".tools" / "node_modules"
    named = os.environ.get("NODE_PATH", "").split(os.pathsep)
    if shutil.which("node") is None:
        raise MissingError("Node is not here")
    for folder in (str(here), *filter(None, named)):
        if (Path(folder) / "yaml").is_dir():
            return folder
    raise MissingError("npm's yaml is not here (NODE_PATH may name its folder)")


def git(stage: Stage, *words: str) -> None:
    if shutil.which("git") is None:
        raise MissingError("git is not here")
    settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false", "-c", "gc.auto=0"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *settings, *words], cwd=stage.root, env=env, check=True, capture_output=True)


def git_start(stage: Stage) -> None:
    git(stage, "init", "-q", "-b", "main")
    git(stage, "add", "01_Shallow", "02_Sediment", "03_Bedrock")
    git(stage, "commit", "-q", "-m", "as it was")


def with_git(stage: Stage, paths: Sequence[str]) -> None:
    """Make a branch with other texts while nobody looks, and switch to it."""
    git_start(stage)
    git(stage, "checkout", "-q", "-b", "other")
    for path in paths:
        text = stage.person.reads(path)
        (stage.root / path).write_text(f"{text}\nWritten on a branch.\n", encoding="utf-8")
    git(stage, "commit", "-q", "-a", "-m", "other texts")
    stage.stamp_new()


def pack(folder: Path, count: int) -> None:
    """A folder of plain notes in three levels, from elsewhere."""
    for number in range(count):
        place = folder / ("", "deep", "deep/deeper")[number % 3] / f"Packed {number:04d}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# Packed {number}\n\nA gneissword lies here.\n", encoding="utf-8")


# -- the table ---------------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--notes", type=int, default=5000)
    parser.add_argument("--folder", type=Path, help="where vaults are made; a folder in memory is fast")
    parser.add_argument("--only", default="", help="scenarios with these words in their names")
    asked = parser.parse_args()
    restless = 0
    head = ("scenario", "notes", "writes", "most", "map", "lines", "seconds")
    print("{:46}{:>7}{:>8}{:>6}{:>5}{:>8}{:>9}  at rest".format(*head))
    for name, act in SCENARIOS.items():
        if asked.only not in name:
            continue
        count = min(FEW.get(act, asked.notes), asked.notes)
        folder = Path(tempfile.mkdtemp(prefix="churn-", dir=asked.folder))
        stage = Stage(folder, keepers=2 if act is two_keepers else 1)
        began, quiet = time.monotonic(), "yes"
        try:
            act(stage, count)
        except MissingError as missing:
            quiet = f"skipped: {missing}"
        except AssertionError:
            quiet, restless = "NO", restless + 1
        finally:
            stage.close()
            shutil.rmtree(folder, ignore_errors=True)
        tally, took = stage.tally, time.monotonic() - began
        most = max(tally.notes.values(), default=0)
        writes = f"{tally.notes.total():>8}{most:>6}{tally.maps:>5}{tally.lines:>8}"
        print(f"{name:46}{count:>7}{writes}  {took:>7.1f}  {quiet}", flush=True)
        if tally.verbs:
            print(f"{'':53}  {', '.join(f'{count} {verb}' for verb, count in sorted(tally.verbs.items()))}")
    return 1 if restless else 0


if __name__ == "__main__":
    sys.exit(main())
