"""The folders that a watcher has to hear of: all that may hold a memory, and nothing behind a link."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.storage.palace import as_person
from vault_palace.storage.mounts import find_folders


def test_every_folder_that_may_matter_is_found(vault: Path) -> None:
    for folder in (
        "01_Shallow/ideas/old",
        ".git/objects",
        ".palace",
        "02_Sediment/node_modules/x",
        ".obsidian",
    ):
        (vault / folder).mkdir(parents=True)
    (vault / "01_Shallow/note.md").write_text("x\n", encoding="utf-8")

    found = find_folders(vault, also=(".obsidian", ".missing"))

    assert set(found.readable) == {
        "",
        "01_Shallow",
        "01_Shallow/ideas",
        "01_Shallow/ideas/old",
        "02_Sediment",
        "03_Bedrock",
        "_System",
        ".obsidian",
    }
    assert found.unreadable == frozenset()


def test_a_link_is_not_followed(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "outside/deep").mkdir(parents=True)
    (vault / "01_Shallow/door").symlink_to(tmp_path / "outside")
    (vault / "01_Shallow/round").symlink_to(vault)

    found = find_folders(vault)

    assert {folder for folder in found.readable if folder.startswith("01_Shallow")} == {"01_Shallow"}


def test_a_vault_that_is_away_is_an_error_and_not_an_empty_one(vault: Path) -> None:
    vault.rename(vault.with_name("away"))

    with pytest.raises(FileNotFoundError):
        find_folders(vault)


def test_a_folder_that_goes_while_it_is_looked_for_is_left_out(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.scandir

    def gone(place: str) -> object:
        if place.endswith("02_Sediment"):
            raise FileNotFoundError(place)
        return look(place)

    monkeypatch.setattr(os, "scandir", gone)

    found = find_folders(vault)

    assert "02_Sediment" not in {*found.readable, *found.unreadable}


def test_a_folder_without_permission_is_named() -> None:
    def person() -> None:
        root = Path(tempfile.mkdtemp())
        (root / "01_Shallow/private/deep").mkdir(parents=True)
        (root / "01_Shallow/private").chmod(0)
        try:
            found = find_folders(root)
            assert found.unreadable == {"01_Shallow/private"}
            assert set(found.readable) == {"", "01_Shallow"}
            root.chmod(0)
            with pytest.raises(PermissionError):
                find_folders(root)
        finally:
            root.chmod(0o755)
            (root / "01_Shallow/private").chmod(0o755)
            shutil.rmtree(root)

    as_person(person)
