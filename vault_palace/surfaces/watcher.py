"""The watcher: wakes when something changed in the vault, and is its keeper while it holds the lease.

One thread in every `serve` and in `vault-palace watch`. What it hears only wakes: what changed is found by
comparing, here in the shelf and in the keeper's step. Where events do not arrive it compares by the clock.
In a vault that is read-only or has no `_System/Policy.md` it writes nothing, not even a lease.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from vault_palace.core.errors import TimedOut, VaultError
from vault_palace.core.places import JOURNALS
from vault_palace.services import quiet
from vault_palace.services.house import House
from vault_palace.services.pace import PACE, Pace
from vault_palace.storage.lease import Lease
from vault_palace.storage.mounts import remote_system
from vault_palace.storage.vault import palace_mark

if TYPE_CHECKING:
    from vault_palace.surfaces.ears import Ears

logger = logging.getLogger(__name__)

How = Literal["auto", "events", "poll", "off"]

TICK = 1.5  # how often the lease and the vault's place are looked at
PATIENCE = 2.0  # before the first look: the first answers of a session come before the keeping
POLL_LEAST, POLL_MOST, POLL_SHARE = 2.0, 60.0, 20.0
BACK_OFF_FIRST, BACK_OFF_MOST = 1.0, 30.0
SOONEST = 0.25  # what is due at once is due after this, or two clocks that disagree would spin
REST_MOST = 5.0
STOP_SECONDS = 10.0


class Step(Protocol):
    """The keeper, as far as the watcher knows it."""

    def step(
        self, paths: Collection[str] | None = None, *, stop: Callable[[], bool] = ...
    ) -> float | None: ...


@dataclass
class BackOff:
    """Longer and longer waits while something keeps failing."""

    seconds: float = 0.0

    def next(self) -> float:
        self.seconds = min(max(2 * self.seconds, BACK_OFF_FIRST), BACK_OFF_MOST)
        return self.seconds

    def reset(self) -> None:
        self.seconds = 0.0


@dataclass
class Count:
    """What the watcher did, for health and for tests that nothing happens when nothing should."""

    turns: int = 0
    steps: int = 0
    failures: int = 0


@dataclass
class Due:
    """When the next things are to be done, on the watcher's clock; infinity for never."""

    tick: float = 0.0
    full: float = 0.0  # a comparison of everything
    keeper: float = float("inf")  # what the keeper asked to be woken for
    ears: float = 0.0  # a new attempt to listen
    rest: float = 0.0  # no step for what was heard before this


@dataclass
class _Heard:
    """What was heard and not looked at yet; guarded by the watcher's condition."""

    everything: bool = False
    paths: set[str] = field(default_factory=set)


class Watch:
    """The watcher of one open house. `tell` hears once what is worth saying, and whether it is a warning.

    `heard` is called, by any thread, whenever anything in the vault may have changed.
    """

    def __init__(
        self,
        house: House,
        *,
        keep: bool = True,
        how: How = "auto",
        tell: Callable[[str, bool], None] | None = None,
        record: Callable[[float, str], None] = lambda _seconds, _code: None,
        heard: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
        keeper: Callable[[House], Step] | None = None,
    ) -> None:
        self.house = house
        self.lease = Lease(house.vault, lost=self._wake)
        self.mode: Literal["starting", "events", "polling", "away", "off"] = "starting"
        self.ready = threading.Event()  # set after the first turn: it listens or polls, and has compared once
        self.count = Count()
        self.trouble = ""
        self._how: How = how
        self._keep = keep
        self._tell = _log if tell is None else tell
        self._record = record
        self._tell_heard = heard
        self._clock = clock
        self._patience = patience
        self._make_keeper = keeper or _keeper
        self._keeper: Step | None = None
        self._said: dict[str, str] = {}
        self._heard_at = self._stepping = float("inf")  # since when something waits, or a step runs
        self._unkept: float | None = None  # since when nobody keeps a vault that somebody should
        self._wakes = threading.Condition()
        self._heard = _Heard()
        self._stopping = threading.Event()
        self._ears: Ears | None = None
        self._broken: Exception | None = None
        self._proven = False  # whether events were seen to arrive
        self._remote = ""
        self._identity: tuple[int, int] | None = None
        self._due = Due()
        self._last_full = 0.0  # seconds that the last comparison of everything took
        self._failing, self._deaf, self._gone = BackOff(), BackOff(), BackOff()
        self._thread: threading.Thread | None = None

    # -- from outside --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; what is costly happens in the watcher's own thread."""
        if self._how == "off":
            self.mode = "off"
            return
        self.house.watcher = self.facts
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End between two changes and let the lease go, so that another process takes over at once."""
        self._stopping.set()
        self._wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)
        self._end()

    @property
    def keeping(self) -> bool:
        """Whether this process is the vault's keeper now."""
        return self._keeper is not None and self.lease.held

    def facts(self) -> dict[str, object]:
        """The watcher's state for status and health: how it learns of changes, and who keeps the vault."""
        return {
            "mode": self.mode,
            "keeper": self.keeping,
            "holder": self.lease.holder(),
            "steps": self.count.steps,
            "trouble": self.trouble,
            "asked": self._how,
            "lag": round(self._lag()),
            "unkept": round(self._clock() - self._unkept) if self._unkept is not None else 0,
        }

    def _lag(self) -> float:
        """For how many seconds the keeper is behind with what it heard or had planned; 0 for one in step."""
        if self._keeper is None:
            return 0.0
        since = min(self._heard_at, self._stepping, self._due.keeper)
        return max(self._clock() - since, 0.0)

    # -- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        # While it waits for another writer it can be stopped; nothing else asks for its steps.
        PACE.set(Pace(lambda *_: None, lambda: False, self._stopping.is_set))
        try:
            self._sleep(self._patience, until_heard=False)
            while not self._stopping.is_set():
                self._sleep(self.turn())
        except Exception:
            # The outer edge of this thread: a watcher that ended must not look as if it watched.
            logger.exception("The watcher ended.")
            self.trouble = "the watcher ended; restart the program"
        finally:
            self._end()
            self.ready.set()

    def _end(self) -> None:
        self._close_ears()
        if self.mode != "off":
            self.mode = "off"
            self.house.shelf.trust(False)
        self._keeper = None
        self.lease.release()

    def _sleep(self, seconds: float, *, until_heard: bool = True) -> None:
        with self._wakes:
            if self._stopping.is_set() or (until_heard and self._something_heard()):
                return
            self._wakes.wait(max(seconds, 0.0))

    def _something_heard(self) -> bool:
        waiting = self._heard.everything or bool(self._heard.paths)
        return self._broken is not None or (waiting and self._clock() >= self._due.rest)

    def _wake(self) -> None:
        with self._wakes:
            self._wakes.notify_all()

    def _must_stop(self) -> bool:
        return self._stopping.is_set() or not self.lease.held

    def _on_heard(self, paths: Collection[str] | None) -> None:
        """Called by the ears' thread: the next search must know of it, whatever the keeper is at."""
        self.house.shelf.stir(paths)
        with self._wakes:
            if paths is None:
                self._heard.everything = True
            else:
                self._heard.paths.update(paths)
            self._proven = True
            self._heard_at = min(self._heard_at, self._clock())
            self._wakes.notify_all()
        self._tell_heard()

    def _on_broken(self, error: Exception) -> None:
        with self._wakes:
            self._broken = error
            self._wakes.notify_all()

    # -- one turn ------------------------------------------------------------------------------------------

    def turn(self) -> float:
        """Do what is due now, and say in how many seconds something is due again."""
        self.count.turns += 1
        now = self._clock()
        try:
            if now >= self._due.tick or self._broken is not None:
                self._due.tick = now + TICK
                self._look_round(now)
            if self.mode != "away":
                self._listen(now)
                self._work(now)
                if self.house.touches:  # reading never waits: its use is written when the note is quiet
                    quiet.flush_touches(self.house)
            if self._said.pop("look", None):
                self.trouble = ""
        except (VaultError, OSError) as error:  # the vault may go away at any moment
            self._failed("look", str(error))
            self._due.tick = now + self._gone.next()
        if self.mode == "away":
            return max(self._due.tick - self._clock(), 0.0)
        self.ready.set()
        soonest = [self._due.tick, self._due.full, self._due.keeper]
        if self._heard.everything or self._heard.paths:
            soonest.append(self._due.rest)
        return max(min(soonest) - self._clock(), 0.0)

    def _look_round(self, now: float) -> None:
        """See whether the vault is at its place, and who keeps it."""
        identity = self._where()
        if identity is None:
            if self.mode != "away":
                self._leave()
            self._due.tick = now + self._gone.next()
            return
        if self.mode == "away" or (self._identity is not None and identity != self._identity):
            # The old watch is of a folder that went away, whatever its name was.
            self._leave()
            self.mode = "starting"
            self._say("vault", "The vault is back.", warn=True)
            self._due.ears = self._due.full = now
        self._gone.reset()
        self._identity = identity
        self._choose_keeper(now)

    def _where(self) -> tuple[int, int] | None:
        root = self.house.vault.root
        if palace_mark(root) is None:
            return None
        try:
            seen = os.stat(root)
        except OSError:
            return None
        return seen.st_dev, seen.st_ino

    def _leave(self) -> None:
        self._close_ears()
        self.mode = "away"
        self._proven = False
        self.house.shelf.trust(False)
        self._say("vault", f"The vault is not at {self.house.vault.root}; nothing is kept.", warn=True)

    def _choose_keeper(self, now: float) -> None:
        mode = self.house.mode()
        if not self._keep or mode != "palace":
            if self._keeper is not None:
                self._keeper = None
            self.lease.release()
            self._unkept = None
            why = "it is read-only here" if mode == "read-only" else "there is no _System/Policy.md"
            if self._keep:
                self._say("keeper", f"The vault is only watched: {why}, so nothing is written.")
            return
        if not self.lease.take():
            self._keeper = None
            holder = self.lease.holder()
            self._unkept = None if holder else now if self._unkept is None else self._unkept
            self._say("keeper", f"Kept by {holder or 'another process'}; this one stands by.")
            return
        self._unkept = None
        if self._keeper is None:
            self._keeper = self._make_keeper(self.house)
            self._due.full = now
            self._say("keeper", "This process keeps the vault: properties, links, index note, ages.")

    # -- listening -----------------------------------------------------------------------------------------

    def _listen(self, now: float) -> None:
        broken, self._broken = self._broken, None
        if broken is not None:
            self._deafened(now, broken)
        if self._how == "poll":
            self._set_mode("polling", "because it was asked for", now)
        elif self._ears is None and now >= self._due.ears:
            try:
                self._begin_to_listen(now)
            except (OSError, RuntimeError) as error:
                self._deafened(now, error)
        elif self._ears is not None:
            if self.mode == "polling" and self._proven and not self._remote:
                self._set_mode("events", "", now)
            self._name_unreadable(self._ears)

    def _begin_to_listen(self, now: float) -> None:
        from vault_palace.surfaces import ears

        vault = self.house.vault
        hearing = ears.Ears(
            vault.root,
            self._on_heard,
            self._on_broken,
            # Each process of this machine that writes there changes notes as well.
            deaf_to=(f"{JOURNALS}/{self.house.machine}.jsonl",),
        )
        hearing.start()
        self._ears = hearing
        self._deaf.reset()
        self._remote = "" if self._how == "events" else remote_system(vault.root)
        if self._how == "events":
            self._proven = True
        elif not self._remote and self.house.mode() == "palace":
            self._proven = ears.events_arrive(vault)
        if self._remote:
            why = f"because {self._remote} tells nothing of what other machines write"
            self._set_mode("polling", why, now)
        elif self._proven:
            self._set_mode("events", "", now)
        else:
            self._set_mode("polling", "until an event proves that events arrive", now)
        self._name_unreadable(hearing)

    def _deafened(self, now: float, error: Exception) -> None:
        """Listening failed: go by the clock, and try again later."""
        from vault_palace.surfaces.ears import is_limit

        self._close_ears()
        self._proven = False
        rescan = self.house.policy().rescan_minutes * 60
        if is_limit(error):
            self._due.ears = now + rescan
            why = "because the system watches as many files as it may (fs.inotify.max_user_watches)"
        else:
            self._due.ears = now + self._deaf.next()
            why = f"because watching failed: {error}"
        self._set_mode("polling", why, now, warn=True)

    def _close_ears(self) -> None:
        if self._ears is not None:
            self._ears.close()
            self._ears = None

    def _set_mode(
        self, mode: Literal["events", "polling"], why: str, now: float, *, warn: bool = False
    ) -> None:
        if self.mode != mode:
            self.mode = mode
            self.house.shelf.trust(mode == "events")
            self._due.full = now  # what happened before nobody told
        how = "told of changes by the system" if mode == "events" else "comparing by the clock"
        self._say("mode", f"Mode {mode}: {how}{f', {why}' if why else ''}.", warn=warn)

    def _name_unreadable(self, hearing: Ears) -> None:
        for folder in sorted(hearing.unreadable):
            self._say(f"unreadable {folder}", f"{folder} cannot be read and is not watched.", warn=True)

    # -- keeping -------------------------------------------------------------------------------------------

    def _work(self, now: float) -> None:
        """Look at what was heard, or at everything when that is due."""
        full = now >= self._due.full
        with self._wakes:
            heard = self._heard
            if not (full or now >= self._due.keeper or now >= self._due.rest):
                return
            full = full or heard.everything
            if not (full or heard.paths or now >= self._due.keeper):
                return
            self._heard = _Heard()
            heard_at, self._heard_at = self._heard_at, float("inf")
        if full:
            self._tell_heard()
        keeper = self._keeper
        if keeper is None or not self.lease.held:
            if full:
                self.house.shelf.stir(None)
                self._due.full = now + self._interval()
            self._due.keeper = float("inf")
            return
        self._stepping = min(now, heard_at)
        try:
            self._step(keeper, None if full else heard.paths, now)
        finally:
            self._stepping = float("inf")

    def _step(self, keeper: Step, paths: Collection[str] | None, now: float) -> None:
        self.count.steps += 1
        code = ""
        seconds: float | None = None
        try:
            seconds = keeper.step(paths, stop=self._must_stop)
        except Exception as error:  # the outer edge of the keeping: whatever fails, it is tried again
            if self._stopping.is_set() and isinstance(error, TimedOut):
                return
            self.count.failures += 1
            code = error.code if isinstance(error, VaultError) else "internal"
            if not isinstance(error, VaultError):
                logger.debug("A step of the keeper failed.", exc_info=True)
            self._failed("step", f"{type(error).__name__}: {error}")
        after = self._clock()
        self._record(after - now, code)
        self._due.rest = after + min(after - now, REST_MOST)
        self._due.keeper = float("inf") if seconds is None else after + max(seconds, SOONEST)
        if code:
            self._due.full = after + self._failing.next()
            return
        if self._failing.seconds:
            self._failing.reset()
            self.trouble = ""
            self._said.pop("step", None)
        if paths is None:
            self._last_full = after - now
            self._due.full = after + self._interval()

    def _interval(self) -> float:
        """Seconds from one comparison of everything to the next."""
        rescan = self.house.policy().rescan_minutes * 60
        if self.mode == "events":
            return rescan
        return min(max(POLL_LEAST, POLL_SHARE * self._last_full), POLL_MOST, rescan)

    # -- saying --------------------------------------------------------------------------------------------

    def _failed(self, topic: str, what: str) -> None:
        self.trouble = what
        self._say(topic, f"Keeping failed, it is tried again: {what}", warn=True)

    def _say(self, topic: str, text: str, *, warn: bool = False) -> None:
        """Say it, unless it is what was said of this last."""
        if self._said.get(topic) != text:
            self._said[topic] = text
            self._tell(text, warn)


def _keeper(house: House) -> Step:
    from vault_palace.services.keeper import Keeper

    return Keeper(house)


def _log(text: str, warn: bool) -> None:
    logger.log(logging.WARNING if warn else logging.INFO, "%s", text)
