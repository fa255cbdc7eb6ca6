"""`vault-palace watch`: the watcher in the foreground, and one round of it for scripts and timers."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from vault_palace.core.errors import Busy
from vault_palace.surfaces.cli.render import WARN
from vault_palace.surfaces.cli.screen import Says, Screen, put
from vault_palace.surfaces.config import Settings
from vault_palace.surfaces.mcp.metrics import KEEPER, Metrics
from vault_palace.surfaces.mcp.publishing import Publisher
from vault_palace.surfaces.watcher import How, Watch

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

ONCE_SECONDS = 30.0  # what falls due within this is waited for
TAKE_SECONDS = 10.0  # a lease whose owner was killed elsewhere is free by then
LONGEST_WAIT = 3600.0  # Windows delivers signals between two waits only


def watch(palace: Palace, settings: Settings, screen: Screen, *, poll: bool) -> None:
    """Watch until SIGINT or SIGTERM, saying what happens one line each."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    how: How = "poll" if poll else "auto" if settings.watch == "off" else settings.watch
    say = _sayer(screen)
    metrics = Metrics(())
    watcher = Watch(palace.house, how=how, tell=say, patience=0.0, record=partial(metrics.record, KEEPER))
    publisher = Publisher(palace.house, metrics, transport="watch", read_only=palace.house.read_only())
    with _until_told() as told:
        say(f"Watching {palace.house.vault.root}; Ctrl-C ends it.", False)
        watcher.start()
        publisher.start()
        try:
            while not told.wait(1.0 if sys.platform == "win32" else LONGEST_WAIT):
                pass
        finally:
            publisher.stop()
            watcher.stop()
    say("Ended.", False)


def watch_once(palace: Palace, screen: Screen, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Look at everything once, wait for what falls due soon, and end.

    Refused with `busy` when another process is the keeper: it does the same all the time.
    """
    from vault_palace.services.keeper import Keeper
    from vault_palace.storage.lease import HEARTBEAT, Lease

    house, say = palace.house, _sayer(screen)
    if house.mode() != "palace":
        house.refresh(if_older=0)
        why = "it is read-only here" if house.read_only() else "there is no _System/Policy.md"
        say(f"The vault was only looked at: {why}, so nothing is written.", False)
        return
    lease = Lease(house.vault)
    end = time.monotonic() + TAKE_SECONDS
    while not lease.take():
        if time.monotonic() >= end:
            raise Busy(
                f"The vault is kept by {lease.holder() or 'another process'}.", hint="It does this too."
            )
        sleep(HEARTBEAT)
    try:
        keeper = Keeper(house)
        end, steps = time.monotonic() + ONCE_SECONDS, 1
        seconds = keeper.step(None, stop=lambda: not lease.held)
        while seconds is not None and time.monotonic() + seconds <= end and lease.held:
            sleep(max(seconds, 0.25))
            seconds = keeper.step((), stop=lambda: not lease.held)
            steps += 1
    finally:
        lease.release()
    left = "" if seconds is None else f"; the next is due in {span(seconds)}"
    say(f"Kept: everything was compared, in {steps} step{'s' if steps != 1 else ''}{left}.", False)


def span(seconds: float) -> str:
    """About how long, in the unit that a person would say it in."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _sayer(screen: Screen) -> Callable[[str, bool], None]:
    """Says each thing on a line: as JSON, on a terminal in colour, else plain. Any thread may call it."""
    guard = threading.Lock()

    def say(text: str, warn: bool) -> None:
        with guard:
            if screen.as_json:
                document = {"level": "warning" if warn else "info", "message": text}
                put(sys.stdout, json.dumps(document))
            else:
                screen.show(None, [Says(text, WARN if warn else "")])
            sys.stdout.flush()

    return say


@contextmanager
def _until_told() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second signal does what signals do."""
    told = threading.Event()

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        told.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
