"""A person and a keeper in one vault, on a clock that the test turns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.model import Value
from vault_palace.services.keeper import Keeper

LONG = 60.0  # a keeper that asks for more than this waits for a day or a window, not for a note to be quiet


@dataclass
class Person:
    """Does what an editor, a file manager or a sync tool does, at the clock's time."""

    root: Path
    clock: Clock

    def writes(self, path: str, text: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        self.stamps(path)
        return place

    def stamps(self, path: str) -> None:
        at = int(self.clock.at.timestamp() * 1e9)
        os.utime(self.root / path, ns=(at, at))

    def reads(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def says(self, path: str) -> dict[str, Value]:
        """The properties of the note as they stand on disk."""
        return dict(frontmatter.read(self.reads(path)).values)

    def edits(self, path: str, old: str, new: str) -> None:
        text = self.reads(path)
        assert old in text
        self.writes(path, text.replace(old, new, 1))

    def moves(self, path: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).rename(self.root / to)

    def deletes(self, path: str) -> None:
        (self.root / path).unlink()


def settle(keeper: Keeper, clock: Clock, *, most: int = 200) -> int:
    """Step until nothing is due soon; how many steps it took. A vault that never comes to rest fails."""
    for number in range(1, most):
        wait = keeper.step()
        if wait is None or wait > LONG:
            return number
        clock.at += timedelta(seconds=max(wait, 0.01))
    raise AssertionError("the vault does not come to rest")


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file a person sees, with its bytes and time."""
    return {
        str(place.relative_to(root)): (place.read_bytes(), place.stat().st_mtime_ns)
        for place in sorted(root.rglob("*"))
        if place.is_file() and ".palace" not in place.parts and "journal" not in place.parts
    }
