"""What index note and briefing show of the notes: short lists, each with how many there are, counts by room.

Everything is ordered by indexed columns and cut by the engine, ties by path; only what is listed is read
whole. So a hundred thousand notes cost little more than a hundred. Like `index.sql`: functions over a
connection.
"""

# ruff: noqa: S608  (what is put together here are our own words; values are always bound)

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Generic, TypeVar

from vault_palace.core.model import Memory, Problem
from vault_palace.core.succession import Succession
from vault_palace.index.notes import (
    NOTE_COLUMNS,
    json_column,
    memory_of_column,
    note_of_columns,
    text_of_column,
)
from vault_palace.index.queries import COUNTED, FROM_LINKS, Only, succession

T = TypeVar("T")

MOST = 40  # entries of one list

_MEMORIES = "SELECT note.path, note.memory FROM note"
# A narrow index holds all that is asked of a note here; the notes themselves are wide.
_ORPHANS = (
    "WITH orphan AS MATERIALIZED (SELECT note.id, note.path FROM note INDEXED BY note_by_age"
    " WHERE note.layer IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM link WHERE link.note = note.id AND link.target <> note.path)"
    f" AND NOT EXISTS (SELECT 1 {FROM_LINKS} WHERE link.target = note.path AND {COUNTED}))"
    " SELECT note.path, note.memory, (SELECT count(*) FROM orphan)"
    " FROM (SELECT id FROM orphan ORDER BY path LIMIT ?) AS first JOIN note ON note.id = first.id"
    " ORDER BY note.path"
)
_PINNED = "json_extract(note.memory, '$[10]')"  # as the index for it has it
_STRONGEST = "note.density DESC, note.streak DESC, note.path"
# By steps of the streak: one more reading is not to change which notes a briefing begins with.
_LASTING = "note.density DESC, note.streak / 5 DESC, note.path"
_NOWHERE = (
    "FROM link CROSS JOIN note ON note.id = link.note"
    " WHERE link.target IS NULL AND link.path <> '' AND note.kind = 'memory'"
)


@dataclass(frozen=True, slots=True)
class Some(Generic[T]):
    """The first entries of a list, and how many it has."""

    first: tuple[T, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The notes in one folder of a layer, or of the archive (`layer` is empty): `room` may be empty.

    `density` is their mean, None where none has one; `decaying` how many leave by the day that was asked for.
    """

    layer: str
    room: str
    count: int
    density: float | None = None
    decaying: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A note whose id or name another one, the first of that name by path, has too."""

    path: str
    first: str
    code: str  # duplicate_id or duplicate_name
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All lists, taken from one state of the cache."""

    decaying: Some[Memory]  # leave by the day asked for, the soonest first
    rising: Some[Memory]  # rise by then
    undated: Some[Memory]  # rules move them one day, and no day is written in them yet
    strongest: tuple[Memory, ...]
    newest: tuple[Memory, ...]
    rooms: tuple[Room, ...]  # layers before the archive, by name
    orphans: Some[Memory]
    unresolved: Some[tuple[str, str]]  # path of a memory, link path
    problems: Some[Problem]
    twins: Some[Twin]
    conflicts: Some[str]
    next_leaving: date | None  # the first day on which any note leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What a briefing shows, taken from one state of the cache; superseded notes are in none of its lists."""

    replaced: Succession
    pinned: Some[Memory]  # the strongest first, as the next two
    bedrock: Some[Memory]  # without the pinned ones
    valued: tuple[Memory, ...]  # of the other layers, rated so high that they will rise
    fading: Some[Memory]  # leave by the day asked for, the soonest first
    undated: tuple[Memory, ...]  # as in `Overview`
    due: tuple[int, int]  # how many leave by today and by tomorrow, of the whole vault and as their days say
    unsettled: int  # how many of the whole vault have no such day yet
    newest: tuple[Memory, ...]
    rooms: tuple[Room, ...]
    problems: Some[Problem]
    twins: Some[Twin]
    conflicts: Some[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A memory's file as the cache last saw it."""

    path: str
    id: str
    fingerprint: str
    body_hash: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class Troubled:
    """What is wrong with notes, and names or ids that several have."""

    problems: Some[Problem]
    twins: Some[Twin]


def troubled(db: sqlite3.Connection, most: int) -> Troubled:
    """The parts of `gather` that tell of trouble, alone."""
    return Troubled(_problems(db, most), _twins(db, most))


def gather(db: sqlite3.Connection, last: date, most: int = MOST) -> Overview:
    """The lists, at most *most* entries each, with what happens up to the day *last*."""
    return Overview(
        decaying=_due(db, "decays_on", last, most),
        rising=_due(db, "rises_on", last, most),
        undated=_undated(db, most),
        strongest=_first(db, "note.density IS NOT NULL", "note.density DESC, note.streak DESC", most),
        newest=_first(db, "note.created IS NOT NULL", "note.created DESC", most),
        rooms=_rooms(db, last),
        orphans=_orphans(db, most),
        unresolved=_unresolved(db, most),
        problems=_problems(db, most),
        twins=_twins(db, most),
        conflicts=_conflicts(db, most),
        next_leaving=_next_leaving(db),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What may wait for a person: a part of `Overview`, which costs less than all of it."""

    decaying: Some[Memory]
    undated: Some[Memory]
    conflicts: Some[str]
    newest: tuple[Memory, ...]


def waiting(db: sqlite3.Connection, last: date, most: int) -> Waiting:
    """What leaves by the day *last*, conflict copies, and the newest memories; at most *most* of each."""
    return Waiting(
        decaying=_due(db, "decays_on", last, most),
        undated=_undated(db, most),
        conflicts=_conflicts(db, most),
        newest=_first(db, "note.created IS NOT NULL", "note.created DESC", most),
    )


def leaving(db: sqlite3.Connection, last: date, most: int) -> tuple[Some[Memory], Some[Memory]]:
    """Of `gather` what leaves by the day *last*, and what has no day yet: all that a list of it needs."""
    return _due(db, "decays_on", last, most), _undated(db, MOST)


def brief(
    db: sqlite3.Connection, today: date, last: date, valued: float, only: Only, most: int = MOST
) -> Brief:
    """The lists of a briefing over the memories that *only* means; *valued* is the least density of those."""
    condition, values = only.condition()
    replaced = succession(db)
    where = f"{condition} AND note.layer IS NOT NULL AND note.path NOT IN (SELECT value FROM json_each(?))"
    values.append(json_column(sorted(replaced.old)))
    day = last.isoformat()

    # The engine is told which index to walk: left to itself it takes the one by kind, and looks at each note.
    def first(index: str, which: str, order: str, *given: Any) -> tuple[Memory, ...]:
        rows = db.execute(
            f"{_MEMORIES} INDEXED BY {index} WHERE {where} AND {which} ORDER BY {order} LIMIT ?",
            (*values, *given, most),
        )
        return _as_memories(rows)

    def some(index: str, which: str, order: str, *given: Any) -> Some[Memory]:
        found = first(index, which, order, *given)
        if len(found) < most:
            return Some(found, len(found))
        count = f"SELECT count(*) FROM note INDEXED BY {index} WHERE {where} AND {which}"
        return Some(found, _count(db, count, (*values, *given)))

    unpinned = f"NOT ifnull({_PINNED}, 0)"
    leaves = "note.decays_on IS NOT NULL AND note.decays_on <= ?"
    rises = f"note.layer <> 'bedrock' AND {unpinned} AND note.density >= ?"
    return Brief(
        replaced=replaced,
        pinned=some("note_pinned", _PINNED, _LASTING),
        bedrock=some("note_by_kind", f"note.layer = 'bedrock' AND {unpinned}", _LASTING),
        valued=first("note_by_worth", rises, _STRONGEST, valued),
        fading=some("note_by_decay", leaves, "note.decays_on, note.path", day),
        undated=first("note_without_days", "note.undated", "note.path"),
        newest=first("note_by_age", "note.created IS NOT NULL", "note.created DESC, note.path"),
        due=(_leave_by(db, today), _leave_by(db, date.fromordinal(today.toordinal() + 1))),
        unsettled=_count(db, "SELECT count(*) FROM note WHERE note.undated"),
        rooms=_rooms(db, last),
        problems=_problems(db, most),
        twins=_twins(db, most),
        conflicts=_conflicts(db, most),
    )


def _leave_by(db: sqlite3.Connection, day: date) -> int:
    return _count(db, "SELECT count(*) FROM note WHERE decays_on <= ?", (day.isoformat(),))


def written_since(db: sqlite3.Connection, at_ns: int, most: int) -> tuple[Written, ...]:
    """The memories whose files were changed since *at_ns*, the newest first."""
    at_ns = max(-(2**63), min(at_ns, 2**63 - 1))  # no file is beyond what the column holds; a clock may be
    rows = db.execute(
        "SELECT note.path, note.memory_id, json_extract(note.data, '$[0]'),"
        " json_extract(note.data, '$[1]'), file.mtime_ns"
        " FROM file CROSS JOIN note ON note.path = file.path"
        " WHERE file.mtime_ns >= ? AND typeof(file.mtime_ns) = 'integer' AND note.kind = 'memory'"
        " ORDER BY file.mtime_ns DESC, note.path LIMIT ?",
        (at_ns, most),
    )
    return tuple(
        Written(
            path=text_of_column(path),
            id=text_of_column(known or ""),
            fingerprint=fingerprint,
            body_hash=body,
            at_ns=at,
        )
        for path, known, fingerprint, body, at in rows
    )


def born_since(db: sqlite3.Connection, wall: datetime, most: int) -> tuple[tuple[str, str, datetime], ...]:
    """Path, id and birth of the memories that were created since *wall*, the newest first."""
    rows = db.execute(
        "SELECT path, memory_id, created FROM note INDEXED BY note_by_age"
        " WHERE layer IS NOT NULL AND kind = 'memory' AND created >= ? ORDER BY created DESC, path LIMIT ?",
        (wall.isoformat(timespec="seconds"), most),
    )
    return tuple(
        (text_of_column(path), text_of_column(known or ""), datetime.fromisoformat(created))
        for path, known, created in rows
    )


def _memories(db: sqlite3.Connection, rest: str, values: tuple[Any, ...]) -> tuple[Memory, ...]:
    return _as_memories(db.execute(f"{_MEMORIES} {rest}", values))


def _as_memories(rows: Iterable[tuple[Any, ...]]) -> tuple[Memory, ...]:
    found = (memory_of_column(text_of_column(path), memory) for path, memory, *_ in rows)
    return tuple(memory for memory in found if memory is not None)


def _count(db: sqlite3.Connection, query: str, values: tuple[Any, ...] = ()) -> int:
    return int(db.execute(query, values).fetchone()[0] or 0)


def _undated(db: sqlite3.Connection, most: int) -> Some[Memory]:
    first = _memories(db, "WHERE note.undated ORDER BY note.path LIMIT ?", (most,))
    return Some(first, _count(db, "SELECT count(*) FROM note WHERE note.undated"))


def _orphans(db: sqlite3.Connection, most: int) -> Some[Memory]:
    """As `queries.orphans`, cut."""
    rows = db.execute(_ORPHANS, (most,)).fetchall()
    return Some(_as_memories(rows), rows[0][2] if rows else 0)


def _due(db: sqlite3.Connection, column: str, last: date, most: int) -> Some[Memory]:
    day = last.isoformat()
    where = f"note.{column} IS NOT NULL AND note.{column} <= ?"
    first = _memories(db, f"WHERE {where} ORDER BY note.{column}, note.path LIMIT ?", (day, most))
    return Some(first, _count(db, f"SELECT count(*) FROM note WHERE {where}", (day,)))


def _first(db: sqlite3.Connection, where: str, order: str, most: int) -> tuple[Memory, ...]:
    return _memories(
        db, f"WHERE note.layer IS NOT NULL AND {where} ORDER BY {order}, note.path LIMIT ?", (most,)
    )


def _rooms(db: sqlite3.Connection, last: date) -> tuple[Room, ...]:
    found = db.execute(
        "SELECT kind, layer, room, count(*), avg(density), sum(decays_on IS NOT NULL AND decays_on <= ?)"
        " FROM note WHERE kind IN ('memory', 'archived') GROUP BY kind, layer, room",
        (last.isoformat(),),
    )
    rooms = [
        Room(
            layer=layer or "",
            room=text_of_column(room),
            count=count,
            density=None if density is None else round(density, 4),
            decaying=decaying,
        )
        for kind, layer, room, count, density, decaying in found
        if layer is not None or kind == "archived"
    ]
    return tuple(sorted(rooms, key=lambda room: (not room.layer, room.layer, room.room)))


def _next_leaving(db: sqlite3.Connection) -> date | None:
    (day,) = db.execute("SELECT min(decays_on) FROM note WHERE decays_on IS NOT NULL").fetchone()
    return None if day is None else date.fromisoformat(day)


def _unresolved(db: sqlite3.Connection, most: int) -> Some[tuple[str, str]]:
    """Of memories alone: what the index note itself says of them must not change what it says."""
    rows = db.execute(
        f"SELECT note.path, link.path {_NOWHERE} ORDER BY note.path, link.place LIMIT ?", (most,)
    ).fetchall()
    first = tuple((text_of_column(path), text_of_column(link)) for path, link in rows)
    return Some(first, _count(db, f"SELECT count(*) {_NOWHERE}"))


def _problems(db: sqlite3.Connection, most: int) -> Some[Problem]:
    rows = db.execute(
        f"SELECT {NOTE_COLUMNS} FROM note WHERE note.troubled ORDER BY note.path LIMIT ?", (most,)
    )
    found = [problem for row in rows for problem in note_of_columns(row).problems]
    found.sort(key=lambda problem: (problem.path, problem.line, problem.code, problem.message))
    return Some(tuple(found[:most]), _count(db, "SELECT sum(troubled) FROM note WHERE troubled"))


def _twins(db: sqlite3.Connection, most: int) -> Some[Twin]:
    """Notes that share an id or a name: all but the first of each group, so that each group is told once."""
    ids = (
        "SELECT memory_id AS value, count(*) AS many FROM note WHERE memory_id <> ''"
        " AND kind IN ('memory', 'archived') GROUP BY memory_id HAVING count(*) > 1"
    )
    # Names of dashboards and conflict copies stand there too, and are sorted out among the few that are left.
    names = (
        "SELECT name.key AS value, count(*) AS many FROM name JOIN note ON note.id = name.note"
        " WHERE name.rank = 0 AND name.key IN (SELECT key FROM name WHERE rank = 0 GROUP BY key"
        " HAVING count(*) > 1) AND note.kind IN ('memory', 'archived') GROUP BY name.key HAVING count(*) > 1"
    )
    with_id = (
        "SELECT path FROM note WHERE memory_id = ? AND memory_id <> '' AND kind IN ('memory', 'archived')"
        " ORDER BY path LIMIT ?"
    )
    with_name = (
        "SELECT note.path FROM name JOIN note ON note.id = name.note WHERE name.key = ? AND name.rank = 0"
        " AND note.kind IN ('memory', 'archived') ORDER BY note.path LIMIT ?"
    )
    found: list[Twin] = []
    count = 0
    for code, groups, members in (("duplicate_id", ids, with_id), ("duplicate_name", names, with_name)):
        shared = db.execute(
            f"WITH shared AS MATERIALIZED ({groups}) SELECT value, (SELECT sum(many - 1) FROM shared)"
            " FROM shared ORDER BY value LIMIT ?",
            (most,),
        ).fetchall()
        count += shared[0][1] if shared else 0
        for value, _ in shared:
            first, *others = (text_of_column(path) for (path,) in db.execute(members, (value, most + 1)))
            found += [Twin(path=path, first=first, code=code, value=text_of_column(value)) for path in others]
    found.sort(key=lambda twin: (twin.path, twin.code))
    return Some(tuple(found[:most]), count)


def _conflicts(db: sqlite3.Connection, most: int) -> Some[str]:
    rows = db.execute("SELECT path FROM note WHERE kind = 'conflict' ORDER BY path LIMIT ?", (most,))
    first = tuple(text_of_column(path) for (path,) in rows)
    return Some(first, _count(db, "SELECT count(*) FROM note WHERE kind = 'conflict'"))
