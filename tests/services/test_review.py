"""The review note worked as a person does, with a keeper beside: ticks and the property are obeyed once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle, snapshot
from vault_palace.services.caller import Caller, calling
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

REVIEW = "_System/Review.md"
SAND = "01_Shallow/Sand.md"


@pytest.fixture
def palace(open_palace: OpenPalace, vault: Path) -> Palace:
    (vault / "_System/Policy.md").write_text(
        "---\ntimezone: UTC\nauto_metabolize: off\n---\n", encoding="utf-8"
    )
    return open_palace()


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


@pytest.fixture
def keeper(palace: Palace) -> Keeper:
    return Keeper(palace.house)


@pytest.fixture
def fading(palace: Palace, keeper: Keeper, clock: Clock) -> None:
    """A memory that goes to the archive in five days."""
    palace.write("Dry as dust.", title="Sand")
    clock.turn(days=3)
    settle(keeper, clock)


def tick(person: Person, word: str, name: str = "Sand") -> None:
    text = person.reads(REVIEW)
    found = re.search(rf"- \[ \] {word} \[\[{name}\]\]", text)
    assert found, text
    person.writes(REVIEW, text[: found.start()] + found.group().replace("[ ]", "[x]") + text[found.end() :])


def obey(keeper: Keeper, clock: Clock) -> None:
    clock.turn(hours=0.002)  # the person leaves it be for some seconds
    settle(keeper, clock)


def operations(palace: Palace, note: str = "Sand") -> list[tuple[str, str, str]]:
    answer = palace.history(note, everything=True)
    return [(one["verb"], one["why"], one["who"]) for one in answer["operations"]]


@pytest.mark.usefixtures("fading")
def test_what_fades_waits_with_why_and_when(person: Person) -> None:
    text = person.reads(REVIEW)

    assert "- [[Sand]] goes to the archive on 2031-03-09" in text
    assert [line.strip() for line in text.splitlines() if "- [ ]" in line] == [
        "- [ ] keep [[Sand]]",
        "- [ ] promote [[Sand]] to Sediment",
        "- [ ] archive [[Sand]] now",
        "- [ ] pin [[Sand]]",
    ]


@pytest.mark.usefixtures("fading")
def test_keep_is_a_use(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "keep")
    obey(keeper, clock)

    said = person.says(SAND)
    assert (said["streak"], str(said["decays_on"])) == (1, "2031-03-19")


@pytest.mark.usefixtures("fading")
def test_promote_takes_it_a_layer_deeper(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "promote")
    obey(keeper, clock)

    assert person.says("02_Sediment/Sand.md")["layer"] == "sediment"


@pytest.mark.usefixtures("fading")
def test_archive_takes_it_away_now(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "archive")
    obey(keeper, clock)

    assert person.says(f"_Archive/{SAND}")["archived_reason"] == "purged: ticked in _System/Review.md"


@pytest.mark.usefixtures("fading")
def test_pin_holds_it(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "pin")
    obey(keeper, clock)

    said = person.says(SAND)
    assert said["pinned"] is True
    assert "decays_on" not in said


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize("word", ["keep", "promote", "archive", "pin"])
def test_who_and_why_are_on_record_and_shown(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock, word: str
) -> None:
    tick(person, word)
    obey(keeper, clock)

    (verb, why, who), *_ = [one for one in operations(palace) if "ticked" in one[1]]
    assert who.startswith("a person")
    assert word in why or verb == "purge"
    done = person.reads(REVIEW).partition("## Done lately")[2]
    assert "“Sand”" in done
    assert "vault-palace undo " in done


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize("word", ["keep", "promote", "archive", "pin"])
def test_it_is_done_once(person: Person, keeper: Keeper, palace: Palace, clock: Clock, word: str) -> None:
    tick(person, word)
    obey(keeper, clock)
    for _ in range(5):
        clock.turn(hours=1)
        settle(keeper, clock)

    assert len([one for one in operations(palace) if "ticked" in one[1]]) == 1
    assert "[x]" not in person.reads(REVIEW)


@pytest.mark.usefixtures("fading")
def test_the_ticked_text_that_comes_back_is_not_obeyed_again(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock
) -> None:
    tick(person, "keep")
    old = person.reads(REVIEW)
    obey(keeper, clock)
    clock.turn(days=1)
    settle(keeper, clock)
    person.writes(REVIEW, old)
    obey(keeper, clock)

    assert len([one for one in operations(palace) if "ticked" in one[1]]) == 1
    assert "[x]" not in person.reads(REVIEW)


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize("word", ["keep", "promote", "archive", "pin"])
def test_an_undo_takes_it_back_and_it_can_be_asked_again(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock, word: str
) -> None:
    before = person.reads(SAND)
    tick(person, word)
    obey(keeper, clock)
    operation = re.search(r"vault-palace undo (\w+)", person.reads(REVIEW))
    assert operation
    undone = palace.undo(operation[1], confirm=True)
    settle(keeper, clock)

    assert not undone["refused"]
    assert person.reads(SAND) == before
    tick(person, word)
    obey(keeper, clock)
    assert len([one for one in operations(palace) if "ticked" in one[1] and one[0] != "undo"]) == 2


@pytest.mark.usefixtures("fading")
def test_an_idle_vault_is_not_written_to(person: Person, keeper: Keeper, clock: Clock, vault: Path) -> None:
    settle(keeper, clock)
    before = snapshot(vault)
    for _ in range(10):
        clock.at = clock.at.replace(minute=(clock.at.minute + 3) % 60)
        settle(keeper, clock)

    assert snapshot(vault) == before


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize(
    "spelling",
    [
        "\t* [X] keep [[Sand]]",
        "1. [x] KEEP [[sand|my sand]]",
        "- [x] keep [[Sand]] ✅ 2031-03-04",
        "    + [x] keep [[01_Shallow/Sand#Top|Sand]], please",
    ],
)
def test_a_tick_is_seen_however_it_is_spelled(
    person: Person, keeper: Keeper, clock: Clock, spelling: str
) -> None:
    person.edits(REVIEW, "    - [ ] keep [[Sand]]", spelling)
    obey(keeper, clock)

    assert person.says(SAND)["streak"] == 1


@pytest.mark.usefixtures("fading")
def test_windows_line_ends_are_read(person: Person, keeper: Keeper, clock: Clock, vault: Path) -> None:
    tick(person, "pin")
    (vault / REVIEW).write_bytes(person.reads(REVIEW).replace("\n", "\r\n").encode("utf-8"))
    person.stamps(REVIEW)
    obey(keeper, clock)

    assert person.says(SAND)["pinned"] is True


@pytest.mark.usefixtures("fading")
def test_two_words_that_go_together_are_both_done(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "promote")
    tick(person, "pin")
    obey(keeper, clock)

    assert person.says("02_Sediment/Sand.md")["pinned"] is True


@pytest.mark.usefixtures("fading")
def test_two_words_that_contradict_are_answered(person: Person, keeper: Keeper, clock: Clock) -> None:
    before = person.reads(SAND)
    tick(person, "archive")
    tick(person, "keep")
    obey(keeper, clock)

    assert person.reads(SAND) == before
    assert "Say one of them" in person.reads(REVIEW)


@pytest.mark.usefixtures("fading")
def test_a_task_of_their_own_with_another_word_is_answered(
    person: Person, keeper: Keeper, clock: Clock
) -> None:
    person.edits(REVIEW, "    - [ ] keep [[Sand]]", "    - [x] polish [[Sand]]")
    obey(keeper, clock)

    text = person.reads(REVIEW)
    assert "polish “Sand”? Say keep, promote, archive or pin" in text
    assert "[x]" not in text


@pytest.mark.usefixtures("fading")
def test_what_a_person_wrote_beside_the_markers_stays(person: Person, keeper: Keeper, clock: Clock) -> None:
    person.edits(REVIEW, "# Review\n", "# Review\n\nCall Ann about [[Sand]].\n- [x] keep the tea warm\n")
    tick(person, "pin")
    obey(keeper, clock)

    assert "Call Ann about [[Sand]].\n- [x] keep the tea warm\n" in person.reads(REVIEW)


@pytest.mark.usefixtures("fading")
def test_a_renamed_memory_is_meant_by_its_new_name(person: Person, keeper: Keeper, clock: Clock) -> None:
    person.moves(SAND, "01_Shallow/Dust.md")
    person.writes(REVIEW, person.reads(REVIEW).replace("[[Sand]]", "[[Dust]]"))
    tick(person, "pin", "Dust")
    obey(keeper, clock)

    assert person.says("01_Shallow/Dust.md")["pinned"] is True


@pytest.mark.usefixtures("fading")
def test_a_memory_that_is_gone_is_answered(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "keep")
    person.deletes(SAND)
    obey(keeper, clock)

    text = person.reads(REVIEW)
    assert "there is no such memory any more" in text
    assert "[x]" not in text


@pytest.mark.usefixtures("fading")
def test_a_memory_that_somebody_is_typing_in_waits_and_says_so(
    person: Person, keeper: Keeper, clock: Clock, vault: Path
) -> None:
    (vault / ".obsidian").mkdir(exist_ok=True)
    leaf = '{"main":{"type":"leaf","state":{"type":"markdown","state":{"file":"01_Shallow/Sand.md"}}}}'
    (vault / ".obsidian/workspace.json").write_text(leaf, encoding="utf-8")
    person.edits(SAND, "Dry as dust.", "Dry as dust, still.")
    tick(person, "archive")
    for _ in range(4):
        clock.sleep(5)
        keeper.step()

    assert (vault / SAND).exists()
    assert "- [x] archive [[Sand]] now" in person.reads(REVIEW)
    assert "waits until nobody is at work in it" in person.reads(REVIEW)
    clock.turn(hours=1)
    settle(keeper, clock)
    assert (vault / "_Archive" / SAND).exists()


@pytest.mark.usefixtures("fading")
def test_who_is_still_ticking_is_not_interrupted(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "pin")
    clock.sleep(1)
    keeper.step()

    assert "- [x] pin" in person.reads(REVIEW)


# -- the property -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize(
    "said", ["review: promote", "review:\n  - promote", "review: [Promote]", 'review: " promote "']
)
def test_the_property_is_obeyed_once_and_cleared(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock, said: str
) -> None:
    person.edits(SAND, "status: active", f"status: active\n{said}")
    obey(keeper, clock)
    clock.turn(days=1)
    settle(keeper, clock)

    says = person.says("02_Sediment/Sand.md")
    assert says["layer"] == "sediment"
    assert "review" not in says
    assert len([one for one in operations(palace) if "said in its properties" in one[1]]) == 1


@pytest.mark.usefixtures("fading")
@pytest.mark.parametrize("word", ["keep", "archive", "pin"])
def test_each_word_of_the_property_is_obeyed(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock, word: str
) -> None:
    person.edits(SAND, "status: active", f"status: active\nreview: {word}")
    obey(keeper, clock)

    (entry,) = [one for one in operations(palace) if "said in its properties" in one[1]]
    assert entry[2].startswith("a person")
    path = f"_Archive/{SAND}" if word == "archive" else SAND
    assert "review" not in person.says(path)


@pytest.mark.usefixtures("fading")
def test_an_unknown_word_is_answered_in_the_property(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock
) -> None:
    person.edits(SAND, "status: active", "status: active\nreview: polish")
    obey(keeper, clock)
    clock.turn(hours=2)
    settle(keeper, clock)

    assert person.says(SAND)["review"] == ["polish? Say keep, promote, archive or pin"]
    assert len([one for one in operations(palace) if "answered" in one[1]]) == 1


@pytest.mark.usefixtures("fading")
def test_undo_of_a_property_that_was_obeyed_does_not_ask_again(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock
) -> None:
    person.edits(SAND, "status: active", "status: active\nreview: pin")
    obey(keeper, clock)
    operation = re.search(r"vault-palace undo (\w+)", person.reads(REVIEW))
    assert operation
    palace.undo(operation[1], confirm=True)
    obey(keeper, clock)

    assert person.says(SAND).get("pinned") in (None, False)


# -- other kinds --------------------------------------------------------------------------------------------


@pytest.fixture
def proposed(open_palace: OpenPalace, palace: Palace, keeper: Keeper, person: Person, clock: Clock) -> None:
    person.edits("_System/Policy.md", "timezone: UTC", "timezone: UTC\nagent_writes: proposed")
    palace.write("Dry as dust, they say.", title="Old")
    with calling(Caller(agent="helper", session="helper-1")):
        palace.write("Wet as rain.", title="Sand", source_session="helper-1", supersedes="Old")
    clock.turn(hours=1)
    settle(keeper, clock)


@pytest.mark.usefixtures("proposed")
def test_a_proposal_waits_with_who_and_when(person: Person) -> None:
    assert "- [[Sand]] was proposed by `helper-1` on 2031-03-01" in person.reads(REVIEW)


@pytest.mark.usefixtures("proposed")
@pytest.mark.parametrize(
    ("word", "path"), [("keep", SAND), ("pin", SAND), ("promote", "02_Sediment/Sand.md")]
)
def test_a_proposal_is_approved(
    person: Person, keeper: Keeper, palace: Palace, clock: Clock, word: str, path: str
) -> None:
    tick(person, word)
    obey(keeper, clock)

    assert person.says(path)["status"] == "active"
    assert [match["path"] for match in palace.search("rain")["matches"]] == [path]


@pytest.mark.usefixtures("proposed")
def test_what_an_approved_memory_supersedes_is_marked_then(
    person: Person, keeper: Keeper, clock: Clock
) -> None:
    assert "superseded_by" not in person.says("01_Shallow/Old.md")
    tick(person, "keep")
    obey(keeper, clock)

    assert person.says("01_Shallow/Old.md")["superseded_by"] == "[[Sand]]"


@pytest.mark.usefixtures("proposed")
def test_a_proposal_is_rejected(person: Person, keeper: Keeper, clock: Clock) -> None:
    tick(person, "archive")
    obey(keeper, clock)

    assert person.says(f"_Archive/{SAND}")["archived_reason"] == "purged: rejected (proposed)"


def test_a_conflict_copy_is_merged_by_a_tick(
    palace: Palace, keeper: Keeper, person: Person, clock: Clock
) -> None:
    palace.write("Dry as dust.", title="Sand")
    clock.turn(hours=1)
    settle(keeper, clock)
    copy = "01_Shallow/Sand (conflicted copy 2031-03-01 101010).md"
    person.writes(copy, person.reads(SAND) + "\nAnd warm.\n")
    clock.turn(hours=1)
    settle(keeper, clock)
    tick(person, "merge", re.escape("Sand (conflicted copy 2031-03-01 101010)"))
    obey(keeper, clock)

    assert "And warm." in person.reads(SAND)
    assert not (person.root / copy).exists()
    assert "[x]" not in person.reads(REVIEW)


def test_near_duplicates_are_kept_apart_for_good(
    palace: Palace, keeper: Keeper, person: Person, clock: Clock
) -> None:
    text = "The observatory measures tides with a float in a well, and a pen draws them on a drum of paper."
    palace.write(text, title="Tide drum")
    palace.write("The harbour has nine cranes and one lighthouse.", title="Harbour")
    palace.write("Bread rises slower when the kitchen is cold.", title="Bread")
    palace.write(text + " It is wound on Mondays.", title="Pen and float")
    clock.turn(hours=1)
    settle(keeper, clock)
    assert "says the same as [[Tide drum]]" in person.reads(REVIEW)

    tick(person, "keep apart", "Pen and float")
    obey(keeper, clock)
    clock.turn(hours=1)
    settle(keeper, clock)

    assert "says the same as" not in person.reads(REVIEW)


def test_a_read_only_vault_is_left_alone(
    open_palace: OpenPalace, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("Dry as dust.", title="Sand")
    person.edits("_System/Policy.md", "timezone: UTC", "timezone: UTC\nread_only: true")
    keeper = Keeper(open_palace(read_only=True).house)
    settle(keeper, clock)

    assert not (person.root / REVIEW).exists()


def test_a_memory_that_is_forgotten_is_not_named_in_the_note(
    palace: Palace, keeper: Keeper, person: Person, clock: Clock
) -> None:
    palace.write("Dry as dust.", title="Sand")
    clock.turn(days=3)
    settle(keeper, clock)
    tick(person, "keep")
    obey(keeper, clock)
    palace.forget("Sand", confirm=True)

    assert "Sand" not in person.reads(REVIEW)


def test_memories_of_one_name_are_told_apart(
    palace: Palace, keeper: Keeper, person: Person, clock: Clock
) -> None:
    for room in ("a", "b"):
        person.writes(f"01_Shallow/{room}/Sand.md", f"Sand of {room}.\n")
    clock.turn(days=3)
    settle(keeper, clock)
    clock.turn(days=3)
    settle(keeper, clock)
    tick(person, "promote", "01_Shallow/b/Sand")
    obey(keeper, clock)

    assert "Sand of b." in person.reads("02_Sediment/b/Sand.md")
    assert "Sand of a." in person.reads("01_Shallow/a/Sand.md")
    assert "[x]" not in person.reads(REVIEW)


def test_a_memory_that_no_link_can_name_is_said_in_its_property(
    palace: Palace, keeper: Keeper, person: Person, clock: Clock
) -> None:
    person.writes("01_Shallow/A #1 [x].md", "Odd.\n")
    clock.turn(days=3)
    settle(keeper, clock)
    clock.turn(days=3)
    settle(keeper, clock)

    text = person.reads(REVIEW)
    assert "`A #1 [x]` goes to the archive" in text
    assert "say it in its property `review`" in text
    assert "- [ ]" not in text


@pytest.mark.usefixtures("fading")
def test_two_keepers_obey_one_tick_once(
    open_palace: OpenPalace, person: Person, keeper: Keeper, palace: Palace, clock: Clock
) -> None:
    other = Keeper(open_palace(session="other").house)
    settle(other, clock)
    tick(person, "keep")
    clock.turn(hours=0.002)
    for _ in range(40):
        keeper.step()
        other.step()
        clock.sleep(0.5)

    assert len([one for one in operations(palace) if "ticked" in one[1]]) == 1
    assert person.says(SAND)["streak"] == 1
