"""The keeper: sees what people did in the vault and keeps properties, links, index note and ages in step.

Events only wake it. What it finds is told by state: the notes on disk, the journals' facts and the cache; so
lost, doubled or reordered events, its own writes and times when nobody kept the vault cost nothing (SPEC §7).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from vault_palace.services.house import House


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Keeper:
    """What one process does for the vault while it holds the lease; `step` is called by one thread."""

    def __init__(self, house: House) -> None:
        self.house = house

    def step(
        self, paths: Collection[str] | None = None, *, stop: Callable[[], bool] = never
    ) -> float | None:
        """Look at *paths* (None: at everything), do what is due, and say in how many seconds more is."""
        self.house.shelf.refresh(if_older=0)
        return None
