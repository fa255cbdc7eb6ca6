"""Bytes are staged, compared and swapped in whole; a newer file is never written over."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.errors import Exists, NoteChanged, NotFound, StorageFailed
from vault_palace.storage import files

OLD, NEW, THEIRS = b"old\n", b"new words\n", b"saved in between\n"


def _print(data: bytes) -> str:
    return files.fingerprint(data)


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def _unsupported(*codes: int) -> Callable[..., None]:
    """A call that answers with each of the errors in turn, the last one for ever."""
    left = list(codes)

    def refuse(*args: object, **more: object) -> None:
        code = left.pop(0) if len(left) > 1 else left[0]
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.fixture(params=["exchange", "links", "neither"])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The three kinds of file systems: with RENAME_EXCHANGE, with hard links only, and with neither."""
    kind = str(request.param)
    if kind != "exchange":
        monkeypatch.setattr(files, "_renameat2", _unsupported(errno.EINVAL))
    if kind == "neither":
        monkeypatch.setattr(os, "link", _unsupported(errno.EPERM))
    return kind


@pytest.fixture
def target(tmp_path: Path) -> Path:
    place = tmp_path / "note.md"
    place.write_bytes(OLD)
    return place


def _during(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], *, after: bool = False
) -> None:
    """Let a person act just before (or after) the first call of that name."""
    holder: Any = files if name == "_renameat2" else os
    real = getattr(holder, name)
    done: list[str] = []

    def wrapped(*args: Any, **more: Any) -> Any:
        first = not done
        done.append(name)
        if first and not after:
            act()
        try:
            return real(*args, **more)
        finally:
            if first and after:
                act()

    monkeypatch.setattr(holder, name, wrapped)


# -- staging ------------------------------------------------------------------------------------------------


def test_staged_bytes_wait_beside_their_target_under_a_dot_name(target: Path) -> None:
    staged = files.stage(target, NEW)

    assert staged.parent == target.parent
    assert staged.name.startswith(".note.md.")
    assert files.is_temp(staged.name)
    assert staged.read_bytes() == NEW
    assert target.read_bytes() == OLD


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o664])
def test_the_target_s_mode_is_kept(target: Path, mode: int) -> None:
    target.chmod(mode)

    files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert stat.S_IMODE(target.stat().st_mode) == mode


def test_a_new_note_s_mode_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        staged = files.stage(tmp_path / "a.md", NEW)
    finally:
        os.umask(before)

    assert stat.S_IMODE(staged.stat().st_mode) == 0o600


def test_a_new_note_is_readable_by_others_as_a_person_s_would_be(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        staged = files.stage(tmp_path / "a.md", NEW)
    finally:
        os.umask(before)

    assert stat.S_IMODE(staged.stat().st_mode) == 0o644


def test_the_owner_is_kept_where_that_is_allowed(target: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(target, 1234, 1234)

    files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert (target.stat().st_uid, target.stat().st_gid) == (1234, 1234)


def test_an_owner_that_cannot_be_kept_stops_nothing(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(target, 1234, 1234)
    monkeypatch.setattr(os, "fchown", _unsupported(errno.EPERM))

    files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert target.read_bytes() == NEW


def test_a_note_made_read_only_is_refused(target: Path) -> None:
    target.chmod(0o444)

    with pytest.raises(StorageFailed, match="read-only"):
        files.stage(target, NEW)

    assert _names(target.parent) == ["note.md"]


def test_short_writes_are_continued(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FS-15"""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))

    staged = files.stage(target, NEW)

    assert staged.read_bytes() == NEW


@pytest.mark.parametrize("call", ["write", "fsync", "open"])
def test_staging_that_fails_leaves_nothing(target: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """FS-15"""
    real = os.open

    def failing(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, mode)

    monkeypatch.setattr(os, call, failing if call == "open" else _unsupported(errno.ENOSPC))

    with pytest.raises(StorageFailed) as caught:
        files.stage(target, NEW)

    assert caught.value.facts["reason"] == "no space left"
    assert "no space left" in str(caught.value)
    assert _names(target.parent) == ["note.md"]
    assert target.read_bytes() == OLD


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "no space left"),
        (errno.EACCES, "no permission"),
        (errno.EPERM, "no permission"),
        (errno.EROFS, "read-only file system"),
        (errno.ENAMETOOLONG, "the name is too long"),
        (errno.EIO, "input/output error"),
    ],
)
def test_what_the_system_refuses_is_told_plainly(code: int, reason: str) -> None:
    """FS-15"""
    error = files.failed(OSError(code, os.strerror(code)), Path("/v/note.md"))

    assert isinstance(error, StorageFailed)
    assert error.facts["reason"] == reason
    assert error.facts["path"] == "/v/note.md"


def test_an_error_without_a_number_is_told_too() -> None:
    assert files.failed(OSError("odd"), Path("/v/note.md")).facts["reason"] == "the system refused"


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=255))
def test_a_temporary_name_fits_every_file_system(name: str) -> None:
    """FS-05"""
    temp = files.temp_name(name)

    assert len(os.fsencode(files.kept_beside(Path("/") / temp).name)) <= 255
    assert files.is_temp(temp)
    assert files.is_temp(files.kept_beside(Path("/") / temp).name)
    assert temp != files.temp_name(name)


@pytest.mark.parametrize(
    "name", [".a.md.tmp", "a.md.0123456789abcdef.tmp", ".syncthing.a.md.tmp", ".a.0123.tmp"]
)
def test_nobody_else_s_temporary_file_is_taken_for_ours(name: str) -> None:
    assert not files.is_temp(name)


def test_a_link_prepared_at_a_foreseen_temporary_name_is_not_followed(
    target: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FS-09"""
    victim = tmp_path_factory.mktemp("outside") / "victim.txt"
    victim.write_bytes(b"mine")
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 16)
    (target.parent / ".note.md.0000000000000000.tmp").symlink_to(victim)

    with pytest.raises(StorageFailed):
        files.stage(target, NEW)

    assert victim.read_bytes() == b"mine"


# -- putting in place ---------------------------------------------------------------------------------------


def test_a_new_file_takes_a_free_name(tmp_path: Path, disk: str) -> None:
    place = tmp_path / "room" / "deep" / "note.md"

    replaced = files.put(files.stage(place, NEW), place, expect=None)

    assert replaced is None
    assert place.read_bytes() == NEW
    assert _names(place.parent) == ["note.md"]


def test_a_taken_name_is_never_overwritten(target: Path, disk: str) -> None:
    staged = files.stage(target, NEW)

    with pytest.raises(Exists):
        files.put(staged, target, expect=None)

    assert target.read_bytes() == OLD
    assert staged.read_bytes() == NEW


def test_replacing_returns_what_was_replaced(target: Path, disk: str) -> None:
    replaced = files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert replaced == OLD
    assert target.read_bytes() == NEW
    assert _names(target.parent) == ["note.md"]


@pytest.mark.parametrize("now", [THEIRS, None], ids=["changed", "deleted"])
def test_a_file_that_is_not_what_was_expected_stays(target: Path, disk: str, now: bytes | None) -> None:
    staged = files.stage(target, NEW)
    target.unlink()
    if now is not None:
        target.write_bytes(now)

    with pytest.raises(NoteChanged) as caught:
        files.put(staged, target, expect=_print(OLD))

    assert caught.value.facts["found"] == (None if now is None else _print(now))
    assert (target.read_bytes() if target.exists() else None) == now
    assert staged.read_bytes() == NEW


@pytest.mark.parametrize("way", ["in place", "by rename"])
def test_a_save_between_the_check_and_the_swap_is_put_back(
    target: Path, disk: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPEC §6.2"""
    if disk == "neither":
        pytest.skip("nothing can be checked after the swap there")
    staged = files.stage(target, NEW)

    def save() -> None:
        if way == "in place":
            target.write_bytes(THEIRS)
        else:
            (target.parent / "other").write_bytes(THEIRS)
            os.rename(target.parent / "other", target)

    _during(monkeypatch, "_renameat2" if disk == "exchange" else "link", save)

    with pytest.raises(NoteChanged):
        files.put(staged, target, expect=_print(OLD))

    assert target.read_bytes() == THEIRS
    assert not files.kept_beside(staged).exists()


def test_the_newest_of_two_saves_during_the_swap_wins(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = files.stage(target, NEW)
    real = files._renameat2
    calls: list[int] = []

    def swapping(src: Path, dst: Path, flags: int) -> None:
        if not calls:
            target.write_bytes(THEIRS)
        real(src, dst, flags)
        if not calls:
            target.write_bytes(b"the newest\n")
        calls.append(flags)

    monkeypatch.setattr(files, "_renameat2", swapping)

    with pytest.raises(NoteChanged):
        files.put(staged, target, expect=_print(OLD))

    assert target.read_bytes() == b"the newest\n"
    assert staged.read_bytes() == THEIRS


def test_a_save_while_a_swap_is_undone_wins(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = files.stage(target, NEW)
    real, calls = files._renameat2, []

    def swapping(src: Path, dst: Path, flags: int) -> None:
        calls.append(flags)
        if len(calls) == 1:
            target.write_bytes(THEIRS)
        if len(calls) == 2:
            target.write_bytes(b"the newest\n")
        real(src, dst, flags)

    monkeypatch.setattr(files, "_renameat2", swapping)

    with pytest.raises(NoteChanged):
        files.put(staged, target, expect=_print(OLD))

    assert target.read_bytes() == b"the newest\n"
    assert staged.read_bytes() == THEIRS


def test_the_note_is_whole_at_every_moment_of_a_replacement(
    target: Path, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[bytes] = set()
    for name in ("fsync", "link", "replace", "unlink", "write"):
        real = getattr(os, name)

        def looking(*args: Any, _real: Any = real, **more: Any) -> Any:
            seen.add(target.read_bytes())
            result = _real(*args, **more)
            seen.add(target.read_bytes())
            return result

        monkeypatch.setattr(os, name, looking)

    files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert seen == {OLD, NEW}


@pytest.mark.parametrize("call", ["replace", "link"])
def test_a_swap_that_fails_leaves_the_old_file(
    target: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.EINVAL))
    monkeypatch.setattr(os, call, _unsupported(errno.EIO))

    with pytest.raises(StorageFailed):
        files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert target.read_bytes() == OLD


def test_an_exchange_that_is_refused_is_told(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.EROFS))

    with pytest.raises(StorageFailed, match="read-only file system"):
        files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert target.read_bytes() == OLD


def test_an_undo_that_the_system_refuses_is_told(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aside = target.parent / "aside"
    aside.write_bytes(NEW)
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.EIO))

    with pytest.raises(StorageFailed):
        files.put_back(aside, target, ours=_print(OLD))

    assert target.read_bytes() == OLD


def test_the_time_of_a_replaced_note_is_new(target: Path) -> None:
    os.utime(target, ns=(1, 1))

    files.put(files.stage(target, NEW), target, expect=_print(OLD))

    assert target.stat().st_mtime_ns > 1


def test_a_folder_in_the_place_of_a_note_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "note.md").mkdir()

    with pytest.raises(NotFound, match="is a folder"):
        files.fingerprint_at(tmp_path / "note.md")


# -- renaming, removing -------------------------------------------------------------------------------------


def test_a_file_moves_to_a_free_name_in_a_new_folder(target: Path, disk: str) -> None:
    place = target.parent / "room" / "deep" / "other.md"

    files.rename_new(target, place)

    assert place.read_bytes() == OLD
    assert _names(target.parent) == ["room"]


def test_a_move_never_overwrites(target: Path, disk: str) -> None:
    place = target.parent / "other.md"
    place.write_bytes(THEIRS)

    with pytest.raises(Exists):
        files.rename_new(target, place)

    assert (target.read_bytes(), place.read_bytes()) == (OLD, THEIRS)


def test_two_names_of_one_file_are_not_taken_for_a_change_of_case(target: Path, disk: str) -> None:
    place = target.parent / "Note.md"
    if disk == "neither":
        pytest.skip("no second names there")
    os.link(target, place)

    with pytest.raises(Exists):
        files.rename_new(target, place)

    assert _names(target.parent) == ["Note.md", "note.md"]


def test_a_change_of_case_is_a_plain_rename_where_case_does_not_count(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = target.parent / "Note.md"
    real = os.lstat

    def folding(path: Path) -> os.stat_result:
        return real(target if path == place else path)

    monkeypatch.setattr(os, "lstat", folding)
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.EEXIST))

    files.rename_new(target, place)

    assert _names(target.parent) == ["Note.md"]


def test_a_reserved_name_is_given_back_when_the_move_fails(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.ENOSYS))
    monkeypatch.setattr(os, "link", _unsupported(errno.EPERM))
    monkeypatch.setattr(os, "replace", _unsupported(errno.EIO))

    with pytest.raises(StorageFailed):
        files.rename_new(target, target.parent / "other.md")

    assert _names(target.parent) == ["note.md"]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EROFS])
def test_a_move_that_is_refused_changes_nothing(
    target: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(files, "_renameat2", _unsupported(code))

    with pytest.raises(StorageFailed):
        files.rename_new(target, target.parent / "other.md")

    assert _names(target.parent) == ["note.md"]


def test_a_link_that_fails_otherwise_is_told(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_renameat2", _unsupported(errno.ENOSYS))
    monkeypatch.setattr(os, "link", _unsupported(errno.EIO))

    with pytest.raises(StorageFailed):
        files.rename_new(target, target.parent / "other.md")

    assert _names(target.parent) == ["note.md"]


@contextlib.contextmanager
def _across_devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real = files._renameat2

    def across(src: Path, dst: Path, flags: int) -> None:
        if src.parent != dst.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        real(src, dst, flags)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_renameat2", across)
        yield


def test_a_file_moves_to_another_device(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-03"""
    target.chmod(0o640)
    place = target.parent / "room" / "note.md"

    with _across_devices(monkeypatch):
        files.rename_new(target, place)

    assert place.read_bytes() == OLD
    assert stat.S_IMODE(place.stat().st_mode) == 0o640
    assert _names(target.parent) == ["room"]
    assert _names(place.parent) == ["note.md"]


def test_a_move_to_another_device_never_overwrites(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RC-03"""
    place = target.parent / "room" / "note.md"
    place.parent.mkdir()
    place.write_bytes(THEIRS)

    with _across_devices(monkeypatch), pytest.raises(Exists):
        files.rename_new(target, place)

    assert (target.read_bytes(), place.read_bytes()) == (OLD, THEIRS)
    assert _names(place.parent) == ["note.md"]


def test_a_save_during_a_move_to_another_device_takes_the_copy_back(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RC-03"""
    place = target.parent / "room" / "note.md"
    real = files.put

    def saving(staged: Path, to: Path, *, expect: str | None) -> bytes | None:
        target.write_bytes(THEIRS)
        return real(staged, to, expect=expect)

    monkeypatch.setattr(files, "put", saving)

    with _across_devices(monkeypatch), pytest.raises(NoteChanged):
        files.rename_new(target, place)

    assert target.read_bytes() == THEIRS
    assert _names(place.parent) == []


def test_removing_wants_the_file_unchanged(target: Path, disk: str) -> None:
    with pytest.raises(NoteChanged):
        files.remove(target, _print(NEW))

    assert target.read_bytes() == OLD

    files.remove(target, _print(OLD))

    assert _names(target.parent) == []


def test_a_save_while_a_file_is_removed_brings_it_back(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _during(monkeypatch, "_renameat2", lambda: target.write_bytes(THEIRS))

    with pytest.raises(NoteChanged):
        files.remove(target, _print(OLD))

    assert target.read_bytes() == THEIRS
    assert _names(target.parent) == ["note.md"]


def test_removing_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoteChanged, match="moved or deleted"):
        files.remove(tmp_path / "gone.md", _print(OLD))


# -- folders and state --------------------------------------------------------------------------------------


def test_a_file_where_a_folder_should_be_is_told(target: Path) -> None:
    with pytest.raises((StorageFailed, NotFound)):
        files.make_folders(target / "room")
    with pytest.raises(StorageFailed, match="a file is where a folder should be"):
        files.make_folders(target)


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", _unsupported(errno.EINVAL))

    files.sync_folder(tmp_path)

    assert _names(tmp_path) == []


def test_a_folder_whose_sync_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", _unsupported(errno.EIO))

    with pytest.raises(OSError, match="Input/output"):
        files.sync_folder(tmp_path)


def test_state_is_replaced_whole_for_its_owner_alone(tmp_path: Path) -> None:
    """RC-11"""
    place = tmp_path / "state"
    files.write_state(place, b"one")

    files.write_state(place, b"two", durable=True)

    assert place.read_bytes() == b"two"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert _names(tmp_path) == ["state"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_state_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """FS-15"""
    place = tmp_path / "state"
    files.write_state(place, b"one")
    monkeypatch.setattr(os, call, _unsupported(errno.ENOSPC))

    with pytest.raises(StorageFailed, match="no space left"):
        files.write_state(place, b"two", durable=True)

    assert place.read_bytes() == b"one"
    assert _names(tmp_path) == ["state"]


def test_an_append_that_fails_is_cut_off_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FS-15: the journal does not claim what did not happen."""
    place = tmp_path / "log"
    files.append(place, b"one\n", durable=True)
    real, calls = os.write, []

    def half(fd: int, data: memoryview) -> int:
        calls.append(fd)
        if len(calls) == 1:
            return real(fd, bytes(data)[:2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", half)

    with pytest.raises(StorageFailed, match="no space left"):
        files.append(place, b"two\n", durable=True)

    assert place.read_bytes() == b"one\n"


def test_cutting_shortens_a_file(tmp_path: Path) -> None:
    place = tmp_path / "log"
    place.write_bytes(b"one\ntw")

    files.cut(place, 4)

    assert place.read_bytes() == b"one\n"


def test_sweeping_keeps_the_bytes_of_what_it_removes(tmp_path: Path) -> None:
    left, spared = files.stage(tmp_path / "a" / "x.md", NEW), files.stage(tmp_path / "x.md", OLD)
    (tmp_path / "a" / "b.md.tmp").write_bytes(b"someone's")
    (tmp_path / ".dot").mkdir()
    hidden = files.stage(tmp_path / ".dot" / "x.md", OLD)
    kept: list[bytes] = []

    gone = files.sweep(tmp_path, spare=frozenset({spared}), keep=kept.append)

    assert gone == [left]
    assert kept == [NEW]
    assert _names(tmp_path / "a") == ["b.md.tmp"]
    assert spared.exists()
    assert hidden.exists()


def test_sweeping_follows_no_link(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """FS-09"""
    outside = tmp_path_factory.mktemp("outside")
    victim = files.stage(outside / "x.md", NEW)
    (tmp_path / "room").symlink_to(outside)
    (tmp_path / ".y.md.0123456789abcdef.tmp").symlink_to(victim)

    gone = files.sweep(tmp_path, spare=frozenset(), keep=lambda data: None)

    assert gone == []
    assert victim.exists()


def test_sweeping_passes_over_what_it_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "scandir", _unsupported(errno.EACCES))

    assert files.sweep(tmp_path, spare=frozenset(), keep=lambda data: None) == []


# -- the call that Python lacks -----------------------------------------------------------------------------


def test_a_system_without_the_call_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_rename_call", lambda: None)

    with pytest.raises(OSError, match=os.strerror(errno.ENOSYS)):
        files._renameat2(tmp_path / "a", tmp_path / "b", files._EXCHANGE)


def test_a_library_without_the_call_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *args, **more: object())

    assert files._rename_call.__wrapped__() is None


def test_two_names_are_exchanged(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1")
    other.write_bytes(b"2")

    files._renameat2(one, other, files._EXCHANGE)

    assert (one.read_bytes(), other.read_bytes()) == (b"2", b"1")


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=20)), max_size=12))
def test_two_writers_never_lose_each_other_s_words(
    tmp_path_factory: pytest.TempPathFactory, saves: list[tuple[bool, bytes]]
) -> None:
    """A program that read an older version is always refused, whoever saved since."""
    place = tmp_path_factory.mktemp("v") / "note.md"
    place.write_bytes(b"start")
    read = b"start"
    for by_person, data in saves:
        if by_person:
            place.write_bytes(data)
            continue
        staged = files.stage(place, data)
        now = place.read_bytes()
        try:
            files.put(staged, place, expect=_print(read))
        except NoteChanged:
            assert now != read
            assert place.read_bytes() == now
            files.discard(staged)
            read = now
        else:
            assert now == read
            read = data
