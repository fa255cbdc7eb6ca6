"""Policy's `style_classes`: notes carry the classes that the snippet colours by, and none when it is off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle, snapshot
from vault_palace.services import upkeep
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

POLICY = "_System/Policy.md"
ON, OFF = (f"---\ntimezone: UTC\nstyle_classes: {word}\n---\n" for word in ("true", "false"))
NOTE = "01_Shallow/Idea.md"


@pytest.fixture(autouse=True)
def person(vault: Path, clock: Clock) -> Person:
    person = Person(vault, clock)
    person.writes(POLICY, ON)
    return person


def classes(person: Person, path: str = NOTE) -> object:
    return person.says(path).get("cssclasses")


def test_a_new_memory_has_its_classes(palace: Palace, person: Person) -> None:
    palace.write("words", path="Idea", density=0.7)

    assert classes(person) == ["palace-shallow", "palace-density-7"]


def test_a_rating_changes_them(palace: Palace, person: Person) -> None:
    palace.write("words", path="Idea")

    palace.rate(path=NOTE, density=0.9, pinned=True)

    assert classes(person) == ["palace-shallow", "palace-density-9", "palace-pinned"]


def test_a_move_changes_them(palace: Palace, person: Person) -> None:
    palace.write("words", path="Idea")

    palace.move(NOTE, "bedrock")

    assert classes(person, "03_Bedrock/Idea.md") == ["palace-bedrock", "palace-density-2"]


def test_the_archive_and_the_way_back_change_them(palace: Palace, person: Person) -> None:
    palace.write("words", path="Idea")

    gone = palace.purge(NOTE, confirm=True)["archived_to"]
    archived = classes(person, gone)
    palace.restore(gone)

    assert archived == ["palace-archive", "palace-density-2"]
    assert classes(person) == ["palace-shallow", "palace-density-2"]


def test_a_successor_changes_them(palace: Palace, person: Person) -> None:
    palace.write("words", path="Idea")

    palace.write("better words", path="Newer", supersedes="Idea")

    assert classes(person) == ["palace-shallow", "palace-density-2", "palace-superseded"]


def test_a_reading_makes_no_conflict_by_them(palace: Palace, person: Person, clock: Clock) -> None:
    person.writes(POLICY, OFF)
    rev = palace.write("words", path="Idea")["rev"]
    person.writes(POLICY, ON)
    clock.turn(days=1)

    palace.read(path=NOTE)

    assert classes(person) == ["palace-shallow", "palace-density-2"]
    assert palace.read(path=NOTE)["rev"] == rev


@pytest.mark.parametrize("own", ["", "cssclasses:\n  - mine\n"])
def test_what_the_keeper_adds_is_no_conflict_for_an_agent(
    palace: Palace, person: Person, clock: Clock, own: str
) -> None:
    person.writes(NOTE, f"---\n{own}density: 0.4\n---\nx\n")
    before = palace.read(path=NOTE, touch=False)["rev"]

    settle(Keeper(palace.house), clock)

    assert "palace-shallow" in person.reads(NOTE)
    assert palace.read(path=NOTE, touch=False)["rev"] == before


def test_the_items_of_a_person_stay(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("words", path="Idea")
    person.edits(NOTE, "cssclasses:\n", "cssclasses: # colours\n  - 'wide'   # mine\n")
    clock.turn(hours=1)

    palace.rate(path=NOTE, density=0.5)

    assert "cssclasses: # colours\n  - 'wide'   # mine\n  - palace-shallow\n  - palace-density-5\n" in (
        person.reads(NOTE)
    )


def test_a_flow_list_is_left_and_nothing_else_is_hindered(
    palace: Palace, person: Person, clock: Clock
) -> None:
    person.writes(NOTE, "---\ncssclasses: [wide]\n---\nwords\n")
    clock.turn(hours=1)

    palace.rate(path=NOTE, density=0.5)

    assert "cssclasses: [wide]\n" in person.reads(NOTE)
    assert person.says(NOTE)["density"] == 0.5


# -- the keeper ---------------------------------------------------------------------------------------------


def test_the_keeper_follows_what_a_person_rates(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("words", path="Idea")
    keeper = Keeper(palace.house)
    settle(keeper, clock)

    person.edits(NOTE, "density: 0.2", "density: 0.8")
    settle(keeper, clock)

    assert classes(person) == ["palace-shallow", "palace-density-8"]


def test_the_switch_gives_every_note_its_classes(palace: Palace, person: Person, clock: Clock) -> None:
    person.writes(POLICY, OFF)
    palace.write("words", path="Idea")
    archived = palace.purge(palace.write("other", path="Old")["saved_path"], confirm=True)["archived_to"]
    keeper = Keeper(palace.house)
    settle(keeper, clock)

    person.writes(POLICY, ON)
    settle(keeper, clock)

    assert classes(person) == ["palace-shallow", "palace-density-2"]
    assert classes(person, archived) == ["palace-archive", "palace-density-2"]


def test_the_switch_going_off_takes_them_out_again(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("words", path="Idea")
    person.writes("01_Shallow/Wide.md", "---\ncssclasses:\n  - wide\n---\nwords\n")
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    before = classes(person, "01_Shallow/Wide.md")

    person.writes(POLICY, OFF)
    settle(keeper, clock)

    assert before == ["wide", "palace-shallow", "palace-density-2"]
    assert (classes(person), classes(person, "01_Shallow/Wide.md")) == (None, ["wide"])


def test_they_go_out_also_when_the_switch_went_off_without_a_keeper(
    open_palace: OpenPalace, person: Person, clock: Clock
) -> None:
    person.writes(POLICY, OFF)
    palace = open_palace()
    palace.metabolize(confirm=True)  # by which this policy is known
    person.writes(POLICY, ON)
    palace.write("words", path="Idea")
    person.writes(POLICY, OFF)
    palace.metabolize(confirm=True)

    settle(Keeper(open_palace().house), clock)

    assert classes(person) is None


def test_where_the_switch_never_was_on_such_an_item_is_a_persons(
    palace: Palace, person: Person, clock: Clock
) -> None:
    person.writes(POLICY, OFF)
    person.writes(NOTE, "---\ncssclasses:\n  - palace-bedrock\n---\nwords\n")
    keeper = Keeper(palace.house)
    settle(keeper, clock)

    palace.rate(path=NOTE, density=0.5)

    assert classes(person) == ["palace-bedrock"]


def test_a_form_that_cannot_be_kept_is_not_fought_over(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("words", path="Idea")
    person.edits(
        NOTE,
        "cssclasses:\n  - palace-shallow\n  - palace-density-2\n",
        "cssclasses: [palace-bedrock, wide]\n",
    )
    settle(Keeper(palace.house), clock)
    before = snapshot(person.root)

    settle(Keeper(palace.house), clock)

    assert snapshot(person.root) == before
    assert classes(person) == ["palace-bedrock", "wide"]


def test_a_kept_vault_is_idle(palace: Palace, person: Person, clock: Clock) -> None:
    palace.write("words", path="Idea")
    settle(Keeper(palace.house), clock)
    before = snapshot(person.root)

    settle(Keeper(palace.house), clock)

    assert snapshot(person.root) == before


def test_one_step_writes_to_a_bounded_number_of_notes(
    palace: Palace, person: Person, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vault_palace.services.keeper.SLICE", 3)
    person.writes(POLICY, OFF)
    for number in range(8):
        palace.write(f"words {number}", path=f"Idea {number}")
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    person.writes(POLICY, ON)
    written: list[int] = []

    for _ in range(4):
        clock.turn(hours=0.01)
        keeper.step()
        written.append(sum(classes(person, f"01_Shallow/Idea {n}.md") is not None for n in range(8)))

    assert written == [3, 6, 8, 8]
    assert upkeep.out_of_policy(palace.house) == []
