"""A canvas of the palace: layers as groups, rooms in them, the strongest memories as cards, links as edges.

JSON Canvas 1.0. The same palace gives the same text: ids are made from what a thing stands for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vault_palace.core.model import Layer

WIDTH, HEIGHT, GAP, PADDING = 280, 90, 20, 40
ROWS = 4  # cards below each other before a room grows to the right
COLOURS = {Layer.SHALLOW: "#e0a84a", Layer.SEDIMENT: "#b5653a", Layer.BEDROCK: "#4f6d8f"}

Node = dict[str, object]


@dataclass(frozen=True, slots=True)
class Card:
    """One memory that is shown: its path as the canvas names it, and the room it lies in."""

    path: str
    room: str


def draw(cards: Mapping[Layer, Sequence[Card]], links: Collection[tuple[str, str]]) -> str:
    """The text of the canvas. *links* are pairs of paths; those between two cards become edges.

    Layers lie below each other as in the ground, Shallow on top; an empty one is drawn as well.
    """
    nodes: list[Node] = []
    top = 0
    for layer in Layer:
        inside, width, height = _layer(layer, cards.get(layer, ()), top)
        size = {"x": 0, "y": top, "width": width, "height": height}
        nodes += [_group(f"layer {layer.value}", layer.value.capitalize(), layer, size), *inside]
        top += height + 2 * GAP
    shown = {card.path for group in cards.values() for card in group}
    edges = [
        {
            "id": _id(f"edge {source}\n{target}"),
            "fromNode": _id(f"file {source}"),
            "toNode": _id(f"file {target}"),
        }
        for source, target in sorted(set(links))
        if source in shown and target in shown and source != target
    ]
    return json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False, indent="\t") + "\n"


def _layer(layer: Layer, cards: Sequence[Card], top: int) -> tuple[list[Node], int, int]:
    """The rooms and cards of one layer, its width and height."""
    rooms: dict[str, list[Card]] = {}
    for card in cards:
        rooms.setdefault(card.room, []).append(card)
    nodes: list[Node] = []
    left, tallest = PADDING, HEIGHT
    for room in sorted(rooms):
        inside = [*_cards(rooms[room], left + GAP, top + PADDING + PADDING)]
        columns = -(-len(rooms[room]) // ROWS)
        width = columns * (WIDTH + GAP) + GAP
        height = min(len(rooms[room]), ROWS) * (HEIGHT + GAP) + PADDING
        if room:
            size = {"x": left, "y": top + PADDING, "width": width, "height": height}
            nodes.append(_group(f"room {layer.value}/{room}", room, layer, size))
        nodes += inside
        left += width + GAP
        tallest = max(tallest, height)
    return nodes, max(left + PADDING - GAP, WIDTH + 2 * PADDING), tallest + 2 * PADDING


def _cards(cards: Sequence[Card], left: int, top: int) -> Iterator[Node]:
    for number, card in enumerate(cards):
        column, row = divmod(number, ROWS)
        yield {
            "id": _id(f"file {card.path}"),
            "type": "file",
            "file": card.path,
            "x": left + column * (WIDTH + GAP),
            "y": top + row * (HEIGHT + GAP),
            "width": WIDTH,
            "height": HEIGHT,
        }


def _group(name: str, label: str, layer: Layer, size: Mapping[str, int]) -> Node:
    return {"id": _id(name), "type": "group", "label": label, "color": COLOURS[layer], **size}


def _id(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
