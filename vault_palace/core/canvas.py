"""The layers as a JSON Canvas (version 1.0): strata with their rooms and strongest memories.

Ids and places follow from the memories alone, so that the same palace gives the same bytes. The text has the
form in which Obsidian saves a canvas.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from vault_palace.core import places
from vault_palace.core.model import Layer, Memory

MOST: Final = 60  # memories; more cannot be looked at, and Obsidian draws each of them
WIDTH, HEIGHT = 320, 130  # of a memory
GAP, PAD, LABEL = 30, 40, 60  # between memories, around them, and above a group for its name
WIDEST = 2_600  # of a layer before its rooms go on below

COLOURS: Final = {Layer.SHALLOW: "#e0a84a", Layer.SEDIMENT: "#b5653a", Layer.BEDROCK: "#4f6d8f"}

Node: TypeAlias = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A canvas as text, and what is on it."""

    text: str
    memories: int
    rooms: int
    links: int


@dataclass(frozen=True, slots=True)
class _Room:
    name: str
    memories: tuple[Memory, ...]
    count: int  # all of the room, those that are not shown too

    @property
    def columns(self) -> int:
        return 1 if len(self.memories) < 4 else 2

    @property
    def width(self) -> int:
        return self.columns * (WIDTH + GAP) - GAP + 2 * PAD

    @property
    def height(self) -> int:
        rows = -(-len(self.memories) // self.columns)
        return rows * (HEIGHT + GAP) - GAP + 2 * PAD


def chosen(memories: Iterable[Memory], most: int = MOST) -> tuple[Memory, ...]:
    """The strongest of *memories*, a third of the room for each layer; what one leaves free, others take."""
    by_layer: dict[Layer, list[Memory]] = {layer: [] for layer in Layer}
    for memory in memories:
        by_layer[memory.layer].append(memory)
    for found in by_layer.values():
        found.sort(key=_strength)
    share = most // len(by_layer)
    taken = {layer: found[:share] for layer, found in by_layer.items()}
    for layer in reversed(Layer):  # the deepest first
        free = most - sum(map(len, taken.values()))
        taken[layer] = by_layer[layer][: len(taken[layer]) + free]
    return tuple(memory for layer in Layer for memory in taken[layer])


def _strength(memory: Memory) -> tuple[bool, float, int, str]:
    return (
        not memory.pinned,
        1 if memory.density is None else -memory.density,
        -(memory.streak or 0),
        memory.path,
    )


def draw(memories: Sequence[Memory], links: Collection[tuple[str, str]], *, above: str = "") -> Drawn:
    """The canvas of all *memories* of a palace with *links* between them, by path.

    *above* is the palace's folder in the vault, empty where it is the vault.
    """
    shown = chosen(memories)
    nodes: list[Node] = []
    y = 0
    layers = {layer: _rooms(layer, shown, memories) for layer in Layer}
    width = max(_extent(rooms)[0] for rooms in layers.values())
    for layer, rooms in layers.items():
        height = _extent(rooms)[1]
        count = sum(memory.layer is layer for memory in memories)
        nodes.append(
            _group(layer.value, _label(layer.value.capitalize(), count), 0, y, width, height, COLOURS[layer])
        )
        for room, left, top in _placed(rooms):
            nodes += _room_nodes(layer, room, left, y + top, above)
        y += height + LABEL + GAP
    by_file = {node["file"]: node for node in nodes if node["type"] == "file"}
    at = {memory.path: by_file[_in_vault(above, memory.path)] for memory in shown}
    edges = [
        _edge(at[source], at[target])
        for source, target in sorted(links)
        if source != target and {source, target} <= at.keys()
    ]
    return Drawn(
        text=_text(nodes, edges),
        memories=len(shown),
        rooms=sum(bool(room.name) for rooms in layers.values() for room in rooms),
        links=len(edges),
    )


def same(one: str, other: str) -> bool:
    """Whether two texts are the same canvas: the order and the spelling of its parts do not count."""
    return _parts(one) is not None and _parts(one) == _parts(other)


def _parts(text: str) -> list[str] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    lists = [document.pop(name, []) for name in ("nodes", "edges")]
    if not all(isinstance(found, list) for found in lists):
        return None
    parts = [json.dumps(part, sort_keys=True) for found in lists for part in found]
    return [*sorted(parts), json.dumps(document, sort_keys=True)]


# -- where everything is ------------------------------------------------------------------------------------


def _rooms(layer: Layer, shown: Sequence[Memory], memories: Sequence[Memory]) -> list[_Room]:
    """The rooms of *layer* that have a shown memory, by name; those in no room come first."""
    counts: dict[str, int] = {}
    for memory in memories:
        if memory.layer is layer:
            room = places.room_of(memory.path)
            counts[room] = counts.get(room, 0) + 1
    found: dict[str, list[Memory]] = {}
    for memory in shown:
        if memory.layer is layer:
            found.setdefault(places.room_of(memory.path), []).append(memory)
    return [_Room(name, tuple(found[name]), counts[name]) for name in sorted(found)]


def _placed(rooms: Sequence[_Room]) -> Iterator[tuple[_Room, int, int]]:
    """Each room with its left and top edge inside the layer: side by side, and on below where it is full."""
    left, top, low = PAD, PAD + LABEL, 0
    for room in rooms:
        if left > PAD and left + room.width + PAD > WIDEST:
            left, top, low = PAD, top + low + LABEL, 0
        yield room, left, top
        left += room.width + PAD
        low = max(low, room.height)


def _extent(rooms: Sequence[_Room]) -> tuple[int, int]:
    """The width and height of a layer with these rooms."""
    width, height = WIDTH + 4 * PAD, LABEL + HEIGHT
    for room, left, top in _placed(rooms):
        width = max(width, left + room.width + PAD)
        height = max(height, top + room.height + PAD)
    return width, height


def _room_nodes(layer: Layer, room: _Room, left: int, top: int, above: str) -> Iterator[Node]:
    if room.name:
        name = f"{layer.value}/{room.name}"
        label = _label(room.name, room.count, len(room.memories))
        yield _group(name, label, left, top, room.width, room.height, COLOURS[layer])
    for number, memory in enumerate(room.memories):
        row, column = divmod(number, room.columns)
        yield {
            "id": _id("memory", memory.path),
            "type": "file",
            "file": _in_vault(above, memory.path),
            "x": left + PAD + column * (WIDTH + GAP),
            "y": top + PAD + row * (HEIGHT + GAP),
            "width": WIDTH,
            "height": HEIGHT,
        }


def _in_vault(above: str, path: str) -> str:
    return f"{above}/{path}" if above else path


def _label(name: str, count: int, shown: int | None = None) -> str:
    said = f"{count} {'memory' if count == 1 else 'memories'}"
    return f"{name} · {said if shown is None or shown == count else f'{shown} of {said}'}"


def _group(name: str, label: str, x: int, y: int, width: int, height: int, colour: str) -> Node:
    return {
        "id": _id("group", name),
        "type": "group",
        "x": x,
        "y": y,
        "width": width,
        "height": height,
        "color": colour,
        "label": label,
    }


def _edge(source: Node, target: Node) -> Node:
    dx = int(target["x"]) - int(source["x"])
    dy = int(target["y"]) - int(source["y"])
    if abs(dx) >= WIDTH:
        sides = ("right", "left") if dx > 0 else ("left", "right")
    else:
        sides = ("bottom", "top") if dy > 0 else ("top", "bottom")
    return {
        "id": _id("link", f"{source['id']} {target['id']}"),
        "fromNode": source["id"],
        "fromSide": sides[0],
        "toNode": target["id"],
        "toSide": sides[1],
    }


def _id(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind} {name}".encode()).hexdigest()[:16]


def _text(nodes: Sequence[Node], edges: Sequence[Node]) -> str:
    lists = (f'\t"{name}":[{_lines(found)}]' for name, found in (("nodes", nodes), ("edges", edges)))
    return "{\n" + ",\n".join(lists) + "\n}"


def _lines(found: Sequence[Node]) -> str:
    lines = (f"\t\t{json.dumps(one, ensure_ascii=False, separators=(',', ':'))}" for one in found)
    return "\n" + ",\n".join(lines) + "\n\t" if found else ""
