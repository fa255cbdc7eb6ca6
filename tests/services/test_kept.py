"""Every version that a person saved is named by the note's history, and comes back when they ask for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle
from vault_palace.core.errors import Busy, Conflict, InvalidArguments, NotFound, PolicyViolation
from vault_palace.services.answers import HistoryAnswer
from vault_palace.services.house import House
from vault_palace.services.keeper import Keeper
from vault_palace.services.kept import has_id
from vault_palace.services.palace import Palace
from vault_palace.storage import files

Note = Callable[..., Path]

PUMP = "01_Shallow/Pump.md"
OPEN = {
    "main": {"type": "leaf", "id": "1", "state": {"type": "markdown", "state": {"file": PUMP}}},
    "active": "1",
}


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


@pytest.fixture(autouse=True)
def policy(vault: Path, clock: Clock) -> None:
    # Versions have the files' time, which knows nothing of the turned clock.
    text = "---\ntimezone: UTC\nversions_keep_days: 36500\n---\n"
    (vault / "_System/Policy.md").write_text(text, encoding="utf-8")


@pytest.fixture
def keeper(palace: Palace, clock: Clock) -> Keeper:
    palace.write("first words", title="Pump")
    clock.turn(days=1)
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    return keeper


def saves(keeper: Keeper, person: Person, clock: Clock, old: str, new: str) -> str:
    """What a person saves, until the keeper has seen to it; the version's name."""
    clock.turn(hours=1)
    person.edits(PUMP, old, new)
    name = files.fingerprint((person.root / PUMP).read_bytes())[:12]
    settle(keeper, clock)
    return name


def texts(palace: Palace, answer: HistoryAnswer) -> list[str]:
    return [palace.version("Pump", one["version"])["text"] for one in answer["versions"]]


def newest(palace: Palace, verb: str) -> str:
    return next(entry.op for entry in reversed(palace.house.journal.entries()) if entry.verb == verb)


# -- naming --------------------------------------------------------------------------------------------------


def test_each_text_that_a_person_saved_is_named_by_the_note_s_history(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")
    saves(keeper, person, clock, "third words", "fourth words")

    answer = palace.history("Pump")

    told = "".join(texts(palace, answer))
    assert "second words" in told
    assert "third words" in told
    assert "fourth words" not in told  # it is the note


def test_a_version_says_when_it_was_kept_and_how_far_it_is_from_the_note(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock, vault: Path
) -> None:
    saves(keeper, person, clock, "first words", "kept\nand more")
    saves(keeper, person, clock, "kept\nand more", "other")

    (one,) = [
        one
        for one in palace.history("Pump")["versions"]
        if "and more" in palace.version("Pump", one["version"])["text"]
    ]

    (place,) = (vault / ".palace/versions").rglob(f"{one['version']}*.z")
    at = datetime.fromtimestamp(place.stat().st_mtime, UTC)
    assert one["kept_on"] == f"{at:%Y-%m-%d %H:%M:%S}"
    assert one["lines_added"] >= 2
    assert one["lines_removed"] >= 1


def test_versions_that_only_the_program_s_own_lines_tell_apart_are_counted(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    for _ in range(3):
        clock.turn(days=1)
        palace.read(path=PUMP)

    answer = palace.history("Pump")

    assert answer["versions"] == []
    assert answer["versions_alike"] >= 2
    assert len(palace.history("Pump", everything=True, limit=1)["versions"]) == 1


def test_what_a_listed_operation_names_is_not_listed_twice(palace: Palace) -> None:
    palace.write("one", title="Pump")
    palace.write("two", mode="append", path=PUMP)

    answer = palace.history("Pump", everything=True)

    append, write = answer["operations"]
    assert append["before_version"] == write["after_version"] != ""
    assert write["before_version"] == ""
    assert answer["versions"] == []


def test_what_the_limit_cut_off_is_among_the_versions(palace: Palace) -> None:
    palace.write("one", title="Pump")
    for word in ("two", "three", "four", "five"):
        palace.write(word, mode="append", path=PUMP)

    answer = palace.history("Pump", limit=1)

    assert len(answer["versions"]) == 1
    assert answer["versions_total"] == 3
    assert texts(palace, answer)[0].rstrip().endswith("three")


def test_a_version_whose_header_does_not_parse_is_named_as_well(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    text = person.reads(PUMP)
    person.writes(PUMP, text.replace("id: ", "tags: [half\nid: ", 1) + "typed in haste\n")
    settle(keeper, clock)
    person.writes(PUMP, text)
    settle(keeper, clock)

    answer = palace.history("Pump")

    assert any("typed in haste" in one for one in texts(palace, answer))


@pytest.mark.parametrize(
    ("data", "is_its"),
    [
        (b"---\nid: mem_1\n---\nx", True),
        (b'---\nid: "mem_1"\ntags: [\n---\nx', True),
        (b"---\r\nid: mem_1\r\ntags: [\r\n---\r\nx", True),
        (b"---\nid: mem_1\n---\n\xff", True),
        (b"---\nid: mem_12\ntags: [\n---\nx", False),
        (b"---\nid: mem_2\n---\nid: mem_1\n", False),
        (b"about mem_1", False),
    ],
)
def test_a_version_is_the_note_s_by_its_id(data: bytes, is_its: bool) -> None:
    assert has_id(data, "mem_1") is is_its


def test_another_note_s_versions_are_not_told(palace: Palace, keeper: Keeper, person: Person) -> None:
    other = palace.write("other words", title="Other")
    palace.write(f"it is said of {other['id']}", title="Third")

    answer = palace.history("Pump", everything=True)

    assert not any("other words" in one or "it is said" in one for one in texts(palace, answer))


def test_a_note_without_an_id_has_the_versions_that_the_journals_name(palace: Palace, note: Note) -> None:
    palace.write("one", title="Pump")
    note("table.md", "[[01_Shallow/Pump]]\n")
    palace.house.refresh(if_older=0)
    palace.move(PUMP, "sediment")
    palace.move("02_Sediment/Pump.md", "shallow")
    palace.move(PUMP, "bedrock")

    answer = palace.history("table.md", limit=1)

    (one,) = answer["versions"]
    assert palace.version("table.md", one["version"])["text"] == "[[02_Sediment/Pump]]\n"


# -- putting back --------------------------------------------------------------------------------------------


def test_a_version_that_a_person_saved_comes_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")

    answer = palace.undo("Pump", version=name, confirm=True)

    assert answer["changed"] == 1
    assert "second words" in person.reads(PUMP)
    assert "third words" not in person.reads(PUMP)


def test_what_the_program_derives_stays_as_it_is_now(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    for _ in range(4):
        clock.turn(days=1)
        palace.read(path=PUMP)
    palace.move(PUMP, "sediment")
    before = person.says("02_Sediment/Pump.md")

    palace.undo("Pump", version=name, confirm=True)

    after = person.says("02_Sediment/Pump.md")
    kept = ("id", "layer", "created", "last_touched", "layer_since", "streak", "decay_days", "status")
    assert {key: after.get(key) for key in kept} == {key: before.get(key) for key in kept}


def test_what_a_person_says_in_the_properties_comes_from_the_version(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.rate(path=PUMP, density=0.4)
    text = "tags: [red]\naliases: [Old pump]\npinned: true\ncolour: blue # mine\nid: "
    name = saves(keeper, person, clock, "id: ", text)
    settled = person.reads(PUMP)
    person.writes(PUMP, settled.replace(text[:-4], "tags: [green]\n"))
    settle(keeper, clock)
    palace.rate(path=PUMP, density=0.9, decay_days=3)

    palace.undo("Pump", version=name, confirm=True)

    said = person.says(PUMP)
    assert (said["tags"], said["aliases"], said["pinned"]) == (["red"], ["Old pump"], True)
    assert (said["colour"], said["density"], said["decay_days"]) == ("blue", 0.4, 7)
    assert "colour: blue # mine" in person.reads(PUMP)


def test_taking_a_pin_out_with_a_version_charges_no_time_for_it(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    palace.rate(path=PUMP, pinned=True)
    before = person.says(PUMP)["streak"]
    clock.turn(days=40)

    palace.undo("Pump", version=name, confirm=True)
    settle(keeper, clock)

    assert not person.says(PUMP).get("pinned")
    assert person.says(PUMP)["streak"] == before


def test_a_preview_of_a_version_writes_nothing(
    keeper: Keeper,
    palace: Palace,
    person: Person,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")
    monkeypatch.setattr(House, "perform", None)
    monkeypatch.setattr(House, "locked", None)

    answer = palace.undo("Pump", version=name, preview=True)

    (note,) = answer["undone"][0]["notes"]
    assert {"-third words", "+second words"} <= set(note["diff"])


def test_putting_a_version_back_is_an_operation_that_can_be_undone(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")
    before = person.reads(PUMP)
    done = palace.undo("Pump", version=name, confirm=True)["undone"][0]["undo_op"]

    palace.undo(done, confirm=True)

    assert person.reads(PUMP) == before


def test_a_note_that_is_gone_comes_back_where_it_was_with_that_version(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")
    person.deletes(PUMP)
    clock.turn(hours=1)
    settle(keeper, clock)
    clock.turn(hours=1)
    settle(keeper, clock)

    palace.undo("Pump", version=name, confirm=True)

    assert "second words" in person.reads(PUMP)


def test_where_its_place_is_taken_it_comes_back_beside(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock, vault: Path
) -> None:
    known = str(person.says(PUMP)["id"])
    name = saves(keeper, person, clock, "first words", "second words")
    person.deletes(PUMP)
    palace.house.refresh(if_older=0)
    person.writes(PUMP, "another note\n")

    answer = palace.undo(known, version=name, confirm=True)

    (note,) = answer["undone"][0]["notes"]
    assert note["to"] != PUMP
    assert "second words" in person.reads(note["to"])
    assert person.reads(PUMP) == "another note\n"


def test_a_person_at_work_in_the_note_is_not_disturbed(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")
    person.writes(".obsidian/workspace.json", json.dumps(OPEN))
    person.edits(PUMP, "third words", "fourth words")
    before = person.reads(PUMP)

    with pytest.raises(Busy):
        palace.undo("Pump", version=name, confirm=True)

    assert person.reads(PUMP) == before


@pytest.mark.parametrize(
    ("version", "kind"),
    [("abcde", InvalidArguments), ("zzzzzz", InvalidArguments), ("", InvalidArguments), ("0" * 12, NotFound)],
)
def test_what_names_no_version_is_refused(
    keeper: Keeper, palace: Palace, version: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        palace.undo("Pump", version=version, confirm=True)
    with pytest.raises(kind):
        palace.version("Pump", version)


def test_a_prefix_that_fits_two_versions_is_refused(
    keeper: Keeper, palace: Palace, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = str(person.says(PUMP)["id"])
    versions = {}
    number = 0
    while True:  # the digits of a name are few, so two alike are found soon
        data = f"---\nid: {known}\n---\n{number}\n".encode()
        short = files.fingerprint(data)[:6]
        if short in versions:
            break
        versions[short] = data
        number += 1
    palace.house.versions.keep(versions[short])
    palace.house.versions.keep(data)

    with pytest.raises(Conflict):
        palace.undo("Pump", version=short, confirm=True)


def test_a_version_needs_confirm_and_a_vault_that_may_be_written(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock, open_palace: OpenPalace
) -> None:
    name = saves(keeper, person, clock, "first words", "second words")
    saves(keeper, person, clock, "second words", "third words")

    with pytest.raises(PolicyViolation):
        palace.undo("Pump", version=name)
    with pytest.raises(PolicyViolation):
        open_palace(read_only=True).undo("Pump", version=name, confirm=True)


def test_a_version_is_one_note_s_and_no_session_s(palace: Palace) -> None:
    with pytest.raises(InvalidArguments):
        palace.undo(session="test-1", version="abcdef", confirm=True)


def test_the_text_that_the_note_has_is_refused(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    name = files.fingerprint((person.root / PUMP).read_bytes())[:12]

    answer = palace.undo("Pump", version=name, confirm=True)

    assert (answer["changed"], answer["refused"]) == (0, 1)


def test_of_a_version_whose_header_does_not_parse_the_text_comes_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    text = person.reads(PUMP)
    broken = text.replace("id: ", "tags: [half\nid: ", 1) + "typed in haste\n"
    person.writes(PUMP, broken)
    settle(keeper, clock)
    clock.turn(hours=1)
    person.writes(PUMP, text)
    settle(keeper, clock)
    name = files.fingerprint(broken.encode("utf-8"))[:12]
    clock.turn(hours=1)

    answer = palace.undo("Pump", version=name, confirm=True)

    assert "properties" in answer["undone"][0]["notes"][0]["newer"]
    assert person.reads(PUMP).endswith("typed in haste\n")
    assert person.says(PUMP)["id"]


# -- an edit by a person -------------------------------------------------------------------------------------


def test_an_edit_by_a_person_is_taken_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    streak = person.says(PUMP)["streak"]

    answer = palace.undo(newest(palace, "edited"), confirm=True)

    assert answer["changed"] == 1
    assert "first words" in person.reads(PUMP)
    assert "second words" not in person.reads(PUMP)
    assert person.says(PUMP)["streak"] == streak


def test_only_the_edit_that_is_named_is_taken_back(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "top\n\nfirst words\n\nmiddle\n\nend")
    saves(keeper, person, clock, "middle", "second words")
    edited = newest(palace, "edited")
    saves(keeper, person, clock, "top", "third words")
    clock.turn(hours=1)
    palace.write("an agent's", mode="append", path=PUMP)

    palace.undo(edited, confirm=True)

    text = person.reads(PUMP)
    assert "second words" not in text
    assert all(words in text for words in ("first words", "third words", "an agent's"))


def test_values_that_a_person_gave_are_taken_back_with_the_edit(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "id: ", "tags: [red]\nid: ")

    palace.undo(newest(palace, "edited"), confirm=True)

    assert "tags" not in person.says(PUMP)


def test_an_agent_s_words_that_came_between_are_no_part_of_a_person_s_edit(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "top\n\nsecond words")
    person.edits(PUMP, "top", "third words")
    clock.turn(hours=0.001)
    keeper.step()
    palace.write("an agent's", mode="append", path=PUMP)
    clock.turn(hours=1)
    settle(keeper, clock)

    palace.undo(newest(palace, "edited"), confirm=True)

    text = person.reads(PUMP)
    assert "an agent's" in text
    assert "third words" not in text
    assert "second words" in text


def test_an_edit_whose_versions_are_gone_is_refused_with_the_way_on(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock, vault: Path
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    for version in (vault / ".palace/versions").rglob("*.z"):
        version.unlink()

    answer = palace.undo(newest(palace, "edited"), confirm=True)

    (refused,) = answer["undone"][0]["refused"]
    assert "vault-palace history" in refused["reason"]
    assert "--version" in refused["reason"]


def test_taking_an_edit_back_can_be_undone(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    before = person.reads(PUMP)
    done = palace.undo(newest(palace, "edited"), confirm=True)["undone"][0]["undo_op"]

    palace.undo(done, confirm=True)

    assert person.reads(PUMP) == before


def test_where_newer_words_stand_in_the_way_the_edit_stays(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")
    edited = newest(palace, "edited")
    saves(keeper, person, clock, "second words", "third words")

    answer = palace.undo(edited, confirm=True)

    assert answer["refused"] == 1
    assert "third words" in person.reads(PUMP)


def test_a_history_says_who_only_where_that_is_known(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    saves(keeper, person, clock, "first words", "second words")

    told = {one["verb"]: one for one in palace.history("Pump")["operations"]}

    assert (told["edited"]["who"], told["edited"]["session"], told["edited"]["machine"]) == (
        "a person",
        "",
        "",
    )
    assert told["write"]["who"] == f"test-1 on {palace.house.machine}"
