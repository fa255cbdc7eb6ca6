"""Which processes of this machine are alive: each holds a kernel lock that its end lets go, however it ends.

Process ids are used again and may mean nothing outside a container; a kernel's lock is held or it is not.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from filelock import FileLock, Timeout

from vault_palace.core.errors import VaultError
from vault_palace.storage import files

_ENDING = ".alive"


class Presence:
    """This process, present under the name *name* in *folder* until `end` or its death."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}{_ENDING}"
        self._lock = FileLock(self._path, mode=0o600, thread_local=False)

    def begin(self) -> None:
        """Be present; raises `VaultError` where no file can be made."""
        files.make_folders(self._path.parent, 0o700, durable=False)
        with files.told(self._path):
            self._lock.acquire(timeout=0)

    def end(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._lock.release(force=True)
        with contextlib.suppress(VaultError):
            files.discard(self._path)


def is_present(folder: Path, name: str) -> bool:
    """Whether the process of that name is alive. Of one that is not, nothing is left behind."""
    path = folder / f"{name}{_ENDING}"
    if not os.path.lexists(path):
        return False
    lock = FileLock(path, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except (Timeout, RuntimeError):  # the second: this very thread holds it
        return True
    except OSError:
        return False
    with contextlib.suppress(OSError, RuntimeError):
        lock.release(force=True)
    with contextlib.suppress(VaultError):
        files.discard(path)
    return False
