"""The vault as a place: turns names into paths, and reads and lists what is there. It changes nothing.

`Vault` is the only type that makes paths. What it cannot read it reports; it never takes an unreadable
folder for an empty one.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from vault_palace.core import names, places
from vault_palace.core.changes import Mark as Mark
from vault_palace.core.errors import NotFound, PathViolation
from vault_palace.core.model import ARCHIVE, OLD_POLICY, POLICY_NOTE, STATE, SYSTEM, Layer, Problem
from vault_palace.storage import files

MARKS = (POLICY_NOTE, OLD_POLICY, Layer.SHALLOW.folder)  # any of them makes a folder a palace

TELLS_CASE = sys.platform not in ("win32", "darwin")  # where `is_folder` answers for one spelling alone
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Stored:
    """A file's bytes, their fingerprint, and the mark of that very moment."""

    data: bytes
    fingerprint: str
    mark: Mark


@dataclass(frozen=True, slots=True)
class Survey:
    """All files of a vault, what could not be used, and the folders that could not be read.

    A file below an unreadable folder is not gone. `strays` are links, pipes and names nobody can type.
    """

    files: dict[str, Mark]
    strays: tuple[Problem, ...]
    unreadable: frozenset[str]


class Vault:
    """One palace's folder. The root is resolved once, so a link to the vault itself is fine."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.strays: list[Problem] = []
        self.unreadable: frozenset[str] = frozenset()

    @property
    def state(self) -> Path:
        """The folder of this machine's own state, `.palace`; it may not exist yet."""
        return self.root / STATE

    def locate(self, path: str) -> Path:
        """The absolute path of a vault-relative one; `PathViolation` for anything that is not inside.

        Refused are absolute and home paths, `..` in any spelling, backslashes, NUL, over-long names, and
        symbolic links at any component: the walk does not follow them, so nothing behind one is known.
        """
        parts = [part for part in path.split("/") if part != "."]
        if not path or not parts:
            raise _violation(path, "names the vault itself")
        if "\0" in path:
            raise _violation(path, "holds a null byte")
        if not path.isascii() and any("\ud800" <= sign <= "\udfff" for sign in path):
            raise _violation(path, "is not text")
        if path.startswith("/") or "\\" in path or _DRIVE.match(path):
            raise _violation(path, "is not relative to the vault with `/` between folders")
        for part in parts:
            decoded = unquote(part) if "%" in part else part
            if not part or decoded.strip() in {".", ".."} or (part == "~" and part is parts[0]):
                raise _violation(path, "leaves the vault")
            if decoded != part and ("/" in decoded or "\\" in decoded) and ".." in decoded:
                raise _violation(path, "leaves the vault")
            if len(part.encode("utf-8")) > 255:
                raise _violation(path, "holds a name longer than 255 bytes")
            if os.name == "nt" and ":" in part:  # pragma: no cover - a stream of another file there
                raise _violation(path, "holds a colon")
        place = str(self.root)
        for part in parts:
            place = os.path.join(place, part)  # a text: this is asked many times for each note
            try:
                found = os.lstat(place)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise files.failed(error, Path(place)) from error
            if stat.S_ISLNK(found.st_mode):
                raise _violation(path, self._where(Path(place)))
        return self.root.joinpath(*parts)

    def _where(self, link: Path) -> str:
        """Say whether a symbolic link leaves the vault; the last check is on resolved paths."""
        target = Path(os.path.realpath(link))
        if target.is_relative_to(self.root):
            return "goes through a symbolic link; name the file itself"
        return "leaves the vault through a symbolic link"

    def rel(self, path: Path) -> str:
        """The vault-relative form of an absolute path below the root."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            raise PathViolation(f"{path.name} is not in the vault.", path=str(path)) from None

    def read(self, path: str, *, limit: int = files.LIMIT) -> Stored:
        """The file's bytes; `NotFound`, `PathViolation` or `StorageFailed` when that cannot be."""
        place = self.locate(path)
        try:
            data, found = files.open_whole(place, limit)
        except NotFound as error:
            raise NotFound(f"{path} does not exist.", hint=error.hint, path=path) from error
        return Stored(data, files.fingerprint(data), Mark.of(found))

    def mark(self, path: str) -> Mark | None:
        """The mark of the file there, None when there is none."""
        place = self.locate(path)
        try:
            found = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise files.failed(error, place) from error
        return Mark.of(found)

    def exists(self, path: str) -> bool:
        """Whether something of that name is there, a folder too."""
        return self.mark(path) is not None

    def is_file(self, path: str) -> bool:
        """Whether a plain file of that name is there; no link, no folder."""
        try:
            return stat.S_ISREG(os.lstat(self.locate(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError, PathViolation):
            return False
        except OSError as error:
            raise files.failed(error, self.root / path) from error

    def is_folder(self, path: str) -> bool:
        """Whether a folder of that name is there; the empty path is the vault itself."""
        return os.path.isdir(self.locate(path) if path else self.root)

    def spelled(self, folder: str) -> str:
        """*folder* as it is spelled on disk where only case or Unicode form differ; else as it is given.

        Two rooms `Ideas` and `ideas` would be one folder on Windows and macOS, and a torn vault elsewhere.
        """
        found: list[str] = []
        for part in folder.split("/"):
            above, here = "/".join(found), "/".join((*found, part))
            if TELLS_CASE and self.is_folder(here):
                found.append(part)
                continue
            try:
                with os.scandir(self.locate(above) if above else self.root) as entries:
                    known = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except OSError:
                known = []
            same = [name for name in known if names.key(name) == names.key(part)]
            found.append(part if part in same else min(same, default=part))
        return "/".join(found)

    def is_writable(self, path: str) -> bool:
        """Whether the file can be replaced: its folder can be written to, and its owner did not shut it.

        The empty path is the vault.
        """
        place = self.locate(path).parent if path else self.root
        if path:
            try:
                if not os.lstat(self.locate(path)).st_mode & 0o222:
                    return False
            except FileNotFoundError:
                pass
            except OSError as error:
                raise files.failed(error, place) from error
        effective = os.access in os.supports_effective_ids
        return os.access(place, os.W_OK | os.X_OK, effective_ids=effective)

    def survey_of(self, path: str) -> Survey:
        """`survey` for one file or folder: what is found there now, nothing where it is gone or ignored."""
        if any(part.startswith(".") or places.is_ignored_folder(part) for part in path.split("/")):
            return Survey({}, (), frozenset())
        try:
            place = self.locate(path)
            seen = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError, PathViolation):
            return Survey({}, (), frozenset())
        except OSError as error:
            return Survey(
                {},
                (_stray(path, "unreadable", f"It cannot be read: {error.strerror}."),),
                frozenset({path}),
            )
        if stat.S_ISDIR(seen.st_mode):
            return self.survey(path)
        name = place.name
        if places.is_passing(name):
            return Survey({}, (), frozenset())
        if (why := _unusable(name, seen)) is not None:
            return Survey({}, (_stray(path, *why),), frozenset())
        return Survey({path: Mark.of(seen)}, (), frozenset())

    def survey(self, start: str = "") -> Survey:
        """All files outside dot-folders and `node_modules`, in the order of their names.

        No link is followed. A root that cannot be read raises: it is never an empty vault. With *start*, what
        lies below that folder.
        """
        found: dict[str, Mark] = {}
        strays: list[Problem] = []
        unreadable: list[str] = []
        folders = [start]
        while folders:
            folder = folders.pop()
            below = []
            try:
                with os.scandir(self.root / folder) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                if not folder:
                    raise files.failed(error, self.root) from error
                if isinstance(error, FileNotFoundError):
                    continue
                unreadable.append(folder)
                strays.append(_stray(folder, "unreadable", f"The folder cannot be read: {error.strerror}."))
                continue
            for entry in listed:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.name.startswith("."):
                    continue
                try:
                    # A listing on Windows tells no inode, and may tell an older time.
                    seen = os.lstat(entry.path) if os.name == "nt" else entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    strays.append(_stray(path, "unreadable", f"The file cannot be read: {error.strerror}."))
                    unreadable.append(path)
                    continue
                if stat.S_ISDIR(seen.st_mode) and _is_text(entry.name):
                    if not places.is_ignored_folder(entry.name):
                        below.append(path)
                elif places.is_passing(entry.name):
                    continue
                elif (why := _unusable(entry.name, seen)) is not None:
                    strays.append(_stray(path, *why))
                else:
                    found[path] = Mark.of(seen)
            folders.extend(reversed(below))
        return Survey(found, tuple(strays), frozenset(unreadable))

    def walk(self) -> Iterator[tuple[str, Mark]]:
        """`survey` as an iterator; `strays` and `unreadable` are this walk's when it begins to yield."""
        survey = self.survey()
        self.strays = list(survey.strays)
        self.unreadable = survey.unreadable
        yield from survey.files.items()

    def hidden(self, path: str) -> bool:
        """Whether the last walk could not look where *path* is, so that it may well be there."""
        return any(path == folder or path.startswith(f"{folder}/") for folder in self.unreadable)

    @staticmethod
    def kind(path: str) -> places.Kind:
        return places.kind(path)

    @staticmethod
    def layer_of(path: str) -> Layer | None:
        return places.layer_of(path)

    @staticmethod
    def room_of(path: str) -> str:
        return places.room_of(path)


def _violation(path: str, why: str) -> PathViolation:
    shown = places.printable(path.replace("\0", "\\0"))[:200]
    return PathViolation(
        f"The path {shown!r} {why}.",
        hint="Give a path inside the vault, such as 01_Shallow/ideas/Name.md.",
        path=shown,
    )


def _stray(path: str, code: str, message: str) -> Problem:
    return Problem(path=places.printable(path), line=0, code=code, message=message)


def _is_text(name: str) -> bool:
    """Whether the name is text that every system can hold: no undecodable bytes and no backslash."""
    return "\\" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name)


def _unusable(name: str, seen: os.stat_result) -> tuple[str, str] | None:
    if stat.S_ISLNK(seen.st_mode):
        return "symbolic_link", "A symbolic link; it is not followed, and what it points to is no memory."
    if not _is_text(name):
        return "bad_name", "The name is not UTF-8 or holds a backslash; rename it to use it as a memory."
    if not stat.S_ISREG(seen.st_mode):
        return "not_a_file", "Neither a file nor a folder; it is passed over."
    return None


# -- which folder is a palace -------------------------------------------------------------------------------


def palace_mark(root: Path) -> str | None:
    """What makes this folder a palace, or None."""
    for mark in MARKS:
        place = root / mark
        if os.path.isdir(place) if mark == Layer.SHALLOW.folder else os.path.isfile(place):
            return mark
    return None


def find_palace(root: Path | str) -> Vault:
    """The palace at *root*; refused are homes, roots, layers, and folders that are none (SPEC §1).

    Give the text as the person typed it: as a `Path` an empty one would be the current folder.
    """
    place = new_palace(root)
    if not os.path.lexists(place):
        raise NotFound(
            f"There is no folder {place}.", hint="Check `--vault`, or is a disk not mounted?", path=str(place)
        )
    if not os.path.isdir(place):
        raise PathViolation(f"{place} is a file, not a vault.", path=str(place))
    outer = _palace_around(place)
    if outer is not None:
        raise PathViolation(
            f"{place} lies inside the palace {outer}.", hint=f"Name that folder: {outer}.", path=str(place)
        )
    if palace_mark(place) is not None:
        return Vault(place)
    try:
        empty = not os.listdir(place)
    except OSError as error:
        raise files.failed(error, place) from error
    if empty:
        raise NotFound(
            f"{place} is empty.",
            hint="Is a disk not mounted? `vault-palace init` makes a palace of an empty folder.",
            path=str(place),
        )
    around = next((str(above) for above in place.parents if palace_mark(above) is not None), "")
    raise PathViolation(
        f"{place} is not a palace: it holds neither {MARKS[0]} nor {MARKS[1]} nor {MARKS[2]}/.",
        hint=f"Did you mean {around}?" if around else "`vault-palace init` says what it would add to it.",
        path=str(place),
    )


def _palace_around(place: Path) -> Path | None:
    """The palace in one of whose own folders *place* lies; the archive looks like a palace itself."""
    own = {ARCHIVE, SYSTEM, STATE, *(layer.folder for layer in Layer)}
    for above in place.parents:
        if place.relative_to(above).parts[0] in own and palace_mark(above) is not None:
            return above
    return None


def new_palace(root: Path | str) -> Path:
    """The resolved folder, palace or not; refused are no name at all, homes, roots and layers."""
    text = os.fspath(root)
    if not text.strip():
        raise PathViolation(
            "No vault was named.", hint="Give `--vault PATH` or set VAULT_PALACE_VAULT.", path=""
        )
    if "\0" in text:
        raise PathViolation("The vault's path holds a null byte.", path=text.replace("\0", "\\0"))
    place = Path(os.path.realpath(os.path.expanduser(text)))
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if place.parent == place:
        raise PathViolation(f"{place} is the root of a file system, not a vault.", path=str(place))
    if home.is_relative_to(place) or _same_folder(home, place):
        what = "is" if _same_folder(home, place) else "holds"
        raise PathViolation(
            f"{place} {what} your home folder, and no vault.",
            hint="Name the vault's own folder.",
            path=str(place),
        )
    if Layer.of_folder(place.name) is not None:
        raise PathViolation(
            f"{place} is a layer, not a vault.",
            hint=f"Name the folder around it: {place.parent}.",
            path=str(place),
        )
    return place


def _same_folder(one: Path, other: Path) -> bool:
    """Whether two spellings name one folder, as they may where case does not count."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
