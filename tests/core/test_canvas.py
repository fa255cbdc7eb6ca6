"""The canvas is valid JSON Canvas 1.0, the same for the same palace, bounded, and nothing on it overlaps."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import datetime
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.canvas import MOST, chosen, draw, same
from vault_palace.core.model import Layer, Memory

AT = datetime(2031, 3, 1, 12)
SIDES = {"top", "right", "bottom", "left"}


def memory(path: str, density: float | None = 0.2, **more: Any) -> Memory:
    layer = next(one for one in Layer if path.startswith(f"{one.folder}/"))
    return Memory(path=path, layer=layer, created=AT, last_touched=AT, density=density, **more)


def palace(shallow: int, sediment: int, bedrock: int, rooms: int = 3) -> list[Memory]:
    return [
        memory(f"{layer.folder}/{'' if n % rooms == 0 else f'room {n % rooms}/'}n{n} ü.md", n % 11 / 10)
        for layer, count in zip(Layer, (shallow, sediment, bedrock), strict=True)
        for n in range(count)
    ]


def check(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The nodes and edges of *text*, which must be as JSON Canvas 1.0 wants them."""
    document = json.loads(text)
    assert set(document) == {"nodes", "edges"}
    own = {"file": {"file"}, "group": {"label", "color"}}
    for node in document["nodes"]:
        assert set(node) == {"id", "type", "x", "y", "width", "height"} | own[node["type"]]
        assert all(type(node[key]) is int for key in ("x", "y", "width", "height"))
        assert min(node["width"], node["height"]) > 0
    ids = [one["id"] for one in document["nodes"] + document["edges"]]
    assert len(set(ids)) == len(ids)
    for edge in document["edges"]:
        assert set(edge) == {"id", "fromNode", "fromSide", "toNode", "toSide"}
        assert {edge["fromNode"], edge["toNode"]} <= {node["id"] for node in document["nodes"]}
        assert {edge["fromSide"], edge["toSide"]} <= SIDES
    return document["nodes"], document["edges"]


def _inside(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        other["x"] < one["x"]
        and other["y"] < one["y"]
        and one["x"] + one["width"] < other["x"] + other["width"]
        and one["y"] + one["height"] < other["y"] + other["height"]
    )


def _apart(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        one["x"] + one["width"] <= other["x"]
        or other["x"] + other["width"] <= one["x"]
        or one["y"] + one["height"] <= other["y"]
        or other["y"] + other["height"] <= one["y"]
    )


@given(st.integers(0, 90), st.integers(0, 90), st.integers(0, 90), st.integers(1, 40))
def test_every_palace_gives_a_valid_canvas(shallow: int, sediment: int, bedrock: int, rooms: int) -> None:
    memories = palace(shallow, sediment, bedrock, rooms)
    links = {(one.path, other.path) for one, other in pairwise(memories)}

    drawn = draw(memories, links)

    nodes, edges = check(drawn.text)
    files = [node["file"] for node in nodes if node["type"] == "file"]
    assert len(set(files)) == len(files) == drawn.memories == min(MOST, len(memories))
    assert len(edges) == drawn.links
    for one, other in combinations(nodes, 2):
        assert _apart(one, other) or _inside(one, other) or _inside(other, one)


def test_each_memory_lies_in_its_room_and_that_in_its_layer() -> None:
    drawn = draw([memory("02_Sediment/apollo/A.md"), memory("01_Shallow/B.md")], ())

    nodes, _ = check(drawn.text)
    at = {node.get("label") or node["file"]: node for node in nodes}
    assert list(at) == [
        "Shallow · 1 memory",
        "01_Shallow/B.md",
        "Sediment · 1 memory",
        "apollo · 1 memory",
        "02_Sediment/apollo/A.md",
        "Bedrock · 0 memories",
    ]
    assert _inside(at["01_Shallow/B.md"], at["Shallow · 1 memory"])
    assert _inside(at["02_Sediment/apollo/A.md"], at["apollo · 1 memory"])
    assert _inside(at["apollo · 1 memory"], at["Sediment · 1 memory"])
    assert at["Shallow · 1 memory"]["y"] < at["Sediment · 1 memory"]["y"] < at["Bedrock · 0 memories"]["y"]


def test_an_empty_palace_has_its_layers() -> None:
    nodes, edges = check(draw([], ()).text)

    assert [node["label"] for node in nodes] == [
        f"{layer.value.capitalize()} · 0 memories" for layer in Layer
    ]
    assert edges == []


def test_the_order_of_what_is_given_does_not_matter() -> None:
    memories = palace(40, 40, 40)
    links = [(one.path, other.path) for one, other in zip(memories, memories[3:], strict=False)]
    mixed, turned = list(memories), list(links)
    random.Random(7).shuffle(mixed)
    random.Random(8).shuffle(turned)

    assert draw(mixed, turned).text == draw(memories, links).text


def test_a_room_says_how_many_of_it_are_shown() -> None:
    memories = [memory(f"01_Shallow/big/{n}.md") for n in range(100)]

    nodes, _ = check(draw(memories, ()).text)

    labels = [node["label"] for node in nodes if node["type"] == "group"]
    assert labels[:2] == ["Shallow · 100 memories", "big · 60 of 100 memories"]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((30, 30, 30), (20, 20, 20)),
        ((90, 0, 0), (60, 0, 0)),
        ((90, 5, 90), (20, 5, 35)),
        ((90, 40, 2), (20, 38, 2)),
        ((1, 2, 3), (1, 2, 3)),
    ],
)
def test_each_layer_has_its_share_and_leaves_what_it_does_not_need(
    counts: Sequence[int], expected: Sequence[int]
) -> None:
    found = chosen(palace(*counts))

    assert tuple(sum(one.layer is layer for one in found) for layer in Layer) == expected


def test_the_strongest_are_shown_and_what_is_pinned_before_them() -> None:
    memories = [
        memory("01_Shallow/unreadable.md", None),
        memory("01_Shallow/weak.md", 0.1),
        memory("01_Shallow/strong.md", 0.9, streak=1),
        memory("01_Shallow/used.md", 0.9, streak=4),
        memory("01_Shallow/pinned.md", 0.0, pinned=True),
    ]

    found = chosen(memories, 3)

    assert [one.path for one in found] == [
        "01_Shallow/pinned.md",
        "01_Shallow/used.md",
        "01_Shallow/strong.md",
    ]


def test_a_link_leaves_on_the_side_where_the_other_is() -> None:
    memories = [memory("01_Shallow/a/1.md"), memory("01_Shallow/b/2.md"), memory("03_Bedrock/a/3.md")]
    pairs = [(memories[0].path, memories[1].path), (memories[2].path, memories[0].path)]

    _, edges = check(draw(memories, pairs).text)

    assert [(edge["fromSide"], edge["toSide"]) for edge in edges] == [("right", "left"), ("top", "bottom")]


def test_a_link_to_itself_or_to_what_is_not_shown_is_left_out() -> None:
    memories = [memory("01_Shallow/1.md")]

    drawn = draw(memories, [("01_Shallow/1.md", "01_Shallow/1.md"), ("01_Shallow/1.md", "01_Shallow/2.md")])

    assert drawn.links == 0


def test_a_palace_in_a_folder_names_its_files_as_the_vault_has_them() -> None:
    memories = [memory("01_Shallow/1.md"), memory("01_Shallow/2.md")]

    drawn = draw(memories, [("01_Shallow/1.md", "01_Shallow/2.md")], above="Work/Palace")

    nodes, edges = check(drawn.text)
    assert [node["file"] for node in nodes if node["type"] == "file"] == [
        "Work/Palace/01_Shallow/1.md",
        "Work/Palace/01_Shallow/2.md",
    ]
    assert len(edges) == 1


def test_the_same_canvas_in_other_words_is_the_same() -> None:
    text = draw(palace(3, 2, 1), ()).text
    document = json.loads(text)
    document["nodes"].reverse()

    assert same(text, json.dumps(document, indent=2))


@pytest.mark.parametrize("other", ["", "{", "[]", '{"nodes":3}', '{"nodes":[],"edges":[]}'])
def test_another_text_is_another_canvas(other: str) -> None:
    assert not same(draw(palace(3, 2, 1), ()).text, other)
