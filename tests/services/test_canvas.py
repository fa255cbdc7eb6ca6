"""The canvas: valid JSON Canvas, the same for the same palace, and a person's own is not written over."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from vault_palace.core.errors import Exists
from vault_palace.services.palace import Palace

CANVAS = "Palace.canvas"


@pytest.fixture
def palace(palace: Palace) -> Palace:
    palace.write("See [[Hub]] and [[Rock]].", path="ideas/Sand", density=0.4)
    palace.write("The middle.", title="Hub", density=0.9)
    palace.write("Lasts.", path="принципы/Rock", layer="bedrock", density=1)
    for number in range(25):
        palace.write(f"Number {number}.", path=f"many/Note {number:02}", layer="sediment", density=0.5)
    return palace


def drawn(vault: Path) -> Any:
    return json.loads((vault / CANVAS).read_text("utf-8"))


def test_layers_are_groups_below_each_other(palace: Palace, vault: Path) -> None:
    palace.canvas()

    layers = [
        node for node in drawn(vault)["nodes"] if node.get("label") in ("Shallow", "Sediment", "Bedrock")
    ]
    assert [node["label"] for node in layers] == ["Shallow", "Sediment", "Bedrock"]
    for upper, lower in itertools.pairwise(layers):
        assert upper["y"] + upper["height"] < lower["y"]


def test_every_card_lies_in_its_layer_and_none_on_another(palace: Palace, vault: Path) -> None:
    palace.canvas()

    nodes = drawn(vault)["nodes"]
    cards = [node for node in nodes if node["type"] == "file"]
    groups = {node["label"]: node for node in nodes if node["type"] == "group"}
    for card in cards:
        layer = groups[card["file"].partition("/")[0].partition("_")[2]]
        assert layer["x"] <= card["x"]
        assert card["x"] + card["width"] <= layer["x"] + layer["width"]
        assert layer["y"] <= card["y"]
        assert card["y"] + card["height"] <= layer["y"] + layer["height"]
    for one in cards:
        for other in cards:
            apart_x = abs(one["x"] - other["x"]) >= one["width"]
            assert one is other or apart_x or abs(one["y"] - other["y"]) >= one["height"]


def test_the_strongest_are_shown_and_not_more_than_twenty_a_layer(palace: Palace, vault: Path) -> None:
    palace.rate(path="02_Sediment/many/Note 24.md", density=0.9)

    palace.canvas()

    files = [node["file"] for node in drawn(vault)["nodes"] if node["type"] == "file"]
    assert len([one for one in files if one.startswith("02_Sediment/")]) == 20
    assert "02_Sediment/many/Note 24.md" in files
    assert "03_Bedrock/принципы/Rock.md" in files


def test_links_between_cards_are_edges(palace: Palace, vault: Path) -> None:
    palace.canvas()

    canvas = drawn(vault)
    names = {node["id"]: node.get("file") for node in canvas["nodes"]}
    edges = {(names[edge["fromNode"]], names[edge["toNode"]]) for edge in canvas["edges"]}
    sand = "01_Shallow/ideas/Sand.md"
    assert edges == {(sand, "01_Shallow/Hub.md"), (sand, "03_Bedrock/принципы/Rock.md")}


def test_every_id_is_there_once(palace: Palace, vault: Path) -> None:
    palace.canvas()

    canvas = drawn(vault)
    ids = [one["id"] for one in (*canvas["nodes"], *canvas["edges"])]
    assert len(ids) == len(set(ids))


def test_drawn_twice_it_is_written_once(palace: Palace, vault: Path) -> None:
    palace.canvas()
    before = (vault / CANVAS).stat().st_mtime_ns

    answer = palace.canvas()

    assert not answer["written"]
    assert (vault / CANVAS).stat().st_mtime_ns == before


def test_a_canvas_of_the_persons_is_not_written_over(palace: Palace, vault: Path) -> None:
    (vault / CANVAS).write_text('{"nodes":[],"edges":[]}', encoding="utf-8")

    with pytest.raises(Exists, match="person"):
        palace.canvas()

    assert (vault / CANVAS).read_text("utf-8") == '{"nodes":[],"edges":[]}'


def test_what_force_replaces_is_kept_and_comes_back(palace: Palace, vault: Path) -> None:
    (vault / CANVAS).write_text('{"nodes":[],"edges":[]}', encoding="utf-8")
    palace.canvas(force=True)
    operation = palace.house.journal.recent()[-1].op

    palace.undo(operation, confirm=True)

    assert (vault / CANVAS).read_text("utf-8") == '{"nodes":[],"edges":[]}'


def test_a_canvas_makes_no_backlinks(palace: Palace) -> None:
    before = palace.house.shelf.backlinks("01_Shallow/Hub.md")

    palace.canvas()
    palace.house.refresh(if_older=0)

    assert palace.house.shelf.backlinks("01_Shallow/Hub.md") == before
