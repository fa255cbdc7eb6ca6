"""Hearing of changes in a vault's folders: watchfiles in its own thread, told on as vault-relative paths.

What is heard is never believed, it only wakes. On Linux each folder is watched by itself: a recursive watch
there follows links out of the vault, hears nothing at all when one folder cannot be read, and spends the
system's watches on `.git`. The only module that knows watchfiles' inner class, because its public generator
says neither when the watch is in place nor lets one watch take over from another.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from watchfiles._rust_notify import RustNotify

from vault_palace.core import places
from vault_palace.storage import files
from vault_palace.storage.mounts import Folders, find_folders
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import prepare_state

logger = logging.getLogger(__name__)

SETTINGS = ".obsidian"
MANY = 2_000  # paths in one batch beyond which everything is looked at
STEP_MS = 100  # watchfiles looks this often whether something came; idle, this is all it costs
DEBOUNCE_MS = 300  # a burst is told of after this at the latest
PROBE_SECONDS = 2.0
LISTED = sys.platform == "linux"
_ADDED, _MODIFIED, _DELETED = 1, 2, 3
_TRIES = 5
_LIMITS = frozenset({errno.ENOSPC, errno.EMFILE, errno.ENFILE})
_LIMIT_WORDS = re.compile(r"limit|no space left|too many open files", re.IGNORECASE)
_WORKSPACE = re.compile(r"\.obsidian/workspace[^/]*\.json")

Changes = Iterable[tuple[int, str]]


def matters(path: str) -> bool:
    """Whether a change at this vault-relative path may mean anything: notes, folders, what Obsidian shows.

    Not what editors, sync tools and we ourselves lay down for a moment, and nothing in other dot-folders.
    """
    if _WORKSPACE.fullmatch(path):
        return True
    return not places.is_ignored(path) and not places.is_ignored_folder(path.rpartition("/")[2])


def is_limit(error: BaseException) -> bool:
    """Whether the system refused because it watches as much as it may."""
    if isinstance(error, OSError) and error.errno in _LIMITS:
        return True
    return _LIMIT_WORDS.search(str(error)) is not None


def events_arrive(vault: Vault, *, seconds: float = PROBE_SECONDS) -> bool:
    """Whether the system tells of a file that is written to `.palace` now. Nothing of it stays."""
    folder = prepare_state(vault)
    probe = folder / "probe"
    try:
        watch = RustNotify([str(folder)], False, False, 0, False, True)
    except (OSError, RuntimeError):
        return False
    try:
        files.write_state(probe, b"does the watcher hear of this?\n")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            got = watch.watch(50, 5, max(int(left * 1000), 1), None)
            if not isinstance(got, str) and any(os.path.basename(path) == "probe" for _, path in got):
                return True
        return False
    finally:
        watch.close()
        files.discard(probe)


class Ears:
    """One vault's watch. `heard` gets the changed paths (None: too many), `broke` what ended the listening.

    Both are called by the listening thread. A folder's path stands for all below it.
    """

    def __init__(
        self,
        root: Path,
        heard: Callable[[Collection[str] | None], None],
        broke: Callable[[Exception], None],
        *,
        deaf_to: Collection[str] = (),
    ) -> None:
        self._root = str(root)
        self._heard = heard
        self._broke = broke
        self._deaf_to = frozenset(deaf_to)
        self._stop = threading.Event()
        self._watch: RustNotify | None = None
        self._folders: frozenset[str] = frozenset()
        self.unreadable: frozenset[str] = frozenset()
        self._thread = threading.Thread(target=self._listen, name="vault-ears", daemon=True)

    def start(self) -> None:
        """Begin to listen; on return, the watch is in place. Raises what the system says against it."""
        self._place()
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def _place(self) -> None:
        """Put a watch on the folders that there are now."""
        for last in (False,) * (_TRIES - 1) + (True,):
            found = self._find()
            paths = [os.path.join(self._root, folder) if folder else self._root for folder in found.readable]
            try:
                watch = RustNotify(paths if LISTED else [self._root], False, False, 0, not LISTED, True)
            except FileNotFoundError:
                if last or not os.path.isdir(self._root):
                    raise
                continue
            # A folder that came while the watch was put in place would go unheard.
            if last or self._find() == found:
                break
            watch.close()
        self._watch = watch
        self._folders, self.unreadable = frozenset(found.readable), found.unreadable

    def _find(self) -> Folders:
        return find_folders(Path(self._root), also=(SETTINGS,))

    def _listen(self) -> None:
        try:
            while True:
                assert self._watch is not None
                got = self._watch.watch(DEBOUNCE_MS, STEP_MS, 0, self._stop)
                if got == "stop":
                    return
                if not isinstance(got, str):
                    self._take(got)
        except Exception as error:
            if not self._stop.is_set():
                logger.debug("The watch ended.", exc_info=True)
                self._broke(error)
        finally:
            if self._watch is not None:
                self._watch.close()

    def _take(self, changes: Changes) -> None:
        told, news = self._sort(changes)
        while news:
            known, old = self._folders, self._watch
            assert old is not None
            self._place()  # before the old one goes, so that nothing happens unheard
            told |= {folder for folder in self._folders - known if matters(folder)}
            left = old.watch(1, 1, 1, None)
            old.close()
            more, news = self._sort(() if isinstance(left, str) else left)
            told |= more
        if told:
            self._heard(None if "" in told or len(told) > MANY else told)

    def _sort(self, changes: Changes) -> tuple[set[str], bool]:
        """The paths that matter, and whether folders came or went so that others must be watched."""
        told: set[str] = set()
        news = False
        for change, place in changes:
            if place == self._root:
                told.add("")
                continue
            path = place[len(self._root) + 1 :].replace(os.sep, "/")
            news = news or (LISTED and self._is_news(change, path))
            if path not in self._deaf_to and matters(path):
                told.add(path)
        return told, news

    def _is_news(self, change: int, path: str) -> bool:
        if path in self.unreadable:
            return True
        if path in self._folders:
            return change != _MODIFIED
        if change != _ADDED or not (matters(path) or path == SETTINGS):
            return False
        place = os.path.join(self._root, path)
        return os.path.isdir(place) and not os.path.islink(place)
