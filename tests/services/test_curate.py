"""Looking after the vault: the map's links, every problem with its line, health, status, the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core.errors import InvalidArguments
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def test_check_names_every_problem_with_path_and_line(palace: Palace, note: Note) -> None:
    note("01_Shallow/bad.md", "---\na: 1\nb: c: d\n---\n")
    note("01_Shallow/when.md", "---\ncreated: 2099-01-01\ndensity: high\n---\n")
    note("01_Shallow/one.md", "---\nid: mem_x\n---\n\nsee [[Nowhere]]\n")
    note("02_Sediment/one.md", "---\nid: mem_x\n---\n")
    note("01_Shallow/one.sync-conflict-20250102-030405-ABCDEFG.md", "---\nid: mem_x\n---\n")

    found = {(problem.path, problem.line, problem.code) for problem in palace.check()}

    assert found == {
        ("01_Shallow/bad.md", 3, "bad_header"),
        ("01_Shallow/when.md", 2, "future_date"),
        ("01_Shallow/when.md", 3, "bad_value"),
        ("02_Sediment/one.md", 0, "duplicate_id"),
        ("02_Sediment/one.md", 0, "duplicate_name"),
        ("01_Shallow/one.md", 5, "unresolved_link"),
        ("01_Shallow/one.sync-conflict-20250102-030405-ABCDEFG.md", 0, "conflict_copy"),
    }


def test_what_leads_nowhere_in_a_generated_block_is_no_problem_of_that_note(
    palace: Palace, note: Note
) -> None:
    block = "%% palace:begin %%\n\n[[Nowhere]]\n\n%% palace:end %%\n"
    note("PALACE_MAP.md", f"[[Mine]]\n\n{block}\n[[Mine too]]\n")
    note("_System/Journal.md", block)
    note("01_Shallow/one.md", block)

    found = [(one.path, one.line) for one in palace.check() if one.code == "unresolved_link"]

    assert found == [("01_Shallow/one.md", 3), ("PALACE_MAP.md", 1), ("PALACE_MAP.md", 9)]


def test_a_healthy_vault_has_no_problems(palace: Palace) -> None:
    palace.write("see [[Other]]", title="T")
    palace.write("x", title="Other")

    assert palace.check() == []
    assert palace.health()["status"] == "ok"


def test_a_bad_policy_value_is_reported_with_its_line_and_the_default_counts(
    palace: Palace, vault: Path
) -> None:
    (vault / "_System/Policy.md").write_text(
        "---\ntimezone: UTC\nshallow_days: soon\n---\n", encoding="utf-8"
    )

    (problem,) = palace.check()

    assert (problem.path, problem.line) == ("_System/Policy.md", 3)
    assert palace.house.policy().shallow_days == 7


def test_the_last_good_policy_value_counts_before_the_default(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    policy = vault / "_System/Policy.md"
    policy.write_text("---\ntimezone: UTC\nshallow_days: 14\n---\n", encoding="utf-8")
    palace.metabolize(confirm=True)

    policy.write_text("---\ntimezone: UTC\nshallow_days: never\n---\n", encoding="utf-8")

    assert palace.house.policy().shallow_days == 14


def test_health_tells_the_day_before_what_will_go(palace: Palace, clock: Clock) -> None:
    """SPEC §5: what the next run will archive is listed the day before."""
    palace.write("x", title="Sand")
    clock.turn(days=7)

    health = palace.health()

    assert [item["path"] for item in health["tomorrow"]] == ["01_Shallow/Sand.md"]
    assert health["waiting"] == []


def test_health_tells_what_the_brakes_hold_back(palace: Palace, clock: Clock) -> None:
    for number in range(21):
        palace.write("x", title=f"Sand {number}")
    clock.turn(days=9)

    health = palace.health()

    assert len(health["waiting"]) == 21
    assert health["tomorrow"] == []


def test_links_are_added_to_the_map_and_taken_out_again(palace: Palace, vault: Path, note: Note) -> None:
    note(
        "PALACE_MAP.md",
        "# Map\n\n%% palace:begin %%\n[[x]]\n%% palace:end %%\n\n## Links\n\n- [[a]]\n",
    )
    before = (vault / "PALACE_MAP.md").read_text(encoding="utf-8")

    added = palace.update_map("add_link", "[[b]]")
    again = palace.update_map("add_link", "[[b]]")
    assert "- [[a]]\n- [[b]]\n" in palace.read_map()["map"]
    removed = palace.update_map("remove_link", "[[b]]")

    assert (added["changed"], again["changed"], removed["changed"]) == (True, False, True)
    assert (vault / "PALACE_MAP.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize(
    ("action", "link"), [("drop", "[[a]]"), ("add_link", ""), ("add_link", "a\nb"), ("add_link", "\ud83e")]
)
def test_a_map_edit_that_says_nothing_is_refused(palace: Palace, action: str, link: str) -> None:
    with pytest.raises(InvalidArguments):
        palace.update_map(action, link)


def test_status_counts_layers_and_names_what_is_due(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="Sand")
    palace.write("y", title="Gold", density=0.9)
    palace.write("z", title="Rock", layer="bedrock")
    clock.turn(days=4)

    status = palace.status()

    assert status["layers"] == {"shallow": 2, "sediment": 0, "bedrock": 1}
    assert [item["path"] for item in status["decaying_soon"]] == ["01_Shallow/Sand.md"]
    assert [item["path"] for item in status["rising_soon"]] == ["01_Shallow/Gold.md"]


def test_a_damaged_cache_is_made_again_from_the_notes(open_palace: OpenPalace) -> None:
    """DB-02."""
    first = open_palace()
    first.write("kraken", title="T")
    file = first.house.shelf.file
    first.close()
    file.write_bytes(b"this is no database" * 500)

    second = open_palace()

    assert [match["title"] for match in second.search("kraken")["matches"]] == ["T"]
    assert list(file.parent.glob("*bad*"))


def test_a_note_is_saved_while_another_process_holds_the_cache(open_palace: OpenPalace, vault: Path) -> None:
    """DB-01: the file is the truth, the lag is told, and catching up needs nobody."""
    palace = open_palace()
    palace.write("x", title="First")
    other = sqlite3.connect(palace.house.shelf.file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    palace.house.shelf.cache._patience = 0.1

    saved = palace.write("kraken", title="Second")["saved_path"]

    assert (vault / saved).exists()
    assert palace.house.shelf.facts()["state"] == "behind"
    other.execute("ROLLBACK")
    other.close()
    palace.house.refresh(if_older=0)
    assert [match["path"] for match in palace.search("kraken")["matches"]] == [saved]


def test_the_cache_is_never_inside_the_vault(palace: Palace, vault: Path) -> None:
    palace.write("x", title="T")

    assert not palace.house.shelf.file.is_relative_to(vault)
    assert palace.house.shelf.file.exists()


def test_reindex_finds_every_note_again(palace: Palace, note: Note) -> None:
    for number in range(5):
        note(f"01_Shallow/n{number}.md", f"{'abcde'[number]}rkraken\n")

    answer = palace.reindex()

    assert answer["notes"] == 6
    assert palace.search("drkraken")["total"] == 1


def test_an_emptied_vault_is_no_mass_deletion(palace: Palace, vault: Path, tmp_path: Path) -> None:
    """SPEC §6.5: an empty folder where notes used to be is a missing disk."""
    for number in range(5):
        palace.write("kraken", title=f"N{number}")
    held = tmp_path / "hold"
    held.mkdir()
    for entry in list(vault.iterdir()):
        entry.rename(held / entry.name)

    palace.house.refresh(if_older=0)
    codes = [problem.code for problem in palace.check()]
    for entry in list(held.iterdir()):
        if not (vault / entry.name).exists():
            entry.rename(vault / entry.name)
    palace.house.refresh(if_older=0)

    assert "vault_empty" in codes
    assert palace.search("kraken")["total"] == 5
