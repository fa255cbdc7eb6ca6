"""The generated block of the index note: what is in the palace, as Markdown that reads well in Obsidian.

Pure and bounded: the same facts give the same text, and however many notes there are, the block stays a page
that opens at once. Only dates are shown, never the time of day, so that an idle vault causes no writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One memory in a list. `link` is ready to stand in the note; `why` is in words and may be empty."""

    link: str
    layer: str = ""
    room: str = ""
    density: float | None = None
    streak: int | None = None
    day: date | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRow:
    """One room of a layer; `room` is empty for the layer's own folder, `density` the mean of its notes."""

    layer: str
    room: str
    count: int
    density: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing a person should look at; `link` leads to the note, and is empty where there is none."""

    link: str
    line: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the block shows. Each list comes cut, with how many there are in all."""

    layers: Mapping[str, int]
    archived: int = 0
    horizon_days: int = 7
    picture: str = ""  # the file to embed on top; empty for none
    decaying: tuple[Row, ...] = ()
    decaying_count: int = 0
    rising: tuple[Row, ...] = ()
    rising_count: int = 0
    strongest: tuple[Row, ...] = ()
    newest: tuple[Row, ...] = ()
    changed: tuple[Row, ...] = ()
    changed_count: int = 0
    rooms: tuple[RoomRow, ...] = ()
    room_count: int = 0
    orphans: tuple[Row, ...] = ()
    orphan_count: int = 0
    unresolved: tuple[Trouble, ...] = ()
    unresolved_count: int = 0
    conflicts: tuple[Row, ...] = ()  # `link` the copy's, `why` what it is a copy of, with its link
    conflict_count: int = 0
    problems: tuple[Trouble, ...] = ()
    problem_count: int = 0
    waiting: tuple[Row, ...] = ()  # archives that the brakes hold back
    waiting_count: int = 0
    brake: str = ""  # why they wait, in words
    tomorrow: tuple[Row, ...] = ()  # what the next automatic run will let go
    tomorrow_count: int = 0
    notes: tuple[str, ...] = field(default=())  # sentences for the top, such as a missing disk


def block(facts: Facts) -> str:
    """What stands between the markers, without them."""
    raise NotImplementedError
