"""Ageing by itself: once a calendar day by whoever keeps the vault, announced the day before (SPEC §5)."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import settle
from vault_palace.core import frontmatter, rules
from vault_palace.core.errors import LockTimeout, NotFound, StorageFailed
from vault_palace.core.model import ARCHIVE
from vault_palace.index.cache import CacheBusy
from vault_palace.services import ageing, mapping
from vault_palace.services.keeper import Keeper
from vault_palace.services.metabolize import NEXT
from vault_palace.services.palace import Palace
from vault_palace.storage.lock import WriteLock

Note = Callable[..., Path]

POLICY = "_System/Policy.md"


def set_policy(vault: Path, clock: Clock, **lines: object) -> None:
    """Write the policy as a person would, and let it be quiet."""
    text = "".join(f"{key}: {value}\n" for key, value in {"timezone": "UTC", **lines}.items())
    (vault / POLICY).write_text(f"---\n{text}---\n", encoding="utf-8")
    os.utime(vault / POLICY, (clock.at.timestamp() - 60, clock.at.timestamp() - 60))


@pytest.fixture
def daily(vault: Path, clock: Clock, palace: Palace) -> Palace:
    """A palace that ages by itself."""
    set_policy(vault, clock, auto_metabolize="daily")
    return palace


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def aged(palace: Palace) -> Any:
    return ageing.run_if_due(palace.house)


def announced(palace: Palace) -> None:
    """The map is brought in step, as the keeper does before each run and after it."""
    palace.house.refresh(if_older=0)
    assert not mapping.renew(palace.house).waits


def runs(vault: Path) -> list[str]:
    """What the journals say of automatic runs, in the order of their files."""
    records = [
        json.loads(line)
        for path in sorted((vault / "_System/journal").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [record["why"] for record in records if record.get("verb") == "metabolize"]


def elsewhere(vault: Path, at: datetime, machine: str = "mother") -> None:
    """Another machine's journal comes by sync and tells of a run."""
    record = {
        "v": 1,
        "op": "abc",
        "at": at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "state": "begin",
        "verb": "metabolize",
        "session": "",
        "why": "there",
        "steps": [],
        "notes": [],
    }
    folder = vault / "_System/journal"
    folder.mkdir(exist_ok=True)
    with (folder / f"{machine}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record, separators=(",", ":")) + "\n")
        file.write(json.dumps({"v": 1, "op": "abc", "at": record["at"], "state": "done"}) + "\n")


# -- the outlook --------------------------------------------------------------------------------------------


def foreseen(palace: Palace) -> tuple[list[str], list[str]]:
    palace.house.refresh(if_older=0)
    seen = ageing.outlook(palace.house)
    return [one.path for one in seen.waiting], [one.path for one in seen.tomorrow]


def test_what_leaves_tomorrow_is_told_today(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="Sand")
    clock.turn(days=6)
    early = foreseen(palace)
    clock.turn(days=1)

    seen = ageing.outlook(palace.house)

    assert early == ([], [])
    assert ([one.path for one in seen.tomorrow], seen.waiting, seen.brake) == (["01_Shallow/Sand.md"], (), "")
    assert "goes to the archive" in seen.tomorrow[0].reason


def test_tomorrow_is_a_calendar_day_also_when_this_one_has_25_hours(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    set_policy(vault, clock, timezone="Europe/Berlin")
    clock.at = datetime(2031, 10, 25, 22, 30, tzinfo=UTC)  # the 26th, half past midnight, of 25 hours
    header = "---\nid: mem_1\nlayer: shallow\ncreated: 2031-10-19\nlast_touched: 2031-10-19\n"
    (vault / "01_Shallow/Sand.md").write_text(f"{header}decays_on: 2031-10-27\n---\nx\n", encoding="utf-8")

    assert foreseen(palace) == ([], ["01_Shallow/Sand.md"])


def test_what_waits_is_told_with_the_reason(palace: Palace, clock: Clock) -> None:
    for number in range(21):
        palace.write("x", title=f"Sand {number:02}")
    clock.turn(days=9)

    seen = ageing.outlook(palace.house)

    assert [one.path for one in seen.waiting] == [f"01_Shallow/Sand {number:02}.md" for number in range(21)]
    assert seen.tomorrow == ()
    assert seen.brake == "21 of 21 notes are due for the archive, more than 20 and more than 25% of all"


def test_where_the_vault_ages_by_itself_its_tighter_brakes_are_told(daily: Palace, clock: Clock) -> None:
    daily.write("x", title="Sand")
    clock.turn(days=7)
    before = ageing.outlook(daily.house)
    clock.turn(days=1)

    after = ageing.outlook(daily.house)

    assert ([one.path for one in before.tomorrow], before.brake) == (["01_Shallow/Sand.md"], "")
    assert before.hold == "1 of 1 notes are due for the archive, but nobody touched any memory for 8 days"
    assert ([one.path for one in after.waiting], after.tomorrow) == (["01_Shallow/Sand.md"], ())
    assert after.brake == before.hold


def test_what_only_a_leaving_note_held_is_told_too(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="Held")
    palace.write("[[Held]]", title="Holder")
    palace.metabolize(confirm=True)
    clock.turn(days=7)

    assert foreseen(palace) == ([], ["01_Shallow/Held.md", "01_Shallow/Holder.md"])


def test_pinned_and_crystallised_and_unreadable_notes_are_never_told(palace: Palace, note: Note) -> None:
    old = "created: 2025-01-01\nlast_touched: 2025-01-01\ndecays_on: 2025-02-01\nstreak: -3\n"
    note("01_Shallow/pinned.md", f"---\nid: mem_1\n{old}pinned: yes\n---\nx\n")
    note("03_Bedrock/basalt.md", f"---\nid: mem_2\n{old}---\nx\n")
    note("01_Shallow/odd.md", f"---\nid: mem_3\n{old}density: much\n---\nx\n")
    note("01_Shallow/sand.md", f"---\nid: mem_4\n{old}---\nx\n")

    assert foreseen(palace) == ([], ["01_Shallow/sand.md"])


def test_the_outlook_is_that_of_a_whole_plan(palace: Palace, note: Note, clock: Clock) -> None:
    """Two hundred notes of all ages and links, first plain and then as a run left them, for forty days."""
    for number in range(200):
        day = (clock.at - timedelta(days=number % 23)).date().isoformat()
        links = " ".join(f"[[n{(number * step) % 200}]]" for step in range(2, 2 + number % 4))
        layer = "02_Sediment" if number % 5 == 0 else "01_Shallow"
        density = (number % 10) / 10
        header = f"---\nid: mem_{number}\ncreated: {day}\nlast_touched: {day}\ndensity: {density}\n---\n"
        note(f"{layer}/n{number}.md", f"{header}{links}\n")

    for _ in range(8):
        house = palace.house
        palace.house.refresh(if_older=0)
        then = clock.at + timedelta(days=1)
        memories, sources = tuple(house.shelf.memories().values()), house.shelf.sources()
        waiting = rules.plan(memories, sources, clock.at, house.policy()).waiting
        held = {one.path for one in waiting}
        whole = rules.plan(memories, sources, then, house.policy(), force=True)
        going = [one.path for one in whole.decisions if one.to == ARCHIVE and one.path not in held]
        assert foreseen(palace) == (sorted(held), going)
        palace.metabolize(confirm=True)
        clock.turn(days=5)


@pytest.mark.parametrize("links", [5, 5_000])
def test_the_outlook_asks_many_notes_at_once(
    palace: Palace, note: Note, monkeypatch: pytest.MonkeyPatch, links: int
) -> None:
    for number in range(12):
        note(f"01_Shallow/n{number:02}.md", f"---\nid: mem_{number}\ncreated: 2025-01-01\nlast_touched: "
             f"2025-01-01\n---\n[[n{number + 1:02}]]\n")  # fmt: skip
    one_by_one = foreseen(palace)
    monkeypatch.setattr(ageing, "MANY", 5)
    monkeypatch.setattr(ageing, "MANY_LINKS", links)
    monkeypatch.setattr(palace.house, "look", unwanted)

    assert foreseen(palace) == one_by_one
    assert len(one_by_one[1]) == 12


def unwanted(*_: object, **__: object) -> None:
    raise AssertionError("that was not wanted")


def test_the_outlook_looks_at_few_notes_of_a_large_vault(
    palace: Palace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    palace.write("[[Fresh 3]]", title="Sand")
    clock.turn(days=7)
    for number in range(60):
        palace.write("x", title=f"Fresh {number}", density=0.3)
    palace.metabolize(confirm=True)
    looked: list[str] = []
    real = palace.house.look

    def look(path: str) -> object:
        looked.append(path)
        return real(path)

    monkeypatch.setattr(palace.house, "look", look)
    monkeypatch.setattr(palace.house.shelf, "memories", unwanted)

    told = foreseen(palace)

    assert told == ([], ["01_Shallow/Sand.md"])
    assert set(looked) == {"01_Shallow/Sand.md", "01_Shallow/Fresh 3.md"}


def test_an_empty_vault_has_no_outlook(daily: Palace) -> None:
    assert ageing.outlook(daily.house) == ageing.Outlook()


# -- the daily run ------------------------------------------------------------------------------------------


def test_the_vault_ages_once_a_day(daily: Palace, vault: Path, clock: Clock) -> None:
    daily.write("It pays.", title="Gold", density=0.6)
    daily.write("x", title="Sand")
    for _ in range(8):
        clock.turn(days=1)
        daily.write("x", title=f"Day {clock.at:%d}")
        aged(daily)
        announced(daily)

    again = [aged(daily) for _ in range(3)]

    assert again == [None, None, None]
    assert (vault / "02_Sediment/Gold.md").exists()
    assert (vault / "_Archive/01_Shallow/Sand.md").exists()
    assert runs(vault)[-2:] == ["2031-03-08: 1 promoted", "2031-03-09: 1 archived"]
    assert len(runs(vault)) == 8


def test_a_day_on_which_nothing_moves_is_on_record_too(daily: Palace, vault: Path) -> None:
    first, second = aged(daily), aged(daily)

    assert first is not None
    assert second is None
    assert runs(vault) == ["2031-03-01: nothing moved"]


def test_the_record_holds_no_step_and_stays_closed(daily: Palace) -> None:
    aged(daily)

    (entry,) = [one for one in daily.house.journal.entries() if one.verb == "metabolize"]
    assert (entry.steps, entry.notes, entry.state) == ((), (), "done")
    assert daily.house.journal.unfinished() == []


def test_another_process_knows_that_the_day_is_done(
    daily: Palace, open_palace: OpenPalace, vault: Path
) -> None:
    aged(daily)

    other = open_palace(session="other")

    assert aged(other) is None
    assert len(runs(vault)) == 1


def test_a_day_done_on_another_machine_is_done(daily: Palace, vault: Path, clock: Clock) -> None:
    elsewhere(vault, clock.at - timedelta(hours=3))

    assert aged(daily) is None
    clock.turn(hours=12)  # the next day
    assert aged(daily) is not None


def test_a_machine_whose_clock_is_years_ahead_stops_nobody(daily: Palace, vault: Path, clock: Clock) -> None:
    elsewhere(vault, clock.at + timedelta(days=4_000))

    assert aged(daily) is not None


@pytest.mark.parametrize(
    "record",
    ['{"v":1,"op":"a","at":"soon","state":"begin","verb":"metabolize"}',
     '{"v":1,"op":"a","at":"9","state":"begin","verb":["metabolize"]}',
     '{"v":1,"op":"a","at":7,"state":"begin","verb":"metabolize"}'],
)  # fmt: skip
def test_a_damaged_record_of_a_run_is_none(daily: Palace, vault: Path, record: str) -> None:
    (vault / "_System/journal").mkdir(exist_ok=True)
    (vault / "_System/journal/odd.jsonl").write_text(record + "\n", encoding="utf-8")

    assert aged(daily) is not None


@pytest.mark.parametrize("why", ["off", "absent", "read-only", "read_only", "no policy", "bad"])
def test_a_vault_that_does_not_age_by_itself_is_left_alone(
    open_palace: OpenPalace, vault: Path, clock: Clock, why: str
) -> None:
    palace = open_palace(read_only=why == "read-only")
    value = {"off": "off", "absent": None, "bad": "weekly"}.get(why, "daily")
    lines: dict[str, object] = {} if value is None else {"auto_metabolize": value}
    set_policy(vault, clock, **lines, **({"read_only": "true"} if why == "read_only" else {}))
    if why == "no policy":
        (vault / POLICY).unlink()

    assert aged(palace) is None
    assert ageing.seconds_left(palace.house) is None
    assert not (vault / "_System/journal").exists()


def test_nothing_ages_while_someone_types_in_the_policy(daily: Palace, vault: Path, clock: Clock) -> None:
    set_policy(vault, clock, auto_metabolize="daily", shallow_days=1)
    os.utime(vault / POLICY, (clock.at.timestamp() - 1, clock.at.timestamp() - 1))

    early, left = aged(daily), ageing.seconds_left(daily.house)
    clock.turn(hours=1 / 3600)

    assert (early, left) == (None, 1)
    assert aged(daily) is not None


def test_limits_on_calls_do_not_bind_the_keeper(daily: Palace, vault: Path, clock: Clock) -> None:
    set_policy(vault, clock, auto_metabolize="daily", max_destructive_per_minute=0)

    assert aged(daily) is not None


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("Europe/Berlin", datetime(2031, 3, 28, 12, tzinfo=UTC)),  # the clocks go forward on the 30th
        ("Europe/Berlin", datetime(2031, 10, 24, 12, tzinfo=UTC)),  # and back on the 26th
        ("America/Santiago", datetime(2031, 9, 5, 12, tzinfo=UTC)),  # forward at midnight
        ("Pacific/Apia", datetime(2011, 12, 28, 12, tzinfo=UTC)),  # a day that never was
        ("Asia/Kathmandu", datetime(2031, 3, 1, tzinfo=UTC)),
    ],
)
def test_each_calendar_day_has_one_run_whatever_the_clocks_do(
    daily: Palace, vault: Path, clock: Clock, zone: str, start: datetime
) -> None:
    clock.at = start
    set_policy(vault, clock, timezone=zone, auto_metabolize="daily")
    days = set()
    for _ in range(24 * 4 * 4):
        days.add(daily.house.today().isoformat())
        aged(daily)
        clock.turn(hours=0.25)

    assert [why[:10] for why in runs(vault)] == sorted(days)


def test_a_keeper_that_is_woken_when_it_asked_to_be_misses_no_day(daily: Palace, clock: Clock) -> None:
    clock.at = datetime(2031, 3, 1, 0, 0, 1, tzinfo=UTC)
    done = []
    for _ in range(5):
        done.append(aged(daily) is not None)
        left = ageing.seconds_left(daily.house)
        assert left is not None
        assert left > 0
        clock.turn(hours=left / 3600)

    assert done == [True] * 5
    assert clock.at == datetime(2031, 3, 6, tzinfo=UTC)


def test_a_zone_that_is_changed_on_the_day_of_a_run_asks_for_no_second(
    daily: Palace, vault: Path, clock: Clock
) -> None:
    clock.at = datetime(2031, 3, 1, 23, 30, tzinfo=UTC)
    aged(daily)
    answers = []
    for zone in ("Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati", "UTC"):
        set_policy(vault, clock, timezone=zone, auto_metabolize="daily")
        answers.append(aged(daily))

    assert answers == [None] * 4


def test_days_that_come_back_with_a_clock_set_back_are_done(daily: Palace, vault: Path, clock: Clock) -> None:
    for _ in range(3):
        aged(daily)
        clock.turn(days=1)
    clock.turn(days=-3)
    for _ in range(4):
        aged(daily)
        clock.turn(days=1)

    assert [why[:10] for why in runs(vault)] == ["2031-03-01", "2031-03-02", "2031-03-03", "2031-03-04"]


def test_after_days_of_sleep_one_run_does_what_each_day_would_have_done(
    daily: Palace, vault: Path, clock: Clock, tmp_path: Path, open_palace: OpenPalace
) -> None:
    daily.write("It pays.", title="Gold", density=0.6)
    daily.rate(path="01_Shallow/Gold.md", decay_days=2)
    daily.write("x", title="Sand")
    daily.rate(path="01_Shallow/Sand.md", decay_days=2)
    for number in range(9):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    copy = tmp_path / "copy/vault"
    shutil.copytree(vault, copy)
    awake = open_palace(copy)
    for _ in range(6):
        announced(awake)
        clock.turn(days=1)
        aged(awake)

    aged(daily)

    gold = properties(vault, "01_Shallow/Gold.md")
    assert gold == properties(copy, "01_Shallow/Gold.md")
    assert (gold["streak"], gold["status"]) == (-2, "decaying")
    assert (copy / "_Archive/01_Shallow/Sand.md").exists()
    assert (vault / "01_Shallow/Sand.md").exists()  # all but this, which nothing had announced
    announced(daily)
    clock.turn(days=1)
    daily.read(path="03_Bedrock/Old 0.md")
    aged(daily)
    assert (vault / "_Archive/01_Shallow/Sand.md").exists()
    assert (len(runs(vault)), len(runs(copy))) == (2, 6)


def test_while_archives_wait_promotions_and_settling_go_on(daily: Palace, vault: Path, clock: Clock) -> None:
    daily.write("It pays.", title="Gold", density=0.6)
    for number in range(6):
        daily.write("x", title=f"Sand {number}")
    clock.turn(days=9)

    answer = aged(daily)

    assert (answer["promoted_count"], answer["archived_count"], len(answer["waiting"])) == (1, 0, 6)
    found = properties(vault, "01_Shallow/Sand 0.md")
    assert (found["status"], found["streak"], found["missed"]) == ("decaying", -1, 1)
    assert "nobody touched any memory" in answer["note"]
    assert runs(vault) == ["2031-03-10: 1 promoted, 6 wait"]


def test_what_waited_goes_once_somebody_is_at_work_again(daily: Palace, vault: Path, clock: Clock) -> None:
    daily.write("x", title="Sand")
    for number in range(3):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    clock.turn(days=9)
    held = aged(daily)
    announced(daily)
    daily.read(path="03_Bedrock/Old 0.md")
    announced(daily)
    clock.turn(days=1)

    answer = aged(daily)

    assert held["archived_count"] == 0
    assert answer["archived"] == ["_Archive/01_Shallow/Sand.md"]


def test_a_run_that_is_stopped_goes_on_at_the_next_call(daily: Palace, vault: Path, clock: Clock) -> None:
    for number in range(4):
        daily.write("It pays.", title=f"Gold {number}", density=0.6)
    clock.turn(days=8)
    asked = iter([False, False, True])

    stopped = ageing.run_if_due(daily.house, lambda: next(asked))

    assert stopped is not None
    assert (stopped["cancelled"], stopped["promoted_count"]) == (True, 2)
    assert runs(vault) == []
    assert aged(daily)["promoted_count"] == 2
    assert runs(vault) == ["2031-03-09: 2 promoted"]


def test_a_run_that_was_killed_is_finished_by_the_next_keeper(
    daily: Palace, open_palace: OpenPalace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        daily.write("It pays.", title=f"Gold {number}", density=0.6)
    clock.turn(days=8)
    real = daily.house.perform
    moved: list[str] = []

    def killed(verb: str, edits: Any, *, why: str) -> None:
        if len(moved) == 2:
            raise KeyboardInterrupt
        moved.append(verb)
        real(verb, edits, why=why)

    monkeypatch.setattr(daily.house, "perform", killed)
    with pytest.raises(KeyboardInterrupt):
        aged(daily)

    answer = aged(open_palace(session="next"))

    assert answer["promoted_count"] == 2
    assert len(list((vault / "02_Sediment").iterdir())) == 4
    assert runs(vault) == ["2031-03-09: 2 promoted"]


@pytest.mark.parametrize("error", [LockTimeout("busy"), CacheBusy("held")])
def test_a_refused_run_is_tried_again_after_minutes_that_grow(
    daily: Palace, clock: Clock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tried: list[float] = []
    start = clock.at

    def refused(*_: object, **__: object) -> None:
        tried.append((clock.at - start).total_seconds() / 60)
        raise error

    monkeypatch.setattr(ageing, "metabolize", refused)
    while clock.at < start + timedelta(hours=3):
        assert aged(daily) is None
        clock.turn(hours=1 / 60)

    assert tried == [0, 1, 3, 8, 18, 38, 68, 98, 128, 158]
    monkeypatch.undo()
    clock.turn(hours=1)
    assert aged(daily) is not None


def test_a_failing_disk_is_told_and_not_hammered(
    daily: Palace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise StorageFailed("No space.")

    monkeypatch.setattr(ageing, "metabolize", failing)
    with pytest.raises(StorageFailed):
        aged(daily)

    assert aged(daily) is None
    assert ageing.seconds_left(daily.house) == 60


def test_a_clock_set_back_shortens_no_patience_to_years(
    daily: Palace, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ageing, "metabolize", lambda *_, **__: (_ for _ in ()).throw(LockTimeout("busy")))
        aged(daily)
    clock.turn(days=-400)

    assert aged(daily) is not None


def test_a_real_lock_that_is_held_puts_the_run_off(
    daily: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily.write("It pays.", title="Gold", density=0.6)
    clock.turn(days=8)
    monkeypatch.setattr(daily.house, "_lock", WriteLock(daily.house.vault, timeout=0.01))
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with WriteLock(daily.house.vault):
            held.set()
            enough.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    refused = aged(daily)
    again = aged(daily)
    enough.set()
    holder.join(60)
    clock.turn(hours=1)

    assert (refused, again) == (None, None)
    assert aged(daily)["promoted_count"] == 1


def test_what_a_person_is_editing_is_taken_the_next_day(daily: Palace, vault: Path, clock: Clock) -> None:
    saved = daily.write("It pays.", title="Gold", density=0.6)["saved_path"]
    daily.write("x", title="Other", layer="bedrock")
    clock.turn(days=8)
    with (vault / saved).open("ab") as file:
        file.write(b"typed\n")
    os.utime(vault / saved, (clock.at.timestamp(), clock.at.timestamp()))

    first = aged(daily)
    clock.turn(hours=1)
    same_day = aged(daily)
    clock.turn(days=1)
    second = aged(daily)

    assert [one["path"] for one in first["skipped"]] == [saved]
    assert same_day is None
    assert second["promoted"] == ["02_Sediment/Gold.md"]
    assert runs(vault)[0] == "2031-03-09: 1 left for the next day"


# -- announced first ----------------------------------------------------------------------------------------


@pytest.fixture
def sand(daily: Palace, clock: Clock) -> Palace:
    """A note that is due and that nobody has announced, among others that somebody uses."""
    for number in range(3):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    daily.write("x", title="Sand")
    clock.turn(days=9)
    daily.read(path="03_Bedrock/Old 0.md")
    return daily


SAND = "01_Shallow/Sand.md"
STATE = ".palace/announced.json"


def let_go(palace: Palace) -> list[str]:
    return list(aged(palace)["archived"])


def next_day(palace: Palace, clock: Clock) -> None:
    announced(palace)
    clock.turn(days=1)


def map_names(vault: Path, title: str) -> bool:
    text = (vault / "PALACE_MAP.md").read_text(encoding="utf-8")
    return f"[[{title}" in text.partition("Let go by the next run")[2].partition("Decays within")[0]


def test_the_very_first_run_lets_nothing_go_and_says_when_it_does(
    sand: Palace, vault: Path, clock: Clock
) -> None:
    first = aged(sand)
    announced(sand)
    named = map_names(vault, "Sand")
    clock.turn(days=1)

    second = aged(sand)

    assert first["archived"] == []
    assert [(one["path"], one["to"]) for one in first["waiting"]] == [(SAND, ARCHIVE)]
    assert first["waiting"][0]["reason"].endswith("goes to the archive; announced today, let go tomorrow")
    assert named
    assert second["archived"] == ["_Archive/01_Shallow/Sand.md"]
    assert runs(vault) == ["2031-03-10: 1 waits", "2031-03-11: 1 archived"]


def test_what_waits_for_its_announcement_is_settled_and_still_counts_as_a_link(
    sand: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    """Held rests on Sand alone, and was announced before Sand was: Sand is back from a person's edit."""
    sand.write("x", title="Held")
    clock.turn(days=7)
    next_day(sand, clock)
    text = (vault / SAND).read_text(encoding="utf-8")
    (vault / SAND).write_text(text + "[[Held]]\n", encoding="utf-8")
    (vault / STATE).write_text((vault / STATE).read_text().replace(str(properties(vault, SAND)["id"]), "no"))
    sand.read(path="03_Bedrock/Old 1.md")

    answer = aged(sand)

    assert answer["archived"] == []
    assert sorted(one["path"] for one in answer["waiting"]) == ["01_Shallow/Held.md", SAND]
    assert properties(vault, SAND)["status"] == "decaying"


def test_the_announcement_counts_also_right_after_midnight(sand: Palace, clock: Clock) -> None:
    clock.at = clock.at.replace(hour=23, minute=59)
    aged(sand)
    announced(sand)
    clock.turn(hours=1 / 30)

    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_the_announcement_of_this_day_does_not_count_for_a_run_of_this_day(sand: Palace) -> None:
    announced(sand)

    assert let_go(sand) == []


def test_what_falls_due_while_no_keeper_is_there_for_a_week_waits_for_one_day(
    sand: Palace, vault: Path, clock: Clock
) -> None:
    sand.write("x", title="Later")
    next_day(sand, clock)
    clock.turn(days=8)
    sand.read(path="03_Bedrock/Old 1.md")

    back = let_go(sand)
    next_day(sand, clock)

    assert back == ["_Archive/01_Shallow/Sand.md"]  # which the map has named since
    assert let_go(sand) == ["_Archive/01_Shallow/Later.md"]


@pytest.mark.parametrize(
    "state",
    ["", "{", "[]", "null", '{"v":1}', '{"v":2,"notes":{"ID":["2031-03-10","2031-03-01"]}}',
     '{"v":1,"notes":[]}', '{"v":1,"notes":{"ID":"2031-03-10"}}', '{"v":1,"notes":{"ID":["soon","never"]}}',
     '{"v":1,"notes":{"ID":[1,2]}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_memory_of_announcements_holds_none(
    sand: Palace, vault: Path, clock: Clock, state: str
) -> None:
    next_day(sand, clock)
    own = str(properties(vault, SAND)["id"])
    assert own in (vault / STATE).read_text(encoding="utf-8")
    (vault / STATE).write_text(state.replace("ID", own), encoding="utf-8")

    damaged = let_go(sand)
    next_day(sand, clock)

    assert damaged == []
    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_a_note_that_is_touched_after_it_was_announced_is_announced_anew(
    sand: Palace, vault: Path, clock: Clock
) -> None:
    """Also where the map is not brought in step in between: the keeper was off."""
    next_day(sand, clock)
    sand.read(path=SAND)
    clock.turn(days=8)
    sand.read(path="03_Bedrock/Old 1.md")

    first = let_go(sand)
    next_day(sand, clock)

    assert first == []
    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_a_note_that_the_map_has_dropped_in_between_is_announced_anew(sand: Palace, clock: Clock) -> None:
    next_day(sand, clock)
    sand.rate(path=SAND, density=0.9)
    announced(sand)
    sand.rate(path=SAND, density=0.1)
    announced(sand)

    first = let_go(sand)
    clock.turn(days=1)

    assert first == []
    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_what_falls_due_this_day_by_a_persons_edit_waits_for_the_next(
    daily: Palace, vault: Path, clock: Clock
) -> None:
    slow = daily.write("x", title="Slow")["saved_path"]
    daily.rate(path=slow, decay_days=30)
    for number in range(3):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    clock.turn(days=9)
    daily.read(path="03_Bedrock/Old 0.md")
    next_day(daily, clock)
    text = (vault / slow).read_text(encoding="utf-8")
    (vault / slow).write_text(text.replace("decay_days: 30", "decay_days: 2"), encoding="utf-8")
    at = clock.at.timestamp() - 8 * 86_400  # the edit is a use, if one of last week
    os.utime(vault / slow, (at, at))

    first = aged(daily)
    next_day(daily, clock)

    assert (first["archived"], [one["path"] for one in first["waiting"]]) == ([], [slow])
    assert let_go(daily) == ["_Archive/01_Shallow/Slow.md"]


@pytest.mark.parametrize("why", ["broken markers", "a folder", "no write permission"])
def test_where_no_map_can_be_written_a_note_waits_for_a_day_all_the_same(
    sand: Palace, vault: Path, clock: Clock, why: str
) -> None:
    place = vault / "PALACE_MAP.md"
    if why == "a folder":
        place.unlink(missing_ok=True)
        place.mkdir()
    else:
        place.write_text("%% palace:begin %%\n%% palace:begin %%\n", encoding="utf-8")
        if why == "no write permission":
            place.write_text("mine\n", encoding="utf-8")
            place.chmod(0o400)

    first = let_go(sand)
    next_day(sand, clock)

    assert first == []
    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_a_map_that_somebody_is_typing_in_has_announced_nothing_yet(
    sand: Palace, vault: Path, clock: Clock
) -> None:
    announced(sand)
    other = sand.write("x", title="Other")["saved_path"]
    sand.rate(path=other, decay_days=1)
    clock.turn(days=3)
    with (vault / "PALACE_MAP.md").open("ab") as file:
        file.write(b"typed\n")
    os.utime(vault / "PALACE_MAP.md", (clock.at.timestamp(), clock.at.timestamp()))
    sand.house.refresh(if_older=0)

    renewal = mapping.renew(sand.house)

    assert renewal.waits
    assert str(properties(vault, other)["id"]) not in (vault / STATE).read_text()


def test_nothing_is_remembered_of_a_vault_that_may_not_be_written(
    sand: Palace, open_palace: OpenPalace, vault: Path
) -> None:
    reader = open_palace(session="reader", read_only=True)

    announced(reader)

    assert not (vault / STATE).exists()


def test_a_note_goes_when_the_machine_that_runs_has_announced_it(
    sand: Palace, vault: Path, clock: Clock, open_palace: OpenPalace, tmp_path: Path
) -> None:
    announced(sand)
    synced = tmp_path / "synced/vault"
    shutil.copytree(vault, synced, ignore=shutil.ignore_patterns(".palace"))
    other = open_palace(synced)
    clock.turn(days=1)

    first = let_go(other)
    next_day(other, clock)

    assert first == []
    assert let_go(sand) == let_go(other) == ["_Archive/01_Shallow/Sand.md"]


def test_a_run_that_a_person_asks_for_needs_no_announcement(sand: Palace) -> None:
    answer = sand.metabolize(confirm=True)

    assert answer["archived"] == ["_Archive/01_Shallow/Sand.md"]


def test_a_clock_that_was_set_back_costs_one_day_and_not_years(sand: Palace, clock: Clock) -> None:
    clock.turn(days=3000)
    announced(sand)
    clock.turn(days=-3000)

    first = let_go(sand)
    next_day(sand, clock)

    assert first == []
    assert let_go(sand) == ["_Archive/01_Shallow/Sand.md"]


def test_what_the_brakes_hold_is_not_announced_by_being_listed_as_held_back(
    daily: Palace, clock: Clock
) -> None:
    """Who comes back after weeks has a day to look at what leaves, although it was due all the time."""
    daily.write("x", title="Sand")
    for number in range(3):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    clock.turn(days=9)
    aged(daily)
    next_day(daily, clock)
    daily.read(path="03_Bedrock/Old 0.md")

    first = let_go(daily)
    next_day(daily, clock)

    assert first == []
    assert let_go(daily) == ["_Archive/01_Shallow/Sand.md"]


def test_the_brakes_count_what_waits_for_its_announcement_too(daily: Palace, clock: Clock) -> None:
    for number in range(6):
        daily.write("x", title=f"Sand {number}")
    daily.write("x", title="Old", layer="bedrock")
    clock.turn(days=9)
    daily.read(path="03_Bedrock/Old.md")

    answer = aged(daily)

    assert answer["note"].startswith("6 of 7 notes are due for the archive, more than half")
    assert len(answer["waiting"]) == 6
    assert not any("announced" in one["reason"] for one in answer["waiting"])


# -- by the keeper ------------------------------------------------------------------------------------------


def test_a_keeper_that_finds_a_note_overdue_names_it_a_day_before_it_lets_it_go(
    sand: Palace, vault: Path, clock: Clock
) -> None:
    keeper = Keeper(sand.house)
    settle(keeper, clock)
    first = ((vault / SAND).exists(), map_names(vault, "Sand"))
    clock.turn(days=1)
    settle(keeper, clock)

    assert first == (True, True)
    assert properties(vault, "_Archive/01_Shallow/Sand.md")["archived_on"] == "2031-03-11"
    assert len(runs(vault)) == 2


def test_a_run_waits_until_a_copy_has_come_to_rest(daily: Palace, vault: Path, clock: Clock) -> None:
    old = "created: 2030-01-01\nlast_touched: 2030-01-01\nlayer_since: 2030-01-01\ndensity: 0.7\n"
    for number in range(5):
        place = vault / f"01_Shallow/copied {number}.md"
        place.write_text(f"---\nid: mem_{number}\nlayer: shallow\n{old}---\nx\n", encoding="utf-8")
        os.utime(place, (clock.at.timestamp() - 0.5, clock.at.timestamp() - 0.5))
    keeper = Keeper(daily.house)
    keeper.step()
    at_once = runs(vault)

    settle(keeper, clock)

    assert at_once == []
    assert runs(vault) == ["2031-03-01: 5 promoted"]


def test_who_goes_on_typing_puts_the_run_off_for_minutes_only(
    daily: Palace, vault: Path, clock: Clock
) -> None:
    daily.house.outside["01_Shallow/typed.md"] = int(clock.at.timestamp() * 1e9)
    started, waited = clock.at, []
    while aged(daily) is None:
        left = ageing.seconds_left(daily.house)
        assert left is not None
        waited.append(left)
        clock.turn(hours=1 / 3600)
        daily.house.outside["01_Shallow/typed.md"] = int(clock.at.timestamp() * 1e9)

    assert clock.at - started == ageing.RESTLESS
    assert max(waited) == 2


def test_a_note_that_is_dated_in_the_future_puts_nothing_off(daily: Palace, clock: Clock) -> None:
    daily.house.outside["01_Shallow/odd.md"] = int((clock.at.timestamp() + 9_000) * 1e9)

    assert aged(daily) is not None


def test_the_keeper_says_in_the_map_what_goes_the_day_before_it_does(
    daily: Palace, vault: Path, clock: Clock
) -> None:
    keeper = Keeper(daily.house)
    daily.write("x", title="Sand")
    for number in range(3):
        daily.write("x", title=f"Old {number}", layer="bedrock")
    told = {}
    for _ in range(9):
        settle(keeper, clock)
        text = (vault / "PALACE_MAP.md").read_text(encoding="utf-8")
        listed = text.partition("Let go by the next run")[2].partition("Decays within")[0]
        told[clock.at.date().isoformat()] = "[[Sand" in listed
        clock.turn(days=1)
        daily.read(path="03_Bedrock/Old 0.md")
    settle(keeper, clock)

    assert [day for day, there in told.items() if there] == ["2031-03-08"]
    assert properties(vault, "_Archive/01_Shallow/Sand.md")["archived_on"] == "2031-03-09"
    assert len(runs(vault)) == 10


def test_the_keeper_asks_to_be_woken_for_the_next_run(daily: Palace, vault: Path, clock: Clock) -> None:
    keeper = Keeper(daily.house)
    settle(keeper, clock)

    wait = keeper.step()

    assert wait is not None
    assert timedelta(hours=11) < timedelta(seconds=wait) <= timedelta(hours=12)


# -- a vault that is not whole (WT-08) ----------------------------------------------------------------------


@pytest.fixture
def half(daily: Palace, vault: Path, tmp_path: Path, clock: Clock) -> Path:
    """A vault whose sediment lies on a disk that is not there any more; where it is now."""
    for number in range(3):
        daily.write("x", title=f"Sand {number}")
        daily.write("[[Sand 0]]", title=f"Clay {number}", layer="sediment")
    clock.turn(days=20)
    away = tmp_path / "away"
    (vault / "02_Sediment").rename(away)
    return away


def test_wt_08_nothing_ages_while_a_layer_is_missing(
    daily: Palace, vault: Path, half: Path, clock: Clock
) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}

    with pytest.raises(NotFound, match="folder is gone"):
        daily.metabolize(confirm=True, force=True)
    by_itself = aged(daily)

    assert by_itself is None
    assert ageing.seconds_left(daily.house) is None
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
    assert runs(vault) == []


def test_wt_08_a_dry_run_says_that_a_real_one_is_refused(daily: Palace, half: Path) -> None:
    answer = daily.metabolize(dry_run=True)

    assert answer["note"].startswith("A real run is refused: ")
    assert NEXT in answer["note"]


def test_wt_08_when_the_layer_is_back_the_vault_ages_as_if_it_had_been_there(
    daily: Palace, vault: Path, half: Path
) -> None:
    daily.check()
    aged(daily)
    half.rename(vault / "02_Sediment")

    daily.check()
    answer = aged(daily)

    assert answer["scanned"] == 6
    assert answer["archived_count"] == 0


# -- a changed policy ---------------------------------------------------------------------------------------


def test_a_changed_default_takes_its_lines_along_exactly_once(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    """Also where no run is ever made: whoever judged all notes says so, and from then on 7 is personal."""
    for number in range(3):
        palace.write("x", title=f"Sand {number}")
    palace.rate(path="01_Shallow/Sand 2.md", decay_days=9)
    palace.house.policy_applied()
    settled = ageing.policy_changed(palace.house)
    set_policy(vault, clock, shallow_days=10)
    changed = ageing.policy_changed(palace.house)
    for _ in range(2):  # judged twice, as after a crash
        for number in range(3):
            palace.rate(path=f"01_Shallow/Sand {number}.md", density=0.3)
    palace.house.policy_applied()
    done = ageing.policy_changed(palace.house)

    palace.rate(path="01_Shallow/Sand 0.md", decay_days=7)
    palace.rate(path="01_Shallow/Sand 0.md", density=0.4)

    assert (settled, changed, done) == (False, True, False)
    found = [properties(vault, f"01_Shallow/Sand {number}.md")["decay_days"] for number in range(3)]
    assert found == [7, 10, 9]


def test_a_default_that_stood_for_a_moment_is_no_personal_lifetime(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    """A person types 10 over 7, and the 1 in between is saved, and written into a note, before the 0 is."""
    for number in range(3):
        palace.write("x", title=f"Sand {number}")
    palace.rate(path="01_Shallow/Sand 2.md", decay_days=9)
    palace.house.policy_applied()
    set_policy(vault, clock, shallow_days=1)
    palace.rate(path="01_Shallow/Sand 0.md", density=0.3)
    between = properties(vault, "01_Shallow/Sand 0.md")["decay_days"]
    set_policy(vault, clock, shallow_days=10)

    palace.metabolize(confirm=True)

    found = [properties(vault, f"01_Shallow/Sand {number}.md")["decay_days"] for number in range(3)]
    assert (between, found) == (1, [10, 10, 9])
    palace.rate(path="01_Shallow/Sand 0.md", decay_days=1)
    palace.metabolize(confirm=True)
    assert properties(vault, "01_Shallow/Sand 0.md")["decay_days"] == 1


def test_a_default_that_was_taken_back_leaves_the_notes_as_they_were(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    for number in range(2):
        palace.write("x", title=f"Sand {number}")
    palace.house.policy_applied()
    before = [properties(vault, f"01_Shallow/Sand {number}.md") for number in range(2)]
    set_policy(vault, clock, shallow_days=1)
    palace.rate(path="01_Shallow/Sand 0.md", density=0.2)
    set_policy(vault, clock)

    palace.metabolize(confirm=True)

    after = [properties(vault, f"01_Shallow/Sand {number}.md") for number in range(2)]
    assert [{**found, "rated_on": ""} for found in after] == [{**found, "rated_on": ""} for found in before]


def test_a_run_of_another_process_is_known_to_this_one(
    palace: Palace, open_palace: OpenPalace, vault: Path, clock: Clock
) -> None:
    palace.write("x", title="Sand")
    palace.house.policy_applied()
    set_policy(vault, clock, shallow_days=10)
    assert palace.house.policy().shallow_days == 10
    other = open_palace(session="other")
    other.metabolize(confirm=True)

    palace.rate(path="01_Shallow/Sand.md", decay_days=7)
    palace.rate(path="01_Shallow/Sand.md", density=0.3)

    assert properties(vault, "01_Shallow/Sand.md")["decay_days"] == 7


@pytest.mark.parametrize("since", ['"x"', "7", "null", "[7]", '["x", null]', "[[1]]", "[[[], {}, -1]]", "{}"])
def test_damaged_lifetimes_of_the_past_are_the_defaults_own(palace: Palace, vault: Path, since: str) -> None:
    palace.write("x", title="Sand")
    palace.house.policy_applied()
    state = vault / ".palace/policy.json"
    state.write_text(f'{{"since": {since}, {state.read_text(encoding="utf-8")[1:]}', encoding="utf-8")

    palace.metabolize(confirm=True)

    assert properties(vault, "01_Shallow/Sand.md")["decay_days"] == 7
    assert "since" not in state.read_text(encoding="utf-8")


def test_a_policy_by_which_nothing_was_judged_yet_is_a_changed_one(palace: Palace) -> None:
    assert ageing.policy_changed(palace.house)
