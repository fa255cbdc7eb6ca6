"""What a person sees, as transcripts: `tests/transcripts/cli/*.txt` are test, example and manual at once.

A line that begins with `$ ` is a command (`$ person PATH` writes a note as a person would, from the lines
below it that begin with `> `); the lines after it are what it prints, on either stream, a last `[3]` is its
status where that is not 0. Ids, revs, times and days are written as `ID`, `REV`, `TIME`, `DAY`.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from vault_palace.surfaces.cli import main

FOLDER = Path(__file__).resolve().parents[1] / "transcripts" / "cli"
OLD = 1_700_000_000  # long ago: the note is quiet
PLAIN = (
    (re.compile(r"mem_[0-9a-f]{12}"), "ID"),
    (re.compile(r"\brev [0-9a-f]{12}"), "rev REV"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\d+ days old"), "N days old"),
    (re.compile(r"in \d+\.\d s"), "in SECONDS"),
    (re.compile(r"\S+\.sqlite3"), "CACHE"),
)


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Each command with the lines that follow it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and not line.startswith("# "):
            found[-1][1].append(line)
    return found


def plain(text: str, vault: Path) -> str:
    """*text* without what differs from run to run."""
    text = text.replace(str(vault), "VAULT")
    text = text.replace("\t", " | ")
    for pattern, word in PLAIN:
        text = pattern.sub(word, text)
    return text


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_a_transcript_is_what_happens(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vault = tmp_path / "vault"
    main(["init", str(vault), "--timezone", "UTC"])
    capsys.readouterr()
    monkeypatch.setenv("VAULT_PALACE_VAULT", str(vault))
    written = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")

    happened: list[str] = []
    for command, below in steps(written):
        happened.append(f"$ {command}")
        words = shlex.split(command)
        if words[0] == "person":
            happened += below
            note = vault / words[1]
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("".join(f"{line[2:]}\n" for line in below if line[:2] == "> "), encoding="utf-8")
            os.utime(note, (OLD, OLD))
            continue
        status = main(words[1:])
        said = capsys.readouterr()
        happened += plain(said.out + said.err, vault).splitlines()
        happened += [f"[{status}]"] if status else []

    expected = [line for line in written.splitlines() if line and not line.startswith("# ")]
    assert [line for line in happened if line] == expected
