"""The program is killed at every step of every verb; afterwards each note is whole, once, old or new.

SPEC §8: killed at any instruction, the vault recovers to all-old or all-new per operation, and a person's
newer edit is never overwritten (RC-03, RC-05).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.storage.killpoints import Stop, every_kill_point
from vault_palace.services.house import House
from vault_palace.services.palace import Palace, PalaceSettings

Verb = Callable[[Palace], object]

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2031, 3, 10, 12, tzinfo=UTC)
PERSON = "A person wrote this after the crash.\n"


def opened(base: Path, at: datetime = LATER) -> Palace:
    settings = PalaceSettings(
        cache_dir=base / "cache",
        state_dir=base / "state",
        session="killed",
        clock=lambda: at,
        sleep=lambda _seconds: None,
    )
    return Palace.open(base / "vault", settings=settings)


@pytest.fixture(autouse=True)
def _same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """New notes get one id, so that two runs of a verb end in the same bytes."""
    monkeypatch.setattr(House, "new_id", lambda _house: "mem_new")


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of flushed writes are not what is tested."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault of 22 notes: nineteen due for the archive, one to rise, a hub with every form of link."""
    base = tmp_path_factory.mktemp("original")
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (base / "vault" / folder).mkdir(parents=True)
    (base / "vault/_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(base, START) as palace:
        for number in range(18):
            palace.write(f"sand of the sea {number}", title=f"Sand {number}")
        palace.write("gold", title="Gold", density=0.9)
        palace.write("the hub", title="Hub", path="room/")
        palace.write("[[Hub]] and [[01_Shallow/room/Hub|the hub]]", title="Bare", density=0.5)
        palace.write("let go", title="Gone", density=0.5)
        palace.purge("01_Shallow/Gone.md", confirm=True)
    (base / "vault/notes.md").write_text("a person's [hub](01_Shallow/room/Hub.md)\n", encoding="utf-8")
    (base / "vault/table.md").write_text("| [[room/Hub\\|h]] |\n|---|\n", encoding="utf-8")
    # The journal names the machine's own edits; the copies below stand for the same machine.
    return base


def notes(base: Path) -> dict[str, str]:
    """Every note of the vault; a half-written or left-over file would show."""
    root = base / "vault"
    found = {}
    for path in root.rglob("*"):
        place = path.relative_to(root).as_posix()
        if path.is_file() and not place.startswith((".palace/", "_System/journal/")):
            found[place] = path.read_text(encoding="utf-8")
    return found


def identities(found: dict[str, str]) -> list[str]:
    return sorted(line for text in found.values() for line in text.splitlines() if line.startswith("id: "))


def rev_of(palace: Palace, path: str) -> str:
    return palace.read(path=path, touch=False)["rev"]


VERBS: dict[str, Verb] = {
    "write": lambda palace: palace.write("fresh words", title="Fresh", tags=["x"]),
    "write superseding": lambda palace: palace.write("better", title="Better", supersedes="Sand 3"),
    "append": lambda palace: palace.write("more sand", mode="append", path="Sand 1"),
    "replace": lambda palace: palace.write(
        "other sand", mode="replace", path="Sand 2", if_rev=rev_of(palace, "01_Shallow/Sand 2.md")
    ),
    "rate": lambda palace: palace.rate(path="01_Shallow/Sand 4.md", density=0.7, pinned=True),
    "read": lambda palace: palace.read(path="01_Shallow/Sand 5.md"),
    "move": lambda palace: palace.move("01_Shallow/room/Hub.md", "sediment"),
    "rename": lambda palace: palace.move("01_Shallow/room/Hub.md", "shallow", new_path="Centre"),
    "purge": lambda palace: palace.purge("01_Shallow/room/Hub.md", confirm=True),
    "restore": lambda palace: palace.restore("_Archive/01_Shallow/Gone.md"),
    "map": lambda palace: palace.update_map("add_link", "[[Hub]]"),
}


def copy_of(original: Path) -> Callable[[Path], None]:
    def make(base: Path) -> None:
        for name in ("vault", "state", "cache"):
            shutil.copytree(original / name, base / name)

    return make


def run(verb: Verb) -> Callable[[Path], None]:
    def act(base: Path) -> None:
        with opened(base) as palace:
            verb(palace)

    return act


def outcome(original: Path, base: Path, verb: Verb) -> dict[str, str]:
    """The vault after the verb, when nobody kills it."""
    copy_of(original)(base)
    run(verb)(base)
    return notes(base)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_killed_verb_is_all_done_or_all_undone(original: Path, base: Path, name: str) -> None:
    old = notes(original)
    new = outcome(original, base / "whole", VERBS[name])
    assert old != new
    seen = set()

    def check(root: Path, stop: Stop | None) -> None:
        opened(root).close()
        after = notes(root)
        assert after in (old, new), f"neither old nor new after {stop}: {sorted(after)}"
        assert identities(after) in (identities(old), identities(new))
        with opened(root) as palace:
            assert palace.recover()["recovered_count"] == 0
        assert notes(root) == after
        seen.add("new" if after == new else "old")

    stops = every_kill_point(base, copy_of(original), run(VERBS[name]), check)

    assert stops > 10
    assert seen == {"old", "new"}


SUBJECTS = {
    "append": ["01_Shallow/Sand 1.md"],
    "replace": ["01_Shallow/Sand 2.md"],
    "rate": ["01_Shallow/Sand 4.md"],
    "rename": ["01_Shallow/room/Hub.md", "01_Shallow/Centre.md", "notes.md", "01_Shallow/Bare.md"],
    "purge": ["01_Shallow/room/Hub.md", "_Archive/01_Shallow/room/Hub.md", "table.md"],
    "restore": ["_Archive/01_Shallow/Gone.md", "01_Shallow/Gone.md"],
}


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_recovery_never_overwrites_what_a_person_wrote_since(original: Path, base: Path, name: str) -> None:
    """RC-05: the newest human state wins over the machine's intention."""
    whole = outcome(original, base / "whole", VERBS[name])
    everyone = identities(whole)

    def check(root: Path, stop: Stop | None) -> None:
        edited = {}
        for subject in SUBJECTS[name]:
            path = root / "vault" / subject
            if path.exists():
                edited[subject] = path.read_text(encoding="utf-8") + PERSON
                path.write_text(edited[subject], encoding="utf-8")

        opened(root).close()

        after = notes(root)
        assert sum(PERSON in text for text in after.values()) == len(edited), f"lost after {stop}"
        assert all(text in after.values() for text in edited.values()), f"reworded after {stop}"
        assert identities(after) == everyone, f"a note doubled or gone after {stop}"

    every_kill_point(base, copy_of(original), run(VERBS[name]), check, modes=("before",))


def test_a_killed_metabolize_leaves_each_of_twenty_notes_old_or_new(original: Path, base: Path) -> None:
    def metabolize(palace: Palace) -> object:
        return palace.metabolize(confirm=True)

    old = notes(original)
    new = outcome(original, base / "whole", metabolize)
    moved = {path for path in new if path not in old}
    assert len(moved) >= 20

    def check(root: Path, stop: Stop | None) -> None:
        opened(root).close()
        after = notes(root)
        assert identities(after) == identities(old), f"a note doubled or gone after {stop}"
        for path, text in after.items():
            assert text in (old.get(path), new.get(path)), f"{path} is neither old nor new after {stop}"
        if stop is not None and stop.number % 25 == 0:
            metabolize_again = opened(root)
            metabolize(metabolize_again)
            metabolize_again.close()
            assert notes(root) == new

    stops = every_kill_point(base, copy_of(original), run(metabolize), check, modes=("before",))

    assert stops > 100
