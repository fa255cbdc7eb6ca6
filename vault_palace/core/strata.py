"""The picture on top of the index note: the layers as strata, their rooms as bands, as one SVG."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Band:
    """One room of a layer; `room` is empty for the notes in no room, `decaying` counts what decays soon."""

    room: str
    count: int
    density: float | None = None
    decaying: int = 0


@dataclass(frozen=True, slots=True)
class Stratum:
    """One layer with all its rooms, in any order; `layer` is shallow, sediment, bedrock or archive."""

    layer: str
    count: int
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Strata:
    """What is drawn, from the top down. The day only colours the season: a new day alone changes nothing."""

    strata: tuple[Stratum, ...]
    day: date
    horizon_days: int = 7


def draw(strata: Strata) -> str:
    """The picture as the text of an SVG."""
    raise NotImplementedError
