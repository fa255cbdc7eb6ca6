"""`history`, `undo` and `forget` on a real vault: what they print, how they end, what they leave alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.test_cli_terminal import Terminal
from vault_palace.surfaces.cli import main

PUMP = "01_Shallow/Pump.md"


@pytest.fixture
def run(vault: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """Run a command with `--json` and answer how it ended and the document it printed."""
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")

    def act(*words: str) -> tuple[int, Any]:
        status = main([*words, "--vault", str(vault), "--json"])
        return status, json.loads(capsys.readouterr().out)

    return act


@pytest.fixture
def pump(run: Callable[..., tuple[int, Any]]) -> None:
    """A note that was written and grown."""
    run("write", "one", "--title", "Pump")
    run("write", "two", "--mode", "append", "--title", "Pump")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Terminal]:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")
    return lambda typed="": Terminal(monkeypatch, typed)


def shown(vault: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--vault", str(vault)]) in (0, 1)
    return capsys.readouterr().out


def test_a_history_is_a_table_newest_first(
    pump: None, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(vault, capsys, "history", "Pump").splitlines()

    assert lines[0] == PUMP
    assert [line.split("\t")[2] for line in lines if "\t" in line] == ["append", "write"]
    # The time of the use is a line too, where the clock went on by a second between the two.
    assert "lines +2 −0" in "\n".join(lines) or "lines +3 −1" in "\n".join(lines)


def test_a_dry_run_shows_the_lines_and_leaves_the_note(
    pump: None, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (vault / PUMP).read_bytes()

    said = shown(vault, capsys, "undo", "Pump", "--dry-run")

    assert "  -two" in said.splitlines()
    assert "1 note would change." in said
    assert (vault / PUMP).read_bytes() == before


def test_an_undo_says_how_it_is_taken_back(
    pump: None, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = shown(vault, capsys, "undo", "Pump", "--confirm")

    (again,) = [line for line in said.splitlines() if "back again" in line]
    shown(vault, capsys, *again.split()[3:], "--confirm")
    assert "two" in (vault / PUMP).read_text(encoding="utf-8")


def test_without_confirm_nothing_is_undone(
    pump: None, run: Callable[..., tuple[int, Any]], vault: Path
) -> None:
    before = (vault / PUMP).read_bytes()

    status, document = run("undo", "Pump")

    assert (status, document["error"]["code"]) == (15, "policy_violation")
    assert (vault / PUMP).read_bytes() == before


def test_what_is_refused_ends_with_1(pump: None, run: Callable[..., tuple[int, Any]], vault: Path) -> None:
    place = vault / PUMP
    place.write_text(place.read_text(encoding="utf-8").replace("two", "two of a person"), encoding="utf-8")
    os.utime(place, (1_700_000_000, 1_700_000_000))

    status, document = run("undo", "Pump", "--confirm")

    assert status == 1
    assert document["refused"] == 1
    assert "two of a person" in place.read_text(encoding="utf-8")


def test_a_session_is_undone_by_its_name(run: Callable[..., tuple[int, Any]], vault: Path) -> None:
    run("write", "one", "--title", "Pump")
    _, told = run("history", "Pump")

    status, document = run("undo", "--session", told["operations"][0]["session"], "--confirm")

    assert (status, document["changed"]) == (0, 1)
    assert not (vault / PUMP).exists()


def test_a_person_at_a_terminal_sees_the_lines_and_is_asked(
    pump: None, vault: Path, terminal: Callable[..., Terminal]
) -> None:
    tty = terminal("y\n")

    status = main(["undo", "Pump", "--vault", str(vault)])

    said = tty.shown()
    assert status == 0
    assert said.index("-two") < said.index("Do this now? [y/N]")
    assert "two" not in (vault / PUMP).read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["undo", "forget"])
def test_anything_but_a_yes_changes_nothing(
    pump: None, vault: Path, terminal: Callable[..., Terminal], command: str
) -> None:
    before = (vault / PUMP).read_bytes()
    tty = terminal("\n")

    status = main([command, "Pump", "--vault", str(vault)])

    assert status == 0
    assert "Nothing was changed." in tty.shown()
    assert (vault / PUMP).read_bytes() == before


def test_a_forgotten_note_is_gone_and_its_links_are_told(
    pump: None, run: Callable[..., tuple[int, Any]], vault: Path
) -> None:
    run("write", "see [[Pump]]", "--title", "Ref")

    status, document = run("forget", "Pump", "--confirm")

    assert (status, document["links"]) == (0, ["01_Shallow/Ref.md"])
    assert not (vault / PUMP).exists()


def test_forgetting_asks_for_confirm(pump: None, run: Callable[..., tuple[int, Any]], vault: Path) -> None:
    status, document = run("forget", "Pump")

    assert (status, document["error"]["code"]) == (15, "policy_violation")
    assert (vault / PUMP).exists()


def test_what_forgetting_cannot_reach_ends_with_1(
    pump: None, run: Callable[..., tuple[int, Any]], vault: Path
) -> None:
    (vault / ".trash").mkdir()
    (vault / ".trash/Pump.md").write_text("one\n", encoding="utf-8")

    status, document = run("forget", "Pump", "--confirm")

    assert status == 1
    assert document["left"] == [".trash/Pump.md: Obsidian's trash; empty it"]


# -- versions -----------------------------------------------------------------------------------------------


def kept(vault: Path, run: Callable[..., tuple[int, Any]], capsys: pytest.CaptureFixture[str]) -> str:
    """A version that only a person wrote, as the keeper keeps it; its name."""
    place = vault / PUMP
    before = place.read_text(encoding="utf-8")
    place.write_text(before.replace("two", "typed by hand"), encoding="utf-8")
    os.utime(place, (1_700_000_000, 1_700_000_000))
    assert main(["watch", "--once", "--vault", str(vault)]) == 0
    capsys.readouterr()
    place.write_text(before, encoding="utf-8")
    os.utime(place, (1_700_000_001, 1_700_000_001))
    _, document = run("history", "Pump")
    for one in document["versions"]:
        _, told = run("history", "Pump", "--version", one["version"])
        if "typed by hand" in told["text"]:
            return str(one["version"])
    raise AssertionError("the version is not named")


def test_a_version_is_listed_shown_then_put_back(
    pump: None,
    run: Callable[..., tuple[int, Any]],
    vault: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = kept(vault, run, capsys)
    capsys.readouterr()

    listed = shown(vault, capsys, "history", "Pump")
    text = shown(vault, capsys, "history", "Pump", "--version", name)
    said = shown(vault, capsys, "undo", "Pump", "--version", name, "--confirm")

    assert name in [line.split("\t")[0] for line in listed.splitlines()]
    assert text.startswith("---\n")
    assert text.rstrip("\n").endswith("typed by hand")
    assert f"Put back version {name}" in said
    assert "typed by hand" in (vault / PUMP).read_text(encoding="utf-8")


def test_a_version_is_previewed_before_a_person_is_asked(
    pump: None,
    run: Callable[..., tuple[int, Any]],
    vault: Path,
    capsys: pytest.CaptureFixture[str],
    terminal: Callable[..., Terminal],
) -> None:
    name = kept(vault, run, capsys)
    tty = terminal("n\n")

    main(["undo", "Pump", "--version", name, "--vault", str(vault)])

    said = tty.shown()
    assert said.index("+typed by hand") < said.index("Do this now? [y/N]")
    assert "typed by hand" not in (vault / PUMP).read_text(encoding="utf-8")


def test_operations_name_the_versions_around_them(
    pump: None, vault: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(vault, capsys, "history", "Pump").splitlines()

    append, write = [line.split("\t")[-1] for line in lines if "\t" in line]
    before = append.partition(",")[0].removeprefix("before ")
    assert write == f"after {before}"


@pytest.mark.parametrize(
    "words",
    [("purge", PUMP), ("undo", "Pump"), ("forget", "Pump"), ("metabolize",)],
    ids=lambda words: words[0],
)
def test_what_needs_a_yes_is_told_as_the_option_s_name(
    pump: None, run: Callable[..., tuple[int, Any]], words: tuple[str, ...]
) -> None:
    status, document = run(*words)

    assert status == 15
    assert "needs --confirm" in document["error"]["message"]
