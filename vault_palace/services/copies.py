"""Which files are a sync tool's conflict copies of which notes: by name, and where that may be chance, by id.

Only looks. A copy is a copy wherever its main note went since: the ageing may have moved that to another
layer, and the copy must not take its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vault_palace.core import frontmatter, places
from vault_palace.core import memory as memories
from vault_palace.core.errors import VaultError
from vault_palace.index.cache import Cache, CacheTrouble, IndexedNote

if TYPE_CHECKING:
    from vault_palace.services.house import House

_MEMORIES = ("memory", "archived")
_MANY = 500  # ids; beyond, the cache is asked which of all are shared


@dataclass(frozen=True, slots=True)
class Copy:
    """A conflict copy, and the note that it is a copy of; None when there is no such note."""

    path: str
    main: str | None


def main_of(house: House, path: str, id: str, fingerprint: str) -> str | None:
    """The note of which the file at *path* is a copy although its name may be a title; None when it is none.

    Such a copy has the id of a note whose name it would have, and other bytes: a file with the same bytes is
    one that a person made. Looked for beside it on the disk, and by id where that note was moved.
    """
    folder, _, name = path.rpartition("/")
    wanted = places.possible_originals(name)
    # Most names with a hyphen fit, and nothing is called like what stands before it.
    wanted = tuple(other for other in wanted if house.shelf.may_exist(other))
    if not wanted or not id:
        return None
    last = house.journal.last_known(id)
    if last is not None and last.path == path:
        return None  # the program itself gave the note this name, because the other was taken
    for other in wanted:
        beside = f"{folder}/{other}" if folder else other
        try:
            stored = house.vault.read(beside)
            text = stored.data.decode("utf-8")
        except (VaultError, UnicodeDecodeError):  # mostly: there is none
            continue
        if memories.identity(frontmatter.read(text)) == id:
            return beside if stored.fingerprint != fingerprint else None
    try:
        rows = house.shelf.cache.by_id(id)
    except CacheTrouble:
        return None
    return _main_among(rows, path, wanted, fingerprint)


def _main_among(
    rows: Sequence[IndexedNote], path: str, wanted: Sequence[str], fingerprint: str
) -> str | None:
    """`main_of` by *rows*, the notes with the same id: the one beside comes before those that were moved."""
    folder = path.rpartition("/")[0]
    for near in (True, False):
        for other in wanted:
            for row in rows:
                here = row.folder == folder
                fits = row.path != path and row.path.rpartition("/")[2] == other
                if fits and here == near and (here or places.kind(row.path) in _MEMORIES):
                    return row.path if row.fingerprint != fingerprint else None
    return None


def misjudged(cache: Cache, ids: Collection[str]) -> list[str]:
    """The notes with one of these ids whose kind is not what names, ids and bytes in the cache say now.

    Whether a note is a copy depends on another one, which may have come, gone or changed since.
    """
    if len(ids) > _MANY:
        ids = {*cache.shared_ids(), *(note.id for note in cache.notes("conflict"))}
    found = []
    for shared in sorted(filter(None, ids)):
        rows = cache.by_id(shared)
        for row in rows:
            wanted = places.possible_originals(row.path.rpartition("/")[2])
            if wanted and places.kind(row.path) in _MEMORIES:
                main = _main_among(rows, row.path, wanted, row.fingerprint)
                if (main is not None) != (row.kind == "conflict"):
                    found.append(row.path)
    return found


def copies(house: House) -> tuple[Copy, ...]:
    """All conflict copies that the cache knows, by path, each with its main note where that is found."""
    shelf = house.shelf
    rows = {row.path: row for row in shelf.ask(lambda cache: cache.notes("conflict"))}
    names = set(shelf.ask(lambda cache: cache.copies_by_name()))
    return tuple(Copy(path, _main(house, path, rows.get(path))) for path in sorted({*rows, *names}))


def _main(house: House, path: str, row: IndexedNote | None) -> str | None:
    """The main note: of the original's name in the same folder, else the one that has the id."""
    folder, _, name = path.rpartition("/")
    seen = {path}
    wanted = list(places.original_names(name))
    while wanted:
        other = wanted.pop(0)
        beside = f"{folder}/{other}" if folder else other
        if beside in seen:
            continue
        seen.add(beside)
        note = house.shelf.ask(lambda cache, beside=beside: cache.get(beside))  # type: ignore[misc]
        if note is None or (row is not None and row.id and note.id and note.id != row.id):
            continue
        if note.kind != "conflict":
            return str(note.path)
        wanted[:0] = places.original_names(other)  # a copy of a copy
    if row is None or not row.id:
        return None
    others = [
        note.path
        for note in house.shelf.ask(lambda cache: cache.by_id(row.id))
        if note.kind in _MEMORIES and note.path != path
    ]
    return others[0] if len(others) == 1 else None
