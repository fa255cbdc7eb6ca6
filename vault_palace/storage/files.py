"""The only module that changes bytes on disk: staged, compared, swapped in whole, and never over newer text.

Paths are absolute and come from `Vault.locate`. Every system call is written `os.<call>` or `_renameat2`, so
that a test can stop, fail or kill the program at each of them. Times of files are never set back: Obsidian
would not see the change.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from vault_palace.core.errors import Exists, NoteChanged, StorageFailed, VaultError
from vault_palace.storage.reading import FLAGS
from vault_palace.storage.reading import LIMIT as LIMIT
from vault_palace.storage.reading import bytes_at as bytes_at
from vault_palace.storage.reading import failed as failed
from vault_palace.storage.reading import fingerprint as fingerprint
from vault_palace.storage.reading import fingerprint_at as fingerprint_at
from vault_palace.storage.reading import open_whole as open_whole
from vault_palace.storage.reading import read_bytes as read_bytes
from vault_palace.storage.reading import read_only as read_only
from vault_palace.storage.reading import told as told

NOTE_MODE = 0o644  # less the umask
STATE_MODE = 0o600  # machine state names private notes

_CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | FLAGS
_NOREPLACE, _EXCHANGE = 1, 2  # Linux's numbers for renameat2

# A file system that lacks a call says so in one of these words.
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_NO_LINKS = _UNSUPPORTED | {errno.EPERM, errno.EMLINK, errno.EACCES}

_TEMP = re.compile(r"\..+\.[0-9a-f]{16}(?:\.was)?\.tmp", re.DOTALL)
_NAME_BYTES = 255

# -- staging ------------------------------------------------------------------------------------------------


def temp_name(name: str) -> str:
    """A dot-name beside *name* that nobody can foresee, cut so that no file system finds it too long."""
    tail = f".{secrets.token_hex(8)}.tmp"
    room = _NAME_BYTES - len(tail) - len(".was") - 1
    head = name
    while len(os.fsencode(head)) > room:
        head = head[:-1]
    return f".{head}{tail}"


def is_temp(name: str) -> bool:
    """Whether this program gave a temporary file this name."""
    return _TEMP.fullmatch(name) is not None


def kept_beside(staged: Path) -> Path:
    """Where the replaced file waits for its check when the file system cannot exchange two names."""
    return staged.with_name(staged.name.removesuffix(".tmp") + ".was.tmp")


def stage(target: Path, data: bytes, mode: int | None = None) -> Path:
    """Write *data* to a new temporary file in the target's folder, down to the disk, and return its path.

    The mode is the target's, else *mode*, else that of a new note. A target that its owner made read-only
    is refused, as Windows would. On failure nothing is left behind.
    """
    make_folders(target.parent)
    with told(target):
        try:
            known = os.lstat(target)
        except FileNotFoundError:
            known = None
        if known is not None and not known.st_mode & 0o222:
            raise StorageFailed(
                f"{target.name}: the file is read-only.",
                hint="Make it writable, or leave it as it is.",
                path=str(target),
                reason="no permission",
            )
        staged = target.parent / temp_name(target.name)
        fd = os.open(staged, _CREATE, NOTE_MODE if mode is None else mode)
        try:
            try:
                if known is not None:
                    _take_after(fd, known)
                _write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(staged)
            raise
        return staged


def _take_after(fd: int, known: os.stat_result) -> None:
    """Give the staged file the mode and, where we may, the owner of the file it will replace."""
    if not hasattr(os, "fchmod"):  # pragma: no cover - Windows keeps no modes
        return
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (known.st_uid, known.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(fd, known.st_uid, known.st_gid)
    if stat.S_IMODE(mine.st_mode) != stat.S_IMODE(known.st_mode):
        os.fchmod(fd, stat.S_IMODE(known.st_mode))


def _write_all(fd: int, data: bytes) -> None:
    """Write everything: the system may take less than it is given, above all when space runs out."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


# -- putting in place ---------------------------------------------------------------------------------------


def put(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
    """Give *staged* the name *target*, and return the bytes it replaced.

    With `expect=None` the name must be free, else `Exists`. Otherwise the file there must have that
    fingerprint, else `NoteChanged`; what was really replaced is checked again afterwards, and put back when
    a person saved in between. After an error the staged name holds what is not in place: ours, or, when the
    target changed a third time, the version in between, which the caller keeps.
    """
    with told(target):
        if expect is None:
            _rename_noreplace(staged, target)
            sync_folder(target.parent)
            return None
        ours = fingerprint(read_bytes(staged))
        found = bytes_at(target)
        if found is None or fingerprint(found) != expect:
            raise _changed(target, expect, found)
        old: Path | None = staged
        try:
            _renameat2(staged, target, _EXCHANGE)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            old = _replace_keeping(staged, target)
        if old is not None:
            found = read_bytes(old)
            if fingerprint(found) != expect:
                put_back(old, target, ours=ours)
                raise _changed(target, expect, found)
            os.unlink(old)
        with contextlib.suppress(FileNotFoundError):  # a person renamed the folder: all is in place there
            sync_folder(target.parent)
        return found


def put_back(old: Path, target: Path, *, ours: str) -> None:
    """Undo a swap: the file at *old* gets the name *target* again, and ours goes to *old* or goes away.

    Only while the target still has the fingerprint *ours*, else `NoteChanged`, and the newest version stays
    in place.
    """
    with told(target):
        found = bytes_at(target)
        if found is None or fingerprint(found) != ours:
            raise _changed(target, ours, found)
        try:
            _renameat2(old, target, _EXCHANGE)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            os.replace(old, target)
        else:
            if fingerprint_at(old) != ours:  # saved in this very moment: the newest version wins
                _renameat2(old, target, _EXCHANGE)
                raise _changed(target, ours, bytes_at(target))
        sync_folder(target.parent)


def _changed(target: Path, expected: str | None, found: bytes | None) -> NoteChanged:
    what = "was changed" if found is not None else "was moved or deleted"
    return NoteChanged(
        f"{target.name} {what} since it was read.",
        hint="Read it again and repeat the change on the new text.",
        path=str(target),
        expected=expected,
        found=None if found is None else fingerprint(found),
    )


def _replace_keeping(staged: Path, target: Path) -> Path | None:
    """Replace *target* and return the second name of its old file; None when there are no second names."""
    kept = kept_beside(staged)
    try:
        os.link(target, kept, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.replace(staged, target)
        return None
    os.replace(staged, target)
    return kept


def _rename_noreplace(src: Path, dst: Path) -> None:
    """Rename, with `Exists` when the new name is taken, on any file system."""
    try:
        try:
            _renameat2(src, dst, _NOREPLACE)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            _link_and_unlink(src, dst)
    except FileExistsError as error:
        if _same_but_for_case(src, dst):
            os.rename(src, dst)
            return
        raise Exists(f"{dst.name} exists already.", path=str(dst)) from error


def _link_and_unlink(src: Path, dst: Path) -> None:
    try:
        os.link(src, dst, follow_symlinks=False)
    except OSError as error:
        if isinstance(error, FileExistsError) or error.errno not in _NO_LINKS:
            raise
        # No hard links either: reserve the name, so that nobody else can have taken it meanwhile.
        os.close(os.open(dst, _CREATE, NOTE_MODE))
        try:
            os.replace(src, dst)
        except OSError:
            os.unlink(dst)
            raise
        return
    os.unlink(src)


def _same_but_for_case(src: Path, dst: Path) -> bool:
    """Whether the taken name is the file's own, spelt otherwise, on a file system that folds case."""
    if src.name == dst.name or src.parent != dst.parent or src.name.casefold() != dst.name.casefold():
        return False
    if not os.path.samestat(os.lstat(src), os.lstat(dst)):
        return False
    return src.name not in os.listdir(dst.parent) or dst.name not in os.listdir(dst.parent)


def rename_new(src: Path, dst: Path) -> None:
    """Move a file to a free name, its folders made; `Exists` when the name is taken.

    Across devices it is copied exclusively, checked and only then removed: if it cannot be removed, or
    changed meanwhile, the copy goes and the error is raised.
    """
    make_folders(dst.parent)
    with told(src):
        try:
            _rename_noreplace(src, dst)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_over(src, dst)
        sync_folder(dst.parent)
        if src.parent != dst.parent:
            sync_folder(src.parent)


def _copy_over(src: Path, dst: Path) -> None:
    data, known = open_whole(src)
    mark = fingerprint(data)
    staged = stage(dst, data, stat.S_IMODE(known.st_mode))
    try:
        put(staged, dst, expect=None)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(staged)
        raise
    try:
        remove(src, mark)
    except VaultError:
        with contextlib.suppress(VaultError):
            remove(dst, mark)
        raise


def take_away(path: Path, aside: Path, expect: str) -> None:
    """Give the file the free name *aside*, provided it has that fingerprint; else it stays: `NoteChanged`.

    It is checked again under its new name, where nobody can save into it any more by its old one.
    """
    with told(path):
        found = bytes_at(path)
        if found is None or fingerprint(found) != expect:
            raise _changed(path, expect, found)
        _rename_noreplace(path, aside)
        found = read_bytes(aside)
        if fingerprint(found) != expect:
            _rename_noreplace(aside, path)
            raise _changed(path, expect, found)
        sync_folder(path.parent)


def remove(path: Path, expect: str) -> None:
    """Delete the file, provided it still has that fingerprint; else `NoteChanged`, and it stays."""
    aside = path.with_name(temp_name(path.name))
    take_away(path, aside, expect)
    discard(aside)


def discard(path: Path) -> None:
    """Remove a temporary file of ours if it is there."""
    with told(path), contextlib.suppress(FileNotFoundError):
        os.unlink(path)


# -- folders, state and the journal's lines -----------------------------------------------------------------


def make_folders(folder: Path, mode: int = 0o777, *, durable: bool = True) -> None:
    """Create the folder and those above it that are missing, each of them down to the disk if *durable*."""
    with told(folder):
        if os.path.isdir(folder):
            return
        make_folders(folder.parent, mode, durable=durable)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, mode)
        if not os.path.isdir(folder):
            raise StorageFailed(
                f"{folder.name}: a file is where a folder should be.", path=str(folder), reason="not a folder"
            )
        if durable:
            sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in the folder to the disk, where the system can do that."""
    if sys.platform == "win32":  # pragma: no cover - folders cannot be opened there
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(fd)


def freshen(path: Path) -> None:
    """Let the age of a file of this machine's own state count from now."""
    os.utime(path)


def write_state(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Replace a file of this machine's own state, whole or not at all; only its owner can read it.

    With `durable` its bytes are on the disk, and its name is with the next thing that is synced there: file
    systems that keep a log keep its order. A caller with nothing to follow syncs the folder itself.
    """
    with told(path):
        staged = path.parent / temp_name(path.name)
        fd = os.open(staged, _CREATE, STATE_MODE)
        try:
            try:
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(staged, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(staged)
            raise


def try_write(folder: Path, size: int) -> None:
    """Raise what the system has against a new file of *size* bytes in *folder*; nothing of it stays."""
    with told(folder):
        probe = folder / temp_name("probe")
        fd = os.open(probe, _CREATE, STATE_MODE)
        try:
            _write_all(fd, bytes(size))
        finally:
            os.close(fd)
            os.unlink(probe)


def try_append(path: Path) -> None:
    """Raise what the system has against adding to *path*; nothing is changed."""
    with told(path):
        os.close(os.open(path, os.O_RDWR | os.O_APPEND | FLAGS))


def append(path: Path, data: bytes, *, durable: bool) -> None:
    """Add *data* to the end of a state file in one write; what a failing disk left of it is cut off again."""
    with told(path):
        new = not os.path.lexists(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | FLAGS, STATE_MODE)
        try:
            size = os.fstat(fd).st_size
            try:
                _write_all(fd, data)
                if durable:
                    getattr(os, "fdatasync", os.fsync)(fd)
            except OSError:
                with contextlib.suppress(OSError):
                    os.truncate(fd, size)
                raise
        finally:
            os.close(fd)
        if new and durable:
            sync_folder(path.parent)


def cut(path: Path, size: int) -> None:
    """Shorten a state file to *size* bytes."""
    with told(path):
        fd = os.open(path, os.O_WRONLY | FLAGS)
        try:
            os.truncate(fd, size)
            os.fsync(fd)
        finally:
            os.close(fd)


def leftovers(root: Path) -> Iterator[Path]:
    """The temporary files of ours below *root*: of a run at work, or of one that was killed.

    Other dot-folders are not looked into, symbolic links not followed, unreadable folders passed over.
    """
    folders = [root]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name != "node_modules":
                    folders.append(Path(entry.path))
            elif is_temp(entry.name) and entry.is_file(follow_symlinks=False):
                yield Path(entry.path)


def sweep(root: Path, *, spare: frozenset[Path], keep: Callable[[bytes], object]) -> list[Path]:
    """Remove the leftovers below *root* but those to *spare*; *keep* gets their bytes first.

    The caller holds the write lock, so none of them belongs to a run at work.
    """
    gone: list[Path] = []
    for path in list(leftovers(root)):
        if path not in spare:
            keep(read_bytes(path))
            discard(path)
            gone.append(path)
    return gone


# -- the call that Python lacks -----------------------------------------------------------------------------


def _renameat2(src: Path, dst: Path, flags: int) -> None:
    """Rename without replacing, or exchange two names, in one step; `OSError` as from `os.rename`.

    Where the system has no such call the error is ENOSYS, and the caller takes its slower way.
    """
    if sys.platform == "win32":  # pragma: no cover - not tested there
        if flags == _NOREPLACE:
            os.rename(src, dst)  # never replaces there
            return
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(src))
    call = _rename_call()
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(src), None, str(dst))
    if call(os.fsencode(src), os.fsencode(dst), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(src), None, str(dst))


@functools.cache
def _rename_call() -> Callable[[bytes, bytes, int], int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":  # pragma: no cover - not tested there
        swap = {_NOREPLACE: 4, _EXCHANGE: 2}  # RENAME_EXCL, RENAME_SWAP
        plain = getattr(library, "renamex_np", None)
        if plain is None:
            return None
        return lambda src, dst, flags: int(plain(src, dst, ctypes.c_uint(swap[flags])))
    two = getattr(library, "renameat2", None)
    if two is None:
        return None
    here = -100  # AT_FDCWD
    return lambda src, dst, flags: int(two(here, src, here, dst, ctypes.c_uint(flags)))
