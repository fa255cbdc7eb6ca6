"""Moving, archiving and restoring: every link keeps leading where it led, nothing is overwritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.errors import (
    BudgetExceeded,
    Exists,
    InvalidArguments,
    MalformedNote,
    NotFound,
    PathViolation,
    PolicyViolation,
)
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def test_a_move_keeps_the_room(palace: Palace, vault: Path) -> None:
    palace.write("x", path="ideas/deep/T")

    answer = palace.move("01_Shallow/ideas/deep/T.md", "sediment")

    assert answer["destination"] == "02_Sediment/ideas/deep/T.md"
    assert header(vault, "02_Sediment/ideas/deep/T.md")["layer"] == "sediment"


def test_a_rename_rewrites_every_form_of_link(palace: Palace, vault: Path, note: Note) -> None:
    """WL-01, WL-16, WL-18: each form is kept."""
    palace.write("x", title="Pump Room")
    note(
        "ref.md",
        "| a |\n|---|\n| [[Pump Room\\|pump]] |\n\n[[Pump Room#Valves|v]] [m](01_Shallow/Pump%20Room.md#V)"
        " ![[Pump Room]] `[[Pump Room]]` [[pump room]]\n",
    )
    note("01_Shallow/prop.md", '---\nsee: "[[Pump Room]]"\n---\n')

    answer = palace.move("01_Shallow/Pump Room.md", "shallow", new_path="Boiler Room")

    assert text(vault, "ref.md") == (
        "| a |\n|---|\n| [[Boiler Room\\|pump]] |\n\n[[Boiler Room#Valves|v]]"
        " [m](01_Shallow/Boiler%20Room.md#V)"
        " ![[Boiler Room]] `[[Pump Room]]` [[Boiler Room]]\n"
    )
    assert header(vault, "01_Shallow/prop.md")["see"] == "[[Boiler Room]]"
    assert answer["links_rewritten"] == 6


def test_links_of_a_namesake_stay(palace: Palace, vault: Path, note: Note) -> None:
    """WL-09: rename preserves meaning, not text."""
    note("01_Shallow/Daily.md")
    note("02_Sediment/Daily.md")
    note("01_Shallow/x.md", "[[Daily]] and [[02_Sediment/Daily]]")
    note("02_Sediment/y.md", "[[Daily]]")

    palace.move("02_Sediment/Daily.md", "sediment", new_path="Weekly")

    assert "[[Daily]] and [[02_Sediment/Weekly]]" in text(vault, "01_Shallow/x.md")
    assert "[[Weekly]]" in text(vault, "02_Sediment/y.md")


def test_a_taken_destination_is_refused_and_both_notes_stay(palace: Palace, vault: Path) -> None:
    palace.write("one", title="A")
    palace.write("two", title="B", layer="sediment")

    with pytest.raises(Exists):
        palace.move("01_Shallow/A.md", "sediment", new_path="B")

    assert palace.read(path="01_Shallow/A.md")["content"] == "one"
    assert palace.read(path="02_Sediment/B.md")["content"] == "two"


def test_a_rename_of_case_only_keeps_the_note(palace: Palace, vault: Path, note: Note) -> None:
    """FS-02."""
    saved = palace.write("x", title="HowTo")
    note("01_Shallow/b.md", "[[HowTo]]")

    answer = palace.move("01_Shallow/HowTo.md", "shallow", new_path="howto")

    assert answer["destination"] == "01_Shallow/howto.md"
    assert palace.read(id=saved["id"])["path"] == "01_Shallow/howto.md"
    assert [path.name for path in (vault / "01_Shallow").iterdir()].count("HowTo.md") == 0


@pytest.mark.parametrize("new", ["A | B", "C# basics", "Arr[0]]", "up^down", "%%x%%"])
def test_a_name_that_links_cannot_hold_is_refused(palace: Palace, vault: Path, new: str) -> None:
    """WL-12."""
    palace.write("x", title="Plan")

    with pytest.raises((PathViolation, InvalidArguments)):
        palace.move("01_Shallow/Plan.md", "shallow", new_path=new)

    assert (vault / "01_Shallow/Plan.md").exists()


@pytest.mark.parametrize(
    ("new", "place"),
    [("final", "final.md"), ("final.md", "final.md"), ("final.MD", "final.md"), ("v2.0", "v2.0.md")],
)
def test_the_extension_belongs_to_the_product(palace: Palace, new: str, place: str) -> None:
    """WL-21."""
    palace.write("x", title="draft")

    answer = palace.move("01_Shallow/draft.md", "shallow", new_path=new)

    assert answer["destination"] == f"01_Shallow/{place}"


@pytest.mark.parametrize(
    "path", ["_Archive/01_Shallow/x.md", "_System/Policy.md", "PALACE_MAP.md", "root.md"]
)
def test_only_memories_are_moved(palace: Palace, note: Note, path: str) -> None:
    note(path, "---\na: 1\n---\n")

    with pytest.raises(PathViolation):
        palace.move(path, "sediment")


def test_a_note_with_a_broken_header_is_not_moved(palace: Palace, vault: Path, note: Note) -> None:
    path = note("01_Shallow/b.md", "---\na: b: c\n---\n")

    for act in (
        lambda: palace.move("01_Shallow/b.md", "sediment"),
        lambda: palace.move("01_Shallow/b.md", "shallow", new_path="c"),
        lambda: palace.purge("01_Shallow/b.md", confirm=True),
    ):
        with pytest.raises(MalformedNote):
            act()

    assert path.read_text(encoding="utf-8") == "---\na: b: c\n---\n"


def test_purging_archives_with_the_reason(palace: Palace, vault: Path) -> None:
    palace.write("x", path="ideas/T")

    answer = palace.purge("01_Shallow/ideas/T.md", reason="no\nlonger  true", confirm=True)

    assert answer["archived_to"] == "_Archive/01_Shallow/ideas/T.md"
    found = header(vault, answer["archived_to"])
    assert (found["archived_reason"], found["status"], found["archived_from"]) == (
        "purged: no longer true",
        "archived",
        "01_Shallow/ideas/T.md",
    )


def test_purging_needs_confirmation(palace: Palace, vault: Path) -> None:
    palace.write("x", title="T")

    with pytest.raises(PolicyViolation):
        palace.purge("01_Shallow/T.md")

    assert (vault / "01_Shallow/T.md").exists()


def test_a_missing_note_is_not_purged(palace: Palace) -> None:
    with pytest.raises(NotFound):
        palace.purge("01_Shallow/none.md", confirm=True)


def test_a_reason_over_its_limit_is_refused(palace: Palace) -> None:
    palace.write("x", title="T")

    with pytest.raises(BudgetExceeded):
        palace.purge("01_Shallow/T.md", reason="x" * 1025, confirm=True)


def test_restoring_brings_the_note_back_with_its_links(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    palace.write("x", path="ideas/T")
    note("01_Shallow/ref.md", "[[T]] and [[01_Shallow/ideas/T]]")
    before = text(vault, "01_Shallow/ref.md")
    palace.purge("01_Shallow/ideas/T.md", confirm=True)
    clock.turn(days=50)

    answer = palace.restore("_Archive/01_Shallow/ideas/T.md")

    assert answer["restored_to"] == "01_Shallow/ideas/T.md"
    found = header(vault, "01_Shallow/ideas/T.md")
    assert not {"archived_on", "archived_reason", "archived_from"} & found.keys()
    assert (found["status"], found["streak"]) == ("active", 0)
    assert text(vault, "01_Shallow/ref.md") == before


def test_a_restored_note_is_not_undone_the_next_night(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="T")
    clock.turn(days=8)
    palace.metabolize(confirm=True)
    palace.restore("01_Shallow/T.md")
    clock.turn(days=1)

    assert palace.metabolize(confirm=True)["archived"] == []


def test_restoring_into_another_layer_takes_its_lifetime(palace: Palace, vault: Path) -> None:
    palace.write("x", title="T")
    palace.purge("01_Shallow/T.md", confirm=True)

    answer = palace.restore("_Archive/01_Shallow/T.md", to_layer="bedrock")

    assert answer["restored_to"] == "03_Bedrock/T.md"
    assert header(vault, "03_Bedrock/T.md")["status"] == "crystallized"


def test_a_note_that_is_not_archived_is_not_restored(palace: Palace) -> None:
    palace.write("x", title="T")

    with pytest.raises((NotFound, PathViolation)):
        palace.restore("01_Shallow/T.md")


def test_a_name_taken_meanwhile_gets_a_number_at_restore(palace: Palace, vault: Path, note: Note) -> None:
    palace.write("one", title="T")
    palace.purge("01_Shallow/T.md", confirm=True)
    note("01_Shallow/T.md", "a person's new T")

    answer = palace.restore("_Archive/01_Shallow/T.md")

    assert answer["restored_to"] == "01_Shallow/T 2.md"
    assert text(vault, "01_Shallow/T.md") == "a person's new T"
