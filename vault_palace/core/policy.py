"""The numbers a person may change: SPEC §5's Policy as one frozen value, and its tolerant reader.

A bad value or an unknown key never stops anything: it is reported with its line, and the last good
value counts. An absent key means its default, so deleting a line is always the way back.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, tzinfo

from vault_palace.core.model import OLD_POLICY, POLICY_NOTE, Layer, Memory, Problem, Value

ZoneOf = Callable[[str], tzinfo | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Every number of the rules. `timezone` is the person's word for `zone`; empty means the machine's.

    The last three fields are Sediment Palace's limits: its `policy.yaml` sets them, `Policy.md` does not.
    """

    shallow_days: int = 7
    sediment_days: int = 60
    bedrock_days: int = 36500
    sediment_density: float = 0.5
    sediment_streak: int = 5
    bedrock_density: float = 0.8
    bedrock_streak: int = 5
    bedrock_age: int = 30
    minimum_stay: int = 7
    default_density: float = 0.2
    horizon_days: int = 7
    max_archive_share: float = 0.25
    auto_metabolize: str = "off"
    destructive_require_confirm: bool = True
    max_destructive_per_minute: int = 20
    timezone: str = ""
    quiet_seconds: float = 2
    settle_minutes: float = 10
    rescan_minutes: float = 10
    versions_keep_days: int = 90
    versions_keep_mb: int = 500
    active_content: str = "refuse"
    agent_writes: str = "direct"
    read_only: bool = False
    style_classes: bool = False
    zone: tzinfo = UTC
    max_search_matches: int | None = None
    max_metabolize_scan: int | None = None
    destructive_window_seconds: int = 60

    def today(self, now: datetime) -> date:
        """The calendar date of *now* in the vault's zone."""
        return self._local(now).date()

    def wall(self, now: datetime) -> datetime:
        """*now* as notes hold it: zone-less, in the vault's zone, whole seconds."""
        return self._local(now).replace(tzinfo=None, microsecond=0, fold=0)

    def _local(self, now: datetime) -> datetime:
        if now.tzinfo is None:
            raise ValueError("the clock must be aware")
        return now.astimezone(self.zone)

    def lifetime(self, layer: Layer) -> int:
        """The default `decay_days` of *layer*."""
        return {
            Layer.SHALLOW: self.shallow_days,
            Layer.SEDIMENT: self.sediment_days,
            Layer.BEDROCK: self.bedrock_days,
        }[layer]


@dataclass(frozen=True, slots=True)
class _Whole:
    low: int
    high: int

    @property
    def words(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def read(self, value: Value) -> int | None:
        number = _number(value)
        if number is None or not self.low <= number <= self.high or number != int(number):
            return None
        return int(number)


@dataclass(frozen=True, slots=True)
class _Number:
    low: float
    high: float

    @property
    def words(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"

    def read(self, value: Value) -> float | None:
        number = _number(value)
        return None if number is None or not self.low <= number <= self.high else number


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[str, ...]

    @property
    def words(self) -> str:
        return " or ".join(self.options)

    def read(self, value: Value) -> str | None:
        # A YAML 1.1 tool that rewrites the note turns `off` into `false`; it means the same.
        if value is False and "off" in self.options:
            return "off"
        word = value.strip().casefold() if isinstance(value, str) else None
        return word if word in self.options else None


@dataclass(frozen=True, slots=True)
class _Switch:
    words: str = "true or false"

    def read(self, value: Value) -> bool | None:
        return value if isinstance(value, bool) else None


_Kind = _Whole | _Number | _Choice | _Switch
_MOST_DAYS = 1_000_000

# What each property may hold. A lifetime is at least a day: nothing may fade the night it was written.
KINDS: Mapping[str, _Kind] = {
    "shallow_days": _Whole(1, _MOST_DAYS),
    "sediment_days": _Whole(1, _MOST_DAYS),
    "bedrock_days": _Whole(1, _MOST_DAYS),
    "sediment_density": _Number(0, 1),
    "sediment_streak": _Whole(0, 100),  # 0 turns the arm off
    "bedrock_density": _Number(0, 1),
    "bedrock_streak": _Whole(0, 100),
    "bedrock_age": _Whole(0, _MOST_DAYS),
    "minimum_stay": _Whole(0, _MOST_DAYS),
    "default_density": _Number(0, 1),
    "horizon_days": _Whole(0, 3650),
    "max_archive_share": _Number(0, 1),
    "auto_metabolize": _Choice(("daily", "off")),
    "destructive_require_confirm": _Switch(),
    "max_destructive_per_minute": _Whole(0, 100_000),  # 0 forbids them
    "quiet_seconds": _Number(0, 60),
    "settle_minutes": _Number(0, 1440),
    "rescan_minutes": _Number(1, 1440),
    "versions_keep_days": _Whole(0, _MOST_DAYS),
    "versions_keep_mb": _Whole(0, 1_000_000),
    "active_content": _Choice(("refuse", "allow")),
    "agent_writes": _Choice(("direct", "proposed")),
    "read_only": _Switch(),
    "style_classes": _Switch(),
}

# Obsidian's own properties, and Obsidian Publish's: a person may put them on any note.
_OBSIDIAN = frozenset(
    {"tags", "aliases", "cssclasses", "publish", "permalink", "description", "image", "cover"}
)

# Sediment Palace's `policy.yaml`: where each of its numbers stands, and the field it sets.
_OLD: tuple[tuple[tuple[str, ...], str, _Kind], ...] = (
    (("destructive_require_confirm",), "destructive_require_confirm", _Switch()),
    (("limits", "max_search_matches"), "max_search_matches", _Whole(1, 1_000_000)),
    (("limits", "max_metabolize_scan"), "max_metabolize_scan", _Whole(1, 100_000_000)),
    (("rate_limit", "window_seconds"), "destructive_window_seconds", _Whole(1, 86_400)),
    (("rate_limit", "max_destructive_ops"), "max_destructive_per_minute", _Whole(0, 100_000)),
)


def read_policy(
    values: Mapping[str, Value], lines: Mapping[str, int], *, last_good: Policy, zone_of: ZoneOf
) -> tuple[Policy, tuple[Problem, ...]]:
    """The policy that the properties of `_System/Policy.md` give, and what is wrong with them.

    `zone_of` turns a zone's name into the zone, or None when there is no such zone; asked for the
    empty name it answers with the machine's zone, which counts where `timezone` is absent.
    """
    read: dict[str, object] = {}
    problems: list[Problem] = []

    def report(key: str, message: str, code: str = "bad_value") -> None:
        problems.append(Problem(path=POLICY_NOTE, line=lines.get(key, 0), code=code, message=message))

    for key, value in values.items():
        kind = KINDS.get(key)
        if kind is not None:
            good = kind.read(value)
            if good is None:
                counts = getattr(last_good, key)
                report(key, f"{key} must be {kind.words}, not {_said(value)}; {_said(counts)} counts")
                good = counts
            read[key] = good
        elif key != "timezone" and key not in _OBSIDIAN:
            report(key, f"{key} is not a policy property{_nearest(key)}", "unknown_key")

    written = values.get("timezone", "")
    name = written.strip() if isinstance(written, str) else None
    zone = None if name is None else zone_of(name)
    if zone is None:
        zone = last_good.zone
        if name != "":  # else the machine's zone cannot be told, which is not this note's fault
            name = last_good.timezone
            wrong = f"timezone must be a zone like Europe/Berlin, not {_said(written)}"
            report("timezone", f"{wrong}; {name or 'the machine’s zone'} counts")
    read |= {"timezone": name, "zone": zone}
    return _policy(read), tuple(problems)


def read_old_policy(document: Value, *, last_good: Policy) -> tuple[Policy, tuple[Problem, ...]]:
    """The policy of a Sediment Palace folder: defaults, with the limits that its `policy.yaml` sets.

    Keys that it does not know are left alone, as Sediment Palace does; a zone is not among them, so
    `last_good` hands on the zone that it has.
    """
    read: dict[str, object] = {"timezone": last_good.timezone, "zone": last_good.zone}
    problems: list[Problem] = []

    def report(message: str) -> None:
        problems.append(Problem(path=OLD_POLICY, line=0, code="bad_value", message=message))

    if document is not None and not isinstance(document, dict):
        report(f"policy.yaml must hold properties, not {_said(document)}; the defaults count")
        document = None
    for place, name, kind in _OLD:
        value, present = _dig(document, place)
        if not present:
            continue
        good = kind.read(value)
        if good is None:
            counts = getattr(last_good, name)
            said = "no limit" if counts is None else _said(counts)
            report(f"{'.'.join(place)} must be {kind.words}, not {_said(value)}; {said} counts")
            good = counts
        read[name] = good
    return _policy(read), tuple(problems)


def to_json(policy: Policy) -> dict[str, Value]:
    """The policy as plain JSON values, for keeping the last good one."""
    return {field.name: getattr(policy, field.name) for field in fields(policy) if field.name != "zone"}


def from_json(document: Mapping[str, Value], *, zone_of: ZoneOf) -> Policy:
    """The policy that `to_json` gave; whatever is missing or damaged is the default's."""
    kinds: dict[str, _Kind] = dict(KINDS) | {name: kind for _, name, kind in _OLD}
    read: dict[str, object] = {}
    for name, kind in kinds.items():
        good = kind.read(document.get(name))
        if good is not None:
            read[name] = good
    written = document.get("timezone")
    timezone = written if isinstance(written, str) else ""
    zone = zone_of(timezone)
    if zone is not None:
        read |= {"timezone": timezone, "zone": zone}
    return _policy(read)


def carry_defaults(memory: Memory, old: Policy, new: Policy) -> Memory:
    """*memory* after a change of Policy: a `decay_days` that was the old default becomes the new one.

    Otherwise every ordinary note would turn into one with a personal lifetime.
    """
    layer = memory.recorded_layer or memory.layer
    if memory.decay_days is None or memory.decay_days != old.lifetime(layer):
        return memory
    return replace(memory, decay_days=new.lifetime(layer))


def _policy(read: dict[str, object]) -> Policy:
    return Policy(**read)  # type: ignore[arg-type]  # each value passed the reader of its own property


def _number(value: Value) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # `isfinite` would choke on an integer beyond the floats; the ranges deal with that one.
    return value if isinstance(value, int) or math.isfinite(value) else None


def _dig(document: Value, place: tuple[str, ...]) -> tuple[Value, bool]:
    for name in place:
        if not isinstance(document, dict) or name not in document:
            return None, False
        document = document[name]
    return document, True


def _said(value: object) -> str:
    """*value* as a person wrote it, near enough to find it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    said = value if isinstance(value, str) else repr(value)
    return f"“{said[:40]}…”" if len(said) > 40 else f"“{said}”" if isinstance(value, str) else said


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key.casefold(), [*KINDS, "timezone"], n=1)
    return f"; did you mean {near[0]}?" if near else ""
