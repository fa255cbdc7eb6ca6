"""Which notes hold another number of backlinks than there are, told from few notes where few changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

from vault_palace.core import places
from vault_palace.index.cache import Cache, IndexedNote
from vault_palace.services.shelf import Shelf, link_keys

MANY = 500  # from so many names on, all links are counted


class LinkCounts:
    """The backlinks of a vault's memories as the notes hold them, beside those that count (SPEC §3)."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._held: dict[str, int] = {}  # where not none
        self._leads: dict[str, set[str]] = {}  # where the counted links of each memory lead
        self._questioned: set[str] | None = None  # the notes whose links are to be counted anew; None: all

    def hold(self, path: str, count: int) -> None:
        """The note at *path* says that it has so many backlinks, or cannot be made to say it."""
        if count:
            self._held[path] = count
        else:
            self._held.pop(path, None)

    def question(
        self, rows: Mapping[str, IndexedNote], vanished: Collection[str], came: Collection[str]
    ) -> None:
        """Count the links of these notes anew, and those of all notes that may mean one that came or went."""
        for path, row in rows.items():
            memory = row.memory if row.kind == "memory" else None
            self.hold(path, memory.backlinks if memory is not None else 0)
        for path in vanished:
            self.hold(path, 0)
        if self._questioned is None:
            return
        self._questioned |= rows.keys() | set(vanished)
        named = {key for path in (*came, *vanished) for key in link_keys(path)}
        if len(named) > MANY:
            self._questioned = None
        elif named:
            self._questioned |= set(self._shelf.ask(lambda cache: cache.holders(named)))

    def miscounted(self) -> list[str]:
        """The memories whose `backlinks` are not as many as there are now, among those in question."""
        if self._questioned is None:
            counts = self._count_all()
        elif self._questioned:
            counts = self._count_some(self._questioned)
        else:
            return []
        self._questioned = set()
        held = self._held
        return sorted(
            path
            for path, count in counts.items()
            if held.get(path, 0) != count and places.kind(path) == "memory"
        )

    def _count_all(self) -> dict[str, int]:
        counts: dict[str, int] = defaultdict(int)
        self._leads.clear()
        for target, source in self._shelf.ask(lambda cache: cache.counted_links()):
            counts[target] += 1
            self._leads.setdefault(source, set()).add(target)
        return {path: counts.get(path, 0) for path in counts.keys() | self._held.keys()}

    def _count_some(self, sources: Collection[str]) -> dict[str, int]:
        targets: set[str] = set()
        for source in sources:
            leads = set(self._shelf.ask(_targets_of(source)))
            targets |= leads | self._leads.pop(source, set())
            if leads:
                self._leads[source] = leads
        return {path: len(self._shelf.backlinks(path)) for path in targets}


def _targets_of(source: str) -> Callable[[Cache], tuple[str, ...]]:
    return lambda cache: cache.targets(source)
