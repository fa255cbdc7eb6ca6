"""The command line at a terminal: colours, questions, progress, and text that must not steer the screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from tests.surfaces.stand_in import FOUND, MATCH, METABOLIZED, StandIn, put_in_place
from vault_palace.surfaces.cli import main, screen
from vault_palace.surfaces.cli.screen import Table

pty = pytest.importorskip("pty", reason="pseudo terminals are POSIX's")


@pytest.fixture
def palace(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return put_in_place(monkeypatch)


class Terminal:
    """Both ends of a pseudo terminal that stands in for the three standard streams."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, typed: str = "") -> None:
        self.main, self.program = pty.openpty()
        os.write(self.main, typed.encode())
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            stream = os.fdopen(os.dup(self.program), mode, encoding="utf-8")
            monkeypatch.setattr(sys, name, stream)

    def shown(self) -> str:
        for stream in (sys.stdout, sys.stderr, sys.stdin):
            stream.close()
        os.close(self.program)
        chunks = []
        try:
            while chunk := os.read(self.main, 65536):
                chunks.append(chunk)
        except OSError:  # Linux says EIO when the other end is closed
            pass
        os.close(self.main)
        return b"".join(chunks).decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return lambda typed="": Terminal(monkeypatch, typed)


def test_a_terminal_gets_colours_and_the_markup_in_a_note_stays_text(
    palace: StandIn, terminal: Callable[..., Terminal]
) -> None:
    tty = terminal()

    main(["search", "kafka"])

    shown = tty.shown()
    assert "\x1b[" in shown
    assert "[bold]topics[/bold]" in shown


def test_no_color_means_plain_on_a_terminal_too(
    palace: StandIn, terminal: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    tty = terminal()

    main(["search", "kafka"])

    assert "\x1b" not in tty.shown()


def test_a_note_cannot_steer_the_terminal(palace: StandIn, terminal: Callable[..., Terminal]) -> None:
    palace.answers["search"] = {**FOUND, "matches": [{**MATCH, "title": "a\x1b]0;owned\x07b\x9b2J"}]}
    tty = terminal()

    main(["search", "kafka"])

    shown = tty.shown()
    assert "\x1b]0;" not in shown
    assert "a\\x1b]0;owned\\x07b\\x9b2J" in shown


def test_a_person_is_asked_before_a_run_and_a_no_changes_nothing(
    palace: StandIn, terminal: Callable[..., Terminal]
) -> None:
    tty = terminal("n\n")

    status = main(["metabolize"])

    shown = tty.shown()
    assert status == 0
    assert [named["dry_run"] for _, _, named in palace.calls] == [True]
    assert "density 0.6" in shown
    assert "Nothing was changed." in shown


def test_a_yes_runs_what_was_shown(palace: StandIn, terminal: Callable[..., Terminal]) -> None:
    tty = terminal("y\n")

    status = main(["metabolize", "--days-threshold", "3"])

    tty.shown()
    assert status == 0
    assert [(n["dry_run"], n.get("confirm"), n["days_threshold"]) for _, _, n in palace.calls] == [
        (True, None, 3),
        (False, True, 3),
    ]


def test_purge_asks_a_person_and_takes_no_for_an_answer(
    palace: StandIn, terminal: Callable[..., Terminal]
) -> None:
    tty = terminal("\n")

    status = main(["purge", "01_Shallow/[a].md"])

    assert "Archive 01_Shallow/[a].md? [y/N]" in tty.shown()
    assert status == 0
    assert palace.calls == []


def test_progress_is_shown_on_a_terminal(palace: StandIn, terminal: Callable[..., Terminal]) -> None:
    def run(*, progress: Callable[[int, int, str], None] | None, **_: object) -> dict[str, object]:
        assert progress is not None
        progress(1, 2, "01_Shallow/[a].md")
        return METABOLIZED

    palace.answers["metabolize"] = run
    tty = terminal()

    status = main(["metabolize", "--confirm"])

    tty.shown()
    assert status == 0


def test_an_id_for_the_next_command_is_shown_in_one_piece(terminal: Callable[..., Terminal]) -> None:
    tty = terminal()
    row = ("0123456789abcdef", *(["a long reason that has to be folded somewhere"] * 6))

    columns = ("operation", "when", "what", "why", "who", "note", "versions")
    screen.Screen.open(as_json=False).show(None, [Table(columns, (row,))])

    assert "0123456789abcdef" in tty.shown()
