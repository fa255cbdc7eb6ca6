"""The forecast names exactly the day on which stepping the clock moves the note (SPEC §5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.memories import NOON, POLICY, TODAY, ago, later, memories, memory
from vault_palace.core.model import ARCHIVE, Layer, Memory
from vault_palace.core.policy import Policy
from vault_palace.core.rules import archive, decide, forecast, touch

# Longer than any note of `memories` can wait: 14 steps of use and five links, twelve days each.
HORIZON = 330

Dates = tuple[date | None, date | None, Layer | None]


def dates(note: Memory) -> Dates:
    return note.decays_on, note.rises_on, note.rises_to


def stepped(note: Memory, backlinks: int, policy: Policy) -> Dates:
    """What a run every day comes to: the plain way, a day at a time, each on what the last one left."""
    for day in range(HORIZON):
        decision = decide(note, backlinks, later(day), policy)
        when = policy.today(later(day))
        if decision.to == ARCHIVE:
            return when, None, None
        if decision.to is not None:
            return None, when, Layer(decision.to)
        note = replace(decision.after, decays_on=None, rises_on=None, rises_to=None)
    return None, None, None


policies = st.builds(
    Policy,
    shallow_days=st.integers(1, 12),
    sediment_days=st.integers(1, 12),
    sediment_streak=st.sampled_from([0, 3, 5]),
    bedrock_streak=st.sampled_from([0, 3, 5]),
    bedrock_age=st.sampled_from([0, 30]),
    minimum_stay=st.sampled_from([1, 7, 20]),
)


@given(
    note=memories((Layer.SHALLOW, Layer.SEDIMENT, Layer.BEDROCK)),
    backlinks=st.integers(0, 8),
    policy=policies,
)
def test_the_forecast_is_what_stepping_day_by_day_comes_to(
    note: Memory, backlinks: int, policy: Policy
) -> None:
    assert dates(forecast(note, backlinks, NOON, policy)) == stepped(note, backlinks, policy)


@given(note=memories(), backlinks=st.integers(0, 8), policy=policies, folder=st.sampled_from(list(Layer)))
def test_a_dragged_notes_forecast_is_what_stepping_comes_to(
    note: Memory, backlinks: int, policy: Policy, folder: Layer
) -> None:
    found = replace(note, layer=folder)

    assert dates(forecast(found, backlinks, NOON, policy)) == stepped(found, backlinks, policy)


@given(note=memories(), backlinks=st.integers(0, 8), days=st.integers(0, 60))
def test_the_forecast_does_not_shift_while_nothing_happens(note: Memory, backlinks: int, days: int) -> None:
    seen = forecast(note, backlinks, NOON, POLICY)

    when = seen.decays_on or seen.rises_on
    day = later(days) if when is None else min(later(days), later((when - TODAY).days))
    assert forecast(seen, backlinks, day, POLICY) == seen


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (memory(), (date(2026, 12, 8), None, None)),  # seven whole days, then the archive
        (memory(streak=2), (date(2026, 12, 22), None, None)),
        (memory(idle=7), (TODAY, None, None)),
        (memory(streak=-1), (TODAY, None, None)),
        (memory(density=0.5), (None, date(2026, 12, 7), Layer.SEDIMENT)),
        (memory(streak=5), (None, date(2026, 12, 7), Layer.SEDIMENT)),
        (memory(age=7, density=0.5), (None, TODAY, Layer.SEDIMENT)),
        (memory(age=30, density=0.5, layer_since=ago(3)), (None, date(2026, 12, 4), Layer.SEDIMENT)),
        (memory(streak=5, decay_days=2), (date(2026, 12, 13), None, None)),  # too quick for the arm of streak
        (memory(Layer.SEDIMENT), (date(2027, 1, 30), None, None)),
        (memory(Layer.SEDIMENT, density=0.8), (None, date(2026, 12, 31), Layer.BEDROCK)),
        (
            memory(Layer.SEDIMENT, age=90, density=0.8, layer_since=ago(0)),
            (None, date(2026, 12, 7), Layer.BEDROCK),
        ),
        (memory(decay_days=0.5), (date(2026, 12, 2), None, None)),
        (memory(decay_days=30), (date(2026, 12, 31), None, None)),
    ],
)
def test_a_forecast_that_can_be_counted_on_the_fingers(note: Memory, expected: Dates) -> None:
    assert dates(forecast(note, note.backlinks, NOON, POLICY)) == expected


@pytest.mark.parametrize(
    "note",
    [
        memory(pinned=True),
        memory(Layer.BEDROCK),
        memory(density=None),
        memory(streak=None),
        memory(decay_days=5e6),
        memory(Layer.SEDIMENT, decay_days=1e300),
        replace(archive(memory()), path="_Archive/01_Shallow/a.md"),
    ],
)
def test_a_note_that_never_moves_has_no_dates(note: Memory) -> None:
    dated = replace(note, decays_on=TODAY, rises_on=TODAY, rises_to=Layer.SEDIMENT)

    assert dates(forecast(dated, 0, NOON, POLICY)) == (None, None, None)


@pytest.mark.parametrize(
    ("note", "stored", "kept"),
    [
        (memory(idle=20), (ago(9).date(), None, None), True),
        (memory(idle=20), (None, ago(9).date(), Layer.SEDIMENT), False),
        (memory(idle=20), (TODAY, None, None), True),
        (memory(), (ago(9).date(), None, None), False),  # it was touched: the next day counts
        (memory(age=20, density=0.5), (None, ago(9).date(), Layer.SEDIMENT), True),
        (memory(age=20, density=0.5), (None, ago(9).date(), Layer.BEDROCK), False),
        (memory(age=20, density=0.5), (None, ago(9).date(), None), False),
        (memory(age=20, density=0.5), (ago(9).date(), None, None), False),
        (memory(density=0.5), (None, ago(9).date(), Layer.SEDIMENT), False),
    ],
)
def test_only_a_past_date_of_the_move_that_is_still_due_stays(
    note: Memory, stored: Dates, kept: bool
) -> None:
    fresh = dates(forecast(note, 0, NOON, POLICY))
    dated = replace(note, decays_on=stored[0], rises_on=stored[1], rises_to=stored[2])

    seen = dates(forecast(dated, 0, NOON, POLICY))

    assert seen == (stored if kept else fresh)


def test_a_forecast_changes_nothing_but_the_dates() -> None:
    note = memory(idle=30, streak=3)

    seen = forecast(note, 7, NOON, POLICY)

    assert replace(seen, decays_on=None) == note


def test_links_put_the_day_off_by_a_lifetime_each() -> None:
    days = [forecast(memory(), count, NOON, POLICY).decays_on for count in range(8)]

    late = [(day - TODAY).days for day in days if day is not None]
    assert late == [8, 15, 22, 29, 36]  # from five on the links themselves promote it
    assert [forecast(memory(), count, NOON, POLICY).rises_to for count in (5, 6, 7)] == [Layer.SEDIMENT] * 3


def test_a_use_puts_the_day_off() -> None:
    touched = touch(memory(idle=6, streak=0), NOON, POLICY)

    assert forecast(touched, 0, NOON, POLICY).decays_on == date(2026, 12, 15)


def test_decisions_carry_the_forecast_of_what_they_leave() -> None:
    promoted = decide(memory(age=9, density=0.6), 0, NOON, POLICY).after

    assert dates(promoted) == (date(2027, 1, 30), None, None)
