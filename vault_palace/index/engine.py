"""SQLite as we use it: connections with our settings, and which of its errors mean what."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from vault_palace.index import sql

BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
# What a connection meets whose files another process renames at this moment, and what a failing disk says.
TAKEN_AWAY = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR))
_DAMAGE = frozenset(
    (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_READONLY,  # another's file, or no longer ours: one that can be written takes its place
    )
)


def connect(file: Path, patience: float) -> sqlite3.Connection:
    """A connection to a file that exists; the mode keeps a removed file from coming back empty."""
    db = sqlite3.connect(
        f"{file.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        for setting in ("synchronous = NORMAL", "temp_store = MEMORY", f"journal_size_limit = {16 * 2**20}"):
            db.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def is_damage(error: sqlite3.Error) -> bool:
    """Whether *error* says that the file is not what we made."""
    missing = code(error) == sqlite3.SQLITE_ERROR and str(error).startswith(
        ("no such ", "vtable constructor")
    )
    return missing or code(error) in _DAMAGE


def in_memory(vault_id: str) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    sql.create(db, vault_id)
    return db


def wait_at_most(db: sqlite3.Connection, seconds: float) -> None:
    db.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")


def code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where the error is not the engine's."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
