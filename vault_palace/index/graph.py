"""Who links to whom, as the cache knows it: backlinks that count, all referrers, orphans, links to nowhere.

Links are resolved when a note or file is put or removed, over all files of the vault and by Obsidian's rule
(`core.links`); nothing is worked out here but what SPEC §3 counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vault_palace.core.links import Resolver
from vault_palace.index.cache import Cache


@dataclass(frozen=True, slots=True)
class Graph:
    """The links of the notes in *cache*; always of its present state."""

    cache: Cache

    def backlinks(self, path: str) -> tuple[str, ...]:
        """The other memories in the layers that link to *path*: those that count, sorted."""
        return self.cache.referrers(path, counted=True)

    def incoming(self, path: str) -> tuple[str, ...]:
        """All notes of any kind that link to *path*, itself included, sorted."""
        return self.cache.referrers(path, counted=False)

    def counts(self) -> dict[str, int]:
        """The number of backlinks that count of every file that has any, in one pass."""
        return {path: len(sources) for path, sources in self.sources().items()}

    def sources(self) -> dict[str, frozenset[str]]:
        """Every file that has backlinks that count, with the paths of the memories that link to it."""
        found: dict[str, set[str]] = {}
        for target, source in self.cache.counted_links():
            found.setdefault(target, set()).add(source)
        return {target: frozenset(sources) for target, sources in found.items()}

    def unresolved(self) -> tuple[tuple[str, str], ...]:
        """Links of memories and of the index note that lead to no file: path of the note, link path."""
        return self.cache.unresolved()

    def orphans(self) -> tuple[str, ...]:
        """Memories in the layers that no other memory links to and that link to no other file."""
        return self.cache.orphans()

    def referrers_by_key(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Notes of any kind with a link whose `link_key` is one of *keys*.

        Only their links can change their meaning when files of these names come, go or move.
        """
        return self.cache.holders(keys)

    def resolver(self) -> Resolver:
        """Obsidian's resolution over all files that are known now; dear for a large vault."""
        return Resolver(self.cache.paths())
