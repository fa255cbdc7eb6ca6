"""Plays the transcripts of `tests/transcripts/cli`, and rewrites them when asked to.

    python -m tests.surfaces.transcripts    writes what happens now; read the difference before you commit it

A line that begins with `$ ` is a command, the lines after it are what it prints, on either stream, and a
last `[3]` is its status where that is not 0. `$ person PATH` writes a note as a person would, from the
lines below it that begin with `> `. Ids, revs, times and days are written as ID, REV, TIME, DAY.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

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
    (re.compile(r"\d+\.\d MB"), "SIZE"),
)


def play(written: str, vault: Path) -> str:
    """What happens on a new palace at *vault* when the commands of a transcript are run."""
    run(["init", str(vault), "--timezone", "UTC"])
    parts: list[str] = []
    for command, below in commands(written):
        lines = [f"$ {command}"]
        words = shlex.split(command)
        if words[0] == "person":
            lines += below
            note = vault / words[1]
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("".join(f"{line[2:]}\n" for line in below), encoding="utf-8", newline="")
            os.utime(note, (OLD, OLD))
        else:
            status, said = run([*words[1:], "--vault", str(vault)])
            lines += [line for line in plain(said, vault).splitlines() if line]
            lines += [f"[{status}]"] if status else []
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def commands(written: str) -> list[tuple[str, list[str]]]:
    """Each command with the lines of a note below it."""
    found: list[tuple[str, list[str]]] = []
    for line in written.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> "):
            found[-1][1].append(line)
    return found


def run(words: list[str]) -> tuple[int, str]:
    """A command's status and all it printed."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        status = main(words)
    return status, said.getvalue()


def plain(text: str, vault: Path) -> str:
    """*text* without what differs from run to run."""
    text = text.replace(str(vault), "VAULT").replace("\t", " | ")
    for pattern, word in PLAIN:
        text = pattern.sub(word, text)
    return text


if __name__ == "__main__":
    for transcript in sorted(FOLDER.glob("*.txt")):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("CACHE", "STATE"):
                os.environ[f"VAULT_PALACE_{name}_DIR"] = str(Path(folder) / name.lower())
            now = play(transcript.read_text(encoding="utf-8"), Path(folder) / "vault")
        transcript.write_text(now, encoding="utf-8", newline="")
