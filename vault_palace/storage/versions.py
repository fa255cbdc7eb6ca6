"""Every version that the program replaced or moved, compressed and named by its fingerprint.

They lie in `.palace/versions/`, readable by their owner alone, so that `undo` and recovery can bring any of
them back. Age and size bound them; nothing else forgets them but `forget`.
"""

from __future__ import annotations

import contextlib
import os
import stat
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from vault_palace.core.errors import NotFound, StorageFailed
from vault_palace.core.model import STATE
from vault_palace.storage import files
from vault_palace.storage.vault import Vault

_FOLDER_MODE = 0o700
_MEGABYTE = 1024 * 1024
_DAY = 86400


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many versions went, and how many bytes they took on the disk."""

    count: int
    size: int


def prepare_state(vault: Vault) -> Path:
    """The folder of this machine's state, made with owner-only rights and kept out of git."""
    folder = vault.locate(STATE)
    if not os.path.isdir(vault.root):
        raise NotFound(f"There is no folder {vault.root}.", hint="Is a disk not mounted?")
    files.make_folders(folder, _FOLDER_MODE, durable=False)
    ignore = folder / ".gitignore"
    if not os.path.lexists(ignore):
        files.write_state(ignore, b"*\n")
    return folder


class Versions:
    """The kept versions of one vault's files."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    def _place(self, fingerprint: str) -> Path:
        return self.vault.locate(f"{STATE}/versions/{fingerprint[:2]}/{fingerprint}.z")

    def keep(self, data: bytes, *, durable: bool = False) -> str:
        """Keep these bytes and return their fingerprint; keeping them twice costs nothing.

        With `durable` they are on the disk before anything that is synced later, such as the journal's line
        that counts on them: recovery may need them after a power failure.
        """
        fingerprint = files.fingerprint(data)
        place = self._place(fingerprint)
        with files.told(place):
            try:
                if os.lstat(place).st_size:
                    files.freshen(place)  # its age counts from the last time it was needed
                    return fingerprint
            except FileNotFoundError:
                prepare_state(self.vault)
                files.make_folders(place.parent, _FOLDER_MODE, durable=False)
        files.write_state(place, zlib.compress(data), durable=durable)
        return fingerprint

    def knows(self, fingerprint: str) -> bool:
        """Whether a version of that fingerprint is kept, without reading it."""
        return os.path.lexists(self._place(fingerprint))

    def kept_at(self, fingerprint: str) -> float | None:
        """When a version was kept or needed last, in the file's seconds; None when it is not kept."""
        try:
            return os.lstat(self._place(fingerprint)).st_mtime
        except OSError:
            return None

    def has(self, fingerprint: str) -> bool:
        """Whether these bytes can be brought back, whole."""
        try:
            self.get(fingerprint)
        except (NotFound, StorageFailed):
            return False
        return True

    def get(self, fingerprint: str) -> bytes:
        """The bytes of that fingerprint; `NotFound` when they were never kept or were pruned."""
        place = self._place(fingerprint)
        try:
            data = zlib.decompress(files.read_bytes(place))
        except NotFound:
            raise NotFound("That version is no longer kept.", fingerprint=fingerprint) from None
        except zlib.error:
            data = b""
        if files.fingerprint(data) != fingerprint:
            raise StorageFailed(
                "The kept version is damaged.", path=str(place), reason="damaged", fingerprint=fingerprint
            )
        return data

    def holding(self, *words: bytes) -> list[str]:
        """The fingerprints of the kept versions in which one of *words* stands, the newest first.

        Every version is read for it. One that is damaged is told as well: what it holds nobody can say.
        """
        found: list[tuple[float, str]] = []
        for place, seen in self._all():
            if files.is_temp(place.name):
                continue
            with contextlib.suppress(NotFound):
                data: bytes | None = None
                with contextlib.suppress(zlib.error):
                    data = zlib.decompress(files.read_bytes(place))
                if data is None or any(word in data for word in words):
                    found.append((seen.st_mtime, place.name.removesuffix(".z")))
        return [fingerprint for _, fingerprint in sorted(found, reverse=True)]

    def forget(self, fingerprint: str) -> bool:
        """Erase one version; whether there was one."""
        place = self._place(fingerprint)
        there = os.path.lexists(place)
        files.discard(place)
        return there

    def prune(self, days: int, mb: int, now: float, *, spare: Collection[str] = ()) -> Pruned:
        """Drop versions not needed for *days*, then the oldest until *mb* megabytes are left.

        *now* is a time as files have it. *spare* names versions that an unfinished operation needs.
        """
        kept: list[tuple[float, int, Path]] = []
        gone: list[tuple[int, Path]] = []
        for place, found in self._all():
            if place.name.removesuffix(".z") in spare:
                continue
            if files.is_temp(place.name) or found.st_mtime < now - days * _DAY:
                gone.append((found.st_size, place))
            else:
                kept.append((found.st_mtime, found.st_size, place))
        over = sum(size for _, size, _ in kept) - mb * _MEGABYTE
        for _, size, place in sorted(kept):
            if over <= 0:
                break
            over -= size
            gone.append((size, place))
        for _, place in gone:
            files.discard(place)
        return Pruned(len(gone), sum(size for size, _ in gone))

    def newest(self, most: int) -> list[str]:
        """The fingerprints of the *most* versions that were needed last, the newest first."""
        kept = [(found.st_mtime, place.name) for place, found in self._all() if not files.is_temp(place.name)]
        return [name.removesuffix(".z") for _, name in sorted(kept, reverse=True)[:most]]

    def _all(self) -> list[tuple[Path, os.stat_result]]:
        found: list[tuple[Path, os.stat_result]] = []
        root = self.vault.locate(f"{STATE}/versions")
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for folder in sorted(os.listdir(root)):
                with contextlib.suppress(NotADirectoryError):
                    for name in sorted(os.listdir(root / folder)):
                        seen = os.lstat(root / folder / name)
                        if stat.S_ISREG(seen.st_mode):
                            found.append((root / folder / name, seen))
        return found
