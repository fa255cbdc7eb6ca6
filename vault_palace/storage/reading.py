"""Reads files whole, and says plainly what the system refuses. It changes nothing.

Symbolic links are not followed, pipes do not block, and a file that changes while it is read is read again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from vault_palace.core.errors import NotFound, StorageFailed, VaultError

LIMIT = 64 * 1024 * 1024  # a larger file is nobody's note; reading it would stall everything else

FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)

_REASONS = {
    errno.ENOSPC: "no space left",
    errno.EDQUOT: "no space left",
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.EROFS: "read-only file system",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "a symbolic link is in the way",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
    errno.EFBIG: "the file is too large",
}
_HINTS = {
    "no space left": "Free some space and repeat; nothing was changed.",
    "no permission": "Give the user that runs this program the right to write there, and repeat.",
    "read-only file system": "Mount it writable, or work with `read_only: true`.",
}


def failed(error: OSError, path: Path) -> VaultError:
    """The plain error for what the operating system refused."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"{path.name} does not exist.", path=str(path))
    reason = _REASONS.get(error.errno or 0) or (error.strerror or "the system refused").lower()
    return StorageFailed(
        f"{path.name}: {reason}.",
        hint=_HINTS.get(reason, ""),
        path=str(path),
        reason=reason,
        errno=errno.errorcode.get(error.errno or 0, ""),
    )


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into ours, with the path they are about."""
    try:
        yield
    except OSError as error:
        raise failed(error, path) from error


def fingerprint(data: bytes) -> str:
    """What tells two versions of a file apart: the SHA-256 of its bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def open_whole(path: Path, limit: int = LIMIT) -> tuple[bytes, os.stat_result]:
    """All bytes of a regular file and what the system said about it at that very moment.

    Symbolic links are not followed, and a pipe does not block. A file that grows or shrinks while it is
    read is read again, so that bytes and times belong together.
    """
    with told(path):
        for _ in range(4):
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | FLAGS)
            try:
                before = os.fstat(fd)
                _refuse_odd(path, before, limit)
                data = _read_all(fd, before.st_size)
                after = os.fstat(fd)
            finally:
                os.close(fd)
            if len(data) == before.st_size == after.st_size and before.st_mtime_ns == after.st_mtime_ns:
                break
        return data, after


def read_only(path: str, flags: int) -> int:
    """An opener for `open` that follows no symbolic link, and takes regular files only."""
    fd = os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | FLAGS)
    try:
        _refuse_odd(Path(path), os.fstat(fd), sys.maxsize)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _refuse_odd(path: Path, found: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise NotFound(f"{path.name} is a folder, not a file.", path=str(path))
    if not stat.S_ISREG(found.st_mode):
        raise StorageFailed(f"{path.name}: not a regular file.", path=str(path), reason="not a regular file")
    if found.st_size > limit:
        raise StorageFailed(
            f"{path.name}: larger than {limit} bytes.",
            hint="Move it out of the vault, or split it.",
            path=str(path),
            reason="the file is too large",
            size=found.st_size,
        )


def _read_all(fd: int, size: int) -> bytes:
    parts = []
    while chunk := os.read(fd, max(size + 1, 65536)):
        parts.append(chunk)
    return b"".join(parts)


def read_bytes(path: Path) -> bytes:
    """All bytes of a regular file, refused as `open_whole` refuses."""
    return open_whole(path)[0]


def fingerprint_at(path: Path) -> str | None:
    """The fingerprint of the file there, None when there is none."""
    found = bytes_at(path)
    return None if found is None else fingerprint(found)


def bytes_at(path: Path) -> bytes | None:
    """The bytes of the file there, None when there is none."""
    try:
        return read_bytes(path)
    except NotFound:
        if os.path.lexists(path):  # a folder in the place of a file is not "no file"
            raise
        return None
