"""`vault-palace resolve`: what it prints, how it ends, and that it changes what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vault_palace.surfaces.cli import main

OLD = 1_700_000_000  # a note last saved long ago is quiet: nothing waits for its writer
MAIN, COPY = "01_Shallow/budget.md", "01_Shallow/budget (conflicted copy 2025-01-02).md"
PAGE = "_System/Conflicts/budget (two versions).md"
HEADER = "---\nid: mem_7f\n---\n"


@pytest.fixture
def saved(vault: Path) -> Callable[..., Path]:
    """Write a note as a person did long ago."""
    (vault / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")

    def save(path: str, body: str) -> Path:
        place = vault / path
        place.write_text(HEADER + body, encoding="utf-8")
        os.utime(place, (OLD, OLD))
        return place

    return save


def run(vault: Path, *words: str) -> int:
    return main(["resolve", *words, "--vault", str(vault)])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_merge_is_told_and_done(
    vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(MAIN, "one\ntwo\n")
    saved(COPY, "one\ntwo\nthree\n")

    status = run(vault, COPY, "--json")

    assert status == 0
    assert document(capsys)["outcome"] == "merged"
    assert (vault / MAIN).read_text(encoding="utf-8").endswith("one\ntwo\nthree\n")
    assert not (vault / COPY).exists()


def test_what_a_person_has_to_decide_ends_with_1_and_names_the_page(
    vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(MAIN, "one\n")
    saved(COPY, "two\n")

    status = run(vault, MAIN)

    said = capsys.readouterr().out
    assert status == 1
    assert PAGE in said.replace("\n", "")
    assert (vault / PAGE).exists()


def test_keep_decides(vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    saved(MAIN, "one\n")
    saved(COPY, "two\n")

    status = run(vault, MAIN, "--keep", "copy", "--json")

    assert status == 0
    assert document(capsys)["outcome"] == "copy"
    assert (vault / MAIN).read_text(encoding="utf-8").endswith("two\n")


def test_a_dry_run_says_what_would_be_done(
    vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(MAIN, "one\n")
    saved(COPY, "one\ntwo\n")

    status = run(vault, MAIN, "--dry-run")

    assert status == 0
    assert "Dry run: Merged" in capsys.readouterr().out
    assert (vault / COPY).exists()


def test_a_note_without_copies_is_not_found(
    vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(MAIN, "one\n")

    status = run(vault, MAIN, "--json")

    assert status == 10
    assert document(capsys)["error"]["code"] == "not_found"


def test_the_copies_are_listed_by_check(
    vault: Path, saved: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    saved(MAIN, "one\n")
    saved(COPY, "two\n")

    status = main(["check", "--vault", str(vault), "--json"])

    told = [row for row in document(capsys)["problems"] if row["code"] == "conflict_copy"]
    assert status == 1
    assert [(row["path"], MAIN in row["message"]) for row in told] == [(COPY, True)]
