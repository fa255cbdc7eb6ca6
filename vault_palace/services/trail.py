"""Where each note is and was, by its id: what moved, was copied, deleted or came, whatever events told.

Pure bookkeeping over what the cache and the journals say; nothing here touches a file. A note is followed by
its `id`, one that has none yet by its inode or its very bytes (SPEC §6, §7).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from vault_palace.core import places
from vault_palace.core.changes import Mark
from vault_palace.index.cache import IndexedNote
from vault_palace.storage.records import LastWrite

GONE_FOR = timedelta(seconds=3)  # a file may be taken away and put elsewhere in two steps
NOTES = ("memory", "archived")


@dataclass(frozen=True, slots=True)
class Known:
    """One note as it was judged last."""

    mark: Mark
    id: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A note that is not at its place any more."""

    known: Known
    at: datetime


@dataclass(slots=True)
class Found:
    """What a look found: by path, what a person did with the file as a whole."""

    renamed: dict[str, str] = field(default_factory=dict)  # new path -> old path
    twins: dict[str, str] = field(default_factory=dict)  # path -> path of the note with the same id
    came: set[str] = field(default_factory=set)  # notes nobody knew


class Trail:
    """The notes of a vault as they were judged last. Used by one thread."""

    def __init__(self) -> None:
        self.known: dict[str, Known] = {}
        self.gone: dict[str, Gone] = {}
        self.homes: dict[str, str] = {}

    def differences(
        self, marks: Mapping[str, Mark], among: Iterable[str] | None
    ) -> tuple[list[str], list[str]]:
        """The notes whose mark is another than when they were judged, and those that are gone, sorted.

        *among* (None: all) are files, and folders that stand for what lies or lay below them.
        """
        if among is None:
            asked = {*marks, *self.known}
        else:
            asked = set(among)
            folders = tuple(f"{path}/" for path in asked if path not in marks and path not in self.known)
            if folders:
                asked.update(path for path in [*marks, *self.known] if path.startswith(folders))
        changed, vanished = [], []
        for path in sorted(asked):
            mark = marks.get(path)
            if mark is None:
                if path in self.known:
                    vanished.append(path)
            elif self._mark(path) != mark and places.is_note(path.rpartition("/")[2]):
                changed.append(path)
        return changed, vanished

    def _mark(self, path: str) -> Mark | None:
        known = self.known.get(path)
        return None if known is None else known.mark

    def take(
        self,
        rows: Mapping[str, IndexedNote],
        vanished: Iterable[str],
        last_write: Callable[[str], LastWrite | None],
        id_at: Callable[[str], str],
        now: datetime,
    ) -> Found:
        """Judge *rows* and *vanished*, and say what moved, what is there twice, and what is new.

        *last_write* is what the journals say of an id, *id_at* the id of the note at a path, empty for none.
        """
        for path in vanished:
            self.gone[path] = Gone(self.known.pop(path), now)
        found = Found()
        nameless = self._nameless()
        for path, row in sorted(rows.items(), key=lambda pair: (not self._is_carried(pair[1]), pair[0])):
            before = self.known.get(path)
            self.known[path] = Known(row.mark, row.id, row.fingerprint)
            if row.kind not in NOTES:
                continue
            if not row.id:
                if before is None:
                    self._came_nameless(path, row, nameless, found)
                continue
            last = last_write(row.id)
            home = last.path if last is not None and last.path else self.homes.get(row.id, "")
            if home and home != path:
                other = self.homes.get(row.id, "")  # where another file with this id was just found
                for one in (home, other):
                    if one and one != path and id_at(one) == row.id:
                        found.twins[path] = one
                        break
                if path in found.twins:
                    continue
                found.renamed[path] = home
            elif not home:
                found.came.add(path)
            self.homes[row.id] = path
            self.gone.pop(home, None)
        for old in found.renamed.values():
            self.gone.pop(old, None)
        return found

    def _is_carried(self, row: IndexedNote) -> bool:
        """Whether the file itself was taken here from where its note was: then no other file is that note."""
        home = self.gone.get(self.homes.get(row.id, ""))
        return home is not None and home.known.mark.inode == row.mark.inode

    def _nameless(self) -> dict[int | str, list[str]]:
        """The notes without an id that are gone, by inode and by fingerprint."""
        places: dict[int | str, list[str]] = defaultdict(list)
        for path, gone in self.gone.items():
            if not gone.known.id and gone.known.fingerprint:
                places[gone.known.mark.inode].append(path)
                places[gone.known.fingerprint].append(path)
        return places

    def _came_nameless(
        self, path: str, row: IndexedNote, nameless: Mapping[int | str, list[str]], found: Found
    ) -> None:
        for sign in (row.mark.inode, row.fingerprint):
            candidates = [old for old in nameless.get(sign, ()) if old in self.gone]
            if len(candidates) == 1:  # of two alike nobody can tell which one it was
                found.renamed[path] = candidates[0]
                del self.gone[candidates[0]]
                return
        found.came.add(path)

    def deleted(self, now: datetime) -> list[tuple[str, Known]]:
        """The notes that have been gone for long enough to be believed, each told once."""
        over = [(path, gone.known) for path, gone in self.gone.items() if now - gone.at >= GONE_FOR]
        for path, known in over:
            del self.gone[path]
            if self.homes.get(known.id) == path:
                del self.homes[known.id]
        return sorted(over, key=lambda pair: pair[0])
