"""A note's history follows it wherever it goes, and tells only what the journals hold."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import frontmatter
from vault_palace.core.errors import InvalidArguments, NotFound
from vault_palace.services import deeds
from vault_palace.services.palace import Palace
from vault_palace.storage import files

Note = Callable[..., Path]

PUMP = "01_Shallow/room/Pump.md"


def verbs(palace: Palace, name: str, *, everything: bool = False) -> list[str]:
    return [one["verb"] for one in palace.history(name, everything=everything)["operations"]]


def id_of(root: Path, path: str) -> str:
    return str(frontmatter.read((root / path).read_text(encoding="utf-8")).values["id"])


def test_a_history_is_told_newest_first(palace: Palace, clock: Clock) -> None:
    palace.write("one", path="room/Pump", source_session="x")
    clock.turn(hours=1)
    palace.write("two", mode="append", path=PUMP)

    answer = palace.history("Pump")

    assert [one["verb"] for one in answer["operations"]] == ["append", "write"]
    assert [one["when"] for one in answer["operations"]] == ["2031-03-01 13:00:00", "2031-03-01 12:00:00"]
    assert answer["operations"][0]["session"] == "test-1"
    assert answer["operations"][0]["machine"] == palace.house.machine


def test_a_path_that_a_person_renamed_is_answered_with_the_new_one(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    (vault / PUMP).rename(vault / "01_Shallow/Boiler.md")

    with pytest.raises(NotFound, match="does not exist") as refused:
        palace.read(path=PUMP)

    assert refused.value.hint == "It is now at 01_Shallow/Boiler.md."
    assert refused.value.facts["now_at"] == ["01_Shallow/Boiler.md"]


def test_times_are_those_of_the_vault_s_zone(vault: Path, open_palace: OpenPalace) -> None:
    (vault / "_System/Policy.md").write_text("---\ntimezone: Asia/Tokyo\n---\n", encoding="utf-8")
    palace = open_palace()
    palace.write("one", path="room/Pump")

    answer = palace.history("Pump")

    assert answer["operations"][0]["when"] == "2031-03-01 21:00:00"


@pytest.mark.parametrize("by", ["path", "id", "title", "link"])
def test_a_note_is_named_by_path_id_title_or_link(palace: Palace, vault: Path, by: str) -> None:
    palace.write("one", path="room/Pump")
    name = {"path": PUMP, "id": id_of(vault, PUMP), "title": "Pump", "link": "[[Pump]]"}[by]

    answer = palace.history(name)

    assert (answer["path"], answer["exists"]) == (PUMP, True)


def test_moves_are_followed(palace: Palace) -> None:
    palace.write("one", path="room/Pump")
    palace.move(PUMP, "shallow", new_path="Boiler")
    palace.purge("01_Shallow/Boiler.md", confirm=True)
    palace.restore("_Archive/01_Shallow/Boiler.md")

    answer = palace.history("Boiler")

    assert [one["verb"] for one in answer["operations"]] == ["restore", "purge", "move", "write"]
    assert [one["path"] for one in answer["operations"]] == [
        "01_Shallow/Boiler.md",
        "_Archive/01_Shallow/Boiler.md",
        "01_Shallow/Boiler.md",
        PUMP,
    ]


def test_the_old_name_of_a_note_leads_to_where_it_is(palace: Palace) -> None:
    palace.write("one", path="room/Pump")
    palace.move(PUMP, "shallow", new_path="Boiler")

    answer = palace.history(PUMP)

    assert answer["path"] == "01_Shallow/Boiler.md"


def test_a_rename_by_a_person_is_followed(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    (vault / PUMP).rename(vault / "01_Shallow/Boiler.md")
    palace.house.refresh(if_older=0)
    note = palace.house.look("01_Shallow/Boiler.md")
    deeds.put_on_record(palace.house, "renamed", f"renamed from {PUMP}", note=note)

    assert verbs(palace, "Boiler") == ["renamed", "write"]


@pytest.mark.parametrize("by", ["path", "id", "title"])
def test_a_note_that_is_gone_still_has_its_history(palace: Palace, vault: Path, by: str) -> None:
    palace.write("one", path="room/Pump")
    name = {"path": PUMP, "id": id_of(vault, PUMP), "title": "Pump"}[by]
    (vault / PUMP).unlink()

    answer = palace.history(name)

    assert (answer["path"], answer["exists"]) == (PUMP, False)
    assert [one["verb"] for one in answer["operations"]] == ["write"]


def test_another_note_of_the_same_name_has_a_history_of_its_own(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    palace.write("more", mode="append", path=PUMP)
    (vault / PUMP).unlink()
    palace.house.refresh(if_older=0)
    palace.write("another", path="room/Pump")

    assert verbs(palace, "Pump") == ["write"]


def test_what_the_program_writes_for_itself_is_counted_and_told_when_asked(
    palace: Palace, clock: Clock
) -> None:
    palace.write("one", path="room/Pump")
    clock.turn(days=1)
    palace.read(path=PUMP)

    answer = palace.history("Pump")

    assert (len(answer["operations"]), answer["silent"]) == (1, 1)
    assert verbs(palace, "Pump", everything=True) == ["touch", "write"]


def test_a_history_says_which_versions_are_still_kept(palace: Palace, vault: Path) -> None:
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    for version in (vault / ".palace/versions").rglob("*.z"):
        version.unlink()

    append, write = palace.history("Pump")["operations"]

    assert (append["before_kept"], append["after_kept"]) == (False, True)  # after: it is the note itself
    assert (write["before_kept"], write["after_kept"]) == (None, False)


def test_an_operation_that_was_undone_says_so(palace: Palace) -> None:
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    palace.undo("Pump", confirm=True)

    undo, append, _ = palace.history("Pump")["operations"]

    assert undo["why"].startswith(f"of {append['op']}: ")
    assert append["state"] == "undone later"


def test_a_limit_cuts_and_the_total_tells(palace: Palace) -> None:
    palace.write("one", path="room/Pump")
    for _ in range(4):
        palace.write("more", mode="append", path=PUMP)

    answer = palace.history("Pump", limit=2)

    assert (len(answer["operations"]), answer["total"]) == (2, 5)


@pytest.mark.parametrize("limit", [0, -1, True])
def test_a_limit_is_a_number_above_zero(palace: Palace, limit: int) -> None:
    palace.write("one", path="room/Pump")

    with pytest.raises(InvalidArguments):
        palace.history("Pump", limit=limit)


@pytest.mark.parametrize("name", ["Nothing", "01_Shallow/nothing.md", "mem_0"])
def test_what_neither_vault_nor_journals_know_is_not_found(palace: Palace, name: str) -> None:
    palace.write("one", path="room/Pump")

    with pytest.raises(NotFound):
        palace.history(name)


def test_a_history_writes_nothing(palace: Palace, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    palace.write("one", path="room/Pump")
    monkeypatch.setattr(type(palace.house), "perform", None)
    monkeypatch.setattr(type(palace.house), "locked", None)

    assert verbs(palace, "Pump") == ["write"]


def test_a_note_without_an_id_is_followed_by_its_moves(palace: Palace, note: Note) -> None:
    """A referrer outside of the layers has no id; the journals know it by its place."""
    palace.write("one", path="room/Pump")
    note("table.md", "[[01_Shallow/room/Pump]]\n")
    palace.house.refresh(if_older=0)
    palace.move(PUMP, "sediment")

    answer = palace.history("table.md")

    assert [one["verb"] for one in answer["operations"]] == ["move"]
    assert answer["id"] == ""


# -- how long versions are kept -----------------------------------------------------------------------------


def stamped(vault: Path, clock: Clock, *only: bytes) -> None:
    """Give the kept versions the clock's time: their files have the machine's."""
    at = clock().timestamp()
    names = {f"{files.fingerprint(data)}.z" for data in only}
    for version in (vault / ".palace/versions").rglob("*.z"):
        if not names or version.name in names:
            os.utime(version, (at, at))


@pytest.mark.parametrize(("keep", "left"), [(100_000, True), (90, False)])
def test_versions_are_kept_as_long_as_policy_says(
    vault: Path, open_palace: OpenPalace, clock: Clock, keep: int, left: bool
) -> None:
    (vault / "_System/Policy.md").write_text(
        f"---\ntimezone: UTC\nversions_keep_days: {keep}\n---\n", encoding="utf-8"
    )
    palace = open_palace()
    palace.write("one", path="room/Pump")
    palace.write("two", mode="append", path=PUMP)
    stamped(vault, clock)
    clock.turn(days=91)
    palace.house.versions.keep(b"a younger one, or the clock would be doubted")
    stamped(vault, clock, b"a younger one, or the clock would be doubted")

    palace.house.prune_versions()

    assert palace.history("Pump")["operations"][0]["before_kept"] is left
