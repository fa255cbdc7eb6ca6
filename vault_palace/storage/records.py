"""The journal's records: one operation as a value and as a line of JSON, and tolerant reading of both.

Nothing here touches the disk. Unknown keys are ignored; an unknown version is the caller's to report.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

VERSION = 1

State = Literal["begin", "done", "undone", "superseded", "open"]
StepKind = Literal["put", "move", "remove"]

_FIRST_YEAR, _LAST_YEAR = 1900, 2500
_LATEST_NS = 1 << 63

STATES = frozenset({"begin", "done", "undone", "superseded", "open"})
_KINDS = frozenset({"put", "move", "remove"})
_START = b'{"v":'  # how each of our lines begins; inside a JSON text the quotes would be escaped


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One step as the journal keeps it: fingerprints for bytes, `staged` the temporary file's path."""

    kind: StepKind
    path: str
    to: str = ""  # where a move goes
    before: str | None = None  # None: there was nothing
    after: str | None = None  # None: there is nothing afterwards
    staged: str | None = None  # None: no new bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFact:
    """What the program knows of a note after this operation: tells a person's edit from its own write."""

    id: str
    path: str
    body: str  # the hash of the body, as the services make it
    streak: int | None = None
    pinned: bool | None = None  # None: the record is older than this key
    density: float | None = None  # likewise, or the note has none
    outside: int | None = None  # the file's time, in ns, when a person was last seen to have changed it
    was: str = ""  # where the note was before a person moved it here


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One operation and how it stands."""

    op: str
    verb: str
    at: datetime
    session: str = ""
    why: str = ""
    steps: tuple[Trace, ...] = ()
    notes: tuple[NoteFact, ...] = ()
    state: State = "begin"
    detail: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The newest program write of a note that the journals know."""

    body: str
    streak: int | None
    path: str
    at: datetime
    pinned: bool | None = None
    density: float | None = None
    outside: int | None = None


def show(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def to_line(record: dict[str, object]) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate becomes its JSON escape, so that the line is UTF-8 whatever a name holds.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def to_record(entry: Entry) -> dict[str, object]:
    def bare(value: Trace | NoteFact) -> dict[str, object]:
        return {key: kept for key, kept in dataclasses.asdict(value).items() if kept not in (None, "")}

    return {
        "v": VERSION,
        "op": entry.op,
        "at": show(entry.at),
        "state": "begin",
        "verb": entry.verb,
        "session": entry.session,
        "why": entry.why,
        "steps": [bare(step) for step in entry.steps],
        "notes": [bare(note) for note in entry.notes],
    }


def from_line(line: bytes) -> tuple[list[dict[str, object]], bool]:
    """The whole records on a line, and whether anything else stood there too.

    A power failure leaves zero bytes, and a program that did not look runs two records together.
    """
    line = line.strip(b"\0 \t\r\n")
    if not line:
        return [], False
    if line.startswith(_START) and line.count(_START) == 1:  # nearly always
        with contextlib.suppress(ValueError, RecursionError):
            return [json.loads(line)], False
    found: list[dict[str, object]] = []
    odd = False
    starts = [match.start() for match in re.finditer(re.escape(_START), line)]
    for start, end in zip([0, *starts], [*starts, len(line)], strict=True):
        piece = line[start:end].strip(b"\0 \t\r\n")
        if not piece:
            continue
        try:
            value = json.loads(piece)
        except (ValueError, RecursionError):
            odd = True
            continue
        if isinstance(value, dict):
            found.append(value)
        else:
            odd = True
    return found, odd


def to_entry(record: dict[str, object], machine: str) -> Entry | None:
    """A `begin` record as a value; None when it lacks what recovery needs."""
    try:
        at = _when(record["at"])
        steps = tuple(_trace(step) for step in cast("list[dict[str, object]]", record.get("steps", [])))
        notes = tuple(_fact(note) for note in cast("list[dict[str, object]]", record.get("notes", [])))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Entry(
        op=str(record["op"]),
        verb=str(record.get("verb", "")),
        at=at,
        session=str(record.get("session", "")),
        why=str(record.get("why", "")),
        steps=steps,
        notes=notes,
        state=cast("State", record.get("state", "begin")),
        detail=str(record.get("detail", "")),
        machine=machine,
    )


def _trace(step: dict[str, object]) -> Trace:
    if step["kind"] not in _KINDS:
        raise ValueError(step["kind"])

    def mark(key: str) -> str | None:
        value = step.get(key)
        return None if value is None else str(value)

    if step["kind"] == "move" and step.get("to") == step["path"]:
        raise ValueError(step)
    return Trace(
        kind=cast("StepKind", step["kind"]),
        path=str(step["path"]),
        to=str(step.get("to", "")),
        before=mark("before"),
        after=mark("after"),
        staged=mark("staged"),
    )


def _fact(note: dict[str, object]) -> NoteFact:
    streak, pinned, density = note.get("streak"), note.get("pinned"), note.get("density")
    outside = note.get("outside")
    return NoteFact(
        id=str(note["id"]),
        path=str(note.get("path", "")),
        body=str(note.get("body", "")),
        streak=streak if isinstance(streak, int) else None,
        pinned=pinned if isinstance(pinned, bool) else None,
        density=float(density) if isinstance(density, int | float) and 0 <= density <= 1 else None,
        outside=outside if isinstance(outside, int) and 0 <= outside < _LATEST_NS else None,
        was=str(note.get("was", "")),
    )


def to_last_write(note: dict[str, object]) -> LastWrite | None:
    """A note's fact with the time of its record; None when it cannot be read."""
    try:
        fact, at = _fact(note), _when(note["at"])
    except (KeyError, TypeError, ValueError):
        return None
    return LastWrite(fact.body, fact.streak, fact.path, at, fact.pinned, fact.density, fact.outside)


def to_time(text: str) -> datetime | None:
    """A record's time; None when it cannot be read."""
    try:
        return _when(text)
    except ValueError:
        return None


def _when(text: object) -> datetime:
    at = datetime.fromisoformat(str(text))
    if not _FIRST_YEAR <= at.year <= _LAST_YEAR:  # beyond it no zone could be told it in
        raise ValueError(text)
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class About:
    """The notes whose mention is to go: their paths, their ids, and what tells a sentence about them."""

    paths: frozenset[str]
    ids: frozenset[str]
    said: re.Pattern[str] | None

    def mentions(self, record: dict[str, object]) -> bool:
        entry = to_entry(record, "")
        return entry is not None and (
            self._tells(entry.why)
            or self._tells(entry.detail)
            or any(self._meant(entry, step) for step in entry.steps)
            or any(self._is(note) for note in entry.notes)
        )

    def _is(self, note: NoteFact) -> bool:
        return note.id in self.ids or (not note.id and note.path in self.paths)

    def _meant(self, entry: Entry, step: Trace) -> bool:
        """Whether the step was about one of them, and not about another note that took the place later."""
        if step.path not in self.paths and step.to not in self.paths:
            return False
        place = step.to or step.path
        others = {note.id for note in entry.notes if note.path == place and note.id}
        return not others or bool(others & self.ids)

    def _tells(self, text: str) -> bool:
        return any(path in text for path in self.paths) or (
            self.said is not None and self.said.search(text) is not None
        )

    def redacted(self, record: dict[str, object]) -> dict[str, object]:
        entry = to_entry(record, "")
        if entry is None or not self.mentions(record):
            return record
        if entry.state != "begin":
            return {key: value for key, value in record.items() if key != "detail"}
        steps = [step for step in entry.steps if not self._meant(entry, step)]
        notes = [note for note in entry.notes if not self._is(note)]
        return to_record(dataclasses.replace(entry, why="", steps=tuple(steps), notes=tuple(notes)))
