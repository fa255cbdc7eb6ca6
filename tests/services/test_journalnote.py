"""The journal as a note: what people and agents did, made anew only when it would differ."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.services import deeds, journalnote
from vault_palace.services.generated import JOURNAL_NOTE
from vault_palace.services.house import Put
from vault_palace.services.journalnote import renew
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def text(vault: Path) -> str:
    return (vault / JOURNAL_NOTE).read_text(encoding="utf-8")


def test_the_newest_operations_stand_first_with_links(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("one", title="Pump")
    clock.turn(days=1, hours=1)
    palace.move("01_Shallow/Pump.md", "sediment")

    assert renew(palace.house)

    rows = [line for line in text(vault).splitlines() if line.startswith(("| 1", "### "))]
    assert [row.split(" | ")[:3] for row in rows] == [
        ["### 2031-03-02"],
        ["| 13:00", "move", "[[Pump]]"],
        ["### 2031-03-01"],
        ["| 12:00", "write", "[[Pump]]"],
    ]


def test_times_are_those_of_the_vault_s_zone(vault: Path, open_palace: OpenPalace) -> None:
    (vault / "_System/Policy.md").write_text("---\ntimezone: Asia/Tokyo\n---\n", encoding="utf-8")
    palace = open_palace()
    palace.write("one", title="Pump")

    renew(palace.house)

    assert "| 21:00 | write | [[Pump]] |" in text(vault)


def test_a_second_renewal_writes_nothing(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    palace.write("one", title="Pump")
    renew(palace.house)
    monkeypatch.setattr(type(palace.house), "perform", None)

    assert not renew(palace.house)


def test_what_a_person_wrote_around_it_stays(palace: Palace, vault: Path) -> None:
    palace.write("one", title="Pump")
    renew(palace.house)
    mine = f"My own heading\r\n\r\n{text(vault)}\nand a last line"
    (vault / JOURNAL_NOTE).write_bytes(mine.encode())
    palace.write("two", mode="append", path="Pump")

    assert renew(palace.house)

    after = (vault / JOURNAL_NOTE).read_bytes().decode()
    begin, end = "%% palace:begin %%", "%% palace:end %%"
    assert after.partition(begin)[0] == mine.partition(begin)[0]
    assert after.partition(end)[2] == mine.partition(end)[2]
    assert "append" in after


def test_uses_and_upkeep_are_not_told(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("one", title="Pump")
    clock.turn(days=1)
    palace.read(path="01_Shallow/Pump.md")
    palace.update_map("add_link", "[[Pump]]")

    renew(palace.house)

    assert [word for word in ("touch", "map", "seen", "index") if f"| {word} |" in text(vault)] == []


def test_a_note_that_is_gone_is_named_without_a_link(palace: Palace, vault: Path) -> None:
    palace.write("one", title="Pump")
    (vault / "01_Shallow/Pump.md").unlink()
    palace.house.refresh(if_older=0)

    renew(palace.house)

    assert "| write | Pump |" in text(vault)
    assert "[[Pump]]" not in text(vault)


def test_its_links_are_no_backlinks(palace: Palace) -> None:
    palace.write("one", title="Pump")
    renew(palace.house)

    palace.house.refresh(if_older=0)

    assert palace.read(title="Pump", touch=False)["backlinks"] == []
    assert palace.check() == []


def test_a_hundred_operations_give_a_short_note(palace: Palace, vault: Path) -> None:
    palace.write("one", title="Pump")
    for _ in range(70):
        palace.write("more", mode="append", path="Pump")

    renew(palace.house)

    assert text(vault).count("[[Pump]]") == 60
    assert "vault-palace history" in text(vault)


@pytest.mark.parametrize("hindrance", ["read only", "no policy", "in doubt"])
def test_where_nothing_may_be_written_it_is_not(
    vault: Path, open_palace: OpenPalace, hindrance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    palace = open_palace()
    palace.write("one", title="Pump")
    if hindrance == "read only":
        palace = open_palace(read_only=True)
    elif hindrance == "no policy":
        (vault / "_System/Policy.md").unlink()
    else:
        monkeypatch.setattr(palace.house.shelf, "doubts", ("the vault looks empty",))

    assert not renew(palace.house)

    assert not (vault / JOURNAL_NOTE).exists()


def test_it_gives_way_to_a_person_who_is_at_it(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("one", title="Pump")
    renew(palace.house)
    place = vault / JOURNAL_NOTE
    place.write_text(text(vault) + "typing\n", encoding="utf-8")
    os.utime(place, (clock().timestamp(), clock().timestamp()))
    palace.write("two", mode="append", path="Pump")
    before = text(vault)

    assert not renew(palace.house)

    assert text(vault) == before


def test_broken_markers_are_left_and_reported(palace: Palace, note: Note, vault: Path) -> None:
    palace.write("one", title="Pump")
    note(JOURNAL_NOTE, "%% palace:end %%\n")

    assert not renew(palace.house)

    assert text(vault) == "%% palace:end %%\n"
    assert "broken_journal" in {problem.code for problem in palace.check()}


@pytest.mark.parametrize("verb", ["edited", "created", "renamed", "copied"])
def test_what_a_person_did_is_shown_as_theirs(palace: Palace, vault: Path, verb: str) -> None:
    palace.write("one", title="Pump")
    note = palace.house.look("01_Shallow/Pump.md")
    deeds.put_on_record(palace.house, verb, "theirs", note=note)

    renew(palace.house)

    (row,) = [line for line in text(vault).splitlines() if "| theirs |" in line]
    assert row.split(" | ")[1] == verb
    assert row.split(" | ")[4] == "a person"


def test_a_generated_note_is_none_that_an_operation_was_about(palace: Palace, vault: Path) -> None:
    palace.write("one", title="Pump")
    renew(palace.house)
    house = palace.house
    journal, pump = house.look(JOURNAL_NOTE), house.look("01_Shallow/Pump.md")
    with house.locked():
        both = [
            Put(path=one.path, before=one.stored, data=one.stored.data + b"\n") for one in (journal, pump)
        ]
        house.perform("relink", both, why="after a rename")
        fresh = house.look(JOURNAL_NOTE)
        alone = Put(path=JOURNAL_NOTE, before=fresh.stored, data=fresh.stored.data + b"\n")
        house.perform("relink", [alone], why="alone")

    renew(house)

    (row,) = [line for line in text(vault).splitlines() if "| relink |" in line]
    assert row.split(" | ")[2:4] == ["[[Pump]]", "after a rename"]


def test_what_is_to_be_left_out_is(palace: Palace, vault: Path) -> None:
    palace.write("one", title="Pump")
    palace.write("two", title="Other")

    journalnote.renew(palace.house, without=lambda entry: entry.notes[0].path.endswith("Pump.md"))

    assert "Pump" not in text(vault)
    assert "[[Other]]" in text(vault)
