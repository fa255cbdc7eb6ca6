"""Between a note's properties and the `Memory` that the rules see, in both directions (SPEC §2).

Reading never fails: an absent property has its default, an odd one is reported with its line and the
value that counts instead is said. Writing names only the properties whose value differs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TypeVar

from vault_palace.core.dates import days_between, read_when, show_day, show_when
from vault_palace.core.frontmatter import DELETE, Change, Delete, Header
from vault_palace.core.model import (
    CSS_CLASSES,
    DERIVED,
    PROPERTIES,
    STYLES,
    Layer,
    Memory,
    Problem,
    Status,
    Value,
)
from vault_palace.core.policy import Policy
from vault_palace.core.rules import forecast
from vault_palace.core.streak import links, resting

DECAYED = "decayed"
SUPERSEDED = "superseded"
UNAPPROVED = " (proposed)"  # behind the reason of a note that no person had said yes to

_ARCHIVE_MARKS = ("archived_on", "archived_reason", "archived_from")
_UNPINNED = frozenset({"", "false", "no", "off", "0"})
_PINNED = frozenset({"true", "yes", "on", "1"})

# A lifetime below this would be written as 0: we keep four places.
_SHORTEST_LIFETIME = 0.0001

Word = TypeVar("Word", Layer, Status)
Changes = dict[str, Change]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a note's header says, and what it fails to say.

    `fills` are the properties to be written on first need, with the value that counted meanwhile;
    `status` and the forecast are not among them, for whoever decides sets them. `id` is None when the
    note has none yet: making one is the service's part.
    """

    memory: Memory
    fills: Mapping[str, Change]
    problems: tuple[Problem, ...]
    id: str | None


def read_memory(
    path: str, layer: Layer, header: Header, *, file_time: datetime, now: datetime, policy: Policy
) -> Reading:
    """The memory at *path*, which lies in *layer* (for an archived note: the layer it came from).

    A header that cannot be used gives a memory that no rule moves, and no fills: its bytes stay.
    """
    if not header.usable:
        return _unusable(path, layer, header, file_time, now, policy)
    read = _Reader(path, header, now, policy)
    recorded = read.word("layer", Layer, f"the folder's, {layer}, counts")
    if recorded is None:
        read.fills["layer"] = str(layer)
    created, last_touched, layer_since = _times(read, file_time)
    density = read.density()
    decay_days = read.decay_days(recorded or layer)
    memory = Memory(
        path=path,
        layer=layer,
        recorded_layer=recorded,
        created=created,
        last_touched=last_touched,
        layer_since=layer_since,
        density=density,
        streak=read.streak(),
        backlinks=read.count("backlinks", fill_absent=True),
        missed=read.count("missed"),
        decay_days=decay_days,
        pinned=read.pinned(),
        status=read.word("status", Status, "it is worked out anew"),
        decays_on=read.day("decays_on"),
        rises_on=read.day("rises_on"),
        rises_to=read.rises_to(),
        edited_on=read.day("edited_on"),
    )
    identity = read.id()
    return Reading(memory, read.fills, tuple(read.problems), identity)


def _unusable(
    path: str, layer: Layer, header: Header, file_time: datetime, now: datetime, policy: Policy
) -> Reading:
    # The file's time, not the moment it is seen: a broken note must not look like somebody's activity.
    at = min(policy.wall(file_time), policy.wall(now))
    memory = Memory(
        path=path, layer=layer, created=at, last_touched=at, density=None, streak=None, status=None
    )
    wrong = header.problem
    assert wrong is not None
    problem = Problem(path=path, line=wrong.line, code="bad_header", message=wrong.message)
    return Reading(memory, {}, (problem,), None)


def _times(read: _Reader, file_time: datetime) -> tuple[datetime, datetime, datetime | None]:
    """`created`, `last_touched` and `layer_since` as they count."""
    wall = read.policy.wall(read.now)
    created, last_touched, layer_since = (
        read.past(key) for key in ("created", "last_touched", "layer_since")
    )
    # What else the note records of its past. Forecasts are no record, so `decays_on` is not asked.
    records = {
        "last_touched": last_touched,
        "layer_since": layer_since,
        "rated_on": read.past("rated_on"),
        "archived_on": read.past("archived_on"),
    }
    if created is None:
        known = [(at, key) for key, at in records.items() if at is not None]
        created, source = min(known) if known else (read.file_time(file_time), "the file's time")
        read.count_instead("created", created, source)
    if last_touched is None:
        last_touched = wall
        read.count_instead("last_touched", wall, "the moment it was first seen")
    if layer_since is None and read.given("layer_since"):
        # Of the two values that could stand in, this one promotes and archives nothing early.
        layer_since = wall
        read.count_instead("layer_since", wall, "the moment it was first seen")
    return created, last_touched, layer_since


@dataclass(slots=True)
class _Reader:
    """Reads property by property and collects what is wrong and what is to be filled in."""

    path: str
    header: Header
    now: datetime
    policy: Policy
    fills: Changes = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    _odd: dict[str, tuple[str, str]] = field(default_factory=dict)  # dates: code, and what is wrong

    def given(self, key: str) -> bool:
        """Whether the property is there; an empty one, as Obsidian leaves it, counts as absent.

        A text property that a person clears there stays as `""`, a date or a number as nothing.
        """
        value = self.header.values.get(key)
        return value is not None and not (isinstance(value, str) and not value.strip())

    def report(self, key: str, message: str, code: str = "bad_value") -> None:
        line = self.header.lines.get(key, 0)
        self.problems.append(Problem(path=self.path, line=line, code=code, message=message))

    def said(self, key: str) -> str:
        text = self.header.sources.get(key)
        if text is None:
            text = json.dumps(self.header.values.get(key), ensure_ascii=False, default=str)
        return f"“{text[:60]}…”" if len(text) > 60 else f"“{text}”"

    def past(self, key: str) -> datetime | None:
        """A time up to tomorrow, or None: absent, unreadable, or later, which is the future."""
        if not self.given(key):
            return None
        at = read_when(self.header.values[key], self.policy.zone)
        if at is None:
            self._odd[key] = ("bad_value", f"{key} {self.said(key)} is not a date")
        elif self._future(at.date()):
            self._odd[key] = ("future_date", f"{key} {self.said(key)} lies in the future")
            at = None
        if key in self._odd and key in ("rated_on", "archived_on"):
            code, wrong = self._odd[key]
            self.report(key, wrong, code)
        return at

    def count_instead(self, key: str, at: datetime, source: str) -> None:
        self.fills[key] = show_when(at)
        if key in self._odd:
            code, wrong = self._odd[key]
            self.report(key, f"{wrong}; {show_when(at)} ({source}) counts", code)

    def file_time(self, at: datetime) -> datetime:
        """The file's time as a wall time; one in the future is reported, and now counts."""
        wall = self.policy.wall(at)
        if not self._future(wall.date()):
            return wall
        counts = self.policy.wall(self.now)
        message = f"the file's time {show_when(wall)} lies in the future; {show_when(counts)} counts"
        self.problems.append(Problem(path=self.path, line=0, code="future_date", message=message))
        return counts

    def _future(self, day: date) -> bool:
        return days_between(self.policy.today(self.now), day) > 1

    def day(self, key: str) -> date | None:
        """A day that the program wrote as a forecast; one that cannot be read is taken away again."""
        if not self.given(key):
            return None
        at = read_when(self.header.values[key], self.policy.zone)
        if at is None:
            self.report(key, f"{key} {self.said(key)} is not a date; it is worked out anew")
            self.fills[key] = DELETE
            return None
        return at.date()

    def rises_to(self) -> Layer | None:
        found = self.word("rises_to", Layer, "it is worked out anew")
        if found is None and self.given("rises_to"):
            self.fills["rises_to"] = DELETE
        return found

    def word(self, key: str, kind: type[Word], instead: str) -> Word | None:
        """One of *kind*'s words; None when absent or, reported, another one."""
        if not self.given(key):
            return None
        value = self.header.values[key]
        word = value.strip().casefold() if isinstance(value, str) else ""
        for known in kind:
            if word == known:
                return known
        self.report(key, f"{key} {self.said(key)} is not one of {', '.join(kind)}; {instead}")
        return None

    def number(self, key: str) -> float | None:
        """A finite number, or None for anything else; `true` is no number."""
        value = self.header.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if isinstance(value, int):
            return value if abs(value) <= _BIGGEST else None  # beyond it no decimal could hold it
        return value if math.isfinite(value) else None

    def whole(self, key: str) -> int | None:
        number = self.number(key)
        return int(number) if number is not None and number == int(number) else None

    def density(self) -> float | None:
        if not self.given("density"):
            self.fills["density"] = self.policy.default_density
            return self.policy.default_density
        density = self.number("density")
        if density is not None and 0 <= density <= 1:
            return density
        self.report(
            "density", f"density {self.said('density')} is not a number from 0 to 1; no rule moves it"
        )
        return None

    def streak(self) -> int | None:
        if not self.given("streak"):
            self.fills["streak"] = 0
            return 0
        streak = self.whole("streak")
        if streak is None:
            self.report(
                "streak", f"streak {self.said('streak')} is not a whole number; no rule moves the note"
            )
        return streak

    def count(self, key: str, *, fill_absent: bool = False) -> int:
        if self.given(key):
            count = self.whole(key)
            if count is not None and count >= 0:
                return count
            self.report(key, f"{key} {self.said(key)} is not a whole number from 0 up; 0 counts")
            self.fills[key] = 0
        elif fill_absent:
            self.fills[key] = 0
        return 0

    def decay_days(self, layer: Layer) -> float | None:
        default = self.policy.lifetime(layer)
        if not self.given("decay_days"):
            self.fills["decay_days"] = default
            return None
        days = self.number("decay_days")
        if days is not None and days >= _SHORTEST_LIFETIME:
            return days
        # The words are left standing: what was meant by them is the person's to say.
        self.report(
            "decay_days",
            f"decay_days {self.said('decay_days')} is not a positive number; the default {default} counts",
        )
        return None

    def pinned(self) -> bool:
        """Protection fails safe: only what plainly says no is no."""
        value = self.header.values.get("pinned")
        if not means_pinned(value):
            return False
        word = value.strip().casefold() if isinstance(value, str) else None
        if value is not True and value != 1 and word not in _PINNED:
            self.report(
                "pinned", f"pinned {self.said('pinned')} is neither true nor false; it counts as pinned"
            )
        return True

    def id(self) -> str | None:
        value = self.header.values.get("id")
        if isinstance(value, list | dict):
            self.report("id", f"id {self.said('id')} is not text")
            return None
        return identity(self.header)


_BIGGEST = 10**15


def density_of(header: Header) -> float | None:
    """The density that *header* states, None when it states none that counts."""
    value = header.values.get("density")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def identity(header: Header) -> str | None:
    """The id as it was typed, for `0123` and `2024-01-01` are names as well; None when there is none."""
    value = header.values.get("id")
    text = value if isinstance(value, str) else None if value is None else header.sources.get("id")
    return text.strip() or None if text else None


def means_pinned(value: Value) -> bool:
    """Whether a `pinned` of this value protects the note: anything does that does not plainly say no."""
    if value is None or value == [] or value == {} or value is False or value == 0:
        return False
    return not (isinstance(value, str) and value.strip().casefold() in _UNPINNED)


def changes(before: Memory, after: Memory, fills: Mapping[str, Change]) -> Changes:
    """The properties to write so that a note read as *before* says *after*, in the order of a new note.

    Only what differs is named, and *fills*. A property that has become absent is DELETE; coming back
    from the archive takes the archive's marks along.
    """
    found: Changes = dict(fills)
    for key, show in _SHOWN.items():
        value = show(after)
        if value != show(before):
            found[key] = value
    if before.status is Status.ARCHIVED and after.status is not Status.ARCHIVED:
        found |= dict.fromkeys(_ARCHIVE_MARKS, DELETE)
    return _ordered(found)


def archived_changes(
    before: Memory,
    after: Memory,
    fills: Mapping[str, Change],
    *,
    now: datetime,
    policy: Policy,
    reason: str,
    archived_from: str,
) -> Changes:
    """`changes` for a note that goes to the archive, with the day, the reason and the path it had."""
    marks: Changes = {
        "archived_on": show_day(policy.today(now)),
        "archived_reason": reason,
        "archived_from": archived_from,
    }
    return _ordered(changes(before, after, fills) | marks)


def purged(words: str) -> str:
    """The `archived_reason` of a note that was purged, on one line."""
    return f"purged: {' '.join(words.split()) or 'unspecified'}"


def new_memory(
    path: str,
    layer: Layer,
    *,
    now: datetime,
    policy: Policy,
    density: float | None = None,
    backlinks: int = 0,
    proposed: bool = False,
) -> Memory:
    """A memory written at *now*. *backlinks* are memories that already link to its name.

    *proposed*: an agent wrote it where its memories wait for a person's yes.
    """
    wall = policy.wall(now)
    memory = Memory(
        path=path,
        layer=layer,
        recorded_layer=layer,
        created=wall,
        last_touched=wall,
        density=policy.default_density if density is None else round(density, 4),
        streak=links(backlinks),
        backlinks=backlinks,
        decay_days=policy.lifetime(layer),
        status=Status.PROPOSED if proposed else resting(layer),
    )
    return forecast(memory, backlinks, now, policy)


def new_memory_properties(
    memory: Memory,
    *,
    id: str,
    rated: bool = False,
    supersedes: Sequence[str] = (),
    tags: Sequence[str] = (),
    source_session: str | None = None,
) -> dict[str, Value]:
    """The header of a fresh note: what `new_memory` says, in the order of SPEC §2, nothing empty.

    *rated* says that somebody gave the density, *supersedes* are links like `[[Name]]`.
    """
    shown: dict[str, Change] = {key: show(memory) for key, show in _SHOWN.items()}
    shown["id"] = id
    if rated:
        shown["rated_on"] = show_day(memory.created)
    if not memory.missed:
        shown["missed"] = DELETE
    if not memory.pinned:
        shown["pinned"] = DELETE
    if supersedes:
        shown["supersedes"] = list(supersedes)
    if tags:
        shown["tags"] = list(tags)
    if source_session:
        shown["source_session"] = source_session
    return {key: value for key, value in _ordered(shown).items() if not isinstance(value, Delete)}


def rev(header: Header, policy: Policy, layer: Layer | None = None) -> str:
    """The version of what people and agents say in a note (SPEC §9): body and properties, 12 hex digits.

    What the program derives or fills in does not count, so reading a note never makes a conflict. *layer*
    is the folder's, for a note that does not record one.
    """
    said = {key: _canonical(value) for key, value in header.values.items() if key not in DERIVED}
    classes = said.pop(CSS_CLASSES, None)
    if isinstance(classes, list):  # of which the program's own items are as derived as a forecast
        classes = [item for item in classes if not isinstance(item, str) or item not in STYLES]
    if classes:
        said[CSS_CLASSES] = classes
    density, decay_days = (said.pop(key, None) for key in ("density", "decay_days"))
    said["density"] = None if density == policy.default_density else density
    word = header.values.get("layer")
    recorded = next(
        (known for known in Layer if isinstance(word, str) and word.strip().casefold() == known), layer
    )
    default = policy.lifetime(recorded) if recorded is not None else None
    said["decay_days"] = None if decay_days == default else decay_days
    wrong = None if header.problem is None else header.problem.message
    text = json.dumps([said, wrong, header.body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]


def _canonical(value: Value) -> Value:
    """*value* in one form: Obsidian turns `1.0` into `1` when a person edits another property."""
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _canonical(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _ordered(found: Mapping[str, Change]) -> Changes:
    return {known.name: found[known.name] for known in PROPERTIES if known.name in found}


def _plain(number: float | None) -> Change:
    """A number as notes hold it: whole ones as integers, others with at most four places."""
    if number is None:
        return DELETE
    short = round(number, 4)
    return int(short) if short == int(short) else short


def _when(at: datetime | None) -> Change:
    return DELETE if at is None else show_when(at)


def _day(day: date | None) -> Change:
    return DELETE if day is None else show_day(day)


def _word(word: Layer | Status | None) -> Change:
    return DELETE if word is None else str(word)


# How each property that the rules set is written; DELETE where it is to be absent.
_SHOWN: Mapping[str, Callable[[Memory], Change]] = {
    "layer": lambda memory: _word(memory.recorded_layer),
    "created": lambda memory: show_when(memory.created),
    "last_touched": lambda memory: show_when(memory.last_touched),
    "layer_since": lambda memory: _when(memory.layer_since),
    "density": lambda memory: _plain(memory.density),
    "edited_on": lambda memory: _day(memory.edited_on),
    "streak": lambda memory: _plain(memory.streak),
    "decay_days": lambda memory: _plain(memory.decay_days),
    "decays_on": lambda memory: _day(memory.decays_on),
    "rises_on": lambda memory: _day(memory.rises_on),
    "rises_to": lambda memory: _word(memory.rises_to),
    "backlinks": lambda memory: memory.backlinks,
    "missed": lambda memory: memory.missed,
    "pinned": lambda memory: memory.pinned,
    "status": lambda memory: _word(memory.status),
}
