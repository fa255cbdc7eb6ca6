"""A watcher under test: a keeper that records its steps, and a vault as a person has it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path

from vault_palace.services.house import House, PalaceSettings
from vault_palace.surfaces.watcher import Watch

PATIENCE = 60.0  # seconds until a test gives up; never how long it takes

Paths = frozenset[str] | None  # of a step; None: everything


class Recorder:
    """A keeper that only brings the cache in step. `answers` are what its next steps return."""

    def __init__(self) -> None:
        self.steps: list[Paths] = []
        self.answers: list[float | Exception | None] = []
        self.changed = threading.Condition()
        self.house: House | None = None

    def __call__(self, house: House) -> Recorder:
        self.house = house
        return self

    def step(
        self, paths: Collection[str] | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> float | None:
        assert self.house is not None
        self.house.refresh(if_older=0 if paths is None else 2.0)
        with self.changed:
            self.steps.append(None if paths is None else frozenset(paths))
            self.changed.notify_all()
            answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def until(self, true: Callable[[], bool], what: str = "") -> None:
        """Wait until *true* after some step; it is asked again after a moment as well."""
        end = time.monotonic() + PATIENCE
        with self.changed:
            while not true():
                left = end - time.monotonic()
                assert left > 0, f"{what or 'it'} never came; the steps were {self.steps[-20:]}"
                self.changed.wait(min(left, 0.1))

    def told_of(self, path: str) -> bool:
        """Whether a step looked at *path*, a folder around it, or everything."""
        around = {path, *(path[:at] for at, sign in enumerate(path) if sign == "/")}
        return any(paths is None or paths & around for paths in self.steps)


class Hands:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Said(list[tuple[str, bool]]):
    """What the watcher said."""

    def __call__(self, text: str, warn: bool) -> None:
        self.append((text, warn))

    def like(self, words: str, *, warn: bool | None = None) -> list[str]:
        return [text for text, warned in self if words in text and warn in (None, warned)]


def policy(root: Path, more: str = "") -> None:
    (root / "_System").mkdir(exist_ok=True)
    (root / "_System/Policy.md").write_text(f"---\ntimezone: UTC\n{more}---\n", encoding="utf-8")


def house(root: Path, private: Path, *, read_only: bool = False) -> House:
    settings = PalaceSettings(
        cache_dir=private / "cache", state_dir=private / "state", session="test-1", read_only=read_only
    )
    return House.open(root, settings)


def run_for(watch: Watch, hands: Hands, seconds: float) -> None:
    """Turn the watcher as its thread would, with time passing only between turns."""
    end, idle = hands.now + seconds, 0
    while hands.now < end:
        before = hands.now
        hands.now += watch.turn()
        idle = idle + 1 if hands.now == before else 0
        assert idle < 3, "it would spin"
