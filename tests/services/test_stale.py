"""What an editor saved without having seen a change of the program does not take it away (SPEC §6.4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from tests.services.keeping import Person, settle
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

PLAN = "01_Shallow/Plan.md"


@pytest.fixture(autouse=True)
def policy(vault: Path) -> None:
    text = "---\ntimezone: UTC\nversions_keep_days: 36500\n---\n"
    (vault / "_System").mkdir(exist_ok=True)
    (vault / "_System/Policy.md").write_text(text, encoding="utf-8")


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


@pytest.fixture
def keeper(palace: Palace, clock: Clock) -> Keeper:
    palace.write("First line.\n\nLast line.", title="Plan")
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    clock.at += timedelta(days=1)
    return keeper


def test_an_append_that_a_save_overwrote_stands_beside_the_persons_words(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    text = person.reads(PLAN)
    assert "First line, typed on." in text
    assert text.count("The agent's words.") == 1


def test_an_append_is_put_back_also_where_the_person_typed_at_the_end(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("Last line.", "Last line, typed on."))

    settle(keeper, clock)

    text = person.reads(PLAN)
    assert "Last line, typed on." in text
    assert text.count("The agent's words.") == 1


def test_an_append_is_put_back_when_another_came_before_anybody_looked(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))
    clock.at += timedelta(seconds=1)
    palace.write("More words.", path="Plan", mode="append")

    settle(keeper, clock)

    text = person.reads(PLAN)
    assert [text.count(words) for words in ("typed on.", "The agent's words.", "More words.")] == [1, 1, 1]


def test_property_lines_that_a_save_overwrote_are_put_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    palace.read(path=PLAN)
    palace.rate(path=PLAN, density=0.7)
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    said = person.says(PLAN)
    assert (said["density"], said["streak"], said["rated_on"]) == (0.7, 1, "2031-03-02")
    assert "First line, typed on." in person.reads(PLAN)


def test_a_value_that_the_person_changed_as_well_stays_theirs(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    palace.rate(path=PLAN, density=0.7)
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("density: 0.2", "density: 0.4"))

    settle(keeper, clock)

    assert person.says(PLAN)["density"] == 0.4


def test_words_that_a_person_takes_out_later_stay_out(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The agent's words.", path="Plan", mode="append")
    settle(keeper, clock)
    clock.at += timedelta(seconds=30)
    person.edits(PLAN, "The agent's words.", "")

    settle(keeper, clock)

    assert "The agent's words." not in person.reads(PLAN)


def test_a_save_that_makes_a_moved_note_anew_is_merged_into_it(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    moved = palace.move(PLAN, "sediment")["destination"]
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    assert not (vault / PLAN).exists()
    assert "First line, typed on." in person.reads(moved)
    assert person.says(moved)["layer"] == "sediment"


def test_an_old_text_saved_much_later_does_not_take_an_append_away(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    settle(keeper, clock)
    clock.at += timedelta(minutes=10)
    person.writes(PLAN, opened.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    text = person.reads(PLAN)
    assert [text.count(words) for words in ("typed on.", "The agent's words.")] == [1, 1]


def test_a_text_that_a_person_brings_back_on_purpose_stays(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("Kept words.", path="Plan", mode="append")
    snapshot = person.reads(PLAN)
    clock.at += timedelta(days=1)
    palace.write("The agent's words.", path="Plan", mode="append")
    settle(keeper, clock)
    clock.at += timedelta(minutes=10)
    person.writes(PLAN, snapshot)

    settle(keeper, clock)

    assert "The agent's words." not in person.reads(PLAN)


def test_a_note_moved_by_hand_is_followed_though_an_agent_wrote_there_first(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("See [[Plan]].", title="Other")
    settle(keeper, clock)
    person.moves(PLAN, "01_Shallow/Scheme.md")
    palace.write("The agent's words.", path="Scheme", mode="append")

    settle(keeper, clock)

    assert "See [[Scheme]]." in person.reads("01_Shallow/Other.md")


def test_a_new_note_that_is_open_gets_its_properties_when_the_person_is_done(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    leaf = '{"main": {"state": {"file": "01_Shallow/New.md"}}}'
    person.writes("01_Shallow/New.md", "Typed.\n")
    person.writes(".obsidian/workspace.json", leaf)
    for _ in range(20):
        keeper.step()
        clock.at += timedelta(seconds=10)
    open_still = person.reads("01_Shallow/New.md")
    person.writes(".obsidian/workspace.json", "{}")

    settle(keeper, clock)

    assert open_still == "Typed.\n"
    assert "id" in person.says("01_Shallow/New.md")


def test_an_old_text_saved_twice_takes_nothing_away(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    for number in range(3):
        clock.at += timedelta(seconds=4)
        person.writes(PLAN, opened.replace("First line.", f"First line, typed on {number}."))
        settle(keeper, clock)

    text = person.reads(PLAN)

    assert [text.count(words) for words in ("typed on 2.", "The agent's words.")] == [1, 1]


def test_an_old_text_saved_after_the_person_moved_the_note_takes_nothing_away(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.write("The agent's words.", path="Plan", mode="append")
    settle(keeper, clock)
    clock.at += timedelta(seconds=26)
    person.moves(PLAN, "01_Shallow/Scheme.md")
    person.writes("01_Shallow/Scheme.md", opened.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    text = person.reads("01_Shallow/Scheme.md")
    assert [text.count(words) for words in ("typed on.", "The agent's words.")] == [1, 1]


def test_the_same_bytes_at_a_moved_notes_old_place_are_a_copy(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    person.moves(PLAN, "01_Shallow/Scheme.md")
    settle(keeper, clock)
    person.writes(PLAN, person.reads("01_Shallow/Scheme.md"))

    settle(keeper, clock)

    assert person.says(PLAN)["id"] != person.says("01_Shallow/Scheme.md")["id"]


def test_a_late_save_that_cannot_be_merged_stands_beside_the_note(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    moved = palace.move(PLAN, "sediment")["destination"]
    rev = palace.read(path=moved)["rev"]
    palace.write(
        "First line, by the agent.\n\nLast line.", path=moved, layer="sediment", mode="replace", if_rev=rev
    )
    clock.at += timedelta(seconds=1)
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    copies = [path.name for path in (vault / "02_Sediment").glob("*conflicted copy*")]
    assert not (vault / PLAN).exists()
    assert len(copies) == 1
    assert "typed on." in person.reads(f"02_Sediment/{copies[0]}")
    assert "by the agent." in person.reads(moved)


def test_links_to_an_old_name_that_a_stale_text_brings_back_are_followed(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    person.writes("01_Shallow/Other.md", "See [[Plan]].\n")
    settle(keeper, clock)
    opened = person.reads("01_Shallow/Other.md")
    palace.move(PLAN, "shallow", new_path="Scheme")
    settle(keeper, clock)
    clock.at += timedelta(minutes=20)
    person.writes("01_Shallow/Other.md", opened + "Typed on.\n")

    settle(keeper, clock)

    assert "See [[Scheme]].\nTyped on." in person.reads("01_Shallow/Other.md")


def test_one_of_two_notes_with_one_id_gets_its_own_however_they_came(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    buffer = person.reads(PLAN)
    known = person.says(PLAN)["id"]
    person.moves(PLAN, "01_Shallow/Scheme.md")
    settle(keeper, clock)
    clock.at += timedelta(days=2)
    person.moves("01_Shallow/Scheme.md", "01_Shallow/Third.md")
    person.writes(PLAN, buffer.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    assert person.says("01_Shallow/Third.md")["id"] == known
    assert not (person.root / PLAN).exists() or person.says(PLAN)["id"] != known


def test_a_rating_that_a_person_takes_back_by_hand_stays_taken_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.rate(path=PLAN, density=0.3)
    settle(keeper, clock)
    palace.rate(path=PLAN, density=0.9)
    settle(keeper, clock)
    clock.at += timedelta(minutes=5)
    person.edits(PLAN, "density: 0.9", "density: 0.3")

    settle(keeper, clock)

    assert person.says(PLAN)["density"] == 0.3


def test_an_old_text_with_new_words_saved_much_later_takes_no_rating_away(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.move(PLAN, "bedrock")  # where a rating changes no other line
    plan = "03_Bedrock/Plan.md"
    palace.rate(path=plan, density=0.3)
    settle(keeper, clock)
    opened = person.reads(plan)
    palace.rate(path=plan, density=0.9)
    settle(keeper, clock)
    clock.at += timedelta(hours=1)
    person.writes(plan, opened.replace("First line.", "First line, typed on."))

    settle(keeper, clock)

    assert person.says(plan)["density"] == 0.9
    assert "First line, typed on." in person.reads(plan)


def test_a_rating_that_a_person_takes_back_while_writing_stays_taken_back_when_they_insist(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.rate(path=PLAN, density=0.3)
    settle(keeper, clock)
    palace.rate(path=PLAN, density=0.9)
    settle(keeper, clock)
    person.edits(PLAN, "First line.", "First line, typed on.")
    settle(keeper, clock)
    clock.at += timedelta(minutes=5)
    person.edits(PLAN, "density: 0.9", "density: 0.3")

    settle(keeper, clock)

    assert person.says(PLAN)["density"] == 0.3


def test_an_append_to_a_late_save_at_the_old_place_comes_home_though_it_was_saved_over(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.move(PLAN, "bedrock")
    person.writes(PLAN, opened.replace("First line.", "First line, typed on."))
    palace.write("The agent's words.", path="Plan", mode="append")
    clock.at += timedelta(seconds=4)
    person.writes(PLAN, opened.replace("First line.", "First line, typed on and on."))

    settle(keeper, clock)

    text = person.reads("03_Bedrock/Plan.md")
    assert "First line, typed on and on." in text
    assert text.count("The agent's words.") == 1
    assert not (person.root / PLAN).exists()


def test_a_rating_of_a_late_save_that_is_set_aside_counts_for_the_note(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.move(PLAN, "bedrock")
    person.edits("03_Bedrock/Plan.md", "First line.", "First line, another way.")
    settle(keeper, clock)
    person.writes(PLAN, opened.replace("First line.", "First line, typed on."))
    clock.at += timedelta(seconds=3)
    palace.rate(path=PLAN, density=0.9)

    settle(keeper, clock)

    assert person.says("03_Bedrock/Plan.md")["density"] == 0.9
    assert not (person.root / PLAN).exists()


def test_a_late_save_that_an_agent_wrote_to_takes_no_older_append_away(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    opened = person.reads(PLAN)
    palace.write("The first words.", path="Plan", mode="append")
    settle(keeper, clock)
    palace.move(PLAN, "bedrock")
    settle(keeper, clock)
    person.writes(PLAN, opened.replace("First line.", "First line, typed on."))
    palace.write("The later words.", path="Plan", mode="append")

    settle(keeper, clock)

    text = person.reads("03_Bedrock/Plan.md")
    assert [text.count(words) for words in ("The first words.", "The later words.", "typed on.")] == [1, 1, 1]
