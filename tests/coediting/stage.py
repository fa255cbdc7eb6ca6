"""The stage for people and programs at one vault: one clock for all, and a gap between any two system calls.

Nothing waits for real. Whoever sleeps turns the clock, and whatever is due until then happens first; and
before each system call of the product that changes the disk the clock moves a little, so that a save of
Obsidian may fall between any two lines of a call.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tests.storage.killpoints import CALLS
from vault_palace.services import mapping, shelf
from vault_palace.storage import files, listing

START = datetime(2031, 3, 1, 12, tzinfo=UTC).timestamp()
CALL_SECONDS = 0.0004  # what a system call takes
STALL_CHANCE, STALL_SECONDS = 0.01, 0.3  # how often the disk is slow, and how slow at most

Act = Callable[[], object]


class Due:
    """An act that waits for its time; it can be called off."""

    def __init__(self, at: float, act: Act) -> None:
        self.at = at
        self.act: Act | None = act

    def cancel(self) -> None:
        self.act = None


class Clock:
    """A clock that stands until somebody turns it, and runs what is due on the way."""

    def __init__(self, rng: Random | None = None) -> None:
        self.at = START
        self.rng = rng or Random(0)
        self.chance = Random(self.rng.random())  # for the names that the product makes up
        self.lookers: list[Act] = []  # who is to look at the disk after anybody may have changed it
        self.between: Act | None = None  # who uses the time while the product sleeps
        self._queue: list[tuple[float, int, Due]] = []
        self._count = itertools.count()
        self._people = 0  # above 0 while people act: their system calls are theirs

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    @property
    def ns(self) -> int:
        return int(self.at * 1e9)

    def after(self, seconds: float, act: Act) -> Due:
        due = Due(self.at + seconds, act)
        heapq.heappush(self._queue, (due.at, next(self._count), due))
        return due

    def turn(self, seconds: float) -> None:
        """Let *seconds* pass."""
        until = self.at + seconds
        with self.people():
            self._look()
            while self._queue and self._queue[0][0] <= until:
                at, _, due = heapq.heappop(self._queue)
                self.at = max(self.at, at)
                if due.act is not None:
                    due.act()
                    self._look()
            self.at = max(self.at, until)

    def sleep(self, seconds: float) -> None:
        """What the product calls to wait."""
        self.turn(seconds)
        if self.between is not None:
            self.between()

    def stamp(self, place: Path | int) -> None:
        """Give a file the clock's time; no two files written get the same one."""
        self.at += 0.001
        os.utime(place, ns=(self.ns, self.ns))

    def _look(self) -> None:
        for look in self.lookers:
            look()

    @contextlib.contextmanager
    def people(self) -> Iterator[None]:
        """While this lasts, system calls are those of people's programs."""
        self._people += 1
        try:
            yield
        finally:
            self._people -= 1

    def _tick(self) -> None:
        slow = self.rng.random() < STALL_CHANCE
        self.turn(self.rng.random() * STALL_SECONDS if slow else CALL_SECONDS)

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **more: Any) -> Any:
            if not self._people:
                self._tick()
            result = call(*args, **more)
            if not self._people and name == "write":  # a note that the product writes is as old as the clock
                with self.people():
                    self.stamp(args[0])
            return result

        return wrapped

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While this lasts, the product's system calls take time by this clock and by no other."""
        with pytest.MonkeyPatch.context() as patch:
            for name in (*CALLS, "read"):
                if name != "open":
                    patch.setattr(os, name, self._wrapped(name, getattr(os, name)))
            patch.setattr(files, "_renameat2", self._wrapped("renameat2", files._renameat2))
            timer = SimpleNamespace(
                monotonic=lambda: self.at, perf_counter=lambda: self.at, time=time.time, time_ns=lambda: 0
            )
            for module in (shelf, mapping, listing):
                if hasattr(module, "time"):
                    patch.setattr(module, "time", timer)
            patch.setattr(secrets, "token_hex", lambda count=16: self.chance.randbytes(count).hex())
            yield
