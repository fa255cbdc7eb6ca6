"""What was superseded: marked, ranked behind what replaced it, never taken for what holds now."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.errors import InvalidArguments, VaultError
from vault_palace.services.answers import Match, SearchAnswer
from vault_palace.services.palace import Palace

Note = Callable[..., Path]
L1 = "01_Shallow"


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def names(found: SearchAnswer) -> list[str]:
    return [match["path"].rpartition("/")[2].removesuffix(".md") for match in found["matches"]]


def marked(found: SearchAnswer) -> dict[str, str]:
    return {match["path"]: match["superseded_by"] for match in found["matches"] if "superseded_by" in match}


def chain(palace: Palace) -> None:
    """A, replaced by B, replaced by C; the oldest says the word most often."""
    palace.write("kafka kafka kafka kafka retention", title="A kafka")
    palace.write("kafka kafka retention of the topics in this", title="B", supersedes="A kafka")
    palace.write(
        "kafka and many other words that make it weigh less than others do", title="C", supersedes="B"
    )


def test_a_chain_is_found_newest_first_and_leads_to_its_end(palace: Palace) -> None:
    chain(palace)

    found = palace.search("kafka")

    assert names(found) == ["C", "B", "A kafka"]
    assert marked(found) == {f"{L1}/B.md": f"{L1}/C.md", f"{L1}/A kafka.md": f"{L1}/C.md"}


def test_the_order_holds_across_pages(palace: Palace) -> None:
    chain(palace)
    for number in range(7):
        palace.write(f"kafka {'kafka ' * number} notes", title=f"N{number}")

    pages: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        page = palace.search("kafka", limit=1, cursor=cursor)
        pages += names(page)
        cursor = page["cursor"]

    assert cursor is None
    assert pages == names(palace.search("kafka", limit=100))
    assert sorted(pages) == sorted({*pages})
    assert pages.index("C") < pages.index("B") < pages.index("A kafka")


def test_reading_a_superseded_note_names_what_holds_now(palace: Palace) -> None:
    chain(palace)

    assert palace.read(title="A kafka")["superseded_by"] == f"{L1}/C.md"
    assert "superseded_by" not in palace.read(title="C")


@pytest.mark.parametrize("side", ["old", "new"])
def test_one_of_the_two_properties_is_enough(palace: Palace, note: Note, side: str) -> None:
    """A person writes the one that they think of."""
    said = {"old": '---\nsuperseded_by: "[[New]]"\n---\n', "new": '---\nsupersedes:\n  - "[[Old]]"\n---\n'}
    note(f"{L1}/Old.md", f"{said['old'] if side == 'old' else ''}kafka\n")
    note(f"{L1}/New.md", f"{said['new'] if side == 'new' else ''}kafka too\n")

    assert marked(palace.search("kafka")) == {f"{L1}/Old.md": f"{L1}/New.md"}


def test_notes_in_a_circle_are_all_current(palace: Palace, note: Note) -> None:
    note(f"{L1}/A.md", '---\nsuperseded_by: "[[B]]"\n---\nkafka\n')
    note(f"{L1}/B.md", '---\nsuperseded_by: "[[A]]"\n---\nkafka\n')

    found = palace.search("kafka")

    assert (names(found), marked(found)) == (["A", "B"], {})
    assert "no note that replaced" in " ".join(palace.read(title="A", touch=False)["warnings"])


def test_what_an_archived_note_replaced_stays_superseded(palace: Palace) -> None:
    """The old text does not become true again because the new one faded."""
    chain(palace)
    archived = palace.purge(f"{L1}/C.md", confirm=True)["archived_to"]

    found = palace.search("kafka")

    assert marked(found) == {f"{L1}/B.md": archived, f"{L1}/A kafka.md": archived}


def test_an_archived_note_in_the_middle_does_not_break_the_chain(palace: Palace) -> None:
    chain(palace)
    palace.purge(f"{L1}/B.md", confirm=True)

    assert marked(palace.search("kafka")) == {f"{L1}/A kafka.md": f"{L1}/C.md"}


def test_what_a_deleted_note_replaced_is_current_again(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("kafka", title="Old")
    palace.write("kafka", title="New", supersedes="Old")
    os.unlink(vault / L1 / "New.md")
    clock.turn(hours=1)
    palace.house.refresh(if_older=0)

    found = palace.search("kafka")

    assert (names(found), marked(found)) == (["Old"], {})
    assert palace.read(title="Old", touch=False)["warnings"] == [
        "superseded_by leads to no note that replaced this one."
    ]


def test_a_person_who_takes_it_back_makes_the_note_current(palace: Palace, vault: Path) -> None:
    palace.write("kafka", title="Old")
    palace.write("kafka", title="New", supersedes="Old")
    palace.purge(f"{L1}/New.md", confirm=True)
    old = vault / L1 / "Old.md"
    lines = old.read_text(encoding="utf-8").splitlines(keepends=True)
    old.write_text("".join(line for line in lines if not line.startswith("superseded_by")), encoding="utf-8")
    palace.house.refresh(if_older=0)

    assert marked(palace.search("kafka")) == {}


def test_both_properties_follow_a_rename_and_a_move(palace: Palace, vault: Path, note: Note) -> None:
    note("02_Sediment/sub/Old.md", "another of the same name")  # so that links need a path
    note(f"{L1}/Old.md", "kafka")
    palace.write("kafka", title="New", supersedes=f"{L1}/Old.md")

    palace.move(f"{L1}/Old.md", "bedrock", new_path="Former")
    palace.move(f"{L1}/New.md", "sediment", new_path="room/Present")

    assert header(vault, "02_Sediment/room/Present.md")["supersedes"] == ["[[03_Bedrock/Former]]"]
    assert header(vault, "03_Bedrock/Former.md")["superseded_by"] == "[[Present]]"
    assert marked(palace.search("kafka")) == {"03_Bedrock/Former.md": "02_Sediment/room/Present.md"}


def test_undo_takes_both_sides_back(palace: Palace, vault: Path) -> None:
    palace.write("kafka", title="Old")
    before = header(vault, f"{L1}/Old.md")
    palace.write("kafka", title="New", supersedes="Old")

    palace.undo("New", confirm=True)

    assert not (vault / L1 / "New.md").exists()
    assert header(vault, f"{L1}/Old.md") == before
    assert marked(palace.search("kafka")) == {}


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_a_note_that_exists_supersedes_several_at_once(palace: Palace, vault: Path, mode: str) -> None:
    palace.write("kafka 1", title="One")
    palace.write("kafka 2", title="Two")
    rev = palace.write("kafka 3", title="Sum")["rev"]

    saved = palace.write("kafka all", mode=mode, title="Sum", if_rev=rev, supersedes=["One", "[[Two]]"])

    assert header(vault, saved["saved_path"])["supersedes"] == ["[[One]]", "[[Two]]"]
    assert marked(palace.search("kafka")) == {f"{L1}/One.md": f"{L1}/Sum.md", f"{L1}/Two.md": f"{L1}/Sum.md"}
    operation = palace.house.journal.entries()[-1]
    assert (operation.verb, len(operation.steps)) == (mode, 3)


@pytest.mark.parametrize("mode", ["create", "append"])
def test_a_write_says_what_it_superseded(palace: Palace, mode: str) -> None:
    palace.write("x", title="Old")
    if mode == "append":
        palace.write("y", title="New")

    saved = palace.write("z", mode=mode, title="New", supersedes="Old")

    assert saved["warnings"] == [f"{L1}/Old.md is marked as superseded by it."]


def test_a_circle_is_refused_when_an_agent_would_make_one(palace: Palace) -> None:
    palace.write("x", title="Old")
    palace.write("y", title="New", supersedes="Old")

    with pytest.raises(InvalidArguments, match="cannot supersede"):
        palace.write("z", mode="append", title="Old", supersedes="New")


def test_superseding_what_was_superseded_says_so(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Old")
    palace.write("y", title="New", supersedes="Old")

    saved = palace.write("z", title="Newest", supersedes="Old")

    assert any("superseded already" in warning and "[[New]]" in warning for warning in saved["warnings"])
    assert header(vault, f"{L1}/Old.md")["superseded_by"] == "[[Newest]]"


def test_two_agents_that_supersede_one_note_at_once_both_stand_and_the_last_one_counts(
    palace: Palace, open_palace: Callable[..., Palace], vault: Path
) -> None:
    palace.write("kafka", title="Old")
    other = open_palace(session="test-2")
    failed: list[VaultError] = []
    start = threading.Barrier(2)

    def write(who: Palace, title: str) -> None:
        start.wait(timeout=30)
        try:
            who.write("kafka", title=title, supersedes="Old")
        except VaultError as error:
            failed.append(error)

    threads = [
        threading.Thread(target=write, args=(who, title)) for who, title in ((palace, "B"), (other, "C"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not failed
    assert header(vault, f"{L1}/Old.md")["superseded_by"] in ("[[B]]", "[[C]]")
    assert [header(vault, f"{L1}/{name}.md")["supersedes"] for name in "BC"] == [["[[Old]]"], ["[[Old]]"]]


def test_ageing_and_forecasts_take_the_properties_for_links_and_nothing_else(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    chain(palace)
    clock.turn(days=3)
    palace.metabolize(confirm=True)

    found = header(vault, f"{L1}/B.md")

    assert (found["superseded_by"], found["supersedes"]) == ("[[C]]", ["[[A kafka]]"])
    assert palace.check() == []


def current(found: SearchAnswer) -> list[Match]:
    return [match for match in found["matches"] if "superseded_by" not in match]


def test_a_filter_that_leaves_the_newer_note_out_does_not_make_the_old_one_current(palace: Palace) -> None:
    palace.write("kafka", title="Old", path="ideas/")
    palace.write("kafka", title="New", path="facts/", supersedes="Old")

    assert current(palace.search("kafka", room="ideas")) == []


def test_where_several_replaced_a_note_its_own_word_says_which_one_counts(palace: Palace) -> None:
    palace.write("kafka", title="Old")
    for title in ("A", "C", "B"):
        palace.write("kafka", title=title, supersedes="Old")

    assert palace.read(title="Old", touch=False)["superseded_by"] == f"{L1}/B.md"
    assert marked(palace.search("kafka")) == {f"{L1}/Old.md": f"{L1}/B.md"}


def test_two_agents_that_supersede_each_others_note_at_once_make_no_circle(
    palace: Palace, open_palace: Callable[..., Palace], vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for title in ("A", "B"):
        palace.write("kafka", title=title)
    other = open_palace(session="test-2")
    locked = palace.house.locked

    def late() -> Any:
        monkeypatch.undo()
        other.write("kafka", path=f"{L1}/B.md", mode="append", supersedes="A")
        return locked()

    monkeypatch.setattr(palace.house, "locked", late)

    with pytest.raises(InvalidArguments, match="superseded it"):
        palace.write("kafka", path=f"{L1}/A.md", mode="append", supersedes="B")

    assert "supersedes" not in header(vault, f"{L1}/A.md")
    assert "superseded_by" not in header(vault, f"{L1}/B.md")
