"""Looking without a use: what is believed of a note that is missing, and what fades, by state alone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from vault_palace.core.errors import PathViolation, TimedOut
from vault_palace.services import pace
from vault_palace.services.palace import Palace
from vault_palace.services.shelf import GONE_SECONDS

PATH = "01_Shallow/a.md"


def test_a_glimpse_is_of_what_an_agent_sees(palace: Palace, note: Callable[..., Path]) -> None:
    note(PATH, "---\nid: mem_0a1b2c3d4e5f\nstreak: 1\n---\nHello.\n")
    first = palace.glimpse(PATH)

    note(PATH, "---\nid: mem_0a1b2c3d4e5f\nstreak: 2\nbacklinks: 3\n---\nHello.\n")
    upkeep = palace.glimpse(PATH, first)
    note(PATH, "---\nid: mem_0a1b2c3d4e5f\nstreak: 2\nbacklinks: 3\n---\nHello you.\n")
    edited = palace.glimpse(PATH, upkeep)

    assert upkeep.rev == first.rev != ""
    assert edited.rev != first.rev


def test_a_deleted_note_is_gone(palace: Palace, note: Callable[..., Path]) -> None:
    place = note(PATH)
    note("01_Shallow/b.md")
    before = palace.glimpse(PATH)

    place.unlink()

    assert palace.glimpse(PATH, before).rev == ""


def test_many_deleted_notes_are_waited_for_once(
    palace: Palace, note: Callable[..., Path], clock: Clock
) -> None:
    places = {f"01_Shallow/room/{number}.md": note(f"01_Shallow/room/{number}.md") for number in range(15)}
    palace.search("hello")
    before = {path: palace.glimpse(path) for path in places}
    slept = clock.slept

    for place in places.values():
        place.unlink()
    seen = palace.glimpses(before)

    assert {path: glimpse.rev for path, glimpse in seen.items()} == dict.fromkeys(places, "")
    assert clock.slept - slept == pytest.approx(GONE_SECONDS)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes")
def test_what_cannot_be_looked_at_keeps_nothing_else_from_being_seen(
    palace: Palace, vault: Path, note: Callable[..., Path]
) -> None:
    note(PATH)
    os.mkfifo(vault / "01_Shallow/pipe.md")

    seen = palace.glimpses({PATH: None, "01_Shallow/pipe.md": None})

    assert list(seen) == [PATH]
    assert seen[PATH].rev != ""


def test_a_vault_that_is_away_is_no_deletion(
    palace: Palace, vault: Path, note: Callable[..., Path], tmp_path: Path
) -> None:
    note(PATH)
    before = palace.glimpse(PATH)

    vault.rename(tmp_path / "elsewhere")

    assert palace.glimpse(PATH, before) == before
    assert palace.glimpses({PATH: before}) == {}


def test_a_layer_that_is_away_is_no_deletion(
    palace: Palace, vault: Path, note: Callable[..., Path], clock: Clock
) -> None:
    note(PATH)
    palace.search("hello")
    before = palace.glimpse(PATH)

    shutil.rmtree(vault / "01_Shallow")
    palace.house.shelf.stir()

    assert palace.glimpse(PATH, before) == before


def test_a_map_that_is_being_saved_is_as_it_was(palace: Palace, note: Callable[..., Path]) -> None:
    note("PALACE_MAP.md", "# Map\n")
    before = palace.glimpse_of_map()

    note("PALACE_MAP.md", "")

    assert palace.glimpse_of_map(before) == before


@pytest.mark.parametrize("path", ["../a.md", "/a.md", "01_Shallow/../../a.md", "C:/a.md"])
def test_what_lies_outside_can_never_be_read(palace: Palace, path: str) -> None:
    with pytest.raises(PathViolation):
        palace.readable(path)


def test_what_a_purge_would_do_is_told_and_not_done(palace: Palace, note: Callable[..., Path]) -> None:
    place = note(PATH)
    for number in range(8):
        note(f"01_Shallow/n{number}.md", "See [[a]].\n")

    seen = palace.before_purge(PATH)

    assert (seen["archived_to"], seen["backlink_count"]) == (f"_Archive/{PATH}", 8)
    assert len(seen["backlinks"]) == 5
    assert place.read_text() == "hello\n"


def test_work_that_nobody_wants_any_more_stops_between_notes() -> None:
    heard: list[tuple[int, int, str]] = []
    token = pace.PACE.set(pace.Pace(lambda *step: heard.append(step), lambda: len(heard) == 2))
    try:
        pace.step(0, 3, "a")
        with pace.unheard():
            pace.step(0, 9, "inside")
        pace.step(1, 3, "b")
        with pytest.raises(TimedOut):
            pace.step(2, 3, "c")
    finally:
        pace.PACE.reset(token)

    pace.step(0, 1, "nobody listens")
    assert heard == [(0, 3, "a"), (1, 3, "b")]
