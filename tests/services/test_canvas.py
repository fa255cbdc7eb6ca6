"""The canvas is drawn on request, never over a person's own, can be taken back, and counts for nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from tests.services.keeping import settle
from vault_palace.core.errors import Conflict, PolicyViolation
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace

CANVAS = "Palace.canvas"


@pytest.fixture
def drawn(palace: Palace) -> Palace:
    """A palace with three linked memories and its canvas."""
    palace.write("The first.", path="ideas/One", density=0.6)
    palace.write("Follows [[One]].", path="ideas/Two")
    palace.write("Follows [[One]] and [[Two]].", layer="bedrock", path="Three")
    palace.canvas()
    return palace


def _document(vault: Path) -> Any:
    return json.loads((vault / CANVAS).read_text(encoding="utf-8"))


def _moved(vault: Path, clock: Clock) -> str:
    """What a person makes of it by moving a node; some time passes."""
    document = _document(vault)
    document["nodes"][0]["x"] += 500
    text = json.dumps(document)
    (vault / CANVAS).write_text(text, encoding="utf-8")
    clock.turn(hours=1)
    return text


def test_it_holds_the_memories_and_the_links_between_them(drawn: Palace, vault: Path) -> None:
    document = _document(vault)

    files = {node["id"]: node["file"] for node in document["nodes"] if node["type"] == "file"}
    links = {(files[edge["fromNode"]], files[edge["toNode"]]) for edge in document["edges"]}
    one, two, three = "01_Shallow/ideas/One.md", "01_Shallow/ideas/Two.md", "03_Bedrock/Three.md"
    assert set(files.values()) == {one, two, three}
    assert links == {(two, one), (three, one), (three, two)}


def test_it_says_what_is_on_it(palace: Palace) -> None:
    palace.write("words", path="ideas/One")

    answer = palace.canvas()

    op = answer.pop("op")  # type: ignore[misc]
    assert answer == {
        "path": CANVAS,
        "done": "created",
        "memories": 1,
        "left_out": 0,
        "rooms": 1,
        "links": 0,
    }
    assert op


def test_it_is_not_written_again_where_it_would_say_the_same(drawn: Palace, vault: Path) -> None:
    before = (vault / CANVAS).stat()

    answer = drawn.canvas()

    assert (answer["done"], answer["op"]) == ("unchanged", "")
    assert (vault / CANVAS).stat() == before


def test_it_is_drawn_anew_when_the_palace_has_changed(drawn: Palace) -> None:
    drawn.write("More.", path="Four")

    assert drawn.canvas()["done"] == "drawn anew"


def test_one_that_obsidian_saved_in_other_words_is_no_persons(
    drawn: Palace, vault: Path, clock: Clock
) -> None:
    (vault / CANVAS).write_text(json.dumps(_document(vault), indent=2), encoding="utf-8")
    clock.turn(hours=1)
    drawn.write("More.", path="Four")

    assert drawn.canvas()["done"] == "drawn anew"


def test_one_that_a_person_changed_is_not_replaced(drawn: Palace, vault: Path, clock: Clock) -> None:
    text = _moved(vault, clock)

    with pytest.raises(Conflict, match="--force"):
        drawn.canvas()

    assert (vault / CANVAS).read_text(encoding="utf-8") == text


def test_one_that_was_there_before_is_not_replaced(palace: Palace, vault: Path, clock: Clock) -> None:
    (vault / CANVAS).write_text("{}", encoding="utf-8")
    clock.turn(hours=1)

    with pytest.raises(Conflict, match="--force"):
        palace.canvas()

    assert (vault / CANVAS).read_text(encoding="utf-8") == "{}"


def test_one_replaced_by_force_comes_back_by_undo(drawn: Palace, vault: Path, clock: Clock) -> None:
    text = _moved(vault, clock)
    op = drawn.canvas(force=True)["op"]
    replaced = _document(vault)

    drawn.undo(op, confirm=True)

    assert (vault / CANVAS).read_text(encoding="utf-8") == text
    assert replaced != json.loads(text)


def test_a_persons_own_that_undo_brought_back_is_still_theirs(
    drawn: Palace, vault: Path, clock: Clock
) -> None:
    _moved(vault, clock)
    drawn.undo(drawn.canvas(force=True)["op"], confirm=True)
    clock.turn(hours=1)

    with pytest.raises(Conflict, match="--force"):
        drawn.canvas()


def test_a_new_one_goes_away_by_undo(palace: Palace, vault: Path) -> None:
    op = palace.canvas()["op"]

    palace.undo(op, confirm=True)

    assert not (vault / CANVAS).exists()


def test_its_links_are_nobodys_backlinks(drawn: Palace, clock: Clock) -> None:
    settle(Keeper(drawn.house), clock)

    counted = {
        path: drawn.read(path=path, touch=False)["metadata"]["backlinks"]
        for path in ("01_Shallow/ideas/One.md", "01_Shallow/ideas/Two.md", "03_Bedrock/Three.md")
    }
    assert list(counted.values()) == [2, 1, 0]


def test_it_is_no_problem_and_no_memory(drawn: Palace) -> None:
    assert drawn.check() == []
    assert CANVAS not in drawn.paths()


def test_the_keeper_never_draws_it(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("words", path="One")

    settle(Keeper(palace.house), clock)

    assert not (vault / CANVAS).exists()


def test_what_waits_for_a_person_is_not_on_it(palace: Palace, vault: Path, clock: Clock) -> None:
    path = palace.write("words", path="One")["saved_path"]
    text = (vault / path).read_text(encoding="utf-8")
    (vault / path).write_text(text.replace("status: active", "status: proposed"), encoding="utf-8")
    clock.turn(hours=1)

    assert palace.canvas()["memories"] == 0


def test_a_palace_that_may_only_be_read_gets_none(open_palace: OpenPalace, vault: Path) -> None:
    with pytest.raises(PolicyViolation):
        open_palace(read_only=True).canvas()

    assert not (vault / CANVAS).exists()
