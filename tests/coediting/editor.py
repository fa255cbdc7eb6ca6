"""A plain editor: reads a file once, and much later puts its own text over whatever is there by then.

It saves by a rename (as vim and many others do) and checks nothing. `move` and `delete` stand for a file
manager and a shell.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.coediting.ledger import Ledger, words
from tests.coediting.stage import Clock


class PlainEditor:
    """One editor with one file in it at most."""

    def __init__(self, root: Path, clock: Clock, ledger: Ledger) -> None:
        self.root = root
        self.clock = clock
        self.ledger = ledger
        self.path = ""
        self.buffer = ""
        self.loaded = ""
        self._taken_out: set[str] = set()

    @property
    def dirty(self) -> bool:
        return self.buffer != self.loaded

    def open(self, path: str) -> None:
        """Load the file; what was not saved of another is let go, as with `:e!`, unless saved before."""
        self.path = path
        self.buffer = self.loaded = (self.root / path).read_bytes().decode("utf-8")
        self._taken_out = set()

    def edit(self, change: Callable[[str], str]) -> None:
        before = self.buffer
        self.buffer = change(before)
        out = words(before) - words(self.buffer)
        self._taken_out |= out
        self.ledger.unsaved |= out - words(self.loaded)

    def save(self) -> None:
        """Write the buffer beside the file and rename it over; a file that is gone is made anew."""
        if not self.dirty:
            return
        target = self.root / self.path
        try:
            before = target.read_bytes().decode("utf-8")
        except FileNotFoundError:
            before = ""
            self.ledger.person_made_anew(self.path, self.buffer)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name("4913")
        beside.write_bytes(self.buffer.encode("utf-8"))
        self.clock.stamp(beside)
        os.replace(beside, target)
        self.ledger.person_wrote(before, self.buffer, self.clock.at, self._taken_out)
        self.ledger.tell(self.clock.at, f"editor saved {self.path}")
        self.loaded = self.buffer

    def move(self, path: str, to: str) -> None:
        """`mv`: nobody rewrites a link."""
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.root / path, self.root / to)
        self.ledger.person_moved(path, self.clock.at)
        if self.path == path:
            self.path = to

    def delete(self, path: str) -> None:
        text = (self.root / path).read_bytes().decode("utf-8")
        os.unlink(self.root / path)
        self.ledger.person_deleted(text, path, self.clock.at)
