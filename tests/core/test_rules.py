"""Every row of the table at its boundaries, and what must hold whatever the numbers are (SPEC §4, §5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.core.memories import NOON, POLICY, ago, changed, later, memories, memory
from vault_palace.core.model import ARCHIVE, Layer, Memory, Status
from vault_palace.core.policy import Policy
from vault_palace.core.rules import (
    ROWS,
    archive,
    arrive,
    decide,
    dragged,
    idle,
    move_to,
    recount,
    respect_streak,
    settle,
    touch,
    unpin,
)
from vault_palace.core.streak import days_for, lifetimes

SHALLOW, SEDIMENT, BEDROCK = Layer.SHALLOW, Layer.SEDIMENT, Layer.BEDROCK

# One line a case: where the note lies, density, streak, age, stay (None: since it was created), idle
# days, and the row that must match. Streak is as settled: `missed` says that the idle lifetimes are
# taken off already.
BOUNDARIES = [
    # Row 1: both numbers of days, and either arm.
    (SHALLOW, 0.5, 0, 6, None, 0, "6"),
    (SHALLOW, 0.5, 0, 7, None, 0, "1"),
    (SHALLOW, 0.5, 0, 8, None, 0, "1"),
    (SHALLOW, 0.4999, 0, 7, None, 0, "6"),
    (SHALLOW, 0.7999, 0, 7, None, 0, "1"),
    (SHALLOW, 0.8, 0, 7, None, 0, "1"),
    (SHALLOW, 0.4999, 4, 7, None, 0, "6"),
    (SHALLOW, 0.4999, 5, 7, None, 0, "1"),
    (SHALLOW, 0.4999, 5, 6, None, 0, "6"),
    (SHALLOW, 0.5, 0, 31, 6, 0, "6"),
    (SHALLOW, 0.5, 0, 31, 7, 0, "1"),
    (SHALLOW, 0.5, 0, 31, 8, 0, "1"),
    (SHALLOW, 0.5, -1, 7, None, 0, "1"),  # the way up stands before the way out
    (SHALLOW, 0.5, 0, 30, None, 8, "1"),  # idle, yet valued
    # Row 2: density and streak, whatever the days.
    (SHALLOW, 0.4999, -1, 7, None, 6, "2"),
    (SHALLOW, 0.4999, -1, 0, None, 0, "2"),
    (SHALLOW, 0.4999, 0, 7, None, 6, "6"),
    (SHALLOW, 0.5, -1, 6, None, 0, "6"),  # valued, only too young to rise
    (SHALLOW, 0.2, -1, 61, None, 60, "2"),
    # Row 3: age beyond 30, stay of 7, either arm.
    (SEDIMENT, 0.8, 0, 30, None, 0, "6"),
    (SEDIMENT, 0.8, 0, 31, None, 0, "3"),
    (SEDIMENT, 0.7999, 0, 31, None, 0, "6"),
    (SEDIMENT, 0.7999, 4, 31, None, 0, "6"),
    (SEDIMENT, 0.7999, 5, 31, None, 0, "3"),
    (SEDIMENT, 0.7999, 5, 30, None, 0, "6"),
    (SEDIMENT, 0.8, 0, 31, 6, 0, "6"),
    (SEDIMENT, 0.8, 0, 31, 7, 0, "3"),
    (SEDIMENT, 0.8, -1, 61, None, 60, "3"),
    # Row 4: idle for a lifetime, density, streak.
    (SEDIMENT, 0.7999, -1, 61, None, 60, "4"),
    (SEDIMENT, 0.7999, -1, 61, None, 59, "6"),
    (SEDIMENT, 0.7999, 0, 61, None, 60, "5"),
    (SEDIMENT, 0.8, -1, 61, 6, 60, "6"),  # moved in six days ago, so not idle
    (SEDIMENT, 0.4999, -1, 62, None, 61, "4"),
    # Row 5: idle for a lifetime, and nothing above.
    (SHALLOW, 0.2, 0, 8, None, 7, "5"),
    (SHALLOW, 0.2, 0, 8, None, 6, "6"),
    (SHALLOW, 0.2, 4, 9, None, 8, "5"),
    (SEDIMENT, 0.2, 0, 60, None, 59, "6"),
    (SEDIMENT, 0.2, 0, 62, None, 61, "5"),
    # Row 0: Bedrock stays, whatever it is worth.
    (BEDROCK, 0.0, -6, 400, None, 399, "0"),
]


def case(
    layer: Layer, density: float, streak: int, age: int, stay: int | None, quiet: int, **values: Any
) -> Memory:
    note = memory(
        layer,
        age=age,
        density=density,
        streak=streak,
        created=ago(age),
        last_touched=ago(quiet + 1 if quiet else 0),
        layer_since=None if stay is None else ago(stay),
        **values,
    )
    return replace(note, missed=99)


@pytest.mark.parametrize(("layer", "density", "streak", "age", "stay", "quiet", "row"), BOUNDARIES)
def test_the_first_row_that_matches_decides(
    layer: Layer, density: float, streak: int, age: int, stay: int | None, quiet: int, row: str
) -> None:
    note = case(layer, density, streak, age, stay, quiet)

    decision = decide(note, 0, NOON, POLICY)

    assert decision.rule == row
    moves = {"1": "sediment", "2": ARCHIVE, "3": "bedrock", "4": ARCHIVE}
    assert decision.to == moves.get(row)


@pytest.mark.parametrize(("layer", "density", "streak", "age", "stay", "quiet", "row"), BOUNDARIES)
def test_a_pinned_note_stays_where_any_row_would_move_it(
    layer: Layer, density: float, streak: int, age: int, stay: int | None, quiet: int, row: str
) -> None:
    note = case(layer, density, streak, age, stay, quiet, pinned=True)

    decision = decide(note, 0, NOON, POLICY)

    assert (decision.rule, decision.to, decision.after.layer) == ("0", None, layer)
    assert decision.after.status is (Status.CRYSTALLIZED if layer is BEDROCK else Status.ACTIVE)
    assert decision.after.streak == streak


def test_every_row_is_met_by_a_boundary() -> None:
    assert {row[-1] for row in BOUNDARIES} == {row.number for row in ROWS}


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (memory(age=9, density=0.62), "density 0.62 ≥ 0.5 and 9 days old: rises to Sediment"),
        (memory(age=9, streak=6), "streak 6 ≥ 5 and 9 days old: rises to Sediment"),
        (
            memory(idle=7),
            "density 0.2 < 0.5 and streak -1 < 0, untouched for 7 days: goes to the archive",
        ),
        (memory(SEDIMENT, age=31, density=0.8), "density 0.8 ≥ 0.8 and 31 days old: crystallises to Bedrock"),
        (
            memory(SEDIMENT, idle=1, decay_days=1),
            "untouched for 1 day (lifetime 1 day), density 0.2 < 0.8 and streak -1 < 0: goes to the archive",
        ),
        (memory(idle=8, streak=1), "untouched for 8 days (lifetime 7 days), streak 0: decaying"),
        (memory(streak=2), "density 0.2, streak 2, untouched for 0 days: stays"),
        (memory(pinned=True), "pinned: no rule moves it"),
        (memory(BEDROCK), "in Bedrock: stays for good"),
        (
            memory(streak=-1, density=0.49999999),
            "density 0.49999999 < 0.5 and streak -1 < 0, untouched for 0 days: goes to the archive",
        ),
    ],
)
def test_the_reason_names_the_numbers_that_decided(note: Memory, words: str) -> None:
    assert decide(note, 0, NOON, POLICY).reason == words


@pytest.mark.parametrize("missing", ["density", "streak"])
@pytest.mark.parametrize("note", [memory(idle=90), memory(age=90, density=1.0), memory(SEDIMENT, idle=90)])
def test_a_note_whose_density_or_streak_cannot_be_read_stays_as_it_is(note: Memory, missing: str) -> None:
    note = changed(note, **{missing: None}, decays_on=ago(3).date(), layer=SEDIMENT)

    decision = decide(note, 7, NOON, POLICY)

    assert decision.to is None
    assert decision.after == note
    assert missing in decision.reason


def test_an_arm_of_streak_with_policy_0_is_off() -> None:
    policy = replace(POLICY, sediment_streak=0, bedrock_streak=0)

    assert decide(memory(age=40, streak=15), 0, NOON, policy).rule == "6"
    assert decide(memory(SEDIMENT, age=40, streak=15), 0, NOON, policy).rule == "6"


@pytest.mark.parametrize(
    ("age", "stay", "threshold", "row"),
    [(2, 2, 3, "6"), (3, 3, 3, "1"), (9, 2, 3, "6"), (9, 3, 3, "1"), (9, 9, 10, "6"), (0, 0, 0, "1")],
)
def test_days_threshold_replaces_both_numbers_of_row_1(age: int, stay: int, threshold: int, row: str) -> None:
    note = memory(age=age, density=0.5, layer_since=ago(stay))

    assert decide(note, 0, NOON, POLICY, days_threshold=threshold).rule == row


def test_days_threshold_never_shortens_a_lifetime() -> None:
    assert decide(memory(idle=6), 0, NOON, POLICY, days_threshold=1).rule == "6"


@pytest.mark.parametrize("threshold", [0, 99])
def test_days_threshold_leaves_the_rows_of_sediment_alone(threshold: int) -> None:
    note = memory(SEDIMENT, age=31, density=0.8, layer_since=ago(7))

    assert decide(note, 0, NOON, POLICY, days_threshold=threshold).rule == "3"


def test_a_promotion_sets_what_a_move_sets() -> None:
    note = memory(age=30, idle=20, density=0.6, missed=1, streak=-1, status=Status.DECAYING)

    after = decide(note, 0, NOON, POLICY).after

    assert (after.layer, after.recorded_layer, after.status) == (SEDIMENT, SEDIMENT, Status.ACTIVE)
    assert (after.layer_since, after.decay_days, after.missed) == (ago(0), 60, 0)
    assert after.streak == 0
    assert after.last_touched == note.last_touched


def test_a_promotion_to_bedrock_crystallises() -> None:
    after = decide(memory(SEDIMENT, age=31, density=0.8), 0, NOON, POLICY).after

    assert (after.layer, after.status, after.decay_days) == (BEDROCK, Status.CRYSTALLIZED, 36500)


@pytest.mark.parametrize(
    ("recorded", "decay_days", "carried"),
    [
        (SHALLOW, 7, 60),
        (SHALLOW, None, 60),
        (SHALLOW, 14, 14),
        (SHALLOW, 60, 60),
        (None, 7, 60),
        (None, 14, 14),
    ],
)
def test_only_a_personal_lifetime_goes_along_on_a_move(
    recorded: Layer | None, decay_days: float | None, carried: float
) -> None:
    note = memory(recorded_layer=recorded, decay_days=decay_days)

    assert move_to(note, SEDIMENT, NOON, POLICY).decay_days == carried


def test_an_archived_note_keeps_where_it_came_from() -> None:
    note = memory(
        idle=7, layer_since=ago(8), decays_on=ago(0).date(), rises_on=ago(0).date(), rises_to=SEDIMENT
    )

    decision = decide(note, 0, NOON, POLICY)

    after = decision.after
    assert decision.to == ARCHIVE
    assert (after.layer, after.recorded_layer, after.layer_since) == (SHALLOW, SHALLOW, ago(8))
    assert (after.status, after.missed, after.streak) == (Status.ARCHIVED, 0, -1)
    assert (after.decays_on, after.rises_on, after.rises_to) == (None, None, None)


# Settling


@pytest.mark.parametrize(
    ("quiet", "missed", "streak", "settled"),
    [
        (6, 0, 3, (3, 0)),
        (7, 0, 3, (2, 1)),
        (7, 1, 3, (3, 1)),
        (13, 1, 3, (3, 1)),
        (14, 1, 3, (2, 2)),
        (70, 0, 3, (-6, 10)),
        (70, 9, -6, (-6, 10)),
        (7, 0, -9, (-9, 1)),  # a person's value below the last step stays
        (7, 0, 15, (14, 1)),  # and one above the highest comes down step by step
        (7, 3, 3, (3, 3)),  # the clock went back, or the lifetime grew: nothing is given or taken
    ],
)
def test_settling_takes_off_each_whole_lifetime_once(
    quiet: int, missed: int, streak: int, settled: tuple[int, int]
) -> None:
    after = settle(memory(idle=quiet, missed=missed, streak=streak), NOON, POLICY)

    assert (after.streak, after.missed) == settled


@pytest.mark.parametrize(("backlinks", "linked"), [(0, 0), (4, 4), (5, 5), (6, 5), (99, 5)])
def test_links_are_at_most_five_steps(backlinks: int, linked: int) -> None:
    after = recount(memory(streak=2), backlinks)

    assert (after.streak, after.backlinks) == (2 + linked, backlinks)


def test_steps_stop_on_the_use_part_whatever_the_links() -> None:
    after = settle(memory(idle=700, streak=5, backlinks=9), NOON, POLICY)

    assert after.streak == -1


@pytest.mark.parametrize(
    ("touched", "since", "quiet"),
    [(0, None, 0), (1, None, 0), (2, None, 1), (9, 3, 2), (3, 9, 2), (-1, None, 0), (-3, None, 0)],
)
def test_idle_days_are_the_whole_ones_since_touch_or_move(
    touched: int, since: int | None, quiet: int
) -> None:
    note = memory(
        created=ago(30), last_touched=ago(touched), layer_since=None if since is None else ago(since)
    )

    assert idle(note, POLICY.today(NOON)) == quiet


@given(
    days=st.integers(0, 5000), each=st.integers(1, 80) | st.sampled_from([0.5, 0.7, 1.1, 2.5, 7.0, 0.0001])
)
def test_lifetimes_are_counted_exactly(days: int, each: float) -> None:
    count = lifetimes(days, each)

    assert days_for(count, each) <= days < days_for(count + 1, each)
    if count:
        assert lifetimes(days_for(count, each) - 1, each) < count


@given(note=memories((SHALLOW, SEDIMENT, BEDROCK)), days=st.lists(st.integers(0, 90), max_size=12))
def test_time_counts_and_not_how_often_anything_was_run(note: Memory, days: list[int]) -> None:
    stepped = note
    for day in sorted(days):
        stepped = settle(stepped, later(day), POLICY)

    assert settle(stepped, later(90), POLICY) == settle(note, later(90), POLICY)


@given(note=memories(), backlinks=st.integers(0, 9), first=st.integers(0, 9))
def test_counting_twice_changes_nothing(note: Memory, backlinks: int, first: int) -> None:
    once = recount(note, backlinks)

    assert recount(once, backlinks) == once
    assert recount(recount(note, first), backlinks) == once


@given(note=memories(), backlinks=st.integers(0, 9))
def test_counting_links_and_settling_do_not_mind_their_order(note: Memory, backlinks: int) -> None:
    counted_first = settle(recount(note, backlinks), NOON, POLICY)

    assert counted_first == recount(settle(note, NOON, POLICY), backlinks)


# Touching


@pytest.mark.parametrize(
    ("streak", "backlinks", "touched_days_ago", "after"),
    [
        (0, 0, 0, 0),  # used today already
        (0, 0, 1, 1),
        (3, 0, 6, 4),
        (9, 0, 1, 10),
        (10, 0, 1, 10),
        (12, 0, 1, 12),  # a person's value above the last step stays
        (-1, 0, 0, 0),  # lifted, also on the same day
        (-3, 0, 1, 0),
        (-9, 0, 1, 0),
        (2, 5, 0, 5),  # use is -3
        (3, 0, 8, 3),  # a lifetime off, a step up
        (15, 5, 1, 15),
    ],
)
def test_a_touch_is_one_step_a_day(streak: int, backlinks: int, touched_days_ago: int, after: int) -> None:
    note = memory(created=ago(30), last_touched=ago(touched_days_ago), streak=streak, backlinks=backlinks)

    assert touch(note, NOON, POLICY).streak == after


@pytest.mark.parametrize(("layer", "status"), [(SHALLOW, Status.ACTIVE), (BEDROCK, Status.CRYSTALLIZED)])
def test_a_touch_ends_idleness(layer: Layer, status: Status) -> None:
    note = memory(layer, idle=9, missed=1, status=Status.DECAYING)

    after = touch(note, NOON, POLICY)

    assert (after.last_touched, after.missed, after.status) == (ago(0), 0, status)
    assert idle(after, POLICY.today(NOON)) == 0


def test_a_touch_written_after_a_newer_one_adds_nothing_and_sets_nothing_back() -> None:
    after = touch(memory(last_touched=ago(-1)), NOON, POLICY)

    assert (after.streak, after.last_touched) == (0, ago(-1))


def test_a_touch_leaves_a_streak_that_cannot_be_read() -> None:
    after = touch(memory(idle=9, streak=None), NOON, POLICY)

    assert after.streak is None
    assert after.last_touched == ago(0)


@given(note=memories(), hours=st.lists(st.integers(0, 11), min_size=1, max_size=10))
def test_ten_uses_a_day_are_one(note: Memory, hours: list[int]) -> None:
    once = touch(note, NOON, POLICY)

    again = once
    for hour in sorted(hours):
        again = touch(again, NOON + timedelta(hours=hour), POLICY)

    assert again.streak == once.streak


@given(note=memories(), days=st.integers(0, 40))
def test_a_run_just_before_a_touch_changes_nothing(note: Memory, days: int) -> None:
    run = decide(note, note.backlinks, later(days), POLICY)
    assume(run.to is None)

    touched = touch(run.after, later(days), POLICY)

    plain = touch(note, later(days), POLICY)
    assert replace(touched, decays_on=None, rises_on=None, rises_to=None) == plain


@given(note=memories(), backlinks=st.integers(0, 8))
def test_nothing_used_today_is_archived_tonight(note: Memory, backlinks: int) -> None:
    touched = touch(note, NOON, POLICY)

    for hour in (0, 11):
        assert decide(touched, backlinks, NOON + timedelta(hours=hour), POLICY).to != ARCHIVE


# What people decide


@given(note=memories(), layer=st.sampled_from([SHALLOW, SEDIMENT]), backlinks=st.integers(0, 8))
def test_a_restored_note_is_not_undone_the_next_night(note: Memory, layer: Layer, backlinks: int) -> None:
    archived = replace(archive(note), path=f"_Archive/{note.path}")

    restored = replace(move_to(archived, layer, NOON, POLICY), path=f"{layer.folder}/a.md")

    assert restored.status is Status.ACTIVE
    for night in (NOON, later(1)):
        assert decide(restored, backlinks, night, POLICY).to is None


@given(note=memories(), backlinks=st.integers(0, 8), settled=st.booleans())
def test_a_dragged_note_is_not_undone_the_next_night(note: Memory, backlinks: int, settled: bool) -> None:
    other = SEDIMENT if note.layer is SHALLOW else SHALLOW
    note = settle(note, NOON, POLICY) if settled else note
    found = replace(note, layer=other, path=f"{other.folder}/a.md")

    tonight = decide(found, backlinks, NOON, POLICY)

    assert (tonight.rule, tonight.to, tonight.after.layer) == ("moved", None, other)
    assert tonight.after.recorded_layer is other
    assert tonight.after.layer_since == ago(0)
    tomorrow = decide(tonight.after, backlinks, later(1), POLICY)
    assert tomorrow.to is None


@given(note=memories(), backlinks=st.integers(0, 8))
def test_a_note_dragged_out_of_the_archive_is_not_undone(note: Memory, backlinks: int) -> None:
    found = archive(note)

    tonight = decide(found, backlinks, NOON, POLICY)

    assert (tonight.rule, tonight.to, tonight.after.status) == ("moved", None, Status.ACTIVE)
    assert "recorded as archived" in tonight.reason
    assert decide(tonight.after, backlinks, later(1), POLICY).to is None


def test_a_note_in_the_archive_is_where_it_belongs() -> None:
    note = replace(archive(memory()), path="_Archive/01_Shallow/a.md")

    assert not dragged(note)
    assert arrive(note, NOON, POLICY) == note


@pytest.mark.parametrize("recorded", [None, SHALLOW])
def test_a_layer_that_is_absent_or_right_is_no_drag(recorded: Layer | None) -> None:
    assert not dragged(memory(recorded_layer=recorded))


def test_a_drag_is_charged_what_its_old_layer_had_cost() -> None:
    often = settle(memory(idle=15, streak=8), NOON, POLICY)
    seldom = memory(idle=15, streak=8)

    ends = {decide(replace(note, layer=SEDIMENT), 0, NOON, POLICY).after.streak for note in (often, seldom)}

    assert ends == {6}


def test_a_move_by_hand_is_charged_what_the_old_layer_had_cost() -> None:
    assert move_to(memory(idle=15, streak=8), SEDIMENT, NOON, POLICY).streak == 6


@pytest.mark.parametrize("path", ["_Archive/01_Shallow/a.md", "01_Shallow/a.md"])
def test_time_in_the_archive_costs_nothing(path: str) -> None:
    away = replace(archive(memory(idle=300, streak=8)), path=path)

    assert move_to(away, SHALLOW, NOON, POLICY).streak == 8


def test_a_use_of_a_dragged_note_settles_the_move_as_well() -> None:
    after = touch(replace(memory(idle=20), layer=SEDIMENT, path="02_Sediment/a.md"), NOON, POLICY)

    assert (after.recorded_layer, after.decay_days, after.layer_since) == (SEDIMENT, 60, ago(0))
    assert after.streak == 1  # a clean slate and one use


def test_a_later_layer_since_is_not_set_back() -> None:
    note = memory(layer_since=ago(-1))

    assert move_to(note, SEDIMENT, NOON, POLICY).layer_since == ago(-1)


@given(
    note=memories(pinned=True), days=st.lists(st.integers(0, 200), max_size=5), backlinks=st.integers(0, 8)
)
def test_an_unpinned_note_is_not_undone_the_next_night(note: Memory, days: list[int], backlinks: int) -> None:
    for day in sorted(days):
        note = decide(note, backlinks, later(day), POLICY).after

    unpinned = unpin(note, later(200), POLICY)

    assert not unpinned.pinned
    assert decide(unpinned, backlinks, later(200), POLICY).to != ARCHIVE


@given(note=memories(pinned=True), days=st.integers(0, 200))
def test_time_under_a_pin_is_never_charged(note: Memory, days: int) -> None:
    seen = settle(note, later(days), POLICY)

    unpinned = settle(replace(seen, pinned=False), later(days), POLICY)

    assert unpinned.streak == note.streak


@given(note=memories(pinned=False), streak=st.integers(-20, 20), days=st.integers(0, 90))
def test_a_persons_streak_is_respected(note: Memory, streak: int, days: int) -> None:
    edited = respect_streak(replace(note, streak=streak), later(days), POLICY)

    assert settle(edited, later(days), POLICY).streak == streak
    assert edited.missed >= note.missed


def test_a_streak_that_cannot_be_read_is_left_alone() -> None:
    note = memory(idle=30, streak=None)

    assert respect_streak(note, NOON, POLICY) == note
    assert settle(note, NOON, POLICY) == note
    assert recount(note, 3) == note
    assert move_to(note, SEDIMENT, NOON, POLICY).streak is None


# Clocks and zones


@given(
    note=memories(),
    zone=st.sampled_from(["UTC", "Asia/Tokyo", "America/Los_Angeles", "Africa/Cairo", "Europe/Berlin"]),
    minute=st.integers(0, 24 * 60 - 1),
    days=st.integers(0, 365),
)
def test_no_hour_zone_or_clock_change_matters(note: Memory, zone: str, minute: int, days: int) -> None:
    """The same calendar date decides the same, whatever the hour and wherever the vault lies."""
    local = ZoneInfo(zone)
    policy = replace(POLICY, zone=local)
    midnight = later(days).replace(hour=0, minute=0, tzinfo=None)
    there = (midnight + timedelta(minutes=minute)).replace(tzinfo=local).astimezone(UTC)
    # An hour that a clock change skips is carried to the next one, which may be the next date's.
    assume(there.astimezone(local).date() == midnight.date())

    here = decide(note, note.backlinks, later(days), POLICY)
    away = decide(note, note.backlinks, there, policy)

    assert (away.rule, away.to, away.reason) == (here.rule, here.to, here.reason)
    same = replace(away.after, layer_since=None)
    assert same == replace(here.after, layer_since=None)


@pytest.mark.parametrize("touched_hour", [0, 23])
@pytest.mark.parametrize("run_hour", [0, 23])
def test_the_hours_of_touch_and_run_do_not_matter(touched_hour: int, run_hour: int) -> None:
    note = memory(created=ago(40), last_touched=ago(8).replace(hour=touched_hour))

    assert decide(note, 0, NOON.replace(hour=run_hour), POLICY).rule == "2"


def test_a_clock_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        decide(memory(), 0, datetime(2026, 11, 30), POLICY)


@given(note=memories(), years=st.integers(1, 5))
def test_a_clock_set_back_moves_nothing_out(note: Memory, years: int) -> None:
    settled = decide(note, note.backlinks, NOON, POLICY)
    assume(settled.to is None)
    back = later(-365 * years)

    decision = decide(settled.after, note.backlinks, back, POLICY)

    assert decision.to is None
    assert decision.after.streak == settled.after.streak


def test_policy_gives_each_layer_its_lifetime() -> None:
    policy = Policy(shallow_days=1, sediment_days=2, bedrock_days=3)

    assert [policy.lifetime(layer) for layer in Layer] == [1, 2, 3]
