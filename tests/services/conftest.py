"""A palace with a clock that a test turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from vault_palace.services.palace import Limits, Palace, PalaceSettings


class Clock:
    """A clock that stands until it is turned."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.slept = 0.0

    def __call__(self) -> datetime:
        return self.at

    def turn(self, *, days: float = 0, hours: float = 0) -> None:
        self.at += timedelta(days=days, hours=hours)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2031, 3, 1, 12, tzinfo=UTC))


OpenPalace = Callable[..., Palace]


@pytest.fixture
def open_palace(vault: Path, tmp_path: Path, clock: Clock) -> Iterator[OpenPalace]:
    """Open a palace on the vault; every one that a test opened is closed afterwards."""
    opened: list[Palace] = []
    policy = vault / "_System/Policy.md"
    if not policy.exists():
        policy.write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")

    def opener(
        root: Path = vault, *, session: str = "test-1", limits: Limits | None = None, read_only: bool = False
    ) -> Palace:
        palace = Palace.open(
            root,
            settings=PalaceSettings(
                cache_dir=tmp_path / "cache",
                state_dir=tmp_path / "state",
                session=session,
                clock=clock,
                sleep=clock.sleep,
                limits=limits or Limits(),
                read_only=read_only,
            ),
        )
        opened.append(palace)
        return palace

    yield opener
    for palace in opened:
        palace.close()


@pytest.fixture
def palace(open_palace: OpenPalace) -> Palace:
    return open_palace()
