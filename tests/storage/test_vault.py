"""The vault locates, reads and lists: nothing outside, nothing behind a link."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.storage.palace import as_person, everything
from vault_palace.core.errors import NotFound, PathViolation, StorageFailed, VaultError
from vault_palace.core.model import Layer
from vault_palace.storage import files
from vault_palace.storage.vault import Mark, Vault, find_palace, new_palace, palace_mark

ESCAPES = (
    "../v-private/secret",
    "01_Shallow/../../v-private/secret.md",
    "/etc/passwd",
    "~/x",
    "~",
    "01_Shallow/%2e%2e/%2e%2e/x",
    "01_Shallow/%2E./x",
    "01_Shallow/..%2f..%2fx",
    "01_Shallow/..%5c..%5cx",
    "..\\..\\x",
    "01_Shallow\\a.md",
    "01_Shallow/./../../x",
    "file:///etc/passwd",
    "01_Shallow/sub/../../_Archive/../../x",
    "C:x.md",
    "C:/x.md",
    "01_Shallow/.. /x.md",
    "01_Shallow//x.md",
    "01_Shallow/",
    "",
    ".",
    "./.",
    "a\0b.md",
    "01_Shallow/\ud800.md",
    "01_Shallow/\udce9.md",
    "01_Shallow\0/x.md",
    "01_Shallow/a.md\0.png",
    "01_Shallow/" + "x" * 256 + ".md",
    "01_Shallow/" + "漢" * 86 + ".md",
)


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leaves_the_vault_is_refused(vault: Path, path: str) -> None:
    """MC-11, MC-14, FS-05"""
    secret = vault.parent / "v-private"
    secret.mkdir()
    (secret / "secret.md").write_text("hush")

    with pytest.raises(PathViolation) as caught:
        Vault(vault).locate(path)

    assert "hush" not in str(caught.value)
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize("path", ["01_Shallow/./a.md", "./01_Shallow/a.md", "01_Shallow/a.md"])
def test_harmless_spellings_name_the_note(vault: Path, path: str) -> None:
    """MC-11"""
    assert Vault(vault).locate(path) == vault / "01_Shallow" / "a.md"


@pytest.mark.parametrize(
    "name", ["..a.md", "a..md", "50%25 off.md", "a%2Fb.md", "~draft.md", "C: drive.md", "%.md"]
)
def test_a_person_s_odd_file_names_can_be_located(vault: Path, name: str) -> None:
    path = f"01_Shallow/{name}"

    assert Vault(vault).locate(path) == vault / "01_Shallow" / name


@given(st.text(alphabet=st.sampled_from("./\\~%2eEfF:\0ax\ud800ä"), max_size=20))
def test_no_text_locates_anything_outside(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    """MC-11"""
    root = tmp_path_factory.getbasetemp() / "v"
    root.mkdir(exist_ok=True)

    try:
        place = Vault(root).locate(path)
    except PathViolation:
        return

    assert Path(os.path.abspath(place)).is_relative_to(root)
    assert Path(os.path.abspath(place)) != root


@pytest.mark.parametrize("target", ["outside", "inside", "gone"])
@pytest.mark.parametrize("as_folder", [True, False], ids=["folder", "file"])
def test_a_symbolic_link_is_refused_at_any_component(vault: Path, target: str, as_folder: bool) -> None:
    """FS-09"""
    places = {"outside": vault.parent / "elsewhere", "inside": vault / "02_Sediment", "gone": vault / "gone"}
    (vault.parent / "elsewhere").mkdir()
    link = vault / "01_Shallow" / ("link" if as_folder else "link.md")
    link.symlink_to(places[target])
    path = "01_Shallow/link/x.md" if as_folder else "01_Shallow/link.md"

    with pytest.raises(PathViolation, match="symbolic link"):
        Vault(vault).locate(path)


def test_a_sibling_with_the_same_prefix_is_not_inside(vault: Path) -> None:
    """MC-11"""
    sibling = vault.parent / "vault-private"
    sibling.mkdir()

    with pytest.raises(PathViolation):
        Vault(vault).rel(sibling / "x.md")


def test_a_located_path_comes_back_as_it_was(vault: Path) -> None:
    palace = Vault(vault)

    assert palace.rel(palace.locate("01_Shallow/a/ä b.md")) == "01_Shallow/a/ä b.md"


ODD_ROOT = "My Vault (2) & [äöü] #1 %20"


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("through_link", [True, False], ids=["link", "folder"])
def test_a_vault_may_lie_at_any_path(tmp_path: Path, slash: str, through_link: bool) -> None:
    """MC-13"""
    root = tmp_path / ODD_ROOT
    (root / "01_Shallow").mkdir(parents=True)
    (root / "01_Shallow" / "a.md").write_bytes(b"text")
    named = root
    if through_link:
        named = tmp_path / "way in"
        named.symlink_to(root)

    palace = find_palace(f"{named}{slash}")

    assert palace.root == root
    assert [path for path, _ in palace.walk()] == ["01_Shallow/a.md"]
    assert palace.read("01_Shallow/a.md").data == b"text"


# -- reading ------------------------------------------------------------------------------------------------


def test_reading_gives_bytes_fingerprint_and_mark(vault: Path, note: Callable[..., Path]) -> None:
    place = note("01_Shallow/a.md", b"caf\xe9\r\n")

    stored = Vault(vault).read("01_Shallow/a.md")

    assert stored.data == b"caf\xe9\r\n"
    assert stored.fingerprint == files.fingerprint(b"caf\xe9\r\n")
    assert stored.mark == Mark.of(place.stat())
    assert stored.mark == Vault(vault).mark("01_Shallow/a.md")


@pytest.mark.parametrize(
    "path", ["01_Shallow/none.md", "01_Shallow/none/x.md", "01_Shallow/a.md/x.md", "01_Shallow"]
)
def test_what_is_no_file_is_not_found(vault: Path, note: Callable[..., Path], path: str) -> None:
    note("01_Shallow/a.md")

    with pytest.raises(NotFound):
        Vault(vault).read(path)


def test_a_pipe_does_not_block(vault: Path) -> None:
    os.mkfifo(vault / "01_Shallow" / "pipe.md")

    with pytest.raises(StorageFailed, match="not a regular file"):
        Vault(vault).read("01_Shallow/pipe.md")


def test_a_file_beyond_the_limit_is_refused_by_size(vault: Path, note: Callable[..., Path]) -> None:
    note("01_Shallow/big.md", b"x" * 101)

    with pytest.raises(StorageFailed, match="larger than 100 bytes"):
        Vault(vault).read("01_Shallow/big.md", limit=100)


def test_a_file_that_changes_while_it_is_read_is_read_again(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = note("01_Shallow/a.md", b"first")
    real = os.read
    calls: list[int] = []

    def reading(fd: int, size: int) -> bytes:
        if not calls:
            calls.append(fd)
            place.write_bytes(b"second one")
        return real(fd, size)

    monkeypatch.setattr(os, "read", reading)

    stored = Vault(vault).read("01_Shallow/a.md")

    assert stored.data == b"second one"
    assert stored.mark == Mark.of(place.stat())


def test_an_unreadable_file_is_not_called_missing(vault: Path, note: Callable[..., Path]) -> None:
    note("01_Shallow/a.md").chmod(0)
    note("02_Sediment/closed/b.md").parent.chmod(0)
    palace = Vault(vault)
    for above in (vault, *vault.parents):
        if above.stat().st_uid == os.getuid() and "pytest-of-" in str(above):
            above.chmod(0o755)

    def act() -> None:
        for path in ("01_Shallow/a.md", "02_Sediment/closed/b.md"):
            with pytest.raises(StorageFailed) as caught:
                palace.read(path)
            assert caught.value.facts["reason"] == "no permission"
        with pytest.raises(StorageFailed):
            palace.exists("02_Sediment/closed/b.md")
        assert "02_Sediment/closed/b.md" not in dict(palace.walk())
        assert palace.unreadable == {"02_Sediment/closed"}
        assert palace.hidden("02_Sediment/closed/b.md")
        assert not palace.hidden("02_Sediment/closed2.md")
        assert [stray.code for stray in palace.strays] == ["unreadable"]

    try:
        as_person(act)
    finally:
        (vault / "02_Sediment/closed").chmod(0o755)


# -- listing ------------------------------------------------------------------------------------------------


def test_stray_links_blind_nobody(vault: Path, note: Callable[..., Path]) -> None:
    """FS-08"""
    note("01_Shallow/a.md")
    (vault / "01_Shallow/dead.md").symlink_to("gone.md")
    (vault / "01_Shallow/up").symlink_to("..")
    (vault / "01_Shallow/self").symlink_to("self")
    palace = Vault(vault)

    found = [path for path, _ in palace.walk()]

    assert found == ["01_Shallow/a.md"]
    assert sorted((stray.path, stray.code) for stray in palace.strays) == [
        ("01_Shallow/dead.md", "symbolic_link"),
        ("01_Shallow/self", "symbolic_link"),
        ("01_Shallow/up", "symbolic_link"),
    ]


def test_the_walk_lists_files_in_order_with_their_marks(vault: Path, note: Callable[..., Path]) -> None:
    for path in ("b.md", "01_Shallow/b.md", "01_Shallow/a/z.png", "01_Shallow/a.md", "x.tmp/kept.md"):
        note(path)
    for path in (".obsidian/app.json", "01_Shallow/.trash/x.md", "node_modules/x.md", "01_Shallow/x.md.tmp"):
        note(path)

    found = dict(Vault(vault).walk())

    assert list(found) == [
        "b.md",
        "01_Shallow/a.md",
        "01_Shallow/b.md",
        "01_Shallow/a/z.png",
        "x.tmp/kept.md",
    ]
    assert found["b.md"] == Mark.of((vault / "b.md").stat())


@pytest.mark.parametrize("name", [b"caf\xe9.md", b"a\\b.md", b"folder\xff"])
def test_a_name_that_not_every_system_can_hold_is_reported(vault: Path, name: bytes) -> None:
    place = os.path.join(os.fsencode(vault), b"01_Shallow", name)
    if name.endswith(b".md"):
        with open(place, "wb"):
            pass
    else:
        os.mkdir(place)
    palace = Vault(vault)

    assert list(palace.walk()) == []
    assert [stray.code for stray in palace.strays] == ["bad_name"]
    assert palace.strays[0].path.encode("utf-8")


def test_what_is_neither_file_nor_folder_is_reported(vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(vault / "pipe.md")
    with socket.socket(socket.AF_UNIX) as ear:
        monkeypatch.chdir(vault)
        ear.bind("s.md")
    palace = Vault(vault)

    assert list(palace.walk()) == []
    assert {stray.code for stray in palace.strays} == {"not_a_file"}


def test_a_missing_root_is_not_an_empty_vault(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        list(Vault(tmp_path / "unmounted").walk())


def test_what_vanishes_during_the_walk_is_passed_over(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    note("01_Shallow/a.md")
    note("02_Sediment/b.md")
    real = os.scandir

    def vanishing(path: Path) -> object:
        if path == vault / "02_Sediment":
            raise FileNotFoundError
        return real(path)

    monkeypatch.setattr(os, "scandir", vanishing)

    assert [path for path, _ in Vault(vault).walk()] == ["01_Shallow/a.md"]


def test_the_walk_changes_nothing(vault: Path, note: Callable[..., Path]) -> None:
    note("01_Shallow/a.md")
    seen = everything(vault)

    list(Vault(vault).walk())

    assert everything(vault) == seen


def test_the_vault_knows_kinds_layers_and_rooms(vault: Path) -> None:
    path = "02_Sediment/ideas/x.md"

    assert (Vault.kind(path), Vault.layer_of(path), Vault.room_of(path)) == (
        "memory",
        Layer.SEDIMENT,
        "ideas",
    )
    assert Vault(vault).is_folder("02_Sediment")
    assert Vault(vault).is_folder("")
    assert not Vault(vault).is_folder("02_Sediment/ideas")
    assert Vault(vault).exists("02_Sediment")
    assert not Vault(vault).exists("02_Sediment/ideas/x.md")


# -- which folder is a palace -------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["_System/Policy.md", "_System/policy.yaml", "01_Shallow/"])
def test_any_mark_makes_a_folder_a_palace(tmp_path: Path, mark: str) -> None:
    place = tmp_path / "p" / mark
    place.parent.mkdir(parents=True)
    if mark.endswith("/"):
        place.mkdir()
    else:
        place.write_text("")

    assert find_palace(str(tmp_path / "p")).root == tmp_path / "p"
    assert palace_mark(tmp_path / "p") == mark.rstrip("/")


def test_a_home_is_refused_even_when_it_is_marked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """FS-18"""
    home = tmp_path / "people" / "ann"
    (home / "01_Shallow").mkdir(parents=True)
    (tmp_path / "people" / "01_Shallow").mkdir()
    monkeypatch.setenv("HOME", str(home))

    for root in (home, f"{home}/", "~", tmp_path / "people", home / "01_Shallow" / ".."):
        with pytest.raises(PathViolation, match="home folder"):
            find_palace(root)


def test_a_folder_around_the_home_is_not_called_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))

    with pytest.raises(PathViolation, match="holds your home folder"):
        find_palace(tmp_path)


@pytest.mark.parametrize("root", ["/", "//", "/tmp/.."])
def test_the_root_is_refused(root: str) -> None:
    """FS-18"""
    with pytest.raises(PathViolation, match=r"root of a file system|home folder"):
        find_palace(root)


@pytest.mark.parametrize("root", ["", "  ", "a\0b"])
def test_no_name_is_not_the_current_folder(root: str) -> None:
    """FS-18, MC-14"""
    with pytest.raises(PathViolation):
        find_palace(root)


@pytest.mark.parametrize("layer", list(Layer))
def test_a_layer_is_refused_with_the_palace_around_it(vault: Path, layer: Layer) -> None:
    """FS-18"""
    with pytest.raises(PathViolation, match="is a layer") as caught:
        find_palace(vault / layer.folder)

    assert str(vault) in caught.value.hint


def test_a_folder_with_files_that_is_no_palace_is_refused(tmp_path: Path) -> None:
    """FS-18"""
    (tmp_path / "taxes.txt").write_text("mine")

    with pytest.raises(PathViolation, match="is not a palace") as caught:
        find_palace(tmp_path)

    assert "init" in caught.value.hint


def test_a_room_of_a_palace_is_refused_with_the_palace_around_it(
    vault: Path, note: Callable[..., Path]
) -> None:
    """FS-18"""
    note("01_Shallow/ideas/x.md")

    with pytest.raises(PathViolation) as caught:
        find_palace(vault / "01_Shallow" / "ideas")

    assert str(vault) in caught.value.hint


@pytest.mark.parametrize("make", [False, True], ids=["missing", "empty"])
def test_a_missing_or_empty_folder_may_be_a_disk_that_is_not_mounted(tmp_path: Path, make: bool) -> None:
    """FS-18"""
    root = tmp_path / "disk"
    if make:
        root.mkdir()

    with pytest.raises(NotFound, match=r"no folder|is empty") as caught:
        find_palace(root)

    assert "mounted" in caught.value.hint


def test_a_file_is_no_vault(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("")

    with pytest.raises(PathViolation, match="is a file"):
        find_palace(tmp_path / "v")


def test_a_folder_that_cannot_be_listed_is_not_called_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> list[str]:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "v").mkdir()
    monkeypatch.setattr(os, "listdir", refuse)

    with pytest.raises(StorageFailed, match="no permission"):
        find_palace(tmp_path / "v")


def test_a_new_palace_may_be_any_other_folder(tmp_path: Path) -> None:
    assert new_palace(tmp_path / "not yet") == tmp_path / "not yet"


def test_refusing_a_folder_changes_nothing(tmp_path: Path) -> None:
    """FS-18"""
    (tmp_path / "taxes.txt").write_text("mine")
    seen = everything(tmp_path)

    with pytest.raises(VaultError):
        find_palace(tmp_path)

    assert everything(tmp_path) == seen


# -- what root is never refused, refused all the same -------------------------------------------------------


def _refusing(monkeypatch: pytest.MonkeyPatch, refused: Path, error: OSError) -> None:
    real = os.lstat

    def lstat(path: Path) -> os.stat_result:
        if Path(path) == refused:
            raise error
        return real(path)

    monkeypatch.setattr(os, "lstat", lstat)


@pytest.mark.parametrize("ask", ["locate", "mark", "exists", "read"])
def test_a_folder_that_cannot_be_entered_is_not_called_missing(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    note("01_Shallow/closed/a.md")
    _refusing(
        monkeypatch, vault / "01_Shallow/closed/a.md", PermissionError(errno.EACCES, "Permission denied")
    )

    with pytest.raises(StorageFailed, match="no permission"):
        getattr(Vault(vault), ask)("01_Shallow/closed/a.md")


@pytest.mark.parametrize("error", [FileNotFoundError(), PermissionError(errno.EACCES, "Permission denied")])
def test_a_note_that_goes_between_two_looks_is_answered_for(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    note("01_Shallow/a.md")
    real = os.lstat
    looks: list[Path] = []

    def lstat(path: str | Path) -> os.stat_result:
        looks.append(Path(path))
        if looks.count(vault / "01_Shallow/a.md") == 2:
            raise error
        return real(path)

    monkeypatch.setattr(os, "lstat", lstat)

    if isinstance(error, FileNotFoundError):
        assert Vault(vault).mark("01_Shallow/a.md") is None
    else:
        with pytest.raises(StorageFailed):
            Vault(vault).mark("01_Shallow/a.md")


class _Entry:
    """A directory entry that the system tells nothing about."""

    def __init__(self, name: str, error: OSError) -> None:
        self.name = name
        self.path = name
        self._error = error

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        raise self._error


@pytest.mark.parametrize(
    ("error", "unreadable"),
    [(FileNotFoundError(), set()), (PermissionError(errno.EACCES, "Permission denied"), {"a.md"})],
    ids=["vanished", "refused"],
)
def test_a_file_that_tells_nothing_is_gone_only_when_it_is(
    vault: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, unreadable: set[str]
) -> None:
    monkeypatch.setattr(os, "scandir", lambda path: contextlib.nullcontext([_Entry("a.md", error)]))
    palace = Vault(vault)

    assert list(palace.walk()) == []
    assert palace.unreadable == unreadable
    assert palace.hidden("a.md") == bool(unreadable)


def test_a_folder_that_cannot_be_listed_hides_what_is_below_it(
    vault: Path, note: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    note("01_Shallow/a.md")
    note("02_Sediment/closed/b.md")
    real = os.scandir

    def refusing(path: Path) -> object:
        if path == vault / "02_Sediment" / "closed":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    palace = Vault(vault)

    assert [path for path, _ in palace.walk()] == ["01_Shallow/a.md"]
    assert palace.hidden("02_Sediment/closed/b.md")
    assert not palace.hidden("02_Sediment/c.md")


def test_a_vault_that_is_writable_says_so(vault: Path) -> None:
    assert Vault(vault).is_writable("")
    assert Vault(vault).is_writable("01_Shallow/a.md")
    assert not Vault(vault).is_writable("01_Shallow/no room/a.md")
