"""The write lock: one writer a vault at a time, over threads, processes and machines.

The marker `.palace/lock` is filelock's `SoftFileLock`: created exclusively, owner and host inside. A dead
owner's marker is taken over, a live one's or another host's never. A kill between creating and filling the
marker leaves it empty; after ten seconds such a marker is removed under a kernel lock. Every attempt of ours
to create the marker is made under that kernel lock as well, so an empty one is nobody's here.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from filelock import FileLock, SoftFileLock, Timeout

from vault_palace.core.errors import LockTimeout, NotFound, StorageFailed
from vault_palace.core.model import STATE
from vault_palace.storage import files
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import prepare_state

EMPTY_AGE = 10.0  # seconds after which an empty marker is a dead one's
TIMEOUT = 30.0
_POLL = 0.02
_NAMESPACE = "?pidns-"  # filelock tells containers of one host name apart by this


@dataclass
class _Shared:
    """What the threads of this process share about one marker."""

    gate: threading.RLock = field(default_factory=threading.RLock)
    depth: int = 0
    marker: SoftFileLock | None = None


_shared: dict[str, _Shared] = {}
_registry = threading.Lock()


def _after_fork() -> None:
    """A child starts without its parent's locks: filelock voids them, and so must we."""
    global _registry
    _registry = threading.Lock()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock, as its marker says; pid 0 when it does not say."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}" if self.pid else "a process that left no name"


@dataclass(frozen=True, slots=True)
class Held:
    """A marker as it is now: its holder, for how many seconds, and whether that process has ended."""

    holder: Holder
    seconds: float
    dead: bool


class WriteLock:
    """The vault's write lock as a context manager; re-entrant within a thread."""

    def __init__(
        self,
        vault: Vault,
        *,
        timeout: float = TIMEOUT,
        now: Callable[[], float] = time.time,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.vault = vault
        self._timeout = timeout
        self._now = now
        self._wait = wait

    @property
    def path(self) -> Path:
        return self.vault.locate(f"{STATE}/lock")

    def __enter__(self) -> WriteLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def holder(self) -> Holder | None:
        """Who holds it now, in this process or another; None when it is free."""
        try:
            text = files.read_bytes(self.path).decode("utf-8", "replace")
        except NotFound:
            return None
        except StorageFailed:
            return Holder(0, "")
        return _holder(text)

    def held(self) -> Held | None:
        """The lock as it stands, None when it is free. Nothing waits, and nothing is taken over."""
        try:
            seen = os.lstat(self.path)
            text = files.read_bytes(self.path).decode("utf-8", "replace")
        except (FileNotFoundError, NotFound):
            return None
        except (OSError, StorageFailed) as error:
            raise StorageFailed(f"The write lock cannot be read: {error}", path=str(self.path)) from error
        seconds = max(self._now() - seen.st_mtime, 0.0)
        return Held(_holder(text), seconds, _is_dead(text) if text else seconds >= EMPTY_AGE)

    def acquire(self) -> None:
        """Take the lock, or raise `LockTimeout` naming the holder when it stays taken."""
        shared = self._share()
        start = time.monotonic()
        if not shared.gate.acquire(timeout=self._timeout):
            raise self._timed_out("Another thread of this program")
        try:
            if shared.depth == 0:
                shared.marker = self._take(start)
            shared.depth += 1
        except BaseException:
            shared.gate.release()
            raise

    def release(self) -> None:
        """Give one level of the lock back."""
        shared = self._share()
        try:
            shared.depth -= 1
            if shared.depth == 0 and shared.marker is not None:
                marker, shared.marker = shared.marker, None
                marker.release()
        finally:
            shared.gate.release()

    def _share(self) -> _Shared:
        with _registry:
            return _shared.setdefault(str(self.vault.root), _Shared())

    def _take(self, start: float) -> SoftFileLock:
        folder = prepare_state(self.vault)
        marker = SoftFileLock(self.path, mode=0o600, thread_local=False)
        guard = FileLock(folder / "lock.guard", mode=0o600, thread_local=False)
        while True:
            # filelock would make the folders of a vault that went away
            if not os.path.isdir(self.vault.root):
                raise NotFound(f"There is no folder {self.vault.root}.", hint="Is a disk not mounted?")
            with files.told(self.path), self._guarded(guard, start):
                if self._try(marker) or (self._remove_if_dead() and self._try(marker)):
                    return marker
            if time.monotonic() - start >= self._timeout:
                raise self._timed_out(self._name_holder())
            self._wait(_POLL)

    @contextlib.contextmanager
    def _guarded(self, guard: FileLock, start: float) -> Iterator[None]:
        """Hold the kernel lock under which this program makes and removes markers, for a moment only."""
        left = max(self._timeout - (time.monotonic() - start), 0.0)
        try:
            guard.acquire(timeout=left, poll_interval=_POLL)
        except Timeout:
            raise self._timed_out(self._name_holder()) from None
        try:
            yield
        finally:
            guard.release()

    @staticmethod
    def _try(marker: SoftFileLock) -> bool:
        try:
            marker.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def _remove_if_dead(self) -> bool:
        """Remove the marker when it has been empty for too long; the caller holds the kernel lock."""
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return True
        if found.st_size or self._now() - found.st_mtime < EMPTY_AGE:
            return False
        files.discard(self.path)
        return True

    def _name_holder(self) -> str:
        text = str(self.holder() or "another process")
        return text[0].upper() + text[1:]

    def _timed_out(self, who: str) -> LockTimeout:
        holder = self.holder()
        return LockTimeout(
            f"{who} is writing to this vault and did not finish within {self._timeout:g} seconds.",
            hint=f"Try again. If that process is gone for certain, delete {self.path}.",
            holder_pid=holder.pid if holder else 0,
            holder_host=holder.host if holder else "",
            path=str(self.path),
        )


def _holder(text: str) -> Holder:
    lines = text.splitlines()
    if len(lines) < 2 or not (lines[0].isascii() and lines[0].isdigit()):
        return Holder(0, "")
    return Holder(int(lines[0]), lines[1].partition(_NAMESPACE)[0])


def _is_dead(text: str) -> bool:
    """Whether the process that a marker names ran on this machine and has ended.

    filelock's own judgement by which it takes a marker over, start time and boot included; it has no public
    name there, so only this function asks for it.
    """
    from filelock._identity import owner_is_stale
    from filelock._soft import parse_lock_holder

    holder = parse_lock_holder(text)
    return holder is not None and owner_is_stale(*holder)
