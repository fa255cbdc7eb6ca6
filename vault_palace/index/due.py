"""Which notes may be due for the archive, found by the days they hold, and what their leaving reaches.

Like `index.sql`: functions over a connection. A stored day may be out of step with its note while the keeper
waits for the note to be quiet; what is found here is therefore judged again by the rules.
"""

from __future__ import annotations

import sqlite3
from datetime import date

from vault_palace.index.notes import DamagedRowError, text_column, text_of_column


def may_be_due(db: sqlite3.Connection, last: date) -> tuple[str, ...]:
    """The notes that leave or rise by the day *last*, or of which nobody has worked that out; by path."""
    rows = db.execute(
        "SELECT path FROM note WHERE decays_on <= ?1 UNION SELECT path FROM note WHERE rises_on <= ?1"
        " UNION SELECT path FROM note WHERE undated ORDER BY path",
        (last.isoformat(),),
    )
    return tuple(text_of_column(path) for (path,) in rows)


def linked_from(db: sqlite3.Connection, path: str) -> tuple[str, ...]:
    """The files that the links of the note at *path* lead to."""
    rows = db.execute(
        "SELECT DISTINCT link.target FROM link JOIN note ON note.id = link.note"
        " WHERE note.path = ? AND link.target IS NOT NULL ORDER BY link.target",
        (text_column(path),),
    )
    return tuple(text_of_column(target) for (target,) in rows)


def last_touch(db: sqlite3.Connection) -> date | None:
    """The newest day on which a memory of the layers was touched, as the notes say; None without memories."""
    (newest,) = db.execute(
        "SELECT max(substr(json_extract(memory, '$[3]'), 1, 10)) FROM note"
        " WHERE kind = 'memory' AND memory IS NOT NULL"
    ).fetchone()
    try:
        return None if newest is None else date.fromisoformat(newest)
    except (TypeError, ValueError) as error:
        raise DamagedRowError("the day of a touch") from error
