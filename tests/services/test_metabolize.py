"""Ageing a real vault: what moves, what is only printed, what waits, and what a person holds back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.errors import NotFound, PolicyViolation, RateLimited
from vault_palace.services.palace import Palace


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of the vault with its bytes and its time stamp, the program's own state included."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def test_a_valued_note_rises_after_a_week(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("It pays.", title="Gold", density=0.6)
    clock.turn(days=7)

    answer = palace.metabolize(confirm=True)

    assert answer["promoted"] == ["02_Sediment/Gold.md"]
    found = properties(vault, "02_Sediment/Gold.md")
    assert (found["layer"], found["decay_days"], found["layer_since"]) == (
        "sediment",
        60,
        "2031-03-08T12:00:00",
    )


def test_an_unused_note_goes_to_the_archive_on_the_day_that_was_forecast(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("Nobody cares.", title="Sand", path="ideas/")
    assert properties(vault, "01_Shallow/ideas/Sand.md")["decays_on"] == "2031-03-09"

    clock.turn(days=7)
    before = palace.metabolize(confirm=True)
    clock.turn(days=1)
    after = palace.metabolize(confirm=True)

    assert before["archived"] == []
    assert after["archived"] == ["_Archive/01_Shallow/ideas/Sand.md"]
    found = properties(vault, "_Archive/01_Shallow/ideas/Sand.md")
    assert (found["status"], found["archived_reason"], found["archived_from"], found["archived_on"]) == (
        "archived",
        "decayed",
        "01_Shallow/ideas/Sand.md",
        "2031-03-09",
    )
    assert "decays_on" not in found


def test_every_answer_gives_the_reason_in_words(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="Sand")
    clock.turn(days=8)

    answer = palace.metabolize(dry_run=True)

    assert answer["decisions"] == [
        {
            "path": "01_Shallow/Sand.md",
            "to": "_Archive",
            "rule": "2",
            "reason": "density 0.2 < 0.5 and streak -1 < 0, untouched for 7 days: goes to the archive",
        }
    ]


def test_a_dry_run_writes_no_byte_and_no_time_stamp(palace: Palace, vault: Path, clock: Clock) -> None:
    for number in range(5):
        palace.write("x", title=f"Note {number}", density=number / 5)
    clock.turn(days=9)
    before = snapshot(vault)

    palace.metabolize(dry_run=True)

    assert snapshot(vault) == before


def test_a_dry_run_foretells_the_real_run(
    palace: Palace, vault: Path, clock: Clock, note: Callable[..., Path]
) -> None:
    for number in range(8):
        palace.write(f"[[Note {number + 1}]]", title=f"Note {number}", density=number / 8)
    note("01_Shallow/plain.md", "a person's own words\n")
    clock.turn(days=16)

    told = palace.metabolize(dry_run=True)
    done = palace.metabolize(confirm=True)

    assert told["promoted"]
    assert told["archived"]
    for key in ("promoted", "archived", "decaying", "decisions", "scanned"):
        assert done[key] == told[key]


def test_a_second_run_on_the_same_day_writes_nothing(
    palace: Palace, vault: Path, clock: Clock, note: Callable[..., Path]
) -> None:
    for number in range(4):
        palace.write(f"[[Note {number + 1}]]", title=f"Note {number}")
    note("01_Shallow/plain.md", "plain\n")
    clock.turn(days=9)
    palace.metabolize(confirm=True)
    notes = {path: found for path, found in snapshot(vault).items() if path.endswith(".md")}

    palace.metabolize(confirm=True)

    assert {path: found for path, found in snapshot(vault).items() if path.endswith(".md")} == notes


def test_a_real_run_needs_confirmation(palace: Palace) -> None:
    with pytest.raises(PolicyViolation, match="confirm"):
        palace.metabolize()


def test_too_many_destructive_calls_within_a_minute_are_refused(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    (vault / "_System/Policy.md").write_text("---\nmax_destructive_per_minute: 2\n---\n", encoding="utf-8")
    palace.metabolize(confirm=True)
    palace.metabolize(confirm=True)

    with pytest.raises(RateLimited):
        palace.metabolize(confirm=True)
    clock.turn(hours=0.1)

    palace.metabolize(confirm=True)


def test_a_plain_note_gets_its_properties_by_the_first_run_and_keeps_its_words(
    palace: Palace, vault: Path, note: Callable[..., Path]
) -> None:
    note("01_Shallow/plain.md", "# Mine\n\nA person's words, no newline at the end")

    palace.metabolize(confirm=True)

    text = (vault / "01_Shallow/plain.md").read_text(encoding="utf-8")
    assert frontmatter.read(text).body.lstrip("\n") == "# Mine\n\nA person's words, no newline at the end"
    assert {"id", "layer", "created", "last_touched", "density", "streak", "decay_days", "decays_on"} <= set(
        frontmatter.read(text).values
    )


def test_one_broken_note_stops_nothing_and_stays_as_it_is(
    palace: Palace, vault: Path, clock: Clock, note: Callable[..., Path]
) -> None:
    broken = note("01_Shallow/broken.md", "---\ntitle: a: b: c\n---\nbody\n")
    palace.write("x", title="Sand")
    clock.turn(days=8)
    before = broken.read_bytes()

    answer = palace.metabolize(confirm=True)

    assert answer["archived"] == ["_Archive/01_Shallow/Sand.md"]
    assert broken.read_bytes() == before


def test_what_the_brakes_hold_back_waits_until_it_is_forced(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    for number in range(25):
        palace.write("x", title=f"Sand {number}")
    palace.write("y", title="Gold", density=0.7)
    clock.turn(days=9)

    held = palace.metabolize(confirm=True)
    forced = palace.metabolize(confirm=True, force=True)

    assert (held["archived_count"], len(held["waiting"]), held["promoted_count"]) == (0, 25, 1)
    assert "force" in held["note"]
    assert forced["archived_count"] == 25


def test_a_cancelled_run_stops_between_notes(palace: Palace, clock: Clock, vault: Path) -> None:
    for number in range(5):
        palace.write("x", title=f"Sand {number}")
    clock.turn(days=9)
    done: list[str] = []

    answer = palace.metabolize(
        confirm=True, progress=lambda _n, _total, path: done.append(path), cancelled=lambda: len(done) == 2
    )

    assert answer["cancelled"]
    assert answer["archived_count"] == 2
    assert len(list((vault / "01_Shallow").glob("*.md"))) == 3


def test_a_note_that_vanishes_during_the_run_stays_gone(palace: Palace, clock: Clock, vault: Path) -> None:
    """RC-02: each step looks again before it acts."""
    for number in range(5):
        palace.write("x", title=f"Sand {number}")
    clock.turn(days=9)

    def person(number: int, _total: int, _path: str) -> None:
        if number == 1:
            (vault / "01_Shallow/Sand 2.md").unlink()
            os.rename(vault / "01_Shallow/Sand 3.md", vault / "02_Sediment/Sand 3.md")
            (vault / "01_Shallow/Sand 4.md").write_text("---\ndensity: 0.9\n---\nnew words", encoding="utf-8")

    answer = palace.metabolize(confirm=True, progress=person)

    assert not list(vault.rglob("Sand 2.md"))
    assert (vault / "02_Sediment/Sand 3.md").exists()
    assert (vault / "01_Shallow/Sand 4.md").read_text(encoding="utf-8").endswith("new words")
    assert {skipped["path"] for skipped in answer["skipped"]} >= {
        "01_Shallow/Sand 2.md",
        "01_Shallow/Sand 3.md",
    }


@pytest.mark.parametrize("spelling", ["true", "yes", '"true"', "definitely"])
def test_a_pinned_note_stays_however_the_person_spells_it(
    palace: Palace, clock: Clock, vault: Path, note: Callable[..., Path], spelling: str
) -> None:
    """TM-07: protection fails safe."""
    note(
        "01_Shallow/keep.md",
        f"---\npinned: {spelling}\ncreated: 2028-01-01\nlast_touched: 2028-01-01\n---\nx\n",
    )

    answer = palace.metabolize(confirm=True)

    assert answer["archived"] == []
    assert (vault / "01_Shallow/keep.md").exists()


def test_a_persons_streak_is_not_charged_for_the_time_before_it(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    """SPEC §4: a person's edit of `streak` is respected."""
    palace.write("x", title="Sand")
    clock.turn(days=20)
    path = vault / "01_Shallow/Sand.md"
    path.write_text(path.read_text(encoding="utf-8").replace("streak: 0", "streak: 2"), encoding="utf-8")

    answer = palace.metabolize(confirm=True)

    assert answer["archived"] == []
    assert properties(vault, "01_Shallow/Sand.md")["streak"] == 2


def test_a_dragged_note_is_not_undone_the_next_night(palace: Palace, clock: Clock, vault: Path) -> None:
    palace.write("x", title="Sand")
    clock.turn(days=30)
    os.rename(vault / "01_Shallow/Sand.md", vault / "02_Sediment/Sand.md")
    palace.metabolize(confirm=True)
    clock.turn(days=1)

    answer = palace.metabolize(confirm=True)

    assert answer["archived"] == []
    assert properties(vault, "02_Sediment/Sand.md")["layer"] == "sediment"


def test_a_change_of_a_default_lifetime_takes_along_the_lines_that_held_the_old_one(
    palace: Palace, clock: Clock, vault: Path
) -> None:
    palace.write("x", title="Sand")
    palace.write("y", title="Own")
    palace.rate(path="01_Shallow/Own.md", decay_days=9)
    palace.metabolize(confirm=True)
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\nshallow_days: 14\n---\n", encoding="utf-8")
    os.utime(vault / "_System/Policy.md", ns=(1, 1))

    palace.metabolize(confirm=True)

    assert properties(vault, "01_Shallow/Sand.md")["decay_days"] == 14
    assert properties(vault, "01_Shallow/Own.md")["decay_days"] == 9


def test_a_promoted_note_keeps_its_room_and_every_link_to_it(
    palace: Palace, clock: Clock, vault: Path, note: Callable[..., Path]
) -> None:
    """WL-10 B: moving notes is invisible to readers."""
    palace.write("x", title="pump", path="machines/", density=0.9)
    note(
        "root.md",
        "[[01_Shallow/machines/pump]], [p](01_Shallow/machines/pump.md), ![[pump#Fig]] and [[pump]]\n",
    )
    clock.turn(days=7)

    answer = palace.metabolize(confirm=True)

    assert answer["promoted"] == ["02_Sediment/machines/pump.md"]
    assert (vault / "root.md").read_text(encoding="utf-8") == (
        "[[02_Sediment/machines/pump]], [p](02_Sediment/machines/pump.md), ![[pump#Fig]] and [[pump]]\n"
    )


def test_plans_are_the_same_before_and_after_a_rebuild_of_the_index(
    palace: Palace, clock: Clock, vault: Path, note: Callable[..., Path]
) -> None:
    """TM-08: the index is derived, and so is nothing that decides."""
    for number in range(20):
        day = f"2030-{number % 12 + 1:02}-01"
        path = note(f"01_Shallow/n{number}.md", f"---\ncreated: {day}\n---\n[[n{number + 1}]]\n")
        os.utime(path, (1_800_000_000 + number * 86_400, 1_800_000_000 + number * 86_400))
    before = palace.metabolize(dry_run=True)

    palace.reindex()

    assert palace.metabolize(dry_run=True) == before


def test_a_run_on_a_vault_that_has_gone_says_what_to_do(palace: Palace, vault: Path) -> None:
    palace.search("anything")
    vault.rename(vault.with_name("elsewhere"))

    with pytest.raises(NotFound, match=r"any more.*disk not mounted"):
        palace.metabolize(dry_run=True)
