"""Notes for the cache without a disk: what another floor reads from a file is given as values here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from vault_palace.core import places
from vault_palace.core.changes import Mark
from vault_palace.core.links import link_key
from vault_palace.core.model import Layer, Memory, Problem
from vault_palace.index.cache import IndexedNote

WHEN = datetime(2026, 11, 30, 12, 0, 0)


def a_note(
    path: str, text: str = "hello", *, links: Sequence[str] = (), density: float | None = 0.2, **fields: Any
) -> IndexedNote:
    """The note at *path*, its kind, layer and memory as its place says."""
    kind, layer = places.kind(path), places.layer_of(path)
    mark = fields.pop("mark", Mark(len(text), 1, 1))
    memory = None
    if layer is not None or places.archived_layer(path) is not None:
        held = layer or places.archived_layer(path) or Layer.SHALLOW
        memory = Memory(path=path, layer=held, created=WHEN, last_touched=WHEN, density=density)
    values: dict[str, Any] = {
        "path": path,
        "kind": kind,
        "layer": layer,
        "room": places.room_of(path),
        "title": path.rpartition("/")[2].removesuffix(".md"),
        "mark": mark,
        "memory": memory,
        "links": tuple((link, link_key(link)) for link in links),
        "text": text,
    }
    return IndexedNote(**(values | fields))


def a_problem(path: str, line: int = 3) -> Problem:
    return Problem(path=path, line=line, code="bad_value", message="density is no number")
