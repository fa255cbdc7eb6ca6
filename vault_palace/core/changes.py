"""What differs between the files we know and the files that are there, told by their marks alone.

A mark is cheap: no file is opened to make one. Equal marks mean *probably unchanged*, different ones *look
again*; the fingerprint of the bytes, not the mark, says whether a note really changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class _Stat(Protocol):
    """The fields of `os.stat_result` that a mark is made of."""

    @property
    def st_size(self) -> int: ...
    @property
    def st_mtime_ns(self) -> int: ...
    @property
    def st_ctime_ns(self) -> int: ...
    @property
    def st_ino(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Mark:
    """What the file system says of one version of a file.

    `changed_ns` is the inode's change time, which no program can set: it tells an edit whose size and mtime
    were put back afterwards (copies by sync tools, restored backups). It is 0 where it is not known, and a
    constant on Windows, where only a full check finds such an edit.
    """

    size: int
    mtime_ns: int
    inode: int
    changed_ns: int = 0

    @classmethod
    def of(cls, stat: _Stat) -> Mark:
        """The mark of a file from its `os.stat_result`."""
        return cls(stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Changes:
    """Paths by what happened to them, each tuple sorted."""

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.added or self.modified or self.removed)


def compare(known: Mapping[str, Mark], found: Mapping[str, Mark]) -> Changes:
    """Sort every path of *known* and *found* into added, modified, removed and unchanged."""
    added, modified = [], []
    for path, mark in found.items():
        before = known.get(path)
        if before is None:
            added.append(path)
        elif before != mark:
            modified.append(path)
    removed = [path for path in known if path not in found]
    unchanged = len(found) - len(added) - len(modified)
    return Changes(tuple(sorted(added)), tuple(sorted(modified)), tuple(sorted(removed)), unchanged)


def believable(changes: Changes, known_count: int) -> bool:
    """Whether *changes* can be what people did: not when all that was known is gone and nothing is left.

    An empty folder where notes used to be is a missing disk or a sync tool at work, not a mass deletion
    (SPEC §6.5). A single missing file is another matter: the caller believes it when seen gone twice.
    """
    nothing_left = not (changes.added or changes.modified or changes.unchanged)
    return not (known_count and nothing_left)
