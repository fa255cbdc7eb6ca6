"""Tells the machine's other processes what this server does: its counts, its watcher, its cache.

A thread that looks every few seconds and writes only what differs, to the state folder and never to the
vault. It is no part of any call, and its trouble is nobody's.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from vault_palace import __version__
from vault_palace.services.running import Board
from vault_palace.surfaces.mcp.metrics import Metrics

if TYPE_CHECKING:
    from vault_palace.services.house import House

logger = logging.getLogger(__name__)

SECONDS = 5.0  # between two looks
# Of the watcher's facts, what changes although nothing happens.
_RESTLESS = frozenset({"steps", "lag"})


class Publisher:
    """One server's notices. `start` begins, `stop` says the last and takes it all away."""

    def __init__(
        self, house: House, metrics: Metrics, *, transport: str, read_only: bool, seconds: float = SECONDS
    ) -> None:
        self._house = house
        self._metrics = metrics
        self._seconds = seconds
        self._board = Board(house)
        self._who = {
            "version": __version__,
            "transport": transport,
            "read_only": read_only,
            "started": house.now().isoformat(timespec="seconds"),
        }
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="publish-status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(self._seconds)
        self._board.end()

    def publish(self) -> bool:
        """Say how things stand now; whether anything had to be written."""
        watcher = self._house.watcher
        watch = watcher() if watcher is not None else {"mode": "off"}
        lag = watch.get("lag")
        still = isinstance(lag, int) and lag < 2 * SECONDS
        facts = {
            **self._who,
            "agents": self._metrics.agents(),
            "calls": self._metrics.snapshot(),
            "index": self._house.shelf.state(),
            "watch": {key: value for key, value in watch.items() if key not in _RESTLESS or not still},
        }
        return self._board.put(facts, self._house.now().isoformat(timespec="seconds"))

    def _run(self) -> None:
        while True:
            try:
                self.publish()
            except Exception:
                # The outer edge of this thread: whatever it is, agents and notes do not depend on it.
                logger.debug("The state of this server could not be told.", exc_info=True)
            if self._stopping.wait(self._seconds):
                return
