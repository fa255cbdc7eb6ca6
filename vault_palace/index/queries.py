"""The statements about links and words: where a link leads, who refers to a note, which notes match.

Like `index.sql`: functions over a connection, and lookups by whole texts or ranges, never by patterns.
"""

# ruff: noqa: S608  (what is put together here are our own words and question marks; values are always bound)

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from unicodedata import normalize

from vault_palace.core.links import Resolver
from vault_palace.core.model import Layer
from vault_palace.core.succession import Succession
from vault_palace.index.notes import (
    NOTE_COLUMNS,
    SEARCHED_KINDS,
    DamagedRowError,
    IndexedNote,
    Words,
    note_of_columns,
    text_column,
    text_of_column,
)
from vault_palace.index.sql import marks_for, tag_key

# CROSS: from a link to its note. Left to itself the engine begins with all memories, for each single target.
FROM_LINKS = "FROM link CROSS JOIN note AS source ON source.id = link.note"
COUNTED = "source.kind = 'memory' AND source.layer IS NOT NULL AND link.target <> source.path"


# --- links -----------------------------------------------------------------------------------------------


def resolve(db: sqlite3.Connection, keys: Iterable[str], note: int | None = None) -> None:
    """Answer anew where the links with one of *keys* lead (of *note* alone, when given)."""
    only = "" if note is None else " AND link.note = ?"
    for key in keys:
        column = text_column(key)
        links = db.execute(
            f"SELECT link.note, link.place, link.path, link.target, source.path {FROM_LINKS}"
            f" WHERE link.key = ?{only}",
            (column,) if note is None else (column, note),
        ).fetchall()
        if not links:
            continue
        # `[[x.md]]` has the key `x`, and may mean `x.md.md` where there is no `x.md`.
        named = db.execute("SELECT path FROM file WHERE key IN (?, ?)", (column, text_column(f"{key}.md")))
        files = [text_of_column(path) for (path,) in named]
        resolver = Resolver(files)
        for number, place, path, target, source in links:
            found = resolver.resolve(text_of_column(path), text_of_column(source)) if files else None
            now = None if found is None else text_column(found)
            if now != target:
                db.execute("UPDATE link SET target = ? WHERE note = ? AND place = ?", (now, number, place))


def referrers(db: sqlite3.Connection, target: str, *, counted: bool) -> tuple[str, ...]:
    """Paths of the notes with a link to *target*; *counted*: only those that SPEC §3 counts."""
    rows = db.execute(
        f"SELECT DISTINCT source.path {FROM_LINKS} WHERE link.target = ?"
        f"{f' AND {COUNTED}' if counted else ''} ORDER BY source.path",
        (text_column(target),),
    )
    return tuple(text_of_column(path) for (path,) in rows)


def counted_links(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Each target with each memory that links to it and counts, once, in order."""
    rows = db.execute(
        f"SELECT DISTINCT link.target, source.path {FROM_LINKS}"
        f" WHERE link.target IS NOT NULL AND {COUNTED} ORDER BY link.target, source.path"
    )
    for target, source in rows:
        yield text_of_column(target), text_of_column(source)


def targets(db: sqlite3.Connection, source: str) -> tuple[str, ...]:
    """The files that the links of the note at *source* lead to, if it is a memory whose links count."""
    rows = db.execute(
        # From the one note to its links; the order of `FROM_LINKS` would have every link of the vault read.
        "SELECT DISTINCT link.target FROM note AS source CROSS JOIN link ON link.note = source.id"
        f" WHERE source.path = ? AND link.target IS NOT NULL AND {COUNTED}",
        (text_column(source),),
    )
    return tuple(text_of_column(path) for (path,) in rows)


def unresolved(db: sqlite3.Connection) -> tuple[tuple[str, str], ...]:
    """Links that lead nowhere: path of the note and the link's path."""
    rows = db.execute(
        "SELECT note.path, link.path FROM link JOIN note ON note.id = link.note"
        " WHERE link.target IS NULL AND link.path <> '' AND note.kind IN ('memory', 'map')"
        " ORDER BY note.path, link.place"
    )
    return tuple((text_of_column(note), text_of_column(link)) for note, link in rows)


def proposed(db: sqlite3.Connection, most: int) -> tuple[tuple[str, ...], int]:
    """Paths of memories that wait for a person's yes, sorted, *most* of them; and how many there are."""
    rows = db.execute(
        "SELECT path FROM note INDEXED BY note_proposed WHERE proposed ORDER BY path LIMIT ?", (most,)
    )
    found = tuple(text_of_column(path) for (path,) in rows)
    if len(found) < most:
        return found, len(found)
    count = "SELECT count(*) FROM note INDEXED BY note_proposed WHERE proposed"
    return found, int(db.execute(count).fetchone()[0])


def orphans(db: sqlite3.Connection) -> tuple[str, ...]:
    """Memories that link to no other note and that no other memory links to."""
    rows = db.execute(
        "SELECT path FROM note WHERE kind = 'memory' AND layer IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM link WHERE link.note = note.id AND link.target <> note.path)"
        f" AND NOT EXISTS (SELECT 1 {FROM_LINKS}"
        f" WHERE link.target = note.path AND {COUNTED}) ORDER BY path"
    )
    return tuple(text_of_column(path) for (path,) in rows)


def holders(db: sqlite3.Connection, keys: Collection[str]) -> tuple[str, ...]:
    """Paths of the notes, of any kind, that hold a link with one of *keys*, or mean one without quotes."""
    found: set[str] = set()
    for key in keys:
        for table in ("link", "unquoted"):
            rows = db.execute(
                f"SELECT DISTINCT note.path FROM {table} JOIN note ON note.id = {table}.note"
                f" WHERE {table}.key = ?",
                (text_column(key),),
            )
            found.update(text_of_column(path) for (path,) in rows)
    return tuple(sorted(found))


def succession(db: sqlite3.Connection) -> Succession:
    """Which notes were replaced by which, as they say themselves.

    What a proposed note says does not count before a person said yes to it. What an archived note says it
    superseded does not count: its own old note says so as well, unless a
    person took that back.
    """
    rows = db.execute(
        # Left to itself the engine reads every link of the vault.
        "SELECT link.says, source.path, source.kind, target.path, target.kind"
        " FROM link INDEXED BY link_to_replaced CROSS JOIN note AS source ON source.id = link.note"
        " CROSS JOIN note AS target ON target.path = link.target"
        f" WHERE link.says > 0 AND NOT source.proposed AND source.kind IN ({marks_for(SEARCHED_KINDS)})"
        f" AND target.kind IN ({marks_for(SEARCHED_KINDS)})",
        (*SEARCHED_KINDS, *SEARCHED_KINDS),
    )
    replaced: list[tuple[str, str]] = []
    own: list[tuple[str, str]] = []
    archived: set[str] = set()
    for says, *named in rows:
        source, source_kind, target, target_kind = named
        source, target = text_of_column(source), text_of_column(target)
        archived.update(
            path for path, kind in ((source, source_kind), (target, target_kind)) if kind != "memory"
        )
        if says & 1 and source_kind == "memory":
            replaced.append((target, source))
        if says & 2:
            own.append((source, target))
    return Succession([*replaced, *own], archived, own)


def takes_part(db: sqlite3.Connection, path: str) -> bool:
    """Whether anything says of the note at *path* that it was replaced."""
    column = text_column(path)
    row = db.execute(
        "SELECT 1 FROM note AS source CROSS JOIN link ON link.note = source.id"
        " WHERE source.path = ? AND link.says & 2"
        " UNION ALL SELECT 1 FROM link WHERE target = ? AND says & 1 LIMIT 1",
        (column, column),
    ).fetchone()
    return row is not None


# --- search ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Which notes a search is about. `folders` hold with all that lies below them; None: everywhere."""

    kinds: tuple[str, ...] = ("memory",)
    folders: tuple[str, ...] | None = None
    layer: Layer | None = None
    tags: tuple[str, ...] = ()
    min_density: float | None = None
    proposed: bool = True  # also what agents proposed and no person has approved yet

    def condition(self) -> tuple[str, list[Any]]:
        """As SQL over `note`, and its values."""
        parts = [f"note.kind IN ({marks_for(self.kinds)})"]
        values: list[Any] = [*self.kinds]
        if self.folders is not None:
            below = [_below(text_column(normalize("NFC", folder)), "note.folder") for folder in self.folders]
            parts.append(f"({' OR '.join(part for part, _ in below) or '0'})")
            values += [value for _, pair in below for value in pair]
        if self.layer is not None:
            parts.append("note.layer = ?")
            values.append(self.layer.value)
        for tag in self.tags:
            part, pair = _below(text_column(tag_key(tag)), "tag.tag")
            parts.append(f"EXISTS (SELECT 1 FROM tag WHERE tag.note = note.id AND {part})")
            values += pair
        if self.min_density is not None:
            parts.append("note.density >= ?")
            values.append(self.min_density)
        if not self.proposed:
            parts.append("NOT note.proposed")
        return " AND ".join(parts), values


def _below(name: str | bytes, column: str) -> tuple[str, tuple[str | bytes, ...]]:
    """*name* itself or anything below it at a `/`; `0` is the sign behind the slash."""
    slash, behind = (name + "/", name + "0") if isinstance(name, str) else (name + b"/", name + b"0")
    return f"({column} = ? OR ({column} >= ? AND {column} < ?))", (name, slash, behind)


class Match(NamedTuple):
    """One note that matches, the greater its score the better; `by` is the note that replaced it, if any."""

    score: float
    note: IndexedNote
    words: Words
    by: str = ""


def matches(
    db: sqlite3.Connection, expression: str, only: Only, weights: Sequence[float], *, limit: int, offset: int
) -> tuple[list[Match], int]:
    """One page of the notes that match, best first, ties by path; and how many match altogether.

    A superseded note stands behind what replaced it, on whatever page that is.
    """
    condition, values = only.condition()
    replaced = succession(db)
    # CROSS keeps the engine from asking the search table about each note of the kind instead.
    found = (
        f"WITH found AS MATERIALIZED (SELECT note.id, note.path, bm25(words{', ?' * len(weights)}) AS score"
        f" FROM words CROSS JOIN note ON note.id = words.rowid WHERE words MATCH ? AND {condition})"
    )
    given = (*weights, expression, *values)
    if replaced:
        ranked, total = _behind_what_replaced_them(db, found, given, replaced, limit, offset)
    else:
        rows = db.execute(
            f"{found} SELECT id, path, score, (SELECT count(*) FROM found) FROM found"
            " ORDER BY score, path LIMIT ? OFFSET ?",
            (*given, limit, offset),
        ).fetchall()
        ranked = [(number, text_of_column(path), score) for number, path, score, _ in rows]
        total = rows[0][3] if rows else 0
    if not ranked:
        return [], db.execute(f"{found} SELECT count(*) FROM found", given).fetchone()[0] if offset else 0
    page = []
    for number, path, score in ranked:
        row = db.execute(
            f"SELECT packed.words, {NOTE_COLUMNS} FROM packed JOIN note ON note.id = packed.note"
            " WHERE packed.note = ?",
            (number,),
        ).fetchone()
        if row is None:
            raise DamagedRowError(f"the words of note {number}")
        page.append(Match(-float(score), note_of_columns(row[1:]), Words.unpack(row[0]), replaced.by(path)))
    return page, int(total)


def _behind_what_replaced_them(
    db: sqlite3.Connection,
    found: str,
    given: tuple[Any, ...],
    replaced: Succession,
    limit: int,
    offset: int,
) -> tuple[list[tuple[int, str, float]], int]:
    """The page that begins at *offset*, and how many match altogether.

    The notes that take part in a succession are few: they are all asked for, and the others as far as the
    page reaches, so that each page has the same order before it.
    """
    # A name that is no UTF-8 is not in the text of JSON; such a note keeps its place.
    involved = json.dumps(sorted(path for path in replaced.involved if isinstance(text_column(path), str)))
    rows = db.execute(
        f"{found}, parted AS MATERIALIZED (SELECT * FROM json_each(?)),"
        " alone AS (SELECT id, path, score FROM found WHERE path NOT IN (SELECT value FROM parted)"
        " ORDER BY score, path LIMIT ?)"
        " SELECT id, path, score, (SELECT count(*) FROM found) FROM alone UNION ALL"
        " SELECT id, path, score, (SELECT count(*) FROM found) FROM found"
        " WHERE path IN (SELECT value FROM parted)",
        (*given, involved, offset + limit),
    ).fetchall()
    scores = {text_of_column(path): float(score) for _, path, score, _ in rows}
    later = replaced.ranked({path: score for path, score in scores.items() if path in replaced.involved})
    order = sorted(
        ((*later.get(path, (score, 0)), path), number, path)
        for number, path, score in ((number, text_of_column(path), score) for number, path, score, _ in rows)
    )
    page = [(number, path, key[0]) for key, number, path in order[offset : offset + limit]]
    return page, rows[0][3] if rows else 0


def any_note(db: sqlite3.Connection, only: Only) -> bool:
    condition, values = only.condition()
    return db.execute(f"SELECT 1 FROM note WHERE {condition} LIMIT 1", values).fetchone() is not None


def folders(db: sqlite3.Connection, kinds: Sequence[str]) -> dict[str, int]:
    """Folders that hold a note of one of *kinds*, with how many."""
    rows = db.execute(
        f"SELECT folder, count(*) FROM note WHERE kind IN ({marks_for(kinds)})"
        " GROUP BY folder ORDER BY folder",
        tuple(kinds),
    )
    return {text_of_column(folder): count for folder, count in rows}


def paths_of(db: sqlite3.Connection, kinds: Sequence[str]) -> list[str]:
    """The paths of all notes of *kinds*, sorted."""
    rows = db.execute(f"SELECT path FROM note WHERE kind IN ({marks_for(kinds)})", tuple(kinds))
    return sorted(text_of_column(path) for (path,) in rows)


def frequency(db: sqlite3.Connection, word: str) -> int:
    """How many notes hold *word*."""
    row = db.execute("SELECT doc FROM vocabulary WHERE term = ?", (word,)).fetchone()
    return int(row[0]) if row else 0


def frequencies(db: sqlite3.Connection, words: Collection[str]) -> dict[str, int]:
    """In how many notes each of *words* stands, as far as any does."""
    rows = db.execute(
        "SELECT term, doc FROM json_each(?) AS asked JOIN vocabulary ON vocabulary.term = asked.value",
        (json.dumps(sorted(set(words))),),
    )
    return {str(term): int(doc) for term, doc in rows}


def searched_count(db: sqlite3.Connection) -> int:
    kinds = SEARCHED_KINDS
    row = db.execute(f"SELECT count(*) FROM note WHERE kind IN ({marks_for(kinds)})", kinds).fetchone()
    return int(row[0])
