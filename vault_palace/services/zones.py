"""The vault's time zone: the one Policy names, else the machine's, else UTC with a word about it."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo | None:
    """The zone called *name*, None when there is none."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError):  # ZoneInfoNotFoundError is a KeyError on some systems, see below
        return None
    except KeyError:
        return None


@lru_cache(maxsize=1)
def machine_zone() -> tuple[tzinfo, str]:
    """The machine's zone, and why it is UTC instead when it cannot be told (empty: it could)."""
    # tzlocal raises on the POSIX strings that TZ may hold, such as EST5EDT,M3.2.0.
    import tzlocal

    try:
        return tzlocal.get_localzone(), ""
    except Exception as error:  # noqa: BLE001 - whatever it raises, a palace must open
        return UTC, f"The machine's time zone cannot be told ({error}); UTC counts. Set `timezone` in Policy."


def machine_zone_name() -> str:
    """The IANA name of the machine's zone for `timezone` in Policy; `UTC` when it has none."""
    zone, _ = machine_zone()
    return getattr(zone, "key", None) or "UTC"
