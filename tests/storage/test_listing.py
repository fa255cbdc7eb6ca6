"""The names in a vault are right after whatever a person did with files and folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.storage.listing import Listing
from vault_palace.storage.vault import Vault

Note = Callable[..., Path]


def test_the_first_look_tells_of_every_file(vault: Path, note: Note) -> None:
    note("01_Shallow/a.md")
    note("01_Shallow/deep/b.md")
    note("image.png")

    came, went = Listing(Vault(vault)).renew()

    assert came == {"01_Shallow/a.md", "01_Shallow/deep/b.md", "image.png"}
    assert went == set()


def test_dot_folders_links_and_passing_files_are_no_names(vault: Path, note: Note) -> None:
    note(".obsidian/app.json")
    note("node_modules/x.md")
    note("01_Shallow/.a.md.tmp")
    os.symlink("..", vault / "01_Shallow/up")
    os.symlink("gone.md", vault / "01_Shallow/dead.md")

    assert Listing(Vault(vault)).renew() == (set(), set())


def test_a_renamed_folder_moves_all_that_is_in_it(vault: Path, note: Note) -> None:
    note("01_Shallow/proj/deep/a.md")
    listing = Listing(Vault(vault))
    listing.renew()

    os.rename(vault / "01_Shallow/proj", vault / "01_Shallow/project")

    assert listing.renew() == ({"01_Shallow/project/deep/a.md"}, {"01_Shallow/proj/deep/a.md"})


def test_an_unchanged_folder_is_not_read_again(
    vault: Path, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    note("01_Shallow/a.md")
    for folder in (vault, *vault.iterdir()):
        os.utime(folder, (1, 1))
    listing = Listing(Vault(vault))
    listing.renew()

    def read_again(_path: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(os, "scandir", read_again)

    assert listing.renew() == (set(), set())


def test_a_name_that_comes_in_the_tick_of_the_last_look_is_seen(vault: Path, note: Note) -> None:
    listing = Listing(Vault(vault))
    listing.renew()
    before = os.stat(vault / "01_Shallow").st_mtime_ns
    note("01_Shallow/a.md")
    os.utime(vault / "01_Shallow", ns=(before, before))

    assert listing.renew()[0] == {"01_Shallow/a.md"}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "rename", "folder"]),
        st.sampled_from(["a", "b", "x/a", "x/b", "x/y/a", "y/a"]),
        st.sampled_from(["a", "b", "x/a", "z/a", "z/y/b"]),
    ),
    max_size=12,
)


@given(steps=STEPS)
def test_names_are_right_after_any_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str]]
) -> None:
    root = tmp_path_factory.mktemp("any")
    listing = Listing(Vault(root))
    known: set[str] = set()

    for act, one, other in steps:
        source, target = root / f"{one}.md", root / f"{other}.md"
        if (
            act == "folder"
            and source.parent != root
            and source.parent.exists()
            and not (root / "moved").exists()
        ):
            os.rename(source.parent, root / "moved")
        elif act == "remove":
            source.unlink(missing_ok=True)
        elif act == "rename" and source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(source, target)
        elif act == "write":
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text("x", encoding="utf-8")
        came, went = listing.renew()
        known = (known | came) - went

    assert known == {path.relative_to(root).as_posix() for path in root.rglob("*.md")}
