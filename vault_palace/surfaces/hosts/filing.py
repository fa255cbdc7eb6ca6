"""The one place where a person's file outside the vault is written: a host's configuration or instructions.

Read, changed in memory, backed up beside it, swapped in whole by the same calls that write notes: compared
before, checked after, the mode kept, links followed to the file behind them. When somebody else wrote in
between, the change is made again on the new text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vault_palace.core.errors import Busy, Exists, MalformedNote, NoteChanged
from vault_palace.storage import files
from vault_palace.surfaces.hosts.jsonc import Broken

TRIES = 8
MOST_BACKUPS = 1000
PRIVATE, SHARED = 0o600, 0o644  # of a new file: a person's own settings, a file of a project
_BOM = b"\xef\xbb\xbf"

Edit = Callable[[str], str]
Done = Literal["created", "changed", "kept"]


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a file, or would be. `backup` is the path of the copy of what was there before."""

    path: str
    done: Done
    before: str
    after: str
    backup: str | None = None


def change(path: str, edit: Edit, *, mode: int, write: bool) -> Change:
    """Let *edit* change the text of the file at *path*, which may not be there yet.

    Without *write* it is only found out what would change. Refused when the file is not UTF-8, cannot be read
    by *edit*, or is read-only.
    """
    target = Path(os.path.realpath(path))
    for _ in range(TRIES):
        data = files.bytes_at(target)
        before = _text(path, data or b"")
        try:
            after = edit(before)
        except Broken as error:
            raise MalformedNote(
                f"{path}:{error.line}:{error.column}: {error.said}.",
                hint="Nothing was written. Mend the file there, then repeat this.",
                path=path,
                line=error.line,
                column=error.column,
            ) from None
        if after == before:
            return Change(path, "kept", before, after)
        done: Done = "created" if data is None else "changed"
        if not write:
            return Change(path, done, before, after)
        try:
            backup = _write(Path(path), target, data, after, mode)
        except (NoteChanged, Exists):
            continue  # somebody wrote it just now
        return Change(path, done, before, after, backup)
    raise Busy(
        f"{path} keeps changing.", hint="Quit the program that writes it, then repeat this.", path=path
    )


def _text(path: str, data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedNote(
            f"{path} is not UTF-8 (byte {error.start}).",
            hint="Save it as UTF-8, then repeat this.",
            path=path,
        ) from None


def _write(named: Path, target: Path, data: bytes | None, after: str, mode: int) -> str | None:
    new = (_BOM if data is not None and data.startswith(_BOM) else b"") + after.encode("utf-8")
    staged = files.stage(target, new, mode)
    try:
        backup = _back_up(named, target, data) if data else None
        files.put(staged, target, expect=None if data is None else files.fingerprint(data))
    except BaseException:
        # After a swap that was undone, somebody's newer text may stand there instead of ours; the old text is
        # in the backup.
        if files.bytes_at(staged) in (new, data):
            files.discard(staged)
        raise
    return backup


def _back_up(named: Path, target: Path, data: bytes) -> str:
    """Copy *data* beside the file, under a name that was free; a copy that is there is not made twice."""
    mode = stat.S_IMODE(os.stat(target).st_mode)
    for number in range(1, MOST_BACKUPS):
        place = named.with_name(f"{named.name}.{number}.bak")
        if os.path.lexists(place):
            if files.bytes_at(place) == data:
                return str(place)
            continue
        staged = files.stage(place, data, mode)
        try:
            files.put(staged, place, expect=None)
        except Exists:  # another process took the name just now
            files.discard(staged)
            continue
        except BaseException:
            files.discard(staged)
            raise
        return str(place)
    raise Exists(
        f"{named} has {MOST_BACKUPS} backups.", hint="Delete those you do not need.", path=str(named)
    )
