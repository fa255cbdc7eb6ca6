"""TM: time, decay and metabolize, as far as pure functions decide. TM-04 and TM-05 are the services' part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from vault_palace.core.frontmatter import patch, read
from vault_palace.core.memory import Reading, changes, read_memory
from vault_palace.core.model import ARCHIVE, Layer, Plan
from vault_palace.core.policy import Policy
from vault_palace.core.rules import decide, forecast, plan, touch

MARCH = datetime(2025, 3, 1, 3, 0, tzinfo=UTC)  # noon in Tokyo, and the same date
ZONES = ("Asia/Tokyo", "UTC", "America/Los_Angeles")


def seen(
    text: str, *, name: str = "a", now: datetime = MARCH, mtime: datetime | None = None, zone: str = "UTC"
) -> Reading:
    return read_memory(
        f"01_Shallow/{name}.md",
        Layer.SHALLOW,
        read(text),
        file_time=mtime or now,
        now=now,
        policy=Policy(zone=ZoneInfo(zone)),
    )


def night(readings: Sequence[Reading], now: datetime, zone: str = "UTC") -> Plan:
    return plan([reading.memory for reading in readings], {}, now, Policy(zone=ZoneInfo(zone)))


# TM-01: naive and zone-aware times mixed

CREATED = {
    "a": "2025-01-01T10:00:00",
    "b": "2025-01-01T10:00:00+09:00",
    "c": "2025-01-01",
    "d": "2025-01-01T10:00:00Z",
    "e": "yesterday",
}


def created_notes(zone: str) -> dict[str, Reading]:
    return {
        name: seen(f"---\ncreated: {value}\nlast_touched: {value}\n---\nWords.\n", name=name, zone=zone)
        for name, value in CREATED.items()
    }


@pytest.mark.parametrize("zone", ZONES)
def test_tm_01_every_form_of_a_time_has_an_age(zone: str) -> None:
    readings = created_notes(zone)
    today = Policy(zone=ZoneInfo(zone)).today(MARCH)

    ages = {name: (today - reading.memory.created.date()).days for name, reading in readings.items()}

    assert ages["a"] == ages["c"] == (today - date(2025, 1, 1)).days
    assert max(ages[name] for name in "abcd") - min(ages[name] for name in "abcd") <= 1


@pytest.mark.parametrize("name", ["b", "d"])
def test_tm_01_an_offset_is_the_same_instant_in_every_zone(name: str) -> None:
    instants = {
        created_notes(zone)[name].memory.created.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
        for zone in ZONES
    }

    assert instants == {datetime(2025, 1, 1, 1 if name == "b" else 10, tzinfo=UTC)}


@pytest.mark.parametrize("zone", ZONES)
def test_tm_01_a_time_that_is_none_is_flagged_and_its_note_kept(zone: str) -> None:
    readings = created_notes(zone)

    made = night(list(readings.values()), MARCH, zone)

    assert [problem.code for problem in readings["e"].problems] == ["bad_value", "bad_value"]
    assert {problem.line for problem in readings["e"].problems} == {2, 3}
    assert {decision.path[-4]: decision.to for decision in made.decisions} == {
        **dict.fromkeys("abcd", ARCHIVE),
        "e": None,
    }
    assert all(not readings[name].problems for name in "abcd")


# TM-02: times in the future

FUTURE = {"tomorrow": "2025-03-02", "soon": "2025-03-11", "next": "2026-01-01", "last": "9999-12-31"}


def future_notes(now: datetime) -> dict[str, Reading]:
    notes = {
        name: seen(f"---\ncreated: 2025-01-01\nlast_touched: {value}\n---\n", name=name, now=now)
        for name, value in FUTURE.items()
    }
    notes["file"] = seen("Words.\n", name="file", now=now, mtime=datetime(2038, 1, 19, tzinfo=UTC))
    return notes


def test_tm_02_a_time_in_the_future_is_no_better_than_now() -> None:
    fresh = decide(
        seen("---\ncreated: 2025-01-01\nlast_touched: 2025-03-01\n---\n").memory, 0, MARCH, Policy()
    )

    made = night(list(future_notes(MARCH).values()), MARCH)

    for decision in made.decisions:
        assert decision.to is None
        assert decision.after.streak == fresh.after.streak
        assert decision.after.decays_on is not None
        # Tomorrow is near enough for another machine's clock or zone, and is believed.
        late = timedelta(days=1) if "tomorrow" in decision.path else timedelta(0)
        assert decision.after.decays_on == date(2025, 3, 9) + late


def test_tm_02_the_anomaly_is_reported() -> None:
    codes = {
        name: [problem.code for problem in reading.problems] for name, reading in future_notes(MARCH).items()
    }

    assert codes == {
        "tomorrow": [],
        "soon": ["future_date"],
        "next": ["future_date"],
        "last": ["future_date"],
        "file": ["future_date"],
    }


def test_tm_02_a_clock_set_back_a_year_moves_nothing() -> None:
    back = MARCH - timedelta(days=365)

    made = night(list(future_notes(back).values()), back)

    assert [decision.to for decision in made.decisions] == [None] * 5
    assert {decision.after.streak for decision in made.decisions} == {0}


def test_tm_02_a_settled_note_under_a_clock_set_back_is_not_settled_again() -> None:
    note = seen("---\ncreated: 2024-01-01\nlast_touched: 2025-02-20\nstreak: 3\nmissed: 1\n---\n").memory

    back = decide(note, 0, MARCH - timedelta(days=365), Policy())

    assert (back.to, back.after.streak, back.after.missed) == (None, 3, 1)


def test_tm_02_nothing_rises_for_a_future_date_alone() -> None:
    note = seen("---\ncreated: 9999-12-31\nlast_touched: 9999-12-31\ndensity: 0.9\n---\n")

    assert decide(note.memory, 0, MARCH, Policy()).to is None


# TM-07: protected notes in the decay set

OLD = "created: 2022-01-01\nlast_touched: 2022-01-01\nstreak: -6\n"
PROTECTED = {
    "keep": f"---\n{OLD}pinned: true\n---\n",
    "keep2": f"---\n{OLD}pinned: yes\n---\n",
    "keep3": f'---\n{OLD}pinned: "true"\n---\n',
    "keep4": f"---\n{OLD}pinned: for ever\n---\n",
}


def test_tm_07_no_spelling_of_a_pin_lets_the_note_fade() -> None:
    readings = [seen(text, name=name) for name, text in PROTECTED.items()]

    made = plan([reading.memory for reading in readings], {}, MARCH, Policy(), force=True, days_threshold=0)

    assert [(decision.to, decision.rule) for decision in made.decisions] == [(None, "0")] * 4
    assert all(decision.after.decays_on is None for decision in made.decisions)


def test_tm_07_a_spelling_that_is_not_understood_protects_and_is_reported() -> None:
    problems = {name: len(seen(text, name=name).problems) for name, text in PROTECTED.items()}

    assert problems == {"keep": 0, "keep2": 0, "keep3": 0, "keep4": 1}


def test_tm_07_bedrock_is_protected_without_a_pin() -> None:
    lesson = replace(seen(f"---\n{OLD}---\n").memory, layer=Layer.BEDROCK, recorded_layer=Layer.BEDROCK)

    decision = decide(lesson, 0, MARCH, Policy())

    assert (decision.to, decision.rule, decision.after.decays_on) == (None, "0", None)


def test_tm_07_a_pinned_note_does_not_rise_either() -> None:
    note = seen(f"---\n{OLD}pinned: true\ndensity: 1\n---\n").memory

    assert decide(note, 9, MARCH, Policy()).to is None


# TM-08: recency taken from the time of indexing


def spread() -> list[tuple[str, str, datetime]]:
    """Twenty notes over two years: plain ones, whose age is the file's, and ones with properties."""
    notes = []
    for number in range(20):
        mtime = MARCH - timedelta(days=36 * number)
        touched = (mtime + timedelta(days=1)).date().isoformat()
        text = f"---\ncreated: {touched}\nlast_touched: {touched}\n---\n" if number % 2 else "Words.\n"
        notes.append((f"n{number:02}", text, mtime))
    return notes


def rebuilt(now: datetime) -> list[Reading]:
    return [seen(text, name=name, now=now, mtime=mtime) for name, text, mtime in spread()]


def test_tm_08_order_and_plan_are_the_same_after_a_rebuild() -> None:
    first = rebuilt(MARCH)

    again = rebuilt(MARCH)

    assert [reading.memory for reading in again] == [reading.memory for reading in first]
    assert night(again, MARCH) == night(first, MARCH)


@pytest.mark.parametrize("hours", [1, 20])
def test_tm_08_a_rebuild_hours_later_plans_the_same_moves(hours: int) -> None:
    """`created`, by which recent notes are listed, and every move depend on the notes, not on the rebuild."""
    first, again = rebuilt(MARCH), rebuilt(MARCH + timedelta(hours=hours))

    moves = [
        [(decision.path, decision.to, decision.rule) for decision in night(readings, MARCH).decisions]
        for readings in (first, again)
    ]

    assert moves[0] == moves[1]
    assert [reading.memory.created for reading in first] == [reading.memory.created for reading in again]


def test_tm_08_a_note_that_was_written_once_keeps_its_recency() -> None:
    reading = seen("Words.\n", mtime=MARCH - timedelta(days=400))
    text = patch("Words.\n", changes(reading.memory, touch(reading.memory, MARCH, Policy()), reading.fills))

    later = seen(text, now=MARCH + timedelta(days=90), mtime=MARCH + timedelta(days=90))

    assert later.memory.last_touched == datetime(2025, 3, 1, 3)
    assert later.memory.created.date() == (MARCH - timedelta(days=400)).date()


# FM-31, FM-34 and FM-37 as far as the owned properties go


@pytest.mark.parametrize("zone", ZONES)
def test_fm_31_setting_one_property_leaves_every_date_as_it_was_typed(zone: str) -> None:
    text = '---\ndue: 2025-03-09\nat: 2025-03-09T23:30:00-05:00\nz: "2025-03-09T07:41:05.000Z"\n---\nWords.\n'
    reading = seen(text, zone=zone)
    policy = Policy(zone=ZoneInfo(zone))
    after = forecast(touch(reading.memory, MARCH, policy), 0, MARCH, policy)

    patched = patch(text, changes(reading.memory, after, reading.fills))

    assert patched.splitlines()[1:4] == text.splitlines()[1:4]
    assert read(patched).values["due"] == "2025-03-09"


@pytest.mark.parametrize("stamp", ["2025-02-20T23:30:00-05:00", '"2025-02-20T07:41:05.000Z"', "2025-02-20"])
def test_fm_31_an_owned_date_that_does_not_change_keeps_its_form(stamp: str) -> None:
    text = f"---\ncreated: {stamp}\nlast_touched: 2025-02-20\n---\nWords.\n"
    reading = seen(text)

    patched = patch(text, changes(reading.memory, touch(reading.memory, MARCH, Policy()), reading.fills))

    assert f"\ncreated: {stamp}\n" in patched


@pytest.mark.parametrize(
    ("line", "flagged"),
    [("", False), ("layer: null\n", False), ("layer:\n", False), ("layer: [a, b]\n", True)],
)
def test_fm_37_a_required_property_that_is_missing_is_filled_once(line: str, flagged: bool) -> None:
    text = f"---\ntitle: x\n{line}---\nWords.\n"
    first = seen(text)

    patched = patch(text, changes(first.memory, decide(first.memory, 0, MARCH, Policy()).after, first.fills))
    second = seen(patched)

    assert bool(first.problems) == flagged
    assert (second.memory.recorded_layer, second.problems, dict(second.fills)) == (Layer.SHALLOW, (), {})
    assert changes(second.memory, decide(second.memory, 0, MARCH, Policy()).after, second.fills) == {}
