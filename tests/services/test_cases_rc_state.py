"""RC-11 on a whole palace: its journal, cache and versions in a folder that a sync tool carries about."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.services.palace import Palace

SECRET = "hunter2swordfish"
NOTE = "01_Shallow/secret.md"
JOURNAL_COPY = "local.sync-conflict-20250102-030405-ABCDEFG.jsonl"


def codes(palace: Palace) -> set[str]:
    return {problem.code for problem in palace.check()}


def journal_of(palace: Palace, vault: Path) -> Path:
    return vault / palace.house.journal.path


def bodies(vault: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in (vault / "01_Shallow").rglob("*.md")}


def holds(folder: Path, words: str) -> list[Path]:
    """The files below *folder* in which the words stand, also compressed."""
    found = []
    for place in sorted(folder.rglob("*")):
        if not place.is_file():
            continue
        data = place.read_bytes()
        if place.suffix == ".z":
            data += zlib.decompress(data)
        if words.encode() in data.lower():
            found.append(place)
    return found


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_rc_11_an_older_journal_changes_no_note_and_is_reported(
    open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    first = open_palace()
    first.write("one", title="a")
    journal = journal_of(first, vault)
    older = journal.read_bytes()
    first.write("two", mode="append", path="01_Shallow/a.md")
    first.write("new", title="b")
    before = bodies(vault)

    journal.write_bytes(older)
    second = open_palace()
    recovered = second.recover()

    assert recovered["recovered_count"] == 0
    assert bodies(vault) == before
    assert "journal_older" in codes(second)


def test_rc_11_an_older_journal_under_an_open_palace_hinders_no_write(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("one", title="a")
    older = journal_of(palace, vault).read_bytes()
    palace.write("two", mode="append", path="01_Shallow/a.md")
    clock.turn(days=1)

    journal_of(palace, vault).write_bytes(older)
    palace.write("three", mode="append", path="01_Shallow/a.md")

    assert palace.read(title="a")["content"].split() == ["one", "two", "three"]


@pytest.mark.parametrize("text", [b"", b"no journal at all\n", b'{"v":1,"op":"x","state":"begin"'])
def test_rc_11_a_conflict_copy_of_a_journal_is_reported_and_not_read(
    palace: Palace, vault: Path, text: bytes
) -> None:
    palace.write("one", title="a")
    copy = journal_of(palace, vault).with_name(JOURNAL_COPY)
    copy.write_bytes(text)
    operations = palace.house.journal.entries()

    told = [problem for problem in palace.check() if problem.code == "conflict_copy"]

    assert [problem.path for problem in told] == [f"_System/journal/{JOURNAL_COPY}"]
    assert palace.house.journal.entries() == operations
    assert copy.read_bytes() == text


@pytest.mark.usefixtures("umask")
def test_rc_11_what_is_kept_beside_the_notes_is_its_owner_s_alone(
    open_palace: OpenPalace, vault: Path, tmp_path: Path, clock: Clock
) -> None:
    palace = open_palace()
    palace.write(SECRET, title="secret")
    palace.write("more", mode="append", path=NOTE)
    clock.turn(days=20)
    palace.metabolize(confirm=True)
    palace.search(SECRET)

    open_to_others = [
        place
        for folder in (vault / ".palace", vault / "_System/journal", tmp_path / "cache", tmp_path / "state")
        for place in folder.rglob("*")
        if place.is_file() and stat.S_IMODE(place.stat().st_mode) & 0o077
    ]

    private = [place for place in open_to_others if stat.S_IMODE(place.parent.stat().st_mode) & 0o077]
    assert private == []
    assert not any(holds(place.parent, SECRET) for place in open_to_others)
    assert len(list((tmp_path / "cache").rglob("*.sqlite3"))) == 1


def test_rc_11_a_deleted_text_is_kept_as_long_as_policy_says_and_no_longer(
    open_palace: OpenPalace, vault: Path, clock: Clock, note: Callable[..., Path]
) -> None:
    note("_System/Policy.md", "---\ntimezone: UTC\nversions_keep_days: 30\n---\n")
    palace = open_palace()
    palace.write(SECRET, title="secret")
    palace.write("more", mode="append", path=NOTE)
    _aged(vault, clock)
    (vault / NOTE).unlink()
    palace.metabolize(confirm=True)
    kept = holds(vault, SECRET)

    clock.turn(days=31)
    palace.metabolize(confirm=True)

    assert kept
    assert {place.suffix for place in kept} == {".z"}
    assert holds(vault, SECRET) == []
    assert palace.search(SECRET)["matches"] == []


def _aged(vault: Path, clock: Clock) -> None:
    """Kept versions have the file system's time; the test's clock is another."""
    for place in (vault / ".palace/versions").rglob("*.z"):
        os.utime(place, (clock().timestamp(), clock().timestamp()))
