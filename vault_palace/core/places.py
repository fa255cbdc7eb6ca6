"""What a vault-relative path says about a file: its kind, layer and room, and whether a sync tool made it.

Only names are judged here, never the disk. Paths are vault-relative with `/`.
"""

from __future__ import annotations

import re
from typing import Literal

from vault_palace.core.model import ARCHIVE, MAP_NOTE, SYSTEM, Layer

Kind = Literal["memory", "archived", "template", "system", "map", "conflict", "other"]

TEMPLATES = f"{SYSTEM}/Templates"
JOURNALS = f"{SYSTEM}/journal"

# Names that a sync tool gives to the loser of a conflict. Each row matches the whole stem, so that a title
# which merely speaks of conflicted copies is still a memory. Dropbox and Nextcloud put the number of a
# further copy behind; Obsidian Sync leaves the device out in older versions.
_CONFLICT_STEMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<stem>.+) \(conflicted copy(?: [^()]*)?\)(?: \(\d+\))?",  # Obsidian Sync, ownCloud, Nextcloud
        r"(?P<stem>.+) \([^()]*['’]s conflicted copy(?: [^()]*)?\)(?: \(\d+\))?",  # Dropbox, and the next
        r"(?P<stem>.+) \((?:case|unicode encoding|selective sync|white ?space) conflict(?: \d+)?\)(?: \(\d+\))?",  # noqa: E501
        r"(?P<stem>.+)\.sync-conflict-\d{8}-\d{6}(?:-[0-9a-z]{7})?",  # Syncthing
        r"(?P<stem>.+)\.conflict(?:\.\d+)?",  # Resilio Sync
        r"(?P<stem>.+?)(?:_[^_]+)?_[a-z]{3}-\d{1,2}-\d{4}-\d{4}_conflict(?:\(\d+\))?",  # Synology Drive
        r"conflict-files-obsidian-git",  # the list that Obsidian Git opens; it goes away with the conflict
    )
)
_CONFLICT_NAME = re.compile(r"(?P<name>.+\.md)\.orig", re.IGNORECASE)  # git mergetool

# `N 2.md` (iCloud), `N (1).md` (Google Drive) and `N-HOST.md` (OneDrive) are good titles as well: these only
# say where the original would be, and the same `id` in both decides. `N 1` is how Obsidian itself calls the
# copy that a person asks for: no sync tool begins to count there.
_MAYBE_COPY = (
    re.compile(r"(?P<stem>.+) (?!1$)\d{1,3}"),
    re.compile(r"(?P<stem>.+) \(\d{1,3}\)"),
    re.compile(r"(?P<stem>.+)-[A-Za-z0-9][A-Za-z0-9_-]*"),
)

# Files that are on their way: half-downloaded, half-saved, or an editor's own. Dot names need no row.
_PASSING = re.compile(
    r"~syncthing~.*|~\$.*|.*~|#.*#|.*\.(?:tmp|temp|part|partial|crdownload|download|swp|swo|bak~|!sync|icloud)"
    r"|thumbs\.db|desktop\.ini|icon\r",
    re.IGNORECASE,
)


def stem_and_extension(name: str) -> tuple[str, str]:
    """`("Plan", ".md")` for `Plan.md`; a name without a dot has an empty extension."""
    stem, dot, extension = name.rpartition(".")
    return (stem, dot + extension) if stem else (name, "")


def is_note(name: str) -> bool:
    """Whether Obsidian takes a file of this name for Markdown."""
    return name.lower().endswith(".md") and len(name) > len(".md")


def is_conflict_copy(name: str) -> bool:
    """Whether a sync tool's pattern for conflict copies fits this file name beyond doubt."""
    stem, _ = stem_and_extension(name)
    return _CONFLICT_NAME.fullmatch(name) is not None or any(row.fullmatch(stem) for row in _CONFLICT_STEMS)


def possible_originals(name: str) -> tuple[str, ...]:
    """File names of which *name* may be a sync tool's copy; only a shared `id` can tell.

    Shortest last, so that `A-b-HOST.md` is compared with `A-b.md` before `A.md`.
    """
    stem, extension = stem_and_extension(name)
    found: list[str] = []
    for row in _MAYBE_COPY:
        match = row.fullmatch(stem)
        while match is not None:
            found.append(match["stem"] + extension)
            match = row.fullmatch(match["stem"]) if row is _MAYBE_COPY[-1] else None
    return tuple(found)


def original_names(name: str) -> tuple[str, ...]:
    """File names of which *name* is, or may be, a conflict copy, the likeliest first."""
    if match := _CONFLICT_NAME.fullmatch(name):
        return (match["name"],)
    stem, extension = stem_and_extension(name)
    for row in _CONFLICT_STEMS:
        match = row.fullmatch(stem)
        if match is not None:
            return (match["stem"] + extension,) if "stem" in row.groupindex else ()
    return possible_originals(name)


def is_passing(name: str) -> bool:
    """Whether this is a temporary file of a sync tool, a browser, an editor or the system."""
    return name.startswith(".") or _PASSING.fullmatch(name) is not None


def is_ignored_folder(name: str) -> bool:
    """Whether a folder of this name is nobody's memory at any depth: dot-folders and `node_modules`."""
    return name.startswith(".") or name == "node_modules"


def is_ignored(path: str) -> bool:
    """Whether the palace looks away from this file altogether."""
    *folders, name = path.split("/")
    return is_passing(name) or any(is_ignored_folder(folder) for folder in folders)


def kind(path: str) -> Kind:
    """What the palace takes this file for; ignored files and those outside its folders are `other`."""
    first, _, rest = path.partition("/")
    name = path.rpartition("/")[2]
    if is_ignored(path):
        return "other"
    if path.startswith(f"{TEMPLATES}/"):
        return "template"
    if is_conflict_copy(name):
        return "conflict"
    if first == SYSTEM and rest:
        return "system"
    if path == MAP_NOTE:
        return "map"
    if not is_note(name) or not rest:
        return "other"
    if Layer.of_folder(first) is not None:
        return "memory"
    return "archived" if first == ARCHIVE else "other"


def layer_of(path: str) -> Layer | None:
    """The layer whose folder holds this path; None outside the layers, in the archive too."""
    first, slash, _ = path.partition("/")
    return Layer.of_folder(first) if slash else None


def archived_layer(path: str) -> Layer | None:
    """The layer an archived note came from by its place in the archive, or None."""
    first, _, rest = path.partition("/")
    return layer_of(rest) if first == ARCHIVE else None


def room_of(path: str) -> str:
    """The folders between the layer and the note, `` when it lies in the layer itself.

    The archive mirrors layer and room, so an archived note keeps its room. Elsewhere: all its folders.
    """
    folders = path.split("/")[:-1]
    if folders and folders[0] == ARCHIVE:
        folders = folders[1:]
    if folders and Layer.of_folder(folders[0]) is not None:
        folders = folders[1:]
    return "/".join(folders)


def archive_place(path: str) -> str:
    """Where this path of a layer goes when it is let go: the same path below the archive."""
    return f"{ARCHIVE}/{path}"


def printable(name: str) -> str:
    """*name* as text that can be shown and encoded, undecodable bytes as `\\xNN`."""
    try:
        raw = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a pair, as JSON can carry it
        raw = name.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")
