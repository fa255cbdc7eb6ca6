"""Dates as notes hold them: a tolerant reader and the one form in which we write them.

A calendar date has no zone and a zone-less time means the vault's own clock, so only a time that
carries an offset is ever converted. Nothing rolls over: 30 February is unreadable, not 2 March.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone, tzinfo

from vault_palace.core.model import Value

_WHEN = re.compile(
    r"""
    (?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})
    (?:
        (?:[Tt]|[ \t]+)
        (?P<hour>\d{2}):(?P<minute>\d{2}) (?: :(?P<second>\d{2}) (?:[.,](?P<fraction>\d+))? )?
        (?:
            [ \t]*
            (?: (?P<zulu>[Zz]) | (?P<sign>[+-])(?P<off_hours>\d{2}) (?: :?(?P<off_minutes>\d{2}) )? )
        )?
    )?
    """,
    re.VERBOSE | re.ASCII,
)


def read_when(value: Value, zone: tzinfo) -> datetime | None:
    """The zone-less wall time in *zone* that *value* means, or None when it cannot be read.

    Read are ISO 8601 dates and times with `T` or blanks between them, with or without seconds, a
    fraction, `Z` or an offset (`+02:00`, `+0200`, `+02`). A date alone is its midnight. A month alone
    (`2026-11`) is unreadable: which day it means is not ours to say.
    """
    if not isinstance(value, str):
        return None
    found = _WHEN.fullmatch(value.strip())
    if found is None:
        return None
    part = found.groupdict()
    try:
        wall = datetime(  # noqa: DTZ001 - the zone is added below, where the text names one
            int(part["year"]),
            int(part["month"]),
            int(part["day"]),
            int(part["hour"] or 0),
            int(part["minute"] or 0),
            int(part["second"] or 0),
            int((part["fraction"] or "0")[:6].ljust(6, "0")),
        )
        if part["zulu"] is None and part["sign"] is None:
            return wall
        # Overflow: an offset may carry the first or the last day that there is over the edge.
        return wall.replace(tzinfo=_offset(part)).astimezone(zone).replace(tzinfo=None, fold=0)
    except (ValueError, OverflowError):
        return None


def _offset(part: dict[str, str | None]) -> timezone:
    minutes = int(part["off_minutes"] or 0)
    if minutes > 59:
        raise ValueError(minutes)
    ahead = timedelta(hours=int(part["off_hours"] or 0), minutes=minutes)
    return timezone(-ahead if part["sign"] == "-" else ahead)


def read_day(value: Value, zone: tzinfo) -> date | None:
    """The calendar day that *value* means in *zone*, or None when it cannot be read."""
    at = read_when(value, zone)
    return None if at is None else at.date()


def show_when(at: datetime) -> str:
    """The wall time as notes hold it: `2026-11-30T12:00:00`, without zone and fraction."""
    return at.replace(tzinfo=None, microsecond=0).isoformat()


def show_day(day: date) -> str:
    """The day as notes hold it: `2026-11-30`, also when *day* is a `datetime`."""
    return f"{day.year:04}-{day.month:02}-{day.day:02}"


def days_between(earlier: date, later: date) -> int:
    """Whole calendar days from *earlier* to *later*; negative when they stand the other way round."""
    return later.toordinal() - earlier.toordinal()
