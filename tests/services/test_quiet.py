"""Giving way to a person: waiting, doing only what is safe beside an open editor, coming back later."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.services.conftest import Clock
from vault_palace.core.errors import Busy, TimedOut
from vault_palace.services import pace, quiet
from vault_palace.services.attention import open_notes
from vault_palace.services.palace import Palace
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]


def edit(path: Path, clock: Clock, *, seconds_ago: float, text: str = "a person's words\n") -> None:
    """Save a note as Obsidian does, in place, so many seconds before the clock's now."""
    with path.open("ab") as file:
        file.write(text.encode())
    at = int((clock.at.timestamp() - seconds_ago) * 1e9)
    os.utime(path, ns=(at, at))


def open_in_obsidian(vault: Path, *paths: str) -> None:
    leaves = [{"type": "leaf", "state": {"type": "markdown", "state": {"file": path}}} for path in paths]
    workspace = {"main": {"type": "split", "children": [{"type": "tabs", "children": leaves}]}, "active": "x"}
    (vault / ".obsidian").mkdir(exist_ok=True)
    (vault / ".obsidian/workspace.json").write_text(json.dumps(workspace), encoding="utf-8")


def test_a_command_waits_until_the_note_is_quiet(palace: Palace, vault: Path, clock: Clock) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=0.5)

    palace.rate(path=saved, density=0.9)

    assert 1.4 <= clock.slept <= 2


def test_a_note_that_keeps_changing_answers_busy(
    palace: Palace, vault: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=0)

    def typing(seconds: float) -> None:
        Clock.sleep(clock, seconds)
        edit(vault / saved, clock, seconds_ago=0)

    object.__setattr__(palace.house.settings, "sleep", typing)

    with pytest.raises(Busy, match="being edited"):
        palace.rate(path=saved, density=0.9)

    assert 9 <= clock.slept <= 11


@contextmanager
def given_up_after(looks: int) -> Iterator[None]:
    """Within it nobody waits for the answer any more, once that was asked so many times."""
    asked = iter([False] * looks)
    token = pace.PACE.set(pace.Pace(lambda *_: None, lambda: False, lambda: next(asked, True)))
    try:
        yield
    finally:
        pace.PACE.reset(token)


def test_mc_08_a_call_that_is_cancelled_while_it_waits_for_a_person_does_nothing(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=0)
    before = (vault / saved).read_bytes()

    with given_up_after(looks=2), pytest.raises(TimedOut, match="nothing was done"):
        palace.purge(saved, confirm=True)

    assert (vault / saved).read_bytes() == before
    assert clock.slept == pytest.approx(2 * quiet.LOOK_SECONDS)


def test_mc_08_a_call_that_is_cancelled_while_another_machine_writes_does_nothing(
    palace: Palace, vault: Path
) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    marker = vault / ".palace/lock"
    marker.write_bytes(b"1\nlaptop.example\n")
    before = (vault / saved).read_bytes()

    with given_up_after(looks=2), pytest.raises(TimedOut, match="nothing was done"):
        palace.write("more", mode="append", path="T")

    assert (vault / saved).read_bytes() == before
    assert marker.read_bytes() == b"1\nlaptop.example\n"
    marker.unlink()
    palace.write("more", mode="append", path="T")
    assert "more" in (vault / saved).read_text()


def test_an_append_never_waits_for_a_note_to_be_quiet(palace: Palace, vault: Path, clock: Clock) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=0.2)

    palace.write("more", mode="append", path="T")

    assert clock.slept == 0


def test_reading_never_waits_and_its_use_is_written_later(palace: Palace, vault: Path, clock: Clock) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    clock.turn(days=1)
    edit(vault / saved, clock, seconds_ago=0)
    before = (vault / saved).read_bytes()

    palace.read(path=saved)
    assert (vault / saved).read_bytes() == before
    clock.turn(hours=1)
    palace.write("y", title="Other")
    palace.read(title="Other")

    assert b"last_touched: 2031-03-02T12:00:00" in (vault / saved).read_bytes()


@pytest.mark.parametrize("verb", ["replace", "move", "purge"])
def test_an_open_note_that_was_just_edited_keeps_body_and_place(
    palace: Palace, vault: Path, clock: Clock, verb: str
) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=60)
    open_in_obsidian(vault, saved)
    before = (vault / saved).read_bytes()
    rev = palace.read(path=saved, touch=False)["rev"]

    acts: dict[str, Callable[[], object]] = {
        "replace": lambda: palace.write("new", mode="replace", path="T", if_rev=rev),
        "move": lambda: palace.move(saved, "sediment"),
        "purge": lambda: palace.purge(saved, confirm=True),
    }

    with pytest.raises(Busy, match="open in Obsidian"):
        acts[verb]()

    assert (vault / saved).read_bytes() == before


def test_properties_of_an_open_note_may_change(palace: Palace, vault: Path, clock: Clock) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=60)
    open_in_obsidian(vault, saved)

    palace.rate(path=saved, density=0.9)

    assert (vault / saved).read_text(encoding="utf-8").endswith("a person's words\n")


def test_the_program_s_own_line_does_not_make_an_open_note_free_again(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=60)
    open_in_obsidian(vault, saved)
    palace.rate(path=saved, density=0.9)

    with pytest.raises(Busy):
        palace.move(saved, "sediment")
    clock.turn(hours=0.2)

    assert palace.move(saved, "sediment")["destination"] == "02_Sediment/T.md"


def test_metabolize_skips_an_open_note_and_takes_it_next_time(
    palace: Palace, vault: Path, clock: Clock
) -> None:
    palace.write("x", title="Gold", density=0.9)
    palace.write("y", title="Silver", density=0.9)
    clock.turn(days=8)
    edit(vault / "01_Shallow/Gold.md", clock, seconds_ago=60)
    open_in_obsidian(vault, "01_Shallow/Gold.md")

    first = palace.metabolize(confirm=True)
    clock.turn(hours=1)
    second = palace.metabolize(confirm=True)

    assert first["promoted"] == ["02_Sediment/Silver.md"]
    assert [skipped["path"] for skipped in first["skipped"]] == ["01_Shallow/Gold.md"]
    assert second["promoted"] == ["02_Sediment/Gold.md"]


def test_a_referrer_that_is_being_edited_holds_a_rename_back(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    palace.write("x", title="Hub")
    referrer = note("01_Shallow/ref.md", "[[Hub]]\n")
    edit(referrer, clock, seconds_ago=60)
    open_in_obsidian(vault, "01_Shallow/ref.md")

    with pytest.raises(Busy, match=r"ref\.md"):
        palace.move("01_Shallow/Hub.md", "shallow", new_path="Centre")

    assert (vault / "01_Shallow/Hub.md").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        '{"main": null}',
        '{"a": {"file": 7}}',
        "[" * 100_000,
        '{"file": ["a.md"]}',
        "\x00",
    ],
)
def test_a_workspace_of_any_shape_is_tolerated(vault: Path, note: Note, text: str) -> None:
    note(".obsidian/workspace.json", text)

    assert open_notes(Vault(vault)) == frozenset()


def test_a_clock_that_was_set_back_does_not_lock_the_vault(palace: Palace, vault: Path, clock: Clock) -> None:
    """TM-02: a file's time in the future counts as long ago."""
    saved = palace.write("x", title="T")["saved_path"]
    edit(vault / saved, clock, seconds_ago=-100_000)

    palace.rate(path=saved, density=0.9)

    assert clock.slept == 0
