"""Dates are read tolerantly and never guessed, and written in one form."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.dates import days_between, read_day, read_when, show_day, show_when
from vault_palace.core.frontmatter import read
from vault_palace.core.model import Value

ZONES = ("UTC", "Asia/Tokyo", "America/Los_Angeles", "Africa/Cairo", "Pacific/Kiritimati")


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("2026-11-30T12:34:56", "2026-11-30T12:34:56"),
        ("2026-11-30t12:34:56", "2026-11-30T12:34:56"),
        ("2026-11-30 12:34:56", "2026-11-30T12:34:56"),
        ("2026-11-30  12:34", "2026-11-30T12:34:00"),
        ("  2026-11-30T12:34  ", "2026-11-30T12:34:00"),
        ("2026-11-30", "2026-11-30T00:00:00"),
        ("2026-11-30T12:34:56.789", "2026-11-30T12:34:56"),
        ("2026-11-30T12:34:56,5", "2026-11-30T12:34:56"),
        ("2026-11-30T12:34:56.123456789Z", "2026-11-30T21:34:56"),
        ("2026-11-30T12:34:56Z", "2026-11-30T21:34:56"),
        ("2026-11-30T12:34:56z", "2026-11-30T21:34:56"),
        ("2026-11-30T12:34Z", "2026-11-30T21:34:00"),
        ("2026-11-30T12:34:56+00:00", "2026-11-30T21:34:56"),
        ("2026-11-30 12:34:56 +0000", "2026-11-30T21:34:56"),
        ("2026-11-30T12:34:56-05:30", "2026-12-01T03:04:56"),
        ("2026-11-30T23:30:00-05", "2026-12-01T13:30:00"),
        ("2024-02-29", "2024-02-29T00:00:00"),
        ("0999-01-01", "0999-01-01T00:00:00"),
    ],
)
def test_a_date_means_the_wall_time_of_the_vault(text: str, wall: str) -> None:
    at = read_when(text, ZoneInfo("Asia/Tokyo"))

    assert at is not None
    assert at.tzinfo is None
    assert show_when(at) == wall


@pytest.mark.parametrize(
    "value",
    [
        "",
        "yesterday",
        "2026",
        "2026-11",
        "2026-11-31",
        "2026-02-30",
        "2025-02-29",
        "2026-13-01",
        "0000-01-01",
        "2026-1-1",
        "26-11-30",
        "2026/11/30",
        "30.11.2026",
        "2026-11-30T12",
        "2026-11-30T24:00:00",
        "2026-11-30T12:60",
        "2026-11-30T12:34:60",
        "2026-11-30T12:34:56+24:00",
        "2026-11-30T12:34:56+01:60",
        "2026-11-30T12:34:56 CET",
        "2026-11-30Z",
        "2026-11-30T12:34:56 and more",
        "２０２６-11-30",
        "0001-01-01T00:00:00+09:00",
        "9999-12-31T23:59:59-10:00",
        20261130,
        2026.0,
        True,
        None,
        ["2026-11-30"],
        {"date": "2026-11-30"},
    ],
)
def test_what_is_no_date_is_unreadable_and_never_rolled_over(value: Value) -> None:
    assert read_when(value, UTC) is None
    assert read_day(value, UTC) is None


@pytest.mark.parametrize("zone", ZONES)
def test_fm_31_a_calendar_date_is_the_same_day_in_every_zone(zone: str) -> None:
    header = read('---\ndue: 2025-03-09\nat: 2025-03-09T23:30:00-05:00\nz: "2025-03-09T07:41:05.000Z"\n---\n')

    day = read_day(header.values["due"], ZoneInfo(zone))

    assert day == date(2025, 3, 9)
    assert header.values["due"] == "2025-03-09"


@pytest.mark.parametrize(("zone", "day"), [("America/Los_Angeles", 9), ("UTC", 10), ("Asia/Tokyo", 10)])
def test_fm_31_a_time_with_an_offset_is_an_instant(zone: str, day: int) -> None:
    assert read_day("2025-03-09T23:30:00-05:00", ZoneInfo(zone)) == date(2025, 3, day)


@given(
    at=st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(
        lambda at: at.replace(microsecond=0)
    ),
    zone=st.sampled_from(ZONES),
)
def test_what_is_written_reads_back_as_the_same_time(at: datetime, zone: str) -> None:
    assert read_when(show_when(at), ZoneInfo(zone)) == at
    assert read_when(show_day(at), ZoneInfo(zone)) == at.replace(hour=0, minute=0, second=0)


@given(
    at=st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1)),
    hours=st.integers(-23, 23),
)
def test_an_offset_is_converted_to_the_zone_of_the_vault(at: datetime, hours: int) -> None:
    aware = at.replace(microsecond=0, tzinfo=timezone(timedelta(hours=hours)))
    zone = ZoneInfo("Africa/Cairo")

    wall = read_when(aware.isoformat(), zone)

    assert wall == aware.astimezone(zone).replace(tzinfo=None)


@given(
    text=st.text(max_size=40)
    | st.from_regex(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?[Z+-]?)?", fullmatch=True)
)
def test_no_text_makes_the_reader_fail(text: str) -> None:
    at = read_when(text, ZoneInfo("Pacific/Kiritimati"))

    assert at is None or at.tzinfo is None


def test_a_time_is_written_without_zone_and_fraction() -> None:
    assert show_when(datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)) == "2026-01-02T03:04:05"


@pytest.mark.parametrize("day", [date(26, 1, 2), datetime(26, 1, 2, 3, 4)])
def test_a_day_is_written_with_four_digits_of_year(day: date) -> None:
    assert show_day(day) == "0026-01-02"


def test_days_are_counted_on_the_calendar() -> None:
    assert days_between(datetime(2026, 3, 1, 23, 59), date(2026, 3, 2)) == 1
    assert days_between(date(2026, 3, 2), datetime(2026, 3, 1)) == -1
