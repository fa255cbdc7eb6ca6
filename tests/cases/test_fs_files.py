"""Failure cases of files and paths, as far as storage answers for them."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.storage.killpoints import Stop, every_failure_point
from tests.storage.palace import House, everything, notes, operation, pen
from vault_palace.core.errors import NotFound, PathViolation, StorageFailed
from vault_palace.storage import files
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.operations import Step, carry_out, recover
from vault_palace.storage.vault import find_palace

FITS = ("漢" * 84, "🧭" * 63, "a" * 252)  # 255 bytes with `.md`
TOO_LONG = ("é" * 140, "漢" * 86, "a" * 300, "a" * 253)


@pytest.mark.parametrize("title", FITS, ids=["han", "emoji", "letters"])
def test_fs_05_a_name_of_255_bytes_lives_through_every_change(vault: Path, title: str) -> None:
    house = House(vault)
    path, risen, archived = (
        f"{folder}/{title}.md" for folder in ("01_Shallow", "02_Sediment", "_Archive/02_Sediment")
    )

    carry_out(*house.parts, operation(Step(kind="put", path=path, after=b"one"), id="1"))
    carry_out(*house.parts, operation(Step(kind="put", path=path, before=b"one", after=b"two"), id="2"))
    carry_out(
        *house.parts, operation(Step(kind="move", path=path, to=risen, before=b"two", after=b"three"), id="3")
    )
    carry_out(*house.parts, operation(Step(kind="move", path=risen, to=archived, before=b"three"), id="4"))

    assert notes(vault) == {archived: b"three"}


@pytest.mark.parametrize("title", TOO_LONG, ids=["é", "han", "letters", "one more"])
@pytest.mark.parametrize("kind", ["create", "move"])
def test_fs_05_a_longer_name_is_refused_before_anything_is_written(
    vault: Path, title: str, kind: str
) -> None:
    pen({"01_Shallow/a.md": b"a"})(vault)
    seen = everything(vault)
    path = f"02_Sediment/{title}.md"
    step = (
        Step(kind="put", path=path, after=b"one")
        if kind == "create"
        else Step(kind="move", path="01_Shallow/a.md", to=path, before=b"a")
    )

    with pytest.raises(PathViolation, match="longer than 255 bytes"):
        carry_out(*House(vault).parts, operation(step))

    assert everything(vault) == seen


def test_fs_08_dead_and_circular_links_blind_nobody(vault: Path) -> None:
    pen({"01_Shallow/a.md": b"a", "02_Sediment/deep/b.md": b"b"})(vault)
    (vault / "01_Shallow/dead.md").symlink_to("gone.md")
    (vault / "01_Shallow/up").symlink_to("..")
    (vault / "01_Shallow/self").symlink_to("self")

    survey = find_palace(vault).survey()

    assert list(survey.files) == ["01_Shallow/a.md", "02_Sediment/deep/b.md"]
    assert len(survey.strays) == 3
    assert not survey.unreadable


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "victim.txt").write_bytes(b"mine")
    return place


@pytest.mark.parametrize(
    "prepared",
    ["_Archive", "_Archive/01_Shallow", "_System/journal", ".palace", ".palace/versions"],
)
def test_fs_09_no_change_goes_through_a_prepared_link(vault: Path, outside: Path, prepared: str) -> None:
    pen({"01_Shallow/a.md": b"a"})(vault)
    link = vault / prepared
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    step = Step(kind="move", path="01_Shallow/a.md", to="_Archive/01_Shallow/a.md", before=b"a", after=b"b")

    with pytest.raises(PathViolation):
        carry_out(*House(vault).parts, operation(step))

    assert (vault / "01_Shallow/a.md").read_bytes() == b"a"
    assert {place.name: place.read_bytes() for place in outside.iterdir()} == {"victim.txt": b"mine"}


def test_fs_09_a_link_in_the_place_of_the_note_is_not_written_through(vault: Path, outside: Path) -> None:
    (vault / "01_Shallow/a.md").symlink_to(outside / "victim.txt")

    for step in (
        Step(kind="put", path="01_Shallow/a.md", before=b"mine", after=b"ours"),
        Step(kind="put", path="01_Shallow/a.md", after=b"ours"),
        Step(kind="remove", path="01_Shallow/a.md", before=b"mine"),
    ):
        with pytest.raises(PathViolation):
            carry_out(*House(vault).parts, operation(step))

    assert (outside / "victim.txt").read_bytes() == b"mine"


def test_fs_09_a_foreseen_temporary_name_leads_nowhere(vault: Path, outside: Path) -> None:
    (vault / "01_Shallow/.note.md.tmp").symlink_to(outside / "victim.txt")

    carry_out(*House(vault).parts, operation(Step(kind="put", path="01_Shallow/note.md", after=b"ours")))

    assert (vault / "01_Shallow/note.md").read_bytes() == b"ours"
    assert (outside / "victim.txt").read_bytes() == b"mine"


ODD_BYTES = (
    b"---\ntitle: Cr\xe8me\n---\nbr\xfbl\xe9e\n",
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
    b"caf\xc3\xa9 ok \xff end",
    "---\ntitle: x\n---\n".encode("utf-16"),
    b"",
    b"a\r\nb\rc\n\n",
)


@pytest.mark.parametrize(
    "data", ODD_BYTES, ids=["legacy", "image", "one bad byte", "UTF-16", "empty", "line ends"]
)
def test_fs_12_bytes_that_are_no_text_survive_reading_moving_and_keeping(vault: Path, data: bytes) -> None:
    pen({"01_Shallow/a.md": data})(vault)
    house = House(vault)

    read = house.vault.read("01_Shallow/a.md").data
    carry_out(
        *house.parts,
        operation(Step(kind="move", path="01_Shallow/a.md", to="_Archive/01_Shallow/a.md", before=read)),
    )

    assert read == data
    assert notes(vault) == {"_Archive/01_Shallow/a.md": data}
    assert house.versions.get(files.fingerprint(data)) == data


# -- FS-15 --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A vault on a file system of one megabyte."""
    root = tmp_path / "disk"
    root.mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)], check=False, capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("cannot mount a small file system here; the test below stands in for it")
    yield root
    subprocess.run(["umount", str(root)], check=True)


def _fill(root: Path, leave: int) -> Path:
    """Use up the disk but for *leave* bytes."""
    ballast = root / "ballast"
    fd = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.ftruncate(fd, os.fstat(fd).st_size - leave)
    os.close(fd)
    return ballast


@pytest.mark.parametrize("leave", [0, 4096, 8192, 16384, 65536, 131072])
def test_fs_15_a_full_disk_costs_no_note_and_no_repair(small_disk: Path, leave: int) -> None:
    before, after = os.urandom(100_000), os.urandom(100_000)
    pen({"01_Shallow/a.md": before})(small_disk)
    ballast = _fill(small_disk, leave)
    house = House(small_disk)

    for step in (
        Step(kind="put", path="01_Shallow/a.md", before=before, after=after),
        Step(kind="put", path="01_Shallow/new.md", after=after),
        Step(kind="move", path="01_Shallow/a.md", to="02_Sediment/b.md", before=before, after=after),
    ):
        with pytest.raises(StorageFailed, match="no space left"), WriteLock(house.vault, timeout=0):
            carry_out(*house.parts, operation(step, id=f"full-{step.kind}-{step.path}"))
        found = {path: data for path, data in notes(small_disk).items() if path != "ballast"}
        assert found == {"01_Shallow/a.md": before}

    ballast.unlink()
    with WriteLock(house.vault, timeout=0):
        assert [one.status for one in recover(*house.parts) if one.status != "undone"] == []
        carry_out(
            *house.parts,
            operation(Step(kind="put", path="01_Shallow/a.md", before=before, after=after), id="ok"),
        )
    assert notes(small_disk) == {"01_Shallow/a.md": after}
    assert house.journal.problems() == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_fs_15_any_refused_call_leaves_the_note_whole(memory_path: Path, code: int) -> None:
    before, after = b"old\n" * 2000, b"new\n" * 2000

    def act(root: Path) -> None:
        step = Step(kind="put", path="01_Shallow/a.md", before=before, after=after)
        carry_out(*House(root).parts, operation(step))

    def check(root: Path, stop: Stop | None) -> None:
        states = [entry.state for entry in House(root).journal.entries()]
        left = {
            path: data for path, data in notes(root).items() if not files.is_temp(path.rpartition("/")[2])
        }
        assert left in ({"01_Shallow/a.md": before}, {"01_Shallow/a.md": after}), stop
        assert ("done" in states) <= (left == {"01_Shallow/a.md": after}), stop
        recover(*House(root).parts)
        assert notes(root) in ({"01_Shallow/a.md": before}, {"01_Shallow/a.md": after}), stop

    assert every_failure_point(memory_path, pen({"01_Shallow/a.md": before}), act, check, number_of=code) > 8


# -- FS-18, MC-11, MC-13, MC-14 -----------------------------------------------------------------------------


def _home(tmp_path: Path, patch: pytest.MonkeyPatch) -> str:
    home = tmp_path / "home"
    (home / "01_Shallow").mkdir(parents=True)
    patch.setenv("HOME", str(home))
    return str(home)


def _not_a_vault(tmp_path: Path, patch: pytest.MonkeyPatch) -> str:
    place = tmp_path / "not-a-vault"
    place.mkdir()
    (place / "taxes.txt").write_text("mine")
    return str(place)


def _layer(tmp_path: Path, patch: pytest.MonkeyPatch) -> str:
    place = tmp_path / "v" / "01_Shallow"
    place.mkdir(parents=True)
    return str(place)


@pytest.mark.parametrize(
    "wrong",
    [_home, _not_a_vault, _layer, lambda *_: "/", lambda *_: ""],
    ids=["home", "other", "layer", "root", "none"],
)
def test_fs_18_a_wrong_vault_path_is_refused_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Path, pytest.MonkeyPatch], str]
) -> None:
    root = wrong(tmp_path, monkeypatch)
    seen = everything(tmp_path)

    with pytest.raises((PathViolation, NotFound)) as caught:
        find_palace(root)

    assert caught.value.message
    assert everything(tmp_path) == seen


EVIL = (
    "../v-private/secret",
    "01_Shallow/../../v-private/secret.md",
    "/etc/passwd",
    "~/x",
    "01_Shallow/%2e%2e/%2e%2e/x",
    "..\\..\\x",
    "01_Shallow/./../../x",
    "file:///etc/passwd",
    "01_Shallow/sub/../../_Archive/../../x",
    "01_Shallow\0",
    "01_Shallow/a.md\0.png",
    "01_Shallow/a\0b.md",
)


@pytest.mark.parametrize("path", EVIL)
def test_mc_11_mc_14_no_change_leaves_the_vault(tmp_path: Path, path: str) -> None:
    root, private = tmp_path / "v", tmp_path / "v-private"
    pen({"01_Shallow/a.md": b"a"})(root)
    private.mkdir()
    (private / "secret.md").write_bytes(b"hush")
    seen = everything(tmp_path)
    house = House(root)

    for step in (
        Step(kind="put", path=path, after=b"x"),
        Step(kind="put", path=path, before=b"hush", after=b"x"),
        Step(kind="move", path=path, to="01_Shallow/b.md", before=b"hush"),
        Step(kind="move", path="01_Shallow/a.md", to=path, before=b"a"),
        Step(kind="remove", path=path, before=b"hush"),
    ):
        with pytest.raises(PathViolation) as caught:
            carry_out(*house.parts, operation(step))
        assert "hush" not in str(caught.value)
    for ask in (house.vault.read, house.vault.exists, house.vault.mark, house.vault.is_folder):
        with pytest.raises(PathViolation):
            ask(path)

    assert everything(tmp_path) == seen


@pytest.mark.parametrize("slash", ["", "/"])
def test_mc_13_a_vault_with_an_odd_path_works_through_a_link_too(tmp_path: Path, slash: str) -> None:
    root = tmp_path / "My Vault (2) & [äöü] #1 %20"
    pen({"01_Shallow/ä & b.md": b"a"})(root)
    (tmp_path / "way in").symlink_to(root)

    house = House(find_palace(f"{tmp_path / 'way in'}{slash}").root)
    with WriteLock(house.vault, timeout=0):
        step = Step(kind="move", path="01_Shallow/ä & b.md", to="02_Sediment/[c].md", before=b"a", after=b"b")
        carry_out(*house.parts, operation(step))
        recovered = recover(*house.parts)

    assert recovered == []
    assert [path for path, _ in house.vault.walk()] == ["02_Sediment/[c].md", "_System/journal/here.jsonl"]
