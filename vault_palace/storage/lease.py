"""The keeper's lease: of all processes on a vault, one keeps it, and another takes over when it dies.

The marker `.palace/keeper` is filelock's `SoftFileLease`: its owner freshens it as long as it lives. An owner
that died on this machine is told at once; one on another machine, or one that stands still, when its marker
has been the same for `DURATION`. So two owners may overlap for a moment, and what an owner does must be
harmless then: every change it makes is still made under the write lock and compared before it is made.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from filelock import LeaseCompromise, LeaseSettingsMismatch, SoftFileLease, Timeout

from vault_palace.core.errors import VaultError
from vault_palace.core.model import STATE
from vault_palace.storage import files
from vault_palace.storage.lock import Holder
from vault_palace.storage.vault import Vault, palace_mark
from vault_palace.storage.versions import prepare_state

DURATION = 6.0  # the same for every process on a vault, or they could not tell whose time is up
HEARTBEAT = 1.5
_NAMESPACE = "?pidns-"  # filelock tells containers of one host name apart by this

_Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A keeper's marker: whose it is, for how many seconds it was not freshened, whether its time is up."""

    holder: Holder
    silent: float
    expired: bool


class Lease:
    """One process's claim to be the vault's keeper. Any thread may call any method."""

    def __init__(
        self,
        vault: Vault,
        *,
        lost: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
        duration: float = DURATION,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.vault = vault
        self._path = os.path.join(vault.root, STATE, "keeper")
        self._told = lost
        self._now = now
        self._duration = duration
        self._guard = threading.RLock()
        self._identity: _Identity | None = None  # of the marker while we own it
        # Always the same object: it remembers since when another's marker has not changed.
        self._claim = SoftFileLease(
            self._path,
            lease_duration=duration,
            heartbeat_interval=heartbeat,
            on_compromise=self._on_loss,
            thread_local=False,
            mode=0o600,
        )

    @property
    def held(self) -> bool:
        """Whether this process is the keeper at this moment; the marker itself is looked at."""
        identity = self._identity
        return identity is not None and _identity_of(self._path) == identity

    def take(self) -> bool:
        """Become the keeper if nobody else is; whether this process is it now.

        Never waits and never raises. Nothing is made where a vault used to be.
        """
        with self._guard:
            if self.held:
                return True
            self._let_go()
            if palace_mark(self.vault.root) is None:
                return False
            try:
                prepare_state(self.vault)
                self._claim.acquire(blocking=False)
            except (Timeout, LeaseSettingsMismatch, VaultError, OSError, RuntimeError):
                return False
            self._identity = _identity_of(self._path)
            if self._identity is None:  # gone again within this moment, with the vault
                self._let_go()
            return self._identity is not None

    def release(self) -> None:
        """Let another process be the keeper. Harmless when this one is not it."""
        with self._guard:
            self._let_go()

    def holder(self) -> str:
        """Who is the keeper, in words; empty when nobody is, or when its time is up."""
        claimed = self.claimed()
        return "" if claimed is None or claimed.expired else str(claimed.holder)

    def claimed(self) -> Claimed | None:
        """The marker as it is now; None when there is none, or when it cannot be read."""
        try:
            seen = os.lstat(self._path)
            text = files.read_bytes(self.vault.locate(f"{STATE}/keeper")).decode("utf-8", "replace")
        except (OSError, VaultError):
            return None
        pairs = dict(line.partition("=")[::2] for line in text.splitlines())
        pid = pairs.get("pid", "")
        whole = pid.isascii() and pid.isdigit() and len(pid) < 11
        holder = Holder(int(pid) if whole else 0, pairs.get("host", "").partition(_NAMESPACE)[0])
        silent = max(self._now() - seen.st_mtime, 0.0)
        return Claimed(holder, silent, silent > 2 * self._duration)

    def _let_go(self) -> None:
        self._identity = None
        # What is on the disk may be another's by now, or away with the disk: then there is nothing to remove.
        with contextlib.suppress(OSError, RuntimeError):
            self._claim.release(force=True)

    def _on_loss(self, _: LeaseCompromise) -> None:
        # Called by filelock's own thread, which must not wait: `take` and `release` join it under the guard.
        self._identity = None
        self._told()


def _identity_of(path: str) -> _Identity | None:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino
