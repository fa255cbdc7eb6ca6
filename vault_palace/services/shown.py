"""The versions of notes that this process showed to somebody: what a later change of them was made from."""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict

from vault_palace.services.values import Note


class Shown:
    """The versions that this process showed, by id (or path) and rev; bounded, and forgotten with it.

    A person's save that an agent read stands in no journal, so nothing else may have it. Any thread may ask.
    """

    MOST_BYTES = 8_000_000

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._bytes = 0
        self._guard = threading.Lock()

    def keep(self, note: Note, rev: str) -> None:
        """Remember *note* as it is."""
        key, data = (note.id or note.path, rev), zlib.compress(note.stored.data, 1)
        with self._guard:
            self._bytes += len(data) - len(self._held.pop(key, b""))
            self._held[key] = data
            while self._bytes > self.MOST_BYTES:
                self._bytes -= len(self._held.popitem(last=False)[1])

    def get(self, note: Note, rev: str) -> bytes | None:
        """The bytes of *note* when it had that rev."""
        with self._guard:
            data = self._held.get((note.id or note.path, rev))
        return None if data is None else zlib.decompress(data)

    def clear(self) -> None:
        """Forget everything, as `forget` promises it."""
        with self._guard:
            self._held.clear()
            self._bytes = 0
