"""The token that a client of the HTTP server must bring: one a vault, in this machine's own folder.

Never in the vault, which is synced and shared. The file is readable by its owner alone; one that others
can read is refused, since its secret may be out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from vault_palace.core.errors import Exists, PolicyViolation, StorageFailed, VaultError
from vault_palace.services.machine import make_own_folder
from vault_palace.storage import files

FOLDER = "tokens"
BYTES = 32
LONGEST = 512  # bytes of the file; a token that a person chose may be longer than ours
SHORTEST = 16
_NEW = "Run `vault-palace token --rotate` to make a new one."


def token_file(state_dir: Path, root: Path) -> Path:
    """Where the token of the vault at *root* is kept."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]
    return state_dir / FOLDER / f"{name}.token"


def read_or_make(state_dir: Path, root: Path) -> str:
    """The vault's token; made when there is none yet. Refused when others can read or change the file."""
    place = token_file(state_dir, root)
    known = read(place)
    if known is not None:
        return known
    made = _made()
    make_own_folder(place.parent)
    staged = files.stage(place, made.encode("ascii") + b"\n", 0o600)
    try:
        files.put(staged, place, expect=None)
    except Exists:
        files.discard(staged)
        return read(place) or _gone(place)  # two servers began at once: the first one's counts
    return made


def rotate(state_dir: Path, root: Path) -> str:
    """A new token in the old one's place. Running servers take it at the next request."""
    place = token_file(state_dir, root)
    made = _made()
    make_own_folder(place.parent)
    files.write_state(place, made.encode("ascii") + b"\n", durable=True)
    return made


def read(place: Path) -> str | None:
    """The token in the file, or None where there is none."""
    try:
        # Not through a link, and never waiting for a pipe.
        fd = os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PolicyViolation(
            f"The token's file cannot be read: {error.strerror}.", hint=_NEW, path=str(place)
        ) from error
    try:
        _must_be_private(os.fstat(fd), place)
        data = os.read(fd, LONGEST + 1)
    finally:
        os.close(fd)
    try:
        token = data.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not SHORTEST <= len(token) <= LONGEST or not token.isprintable() or " " in token:
        raise PolicyViolation("The token's file holds no token.", hint=_NEW, path=str(place))
    return token


def _must_be_private(info: os.stat_result, place: Path) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise PolicyViolation("The token's file is no ordinary file.", hint=_NEW, path=str(place))
    if os.name != "posix":  # Windows keeps a user's folder from others; not tested there
        return
    if info.st_mode & 0o077:
        raise PolicyViolation(
            f"Others can read the token's file (mode {stat.S_IMODE(info.st_mode):04o}).",
            hint=f"{_NEW} The old one may be known.",
            path=str(place),
        )
    if info.st_uid != os.geteuid():
        raise PolicyViolation("The token's file belongs to somebody else.", hint=_NEW, path=str(place))


def _made() -> str:
    return f"vp_{secrets.token_urlsafe(BYTES)}"


def _gone(place: Path) -> str:
    raise StorageFailed("The token's file went away while it was made.", path=str(place))


class Bearer:
    """The token of a running server: follows its file, so that a new token counts at once."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._seen: tuple[int, ...] | None = None
        self._token: bytes | None = None

    @property
    def token(self) -> bytes | None:
        """What a client must bring now; None, which nothing equals, while the file cannot be trusted."""
        try:
            info = os.lstat(self._place)
            seen = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode, info.st_uid)
        except OSError:
            self._seen = self._token = None
            return None
        if seen != self._seen:
            try:
                read_now = read(self._place)
            except VaultError:
                read_now = None
            self._seen, self._token = seen, None if read_now is None else read_now.encode("ascii")
        return self._token

    def fits(self, given: bytes) -> bool:
        """Whether *given* is the token. Takes as long for a nearly right one as for a wrong one."""
        token = self.token
        return token is not None and hmac.compare_digest(
            hashlib.sha256(given).digest(), hashlib.sha256(token).digest()
        )
