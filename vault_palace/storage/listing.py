"""The names in a vault, kept by the folders' times: a folder that did not change is not read again.

Thousands of names are known anew within a millisecond, because a folder's time changes when a name in it
comes or goes. It does not when a file is edited in place: for that there is `Vault.survey`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from vault_palace.core import places
from vault_palace.storage.vault import Vault

# A name that comes within the tick of the file system's clock in which its folder was read leaves the
# folder's time as it was. A folder is trusted once its last change is older than this.
_SETTLED_NS = 100_000_000


@dataclass(slots=True)
class _Folder:
    changed_ns: int
    trusted: bool
    files: frozenset[str] = field(default=frozenset())
    folders: tuple[str, ...] = ()


class Listing:
    """All file names of one vault. `renew` may be called from any thread."""

    def __init__(self, vault: Vault) -> None:
        self._root = str(vault.root)  # as text: joining thousands of paths is most of the work
        self._guard = threading.Lock()
        self._known: dict[str, _Folder] = {}

    def renew(self) -> tuple[set[str], set[str]]:
        """The paths that came and that went since the last call; the first call tells of all.

        What lies in a folder that cannot be read now is not gone. Links are not followed.
        """
        with self._guard:
            came: set[str] = set()
            went: set[str] = set()
            seen: dict[str, _Folder] = {}
            waiting = [""]
            while waiting:
                path = waiting.pop()
                known = self._known.get(path)
                found = self._look(path, known)
                if found is None:
                    continue
                seen[path] = found
                if found is not known:
                    before = known.files if known is not None else frozenset()
                    came |= found.files - before
                    went |= before - found.files
                waiting.extend(found.folders)
            for path, known in self._known.items():
                if path not in seen:
                    went |= known.files
            self._known = seen
            return came - went, went - came

    def paths(self) -> Iterator[str]:
        """All names as the last `renew` found them."""
        with self._guard:
            known = list(self._known.values())
        for folder in known:
            yield from folder.files

    def _look(self, path: str, known: _Folder | None) -> _Folder | None:
        """The folder as it is; *known* itself when it did not change; None when it is gone."""
        place = f"{self._root}/{path}" if path else self._root
        try:
            changed_ns = os.stat(place, follow_symlinks=False).st_mtime_ns
            if known is not None and known.trusted and known.changed_ns == changed_ns:
                return known
            trusted = time.time_ns() - changed_ns > _SETTLED_NS
            with os.scandir(place) as entries:
                files, folders = set(), []
                for entry in entries:
                    below = f"{path}/{entry.name}" if path else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if not places.is_ignored_folder(entry.name):
                            folders.append(below)
                    elif entry.is_file(follow_symlinks=False) and not places.is_passing(entry.name):
                        files.add(below)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            return known if known is not None else _Folder(0, False)
        return _Folder(changed_ns, trusted, frozenset(files), tuple(folders))
