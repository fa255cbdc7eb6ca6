"""What vaults that people keep showed about the product, each in a few notes of our own."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from tests.services.test_metabolize import properties, snapshot
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def aged(path: Path, clock: Clock, days: int) -> Path:
    """Give the file the time it would have, had it been saved so many *days* ago."""
    at = clock.at.timestamp() - days * 86_400
    os.utime(path, (at, at))
    return path


def test_a_plain_note_stays_as_old_as_its_file_when_its_links_are_rewritten(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    aged(note("01_Shallow/Plain.md", "See [[01_Shallow/Pump]] for more.\n"), clock, 90)
    aged(note("01_Shallow/Pump.md", "It pumps.\n"), clock, 90)

    palace.move("01_Shallow/Pump.md", "sediment")

    assert properties(vault, "01_Shallow/Plain.md")["created"] == "2030-12-01T12:00:00"
    body = (vault / "01_Shallow/Plain.md").read_text(encoding="utf-8").partition("---\n")[2]
    assert body.endswith("---\nSee [[02_Sediment/Pump]] for more.\n")


def test_one_run_takes_all_that_its_dry_run_named_though_links_are_rewritten_in_between(
    palace: Palace, clock: Clock, note: Note
) -> None:
    clock.at = datetime.now(UTC)  # as the files' times, which say how old these notes are
    hubs = ("Alpha", "Omega")
    for hub in hubs:
        others = " ".join(f"[[01_Shallow/{other}]]" for other in hubs)
        aged(note(f"01_Shallow/{hub}.md", f"{others}\n"), clock, 90)
        for number in range(5):
            aged(note(f"01_Shallow/{hub} {number} refers.md", f"[[01_Shallow/{hub}]]\n"), clock, 90)

    planned = palace.metabolize(dry_run=True)
    answer = palace.metabolize(confirm=True)

    assert planned["promoted"] == ["02_Sediment/Alpha.md", "02_Sediment/Omega.md"]
    assert (answer["promoted"], answer["skipped"]) == (planned["promoted"], [])


def test_a_duplicate_that_a_person_made_keeps_its_name_when_it_changes_the_layer(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    header = "---\ndensity: 0.6\ncreated: 2031-01-01\n---\n"
    note("01_Shallow/Plugins/Templates.md", f"{header}of the core\n")
    note("01_Shallow/Clipper/Templates.md", "of the clipper\n")
    note("01_Shallow/Links.md", "[[Plugins/Templates|core]] and [[Clipper/Templates|clipper]]\n")

    risen = palace.metabolize(confirm=True)["promoted"]
    archived = palace.purge("01_Shallow/Clipper/Templates.md", confirm=True)["archived_to"]

    assert risen == ["02_Sediment/Plugins/Templates.md"]
    assert archived == "_Archive/01_Shallow/Clipper/Templates.md"
    links = (vault / "01_Shallow/Links.md").read_text(encoding="utf-8")
    assert links.endswith("[[Plugins/Templates|core]] and [[Clipper/Templates|clipper]]\n")
    assert palace.restore(archived)["restored_to"] == "01_Shallow/Clipper/Templates.md"


def test_a_duplicate_gets_a_number_where_the_other_one_lies(palace: Palace, note: Note) -> None:
    note("01_Shallow/Daily.md", "one\n")
    note("02_Sediment/daily.md", "two\n")

    assert palace.move("01_Shallow/Daily.md", "sediment")["destination"] == "02_Sediment/Daily 2.md"


def test_a_link_that_leads_nowhere_twice_on_one_line_is_one_problem_everywhere(
    palace: Palace, note: Note
) -> None:
    note("01_Shallow/a.md", "See [[Nobody]] and [[Nobody]] again.\n")

    listed = palace.check()

    assert [(problem.code, problem.line) for problem in listed] == [("unresolved_link", 1)]
    assert palace.status()["problem_count"] == palace.health()["problem_count"] == 1
    assert palace.reindex()["problem_count"] == 1


@pytest.mark.parametrize("empty", ["", '""', "' '", "null", "~"])
def test_an_empty_property_is_no_problem(palace: Palace, vault: Path, note: Note, empty: str) -> None:
    """A person's own template for notes, say: `created` is filled in when a note is made from it."""
    names = ("created", "last_touched", "layer", "density", "streak", "decay_days", "rated_on", "status")
    header = "".join(f"{name}: {empty}\n" for name in names)
    note("01_Shallow/a.md", f"---\n{header}---\nbody\n")

    assert palace.check() == []

    palace.metabolize(confirm=True)
    found = properties(vault, "01_Shallow/a.md")
    assert (found["layer"], found["density"], found["streak"], found["decay_days"]) == ("shallow", 0.2, 0, 7)
    assert found["status"] == "active"


def test_a_dry_run_over_notes_without_properties_changes_nothing(
    palace: Palace, vault: Path, note: Note
) -> None:
    note("01_Shallow/Plain.md", "See [[Pump]].\n")
    before = snapshot(vault)

    palace.metabolize(dry_run=True)

    assert snapshot(vault) == before
