"""What a person does with the editor alone is understood and followed in small patches (SPEC §4, §6, §7)."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import Person, settle, snapshot
from vault_palace.core.errors import Busy
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace


@pytest.fixture
def person(vault: Path, clock: Clock) -> Person:
    return Person(vault, clock)


@pytest.fixture(autouse=True)
def policy(vault: Path) -> None:
    """Versions are as old as their files, which do not know of the turned clock."""
    text = "---\ntimezone: UTC\nversions_keep_days: 36500\n---\n"
    (vault / "_System").mkdir(exist_ok=True)
    (vault / "_System/Policy.md").write_text(text, encoding="utf-8")


@pytest.fixture
def keeper(palace: Palace, clock: Clock) -> Keeper:
    keeper = Keeper(palace.house)
    settle(keeper, clock)
    return keeper


def later(clock: Clock, **by: float) -> None:
    clock.at += timedelta(**by)


# -- new notes -----------------------------------------------------------------------------------------------


def test_a_plain_new_note_becomes_a_memory_once_it_is_quiet(
    keeper: Keeper, person: Person, clock: Clock
) -> None:
    person.writes("01_Shallow/Idea.md", "# Idea\n\nTyped by hand.\n")

    keeper.step()
    at_once = person.reads("01_Shallow/Idea.md")
    settle(keeper, clock)

    assert at_once == "# Idea\n\nTyped by hand.\n"
    said = person.says("01_Shallow/Idea.md")
    assert said["layer"] == "shallow"
    assert str(said["id"]).startswith("mem_")
    assert said["decays_on"] == "2031-03-09"
    assert person.reads("01_Shallow/Idea.md").endswith("# Idea\n\nTyped by hand.\n")


def test_a_note_that_is_being_typed_is_left_alone(keeper: Keeper, person: Person, clock: Clock) -> None:
    text = "word "
    for _ in range(10):
        text += "word "
        person.writes("01_Shallow/Typing.md", text)
        keeper.step()
        later(clock, seconds=1)

    assert person.reads("01_Shallow/Typing.md") == text


def test_nothing_is_written_where_there_is_no_policy(
    open_palace: OpenPalace, vault: Path, person: Person, clock: Clock
) -> None:
    (vault / "_System/Policy.md").unlink()
    person.writes("01_Shallow/Idea.md", "Typed by hand.\n")
    later(clock, hours=1)
    before = snapshot(vault)

    settle(Keeper(open_palace().house), clock)

    assert snapshot(vault) == before


def test_nothing_is_written_by_who_may_only_read(
    open_palace: OpenPalace, vault: Path, person: Person, clock: Clock
) -> None:
    person.writes("01_Shallow/Idea.md", "Typed by hand.\n")
    later(clock, hours=1)
    before = snapshot(vault)

    settle(Keeper(open_palace(read_only=True).house), clock)

    assert snapshot(vault) == before


# -- moves ---------------------------------------------------------------------------------------------------


def test_a_rename_keeps_the_id_and_links_follow(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    person.writes("01_Shallow/Other.md", "See [[Plan#Why|the plan]] and `[[Plan]]`.\n")
    settle(keeper, clock)
    person.moves("01_Shallow/Plan.md", "01_Shallow/work/Great plan.md")

    settle(keeper, clock)

    assert person.says("01_Shallow/work/Great plan.md")["id"] == first["id"]
    assert "See [[Great plan#Why|the plan]] and `[[Plan]]`." in person.reads("01_Shallow/Other.md")
    assert palace.read(id=first["id"], touch=False)["path"] == "01_Shallow/work/Great plan.md"


def test_a_drag_to_another_layer_is_a_move(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    person.moves("01_Shallow/Plan.md", "02_Sediment/Plan.md")

    settle(keeper, clock)

    said = person.says("02_Sediment/Plan.md")
    assert (said["id"], said["layer"], said["decay_days"]) == (first["id"], "sediment", 60)


def test_a_rename_while_nobody_kept_the_vault_is_followed(
    open_palace: OpenPalace, palace: Palace, person: Person, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    palace.write("See [[Plan]].", title="Other")
    settle(Keeper(palace.house), clock)
    palace.close()
    person.moves("01_Shallow/Plan.md", "03_Bedrock/Great plan.md")

    settle(Keeper(open_palace().house), clock)

    assert person.says("03_Bedrock/Great plan.md")["id"] == first["id"]
    assert "See [[Great plan]]." in person.reads("01_Shallow/Other.md")


def test_a_note_without_properties_is_followed_by_its_bytes(
    keeper: Keeper, person: Person, clock: Clock
) -> None:
    person.writes("01_Shallow/Other.md", "See [[Loose]].\n")
    person.writes("01_Shallow/Loose.md", "Not yet a memory.\n")
    keeper.step()
    person.moves("01_Shallow/Loose.md", "01_Shallow/Bound.md")

    settle(keeper, clock)

    assert "See [[Bound]]." in person.reads("01_Shallow/Other.md")


def test_wt_12_two_notes_that_swap_their_names_swap_their_links(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    a, b = palace.write("Alpha text.", title="a"), palace.write("Beta text.", title="b")
    palace.write("To [[a]] and [[b]].", title="Other")
    settle(keeper, clock)
    person.moves("01_Shallow/a.md", "01_Shallow/c.md")
    person.moves("01_Shallow/b.md", "01_Shallow/a.md")
    person.moves("01_Shallow/c.md", "01_Shallow/b.md")

    settle(keeper, clock)

    assert person.says("01_Shallow/a.md")["id"] == b["id"]
    assert person.says("01_Shallow/b.md")["id"] == a["id"]
    assert "Alpha text." in person.reads("01_Shallow/b.md")
    assert "To [[b]] and [[a]]." in person.reads("01_Shallow/Other.md")


def test_wt_12_text_and_name_changed_within_one_interval_is_one_note(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    first = palace.write("Alpha text.", title="a")
    settle(keeper, clock)
    created = person.says("01_Shallow/a.md")["created"]
    person.moves("01_Shallow/a.md", "02_Sediment/z.md")
    person.edits("02_Sediment/z.md", "Alpha text.", "Omega text.")

    settle(keeper, clock)

    said = person.says("02_Sediment/z.md")
    assert (said["id"], said["created"]) == (first["id"], created)


def test_links_that_obsidian_rewrote_itself_are_left(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    palace.write("See [[Plan]].", title="Other")
    settle(keeper, clock)
    person.moves("01_Shallow/Plan.md", "01_Shallow/Scheme.md")
    person.edits("01_Shallow/Other.md", "[[Plan]]", "[[Scheme|Plan]]")
    person.writes("01_Shallow/Plan.md", "A new note of the old name.\n")
    person.writes("01_Shallow/Third.md", "The new [[Plan]].\n")

    settle(keeper, clock)

    assert "See [[Scheme|Plan]]." in person.reads("01_Shallow/Other.md")
    assert "The new [[Plan]]." in person.reads("01_Shallow/Third.md")


def test_wt_09_notes_of_a_renamed_folder_keep_their_identity(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    ids = {palace.write(f"Text {n}.", title=f"n{n}", path="proj/")["id"] for n in range(30)}
    settle(keeper, clock)
    (vault / "01_Shallow/proj").rename(vault / "01_Shallow/project")

    settle(keeper, clock)

    assert {person.says(f"01_Shallow/project/n{n}.md")["id"] for n in range(30)} == ids
    assert not [path for path in palace.house.shelf.ask(lambda cache: cache.paths()) if "/proj/" in path]


# -- copies and deletions ------------------------------------------------------------------------------------


def test_a_copy_gets_an_id_of_its_own(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    shutil.copy2(vault / "01_Shallow/Plan.md", vault / "01_Shallow/Plan 1.md")

    settle(keeper, clock)

    assert person.says("01_Shallow/Plan.md")["id"] == first["id"]
    assert person.says("01_Shallow/Plan 1.md")["id"] not in (first["id"], None)


def test_a_move_that_copies_first_keeps_the_id(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    (vault / "01_Shallow/far").mkdir()
    shutil.copy(vault / "01_Shallow/Plan.md", vault / "01_Shallow/far/Plan.md")
    keeper.step()
    later(clock, seconds=2)
    person.deletes("01_Shallow/Plan.md")

    settle(keeper, clock)

    assert person.says("01_Shallow/far/Plan.md")["id"] == first["id"]


def test_a_deletion_stays_one_and_its_text_is_kept(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    palace.write("Words to lose.", title="Plan")
    person.writes("01_Shallow/Mine.md", "Typed by hand alone.\n")
    settle(keeper, clock)
    kept = {path: palace.house.look(path).stored for path in ("01_Shallow/Plan.md", "01_Shallow/Mine.md")}
    for path in kept:
        person.deletes(path)

    settle(keeper, clock)
    later(clock, days=1)
    settle(keeper, clock)

    for path, stored in kept.items():
        assert not (vault / path).exists()
        assert palace.house.versions.get(stored.fingerprint) == stored.data
    assert [entry.why for entry in palace.house.journal.recent() if entry.verb == "deleted"] == [
        "deleted"
    ] * 2


def test_a_move_or_purge_of_the_program_is_not_taken_for_a_persons(
    keeper: Keeper, palace: Palace, clock: Clock
) -> None:
    palace.write("One.", title="One")
    palace.write("Two.", title="Two")
    settle(keeper, clock)
    palace.move("01_Shallow/One.md", "sediment", new_path="else/Uno")
    palace.purge("01_Shallow/Two.md", confirm=True)

    settle(keeper, clock)

    verbs = {entry.verb for entry in palace.house.journal.recent()}
    assert not verbs & {"deleted", "renamed", "copied", "edited", "relink"}


# -- edits ---------------------------------------------------------------------------------------------------


def test_an_edit_of_the_text_counts_as_one_use_a_day(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    later(clock, days=1)
    for number in range(4):
        person.edits("01_Shallow/Plan.md", "The plan.", f"The plan. {number}")
        settle(keeper, clock)
        later(clock, minutes=30)

    said = person.says("01_Shallow/Plan.md")

    assert said["streak"] == 1
    assert str(said["last_touched"]).startswith("2031-03-02")


@pytest.mark.parametrize(
    ("old", "new", "key", "value"),
    [
        ("density: 0.2", "density: 0.9", "rises_on", "2031-03-08"),
        ("density: 0.2", "density: 0.9", "rated_on", "2031-03-01"),
        ("decay_days: 7", "decay_days: 3", "decays_on", "2031-03-05"),
        ("streak: 0", "streak: 3", "decays_on", "2031-03-30"),
        ("status: active", "status: active\npinned: true", "decays_on", None),
    ],
)
def test_an_edit_of_a_property_makes_the_forecast_anew(
    old: str,
    new: str,
    key: str,
    value: str | None,
    keeper: Keeper,
    palace: Palace,
    person: Person,
    clock: Clock,
) -> None:
    palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    person.edits("01_Shallow/Plan.md", old, new)

    settle(keeper, clock)

    assert person.says("01_Shallow/Plan.md").get(key) == value


def test_an_edit_of_the_policy_makes_every_forecast_anew(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan", density=0.6)
    palace.write("The other.", title="Other")
    settle(keeper, clock)
    person.writes("_System/Policy.md", "---\ntimezone: UTC\nshallow_days: 14\nsediment_density: 0.7\n---\n")

    settle(keeper, clock)

    assert "rises_on" not in person.says("01_Shallow/Plan.md")
    other = person.says("01_Shallow/Other.md")
    assert (other["decay_days"], other["decays_on"]) == (14, "2031-03-16")


def test_a_note_that_cannot_be_read_stops_nothing(
    keeper: Keeper, person: Person, vault: Path, clock: Clock
) -> None:
    broken = "---\ntitle: [1, 2\n---\nText.\n"
    person.writes("01_Shallow/Broken.md", broken)
    (vault / "01_Shallow/Bytes.md").write_bytes(b"\xff\xfe\x00 no text")
    person.writes("01_Shallow/Sound.md", "Text.\n")

    settle(keeper, clock)

    assert person.reads("01_Shallow/Broken.md") == broken
    assert "id" in person.says("01_Shallow/Sound.md")


# -- backlinks -----------------------------------------------------------------------------------------------


def test_a_link_added_and_removed_moves_the_streak_of_its_target(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    person.writes("02_Sediment/Other.md", "Nothing yet.\n")
    settle(keeper, clock)
    person.edits("02_Sediment/Other.md", "Nothing yet.", "Now [[Plan]], [[plan]] and ![[Plan]].")
    settle(keeper, clock)
    linked = person.says("01_Shallow/Plan.md")
    person.edits("02_Sediment/Other.md", "Now [[Plan]], [[plan]] and ![[Plan]].", "Nothing again.")
    settle(keeper, clock)

    unlinked = person.says("01_Shallow/Plan.md")

    assert (linked["backlinks"], linked["streak"]) == (1, 1)
    assert (unlinked.get("backlinks", 0), unlinked["streak"]) == (0, 0)


def test_links_from_map_journal_templates_and_archive_never_count(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    for path in (
        "PALACE_MAP.md",
        "_System/Journal.md",
        "_System/Dashboards/Mine.md",
        "_System/Templates/T.md",
        "_Archive/01_Shallow/Old.md",
        "Loose.md",
    ):
        person.writes(path, "To [[Plan]].\n")
    later(clock, hours=1)

    settle(keeper, clock)

    assert person.says("01_Shallow/Plan.md").get("backlinks", 0) == 0


def test_an_archived_linker_stops_counting(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    palace.write("To [[Plan]].", title="Other")
    settle(keeper, clock)
    before = person.says("01_Shallow/Plan.md")["streak"]
    palace.purge("01_Shallow/Other.md", confirm=True)

    settle(keeper, clock)

    assert (before, person.says("01_Shallow/Plan.md")["streak"]) == (1, 0)


# -- no loops, no churn --------------------------------------------------------------------------------------


def test_an_idle_hour_writes_nothing(
    keeper: Keeper, palace: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        palace.write(f"Text [[n{number - 1}]].", title=f"n{number}")
    settle(keeper, clock)
    before = snapshot(vault)
    monkeypatch.setattr(palace.house, "perform", lambda *_, **__: pytest.fail("something was written"))

    for _ in range(60):
        keeper.step()
        later(clock, minutes=1)

    assert snapshot(vault) == before


def test_two_keepers_at_once_write_no_more_than_one(
    open_palace: OpenPalace, palace: Palace, person: Person, clock: Clock
) -> None:
    first, second = Keeper(palace.house), Keeper(open_palace(session="test-2").house)
    for number in range(10):
        person.writes(f"01_Shallow/n{number}.md", f"Text [[n{number - 1}]].\n")
    for _ in range(40):
        first.step()
        second.step()
        later(clock, seconds=1)

    writes = [entry for entry in palace.house.journal.recent() if entry.verb == "keep"]

    assert len(writes) <= 20  # one for the properties, one for the link that comes later
    assert {person.says(f"01_Shallow/n{n}.md")["streak"] for n in range(9)} == {1}


def test_wt_03_a_plugin_that_stamps_every_change_is_not_answered(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    person.edits("01_Shallow/Plan.md", "The plan.", "The plan!")
    seen, writes = person.reads("01_Shallow/Plan.md"), 0
    for second in range(60):
        keeper.step()
        later(clock, seconds=1)
        if person.reads("01_Shallow/Plan.md") != seen:
            writes += 1
        stamped = f"modified: {second}\nstatus: active"
        if second % 2 == 0 and writes:
            person.edits("01_Shallow/Plan.md", "status: active", stamped)
        seen = person.reads("01_Shallow/Plan.md")

    assert writes == 0


def test_wt_03_a_brake_ends_a_quarrel_about_our_own_properties(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    writes = 0
    for number in range(150):
        text = person.reads("01_Shallow/Plan.md")
        if "decays_on: 2031-03-09" in text:
            writes += 1
            person.edits(
                "01_Shallow/Plan.md", "decays_on: 2031-03-09", f"decays_on: 2032-12-24\nx{number}: 1"
            )
        keeper.step()
        later(clock, seconds=2)

    assert 3 < writes <= 7
    assert [item.code for item in palace.check() if item.path == "01_Shallow/Plan.md"] == ["quarrel"]


def test_a_checkout_of_many_notes_counts_as_no_use(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    for number in range(40):
        palace.write(f"Old text {number}.", title=f"n{number}")
    settle(keeper, clock)
    later(clock, days=2)
    for number in range(40):
        person.edits(f"01_Shallow/n{number}.md", "Old text", "New text")
    before = {number: person.reads(f"01_Shallow/n{number}.md") for number in range(40)}

    settle(keeper, clock)
    palace.metabolize(confirm=True)

    assert {number: person.reads(f"01_Shallow/n{number}.md") for number in range(40)} == before


def test_properties_dumped_anew_by_obsidian_cause_no_write(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan", tags=["a", "b"], density=0.5)
    settle(keeper, clock)
    header = frontmatter_lines(person.reads("01_Shallow/Plan.md"))
    dumped = "\n".join(sorted(header, reverse=True, key=lambda line: line.startswith("density")))
    person.writes("01_Shallow/Plan.md", f"---\n{dumped}\n---\n\nThe plan.")
    after = person.reads("01_Shallow/Plan.md")

    settle(keeper, clock)

    assert person.reads("01_Shallow/Plan.md") == after


def frontmatter_lines(text: str) -> list[str]:
    return text.split("---\n")[1].rstrip("\n").split("\n")


# -- vanishing disks -----------------------------------------------------------------------------------------


def test_wt_08_a_layer_that_is_away_changes_nothing(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, tmp_path: Path, clock: Clock
) -> None:
    for number in range(6):
        palace.write(f"Text [[s{number}]].", title=f"n{number}")
        palace.write("Text.", title=f"s{number}", layer="sediment")
    settle(keeper, clock)
    before = snapshot(vault)
    (vault / "01_Shallow").rename(tmp_path / "hold")
    for _ in range(5):
        keeper.step()
        later(clock, minutes=10)
    problems = {item.code for item in palace.check()}
    (tmp_path / "hold").rename(vault / "01_Shallow")

    settle(keeper, clock)

    assert "layer_missing" in problems
    assert snapshot(vault) == before
    assert not [entry for entry in palace.house.journal.recent() if entry.verb in ("deleted", "created")]


def test_wt_08_three_of_five_notes_deleted_by_hand_are_gone(
    keeper: Keeper, palace: Palace, person: Person, clock: Clock
) -> None:
    for number in range(5):
        palace.write("Text.", title=f"n{number}")
    settle(keeper, clock)
    for number in range(3):
        person.deletes(f"01_Shallow/n{number}.md")

    settle(keeper, clock)

    assert palace.status()["layers"]["shallow"] == 2


# -- two notes with one id -----------------------------------------------------------------------------------


def test_a_copy_without_an_id_of_its_own_is_not_purged_moved_or_archived(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    shutil.copy2(vault / "01_Shallow/Plan.md", vault / "01_Shallow/Twin.md")
    palace.house.refresh(if_older=0)

    with pytest.raises(Busy, match=r"has the id of 01_Shallow/Plan\.md"):
        palace.purge("01_Shallow/Twin.md", confirm=True)
    with pytest.raises(Busy, match=r"has the id of 01_Shallow/Plan\.md"):
        palace.move("01_Shallow/Twin.md", "sediment")
    later(clock, days=9)
    run = palace.metabolize(confirm=True)

    assert [one["path"] for one in run["skipped"]] == ["01_Shallow/Twin.md"]
    assert run["archived"] == ["_Archive/01_Shallow/Plan.md"]


def test_a_copy_whose_original_an_agent_moves_meanwhile_gets_its_own_id(
    keeper: Keeper, palace: Palace, person: Person, vault: Path, clock: Clock
) -> None:
    first = palace.write("The plan.", title="Plan")
    settle(keeper, clock)
    shutil.copy2(vault / "01_Shallow/Plan.md", vault / "01_Shallow/Twin.md")
    keeper.step()
    moved = palace.purge("01_Shallow/Plan.md", confirm=True)["archived_to"]

    settle(keeper, clock)

    assert person.says(moved)["id"] == first["id"]
    assert person.says("01_Shallow/Twin.md")["id"] != first["id"]
