"""The tables of the cache and the statements that fill them, as functions over a connection.

Three kinds of facts are held: all files of the vault (links resolve over them), the notes among them, and the
words of the notes that are searched; `index.queries` asks for links and words. Which file a link leads to is
kept with the link; a file that comes or goes puts the links of its name in question, and only these are
answered again.

Lookups compare whole texts or ranges, never patterns: `_` and `%` are letters here.
"""

# ruff: noqa: S608  (what is put together here are our own words and question marks; values are always bound)

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import normalize

from vault_palace.core.changes import Mark
from vault_palace.core.links import link_key
from vault_palace.core.model import Layer, Memory, Problem
from vault_palace.core.names import key as name_key
from vault_palace.core.text import fold
from vault_palace.index.notes import (
    NOTE_COLUMNS,
    SEARCHED_KINDS,
    IndexedNote,
    Words,
    data_column,
    json_column,
    mark_columns,
    mark_of_columns,
    memory_column,
    memory_of_column,
    note_of_columns,
    ranked_columns,
    searched_digest,
    text_column,
    text_of_column,
    with_cut_reported,
)

APPLICATION = 0x56505043  # how our files differ from any other SQLite file
SCHEMA = (
    6  # any change below, or of `core.text.words`, is a new number and a new file: there are no migrations
)

# The words are letters and digits joined by blanks (`core.text`), and the `ascii` tokenizer leaves them so.
# The search table keeps no text: to forget a note it is told the very words again, from `packed`.
AT_ONCE = 500  # values in one statement

_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE file(path PRIMARY KEY, key NOT NULL, size, mtime_ns, inode, changed_ns) WITHOUT ROWID;
CREATE INDEX file_by_key ON file(key);
CREATE TABLE note(
    id INTEGER PRIMARY KEY, path NOT NULL UNIQUE, kind TEXT NOT NULL, layer TEXT, folder NOT NULL, memory_id,
    title, room, density REAL, streak, created TEXT, decays_on TEXT, rises_on TEXT, undated INTEGER,
    proposed INTEGER NOT NULL,
    memory TEXT, properties TEXT, data TEXT, troubled INTEGER, searched BLOB,
    size, mtime_ns, inode, changed_ns
);
CREATE INDEX note_by_memory_id ON note(memory_id) WHERE memory_id <> '';
CREATE INDEX note_by_folder ON note(folder, kind);
CREATE INDEX note_by_kind ON note(kind, layer, room, density, decays_on);
CREATE INDEX note_by_trouble ON note(path, troubled) WHERE troubled;
CREATE INDEX note_by_decay ON note(decays_on, path) WHERE decays_on IS NOT NULL;
CREATE INDEX note_by_rise ON note(rises_on, path) WHERE rises_on IS NOT NULL;
CREATE INDEX note_proposed ON note(path) WHERE proposed;
CREATE INDEX note_without_days ON note(path) WHERE undated;
CREATE INDEX note_by_worth ON note(density DESC, streak DESC, path) WHERE layer IS NOT NULL;
CREATE INDEX note_pinned ON note(path) WHERE json_extract(memory, '$[10]');
CREATE INDEX note_by_age ON note(created DESC, path) WHERE layer IS NOT NULL;
CREATE TABLE name(key, rank INTEGER, note INTEGER, PRIMARY KEY(key, rank, note)) WITHOUT ROWID;
CREATE INDEX name_by_note ON name(note);
CREATE TABLE tag(note INTEGER, tag, PRIMARY KEY(note, tag)) WITHOUT ROWID;
CREATE TABLE link(note INTEGER, place INTEGER, path, key, says INTEGER, target, PRIMARY KEY(note, place))
    WITHOUT ROWID;
CREATE INDEX link_by_key ON link(key);
CREATE INDEX link_by_target ON link(target) WHERE target IS NOT NULL;
CREATE INDEX link_to_nowhere ON link(note, place) WHERE target IS NULL;
CREATE INDEX link_to_replaced ON link(note, place) WHERE says > 0;
CREATE TABLE unquoted(key, note INTEGER, PRIMARY KEY(key, note)) WITHOUT ROWID;
CREATE INDEX unquoted_by_note ON unquoted(note);
CREATE TABLE packed(note INTEGER PRIMARY KEY, words BLOB);
CREATE VIRTUAL TABLE words USING fts5(title, tags, place, body, content='', tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row');
"""
_FORGET = "INSERT INTO words(words, rowid, title, tags, place, body) VALUES ('delete', ?, ?, ?, ?, ?)"


def create(db: sqlite3.Connection, vault_id: str) -> None:
    """Make an empty cache for *vault_id*, whole or not at all."""
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('vault', ?)", (vault_id,))
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")


def why_not_ours(db: sqlite3.Connection, vault_id: str) -> str:
    """In words, why this file is no cache of this version for *vault_id*; empty when it is."""
    application, version = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        return "it was not made by this program" if version or _has_tables(db) else "it was empty"
    if version != SCHEMA:
        return f"it has version {version}, this program uses {SCHEMA}"
    row = db.execute("SELECT value FROM meta WHERE name = 'vault'").fetchone()
    return "" if row is not None and row[0] == vault_id else "it belongs to another vault"


def basis(db: sqlite3.Connection) -> str:
    """What `set_basis` was given; empty before."""
    row = db.execute("SELECT value FROM meta WHERE name = 'basis'").fetchone()
    return "" if row is None else str(row[0])


def set_basis(db: sqlite3.Connection, text: str) -> None:
    """Remember by which settings the notes were read."""
    db.execute("INSERT OR REPLACE INTO meta VALUES ('basis', ?)", (text,))


def _has_tables(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


# --- files -----------------------------------------------------------------------------------------------


def put_file(db: sqlite3.Connection, path: str, mark: Mark) -> str | None:
    """Know the file *path* by *mark*. Returns its link key when it is new: links may lead to it now.

    A note that is known at *path* stays as it is: only its mark was found to differ.
    """
    column = text_column(path)
    known = db.execute(
        "UPDATE file SET size = ?, mtime_ns = ?, inode = ?, changed_ns = ? WHERE path = ?",
        (*mark_columns(mark), column),
    )
    if known.rowcount:
        db.execute(
            "UPDATE note SET size = ?, mtime_ns = ?, inode = ?, changed_ns = ? WHERE path = ?",
            (*mark_columns(mark), column),
        )
        return None
    key = link_key(path)
    db.execute("INSERT INTO file VALUES (?, ?, ?, ?, ?, ?)", (column, text_column(key), *mark_columns(mark)))
    return key


def marks(db: sqlite3.Connection) -> dict[str, Mark]:
    rows = db.execute("SELECT path, size, mtime_ns, inode, changed_ns FROM file")
    return {text_of_column(path): mark_of_columns(*mark) for path, *mark in rows}


def fingerprints(db: sqlite3.Connection) -> frozenset[str]:
    """The fingerprints of all notes, the first thing in `data` (see `index.notes.data_column`)."""
    rows = db.execute("SELECT json_extract(data, '$[0]') FROM note")
    return frozenset(str(found) for (found,) in rows if found)


def paths(db: sqlite3.Connection) -> list[str]:
    return [text_of_column(path) for (path,) in db.execute("SELECT path FROM file ORDER BY path")]


# --- notes -----------------------------------------------------------------------------------------------


def put(db: sqlite3.Connection, note: IndexedNote) -> tuple[int, str | None]:
    """Hold *note* instead of what was known of its path. Returns its number, and its key when new."""
    note = with_cut_reported(note)
    searched = searched_digest(note)
    columns = (
        note.kind,
        note.layer,
        text_column(normalize("NFC", note.folder)),
        text_column(note.id),
        text_column(note.title),
        *ranked_columns(note),
        memory_column(note.memory),
        json_column(note.properties),
        data_column(note),
        len(note.problems),
        searched,
        *mark_columns(note.mark),
    )
    path = text_column(note.path)
    row = db.execute("SELECT id, searched FROM note WHERE path = ?", (path,)).fetchone()
    if row is None:
        made = db.execute(f"INSERT INTO note VALUES (NULL, ?{', ?' * len(columns)})", (path, *columns))
        number, before = int(made.lastrowid or 0), b""
    else:
        number, before = row
        db.execute(
            "UPDATE note SET kind = ?, layer = ?, folder = ?, memory_id = ?, title = ?, room = ?,"
            " density = ?, streak = ?, created = ?, decays_on = ?, rises_on = ?, undated = ?, proposed = ?,"
            " memory = ?, properties = ?, data = ?, troubled = ?, searched = ?, size = ?, mtime_ns = ?,"
            " inode = ?, changed_ns = ? WHERE id = ?",
            (*columns, number),
        )
    if before != searched:
        _search_for(db, number, note if note.kind in SEARCHED_KINDS else None)
    _replace_names(db, number, note)
    return number, put_file(db, note.path, note.mark)


def _search_for(db: sqlite3.Connection, number: int, note: IndexedNote | None) -> None:
    """Find note *number* by the words of *note* from now on; None: by none."""
    row = db.execute("SELECT words FROM packed WHERE note = ?", (number,)).fetchone()
    if row is not None:
        db.execute(_FORGET, (number, *Words.unpack(row[0]).columns))
        db.execute("DELETE FROM packed WHERE note = ?", (number,))
    if note is not None:
        found = Words.of(note)
        db.execute(
            "INSERT INTO words(rowid, title, tags, place, body) VALUES (?, ?, ?, ?, ?)",
            (number, *found.columns),
        )
        db.execute("INSERT INTO packed VALUES (?, ?)", (number, found.pack()))


def _replace_names(db: sqlite3.Connection, number: int, note: IndexedNote) -> None:
    """Names, tags and links: few rows each, and rewritten only when they differ."""
    ranked = {(text_column(name_key(name)), rank) for rank, name in _names(note) if name}
    tags = {text_column(tag_key(tag)) for tag in note.tags}
    links = [
        (place, text_column(path), text_column(key), (path in note.older) + 2 * (path in note.newer))
        for place, (path, key) in enumerate(dict(note.links).items())
        if path
    ]
    if set(db.execute("SELECT key, rank FROM name WHERE note = ?", (number,))) != ranked:
        db.execute("DELETE FROM name WHERE note = ?", (number,))
        db.executemany("INSERT INTO name VALUES (?, ?, ?)", [(key, rank, number) for key, rank in ranked])
    if {tag for (tag,) in db.execute("SELECT tag FROM tag WHERE note = ?", (number,))} != tags:
        db.execute("DELETE FROM tag WHERE note = ?", (number,))
        db.executemany("INSERT INTO tag VALUES (?, ?)", [(number, tag) for tag in tags])
    if (
        db.execute(
            "SELECT place, path, key, says FROM link WHERE note = ? ORDER BY place", (number,)
        ).fetchall()
        != links
    ):
        db.execute("DELETE FROM link WHERE note = ?", (number,))
        db.executemany("INSERT INTO link VALUES (?, ?, ?, ?, ?, NULL)", [(number, *link) for link in links])
    unquoted = {text_column(key) for name, key in note.unquoted if name}
    if {key for (key,) in db.execute("SELECT key FROM unquoted WHERE note = ?", (number,))} != unquoted:
        db.execute("DELETE FROM unquoted WHERE note = ?", (number,))
        db.executemany("INSERT INTO unquoted VALUES (?, ?)", [(key, number) for key in unquoted])


def _names(note: IndexedNote) -> Iterator[tuple[int, str]]:
    """The names a note may be called by, the surest with rank 0."""
    yield 0, note.stem
    yield 1, note.title
    for alias in note.aliases:
        yield 2, alias


def tag_key(tag: str) -> str:
    """A tag as it is compared: without case, `#` and a slash at the end."""
    return fold(tag).strip().strip("#/").strip()


def remove(db: sqlite3.Connection, path: str) -> str | None:
    """Forget the file *path*, and the note. Returns its link key if it was known."""
    column = text_column(path)
    row = db.execute("SELECT id FROM note WHERE path = ?", (column,)).fetchone()
    if row is not None:
        _search_for(db, row[0], None)
        for table in ("name", "tag", "link", "unquoted"):
            db.execute(f"DELETE FROM {table} WHERE note = ?", row)
        db.execute("DELETE FROM note WHERE id = ?", row)
    known = db.execute("DELETE FROM file WHERE path = ?", (column,))
    return link_key(path) if known.rowcount else None


def clear(db: sqlite3.Connection) -> None:
    """Forget everything but whose cache this is."""
    db.execute("INSERT INTO words(words) VALUES ('delete-all')")
    for table in ("file", "note", "name", "tag", "link", "unquoted", "packed"):
        db.execute(f"DELETE FROM {table}")


def get(db: sqlite3.Connection, path: str) -> IndexedNote | None:
    rows = notes_where(db, "note.path = ?", (text_column(path),))
    return rows[0] if rows else None


def by_id(db: sqlite3.Connection, id: str) -> tuple[IndexedNote, ...]:
    return notes_where(db, "note.memory_id = ? AND note.memory_id <> ''", (text_column(id),))


def shared_ids(db: sqlite3.Connection) -> tuple[str, ...]:
    rows = db.execute(
        "SELECT memory_id FROM note WHERE memory_id <> '' GROUP BY memory_id HAVING count(*) > 1"
    )
    return tuple(text_of_column(found) for (found,) in rows)


def set_aside(db: sqlite3.Connection) -> tuple[str, ...]:
    rows = db.execute("SELECT path FROM file WHERE path LIKE '%.md.orig' ORDER BY path")
    return tuple(text_of_column(path) for (path,) in rows)


def by_name(db: sqlite3.Connection, name: str) -> tuple[IndexedNote, ...]:
    """Notes called *name*: by file name; if there are none, by title; if there are none, by alias."""
    for rank in (0, 1, 2):
        where = "note.id IN (SELECT note FROM name WHERE key = ? AND rank = ?)"
        found = notes_where(db, where, (text_column(name_key(name)), rank))
        if found:
            return found
    return ()


def notes_of_kind(db: sqlite3.Connection, kinds: Sequence[str]) -> tuple[IndexedNote, ...]:
    return notes_where(db, f"note.kind IN ({marks_for(kinds)})" if kinds else "1", tuple(kinds))


def notes_at(db: sqlite3.Connection, paths: Sequence[str]) -> Iterator[IndexedNote]:
    """The notes at exactly these paths."""
    for start in range(0, len(paths), AT_ONCE):
        part = paths[start : start + AT_ONCE]
        yield from notes_where(
            db, f"note.path IN ({marks_for(part)})", tuple(text_column(path) for path in part)
        )


def notes_where(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> tuple[IndexedNote, ...]:
    rows = db.execute(f"SELECT {NOTE_COLUMNS} FROM note WHERE {where} ORDER BY note.path", values)
    return tuple(note_of_columns(row) for row in rows)


def memories(db: sqlite3.Connection) -> tuple[Memory, ...]:
    """The memories in the layers, by path."""
    rows = db.execute(
        "SELECT path, memory FROM note WHERE kind = 'memory' AND memory IS NOT NULL ORDER BY path"
    )
    found = (memory_of_column(text_of_column(path), memory) for path, memory in rows)
    return tuple(memory for memory in found if memory is not None)


def problems(db: sqlite3.Connection) -> tuple[Problem, ...]:
    found = [problem for note in notes_where(db, "note.troubled", ()) for problem in note.problems]
    return tuple(sorted(found, key=lambda problem: (problem.path, problem.line, problem.code)))


def counts(db: sqlite3.Connection) -> dict[str, int]:
    """Notes by layer (memories), by kind (all others), and `files` altogether."""
    found = dict.fromkeys((*Layer, "archived"), 0)
    found |= db.execute(
        "SELECT layer, count(*) FROM note WHERE kind = 'memory' AND layer <> '' GROUP BY layer"
    )
    found |= db.execute("SELECT kind, count(*) FROM note WHERE kind <> 'memory' GROUP BY kind")
    return {str(name): count for name, count in found.items()} | {
        "files": db.execute("SELECT count(*) FROM file").fetchone()[0]
    }


def marks_for(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


# --- soundness -------------------------------------------------------------------------------------------


def damage(db: sqlite3.Connection) -> tuple[str, ...]:
    """What the engine's own checks find wrong, in words; the search table is checked against itself."""
    rows = db.execute("PRAGMA quick_check(5)").fetchall()
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    if not found:
        try:
            db.execute("INSERT INTO words(words) VALUES ('integrity-check')")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            found.append(f"search words: {error}")
    return tuple(found)


def disagreements(db: sqlite3.Connection) -> tuple[str, ...]:
    """Where the tables do not fit together, in words."""
    checks: Mapping[str, str] = {
        "notes without their words": f"SELECT count(*) FROM note WHERE kind IN {SEARCHED_KINDS}"
        " AND id NOT IN (SELECT note FROM packed)",
        "words of notes that are gone": "SELECT count(*) FROM packed WHERE note NOT IN (SELECT id FROM note)",
        "notes missing from the search table": "SELECT count(*) FROM packed"
        " WHERE note NOT IN (SELECT id FROM words_docsize)",
        "ghosts in the search table": "SELECT count(*) FROM words_docsize"
        " WHERE id NOT IN (SELECT note FROM packed)",
        "links of notes that are gone": "SELECT count(*) FROM link WHERE note NOT IN (SELECT id FROM note)",
        "notes that are no file": "SELECT count(*) FROM note WHERE path NOT IN (SELECT path FROM file)",
    }
    found = {what: db.execute(check).fetchone()[0] for what, check in checks.items()}
    return tuple(f"{count} {what}" for what, count in found.items() if count)
