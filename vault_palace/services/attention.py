"""What a person has before their eyes: the notes open in Obsidian, and which of them they just opened.

Read from `.obsidian/workspace.json`, whose shape belongs to Obsidian: every shape is tolerated. What cannot
be read, as while it is being saved, says nothing: nothing is known to be open then, and nothing was opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from unicodedata import normalize

from vault_palace.core import places
from vault_palace.core.changes import Mark
from vault_palace.core.errors import VaultError
from vault_palace.core.model import POLICY_NOTE
from vault_palace.storage import files
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import prepare_state

if TYPE_CHECKING:
    from vault_palace.services.house import House

WORKSPACES = (".obsidian/workspace.json", ".obsidian/workspace-mobile.json")
LIMIT = 8 * 1024 * 1024  # bytes; Obsidian's own are a few thousand
MOST = 200  # names that are kept of a list; Obsidian keeps fifty
STATE_FILE = "attention.json"
STATE_VERSION = 1

# Panes that show something about the note that is open elsewhere. To click into one is not to open the note.
_BESIDE = frozenset(
    {"backlink", "outgoing-link", "outline", "localgraph", "file-properties", "footnotes", "tag"}
)
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One saved workspace: the note in the active leaf, those opened lately (newest first), those in a leaf.

    Paths are vault-relative as Obsidian wrote them, in Unicode form NFC. `at_ns` is when it was saved.
    """

    active: str | None = None
    recent: tuple[str, ...] = ()
    open: frozenset[str] = frozenset()
    at_ns: int = 0


def read_workspace(data: bytes, at_ns: int = 0) -> Workspace | None:
    """The workspace that *data* holds; None when it is no JSON object, as while it is being saved."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    active_leaf = document.get("active")
    active = None
    shown: set[str] = set()
    for leaf, state, type_ in _states(document):
        path = _note_path(state.get("file"))
        if path is None:
            continue
        shown.add(path)
        if isinstance(active_leaf, str) and leaf == active_leaf and str(type_) not in _BESIDE:
            active = path
    lately = document.get("lastOpenFiles")
    found = (_note_path(item) for item in lately[:MOST]) if isinstance(lately, list) else ()
    recent = tuple(dict.fromkeys(path for path in found if path is not None))
    return Workspace(active=active, recent=recent, open=frozenset(shown), at_ns=at_ns)


def _states(document: dict[str, object]) -> Iterator[tuple[object, dict[str, object], object]]:
    """Every object that may name a file, with the id of the leaf it belongs to and the type of its view."""
    waiting: list[tuple[object, object, object]] = [(document, None, None)]
    while waiting:
        item, leaf, type_ = waiting.pop()
        if isinstance(item, list):
            waiting.extend((each, leaf, type_) for each in item)
        elif isinstance(item, dict):
            leaf, type_ = item.get("id", leaf), item.get("type", type_)
            yield leaf, item, type_
            waiting.extend((value, leaf, type_) for value in item.values() if isinstance(value, dict | list))


def _note_path(value: object) -> str | None:
    """*value* as a note's vault-relative path in NFC; None for whatever else stands there."""
    if (
        not isinstance(value, str)
        or not places.is_note(value)
        or value.startswith("/")
        or _DRIVE.match(value)
    ):
        return None
    if "\\" in value or "\0" in value or {"", ".", ".."} & set(value.split("/")):
        return None
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return normalize("NFC", value)


def _saved(vault: Vault, name: str) -> Workspace | None:
    try:
        stored = vault.read(name, limit=LIMIT)
    except VaultError:
        return None
    return read_workspace(stored.data, stored.mark.mtime_ns)


def open_notes(vault: Vault) -> frozenset[str]:
    """The vault-relative paths that a leaf of the saved workspaces shows, in both Unicode forms.

    Obsidian writes a name composed, and the disk of a Mac may hold it decomposed.
    """
    found: set[str] = set()
    for name in WORKSPACES:
        workspace = _saved(vault, name)
        if workspace is not None:
            found |= workspace.open
    return frozenset({*found, *(normalize("NFD", path) for path in found)})


def became_open(before: Workspace | None, now: Workspace) -> tuple[str, ...]:
    """The notes that were opened between two looks at one workspace, newest first; none at the first look.

    A note that was left open or left for another one was opened before; a renamed note was not opened.
    """
    if before is None:
        return ()
    found: list[str] = []
    if now.active is not None and now.active != before.active and not _renamed(before, now):
        found.append(now.active)
    # Obsidian lists a note when it is left: the one that was active before was opened before as well.
    found += [path for path in _moved_ahead(before.recent, now.recent) if path != before.active]
    return tuple(dict.fromkeys(found))


def _renamed(before: Workspace, now: Workspace) -> bool:
    """Whether the active note of *before* is that of *now* under another name.

    A note that was left is listed among the recent ones; a renamed one is nowhere under its old name.
    """
    if before.active is None or not now.recent:
        return False
    gone = before.active not in now.open and before.active not in now.recent
    return gone and now.active not in before.open and now.active not in before.recent


def _moved_ahead(before: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """The beginning of *now* that was put in front of what *before* held, as short as it can be."""
    known, there = set(before), set(now)
    for count in range(len(now) + 1):
        front = set(now[:count])
        if _follows([path for path in before if path not in front], now[count:], known, there):
            return now[:count]
    return now


def _follows(before: list[str], now: tuple[str, ...], known: set[str], there: set[str]) -> bool:
    """Whether *now* is *before* with names changed in place and names taken out, and nothing put in."""
    place = 0
    for path in now:
        if path in known:
            while place < len(before) and before[place] != path and before[place] not in there:
                place += 1
            if place == len(before) or before[place] != path:
                return False
        elif place == len(before) or before[place] in there:
            return False
        place += 1
    return True


class Attention:
    """Which notes a person opened in Obsidian since the last look, remembered in this machine's state."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._looked: dict[str, Mark | None] = {}

    def openings(self) -> list[tuple[str, datetime]]:
        """Each note that became open since the last look, and when; by its path on disk.

        The first look at a workspace counts nothing. In a vault that may not be written, or without
        `_System/Policy.md`, nobody looks. What was opened meanwhile is of the time of the saved workspace.
        """
        vault = self.house.vault
        if self.house.read_only() or not vault.exists(POLICY_NOTE):
            return []
        marks = {name: _mark(vault, name) for name in WORKSPACES}
        if marks == self._looked:
            return []
        known = self._remembered()
        seen = dict(known)
        found: dict[str, datetime] = {}
        for name in WORKSPACES:
            now = _saved(vault, name)
            if now is None:  # absent, or being saved: the next look has it
                continue
            before = known.get(name)
            at = datetime.fromtimestamp(max(0.0, min(now.at_ns / 1e9, self.house.now().timestamp())), UTC)
            for path in became_open(before, now):
                found[path] = max(at, found.get(path, at))
            if now.active is None and before is not None and before.active in now.open:
                now = replace(now, active=before.active)  # a side pane has the focus; the note was not left
            seen[name] = replace(now, at_ns=0)
        if seen != known:
            self._remember(seen)
        self._looked = marks
        placed = ((self._on_disk(path), at) for path, at in found.items())
        return [(path, at) for path, at in placed if path is not None]

    def _on_disk(self, path: str) -> str | None:
        """The path of the note that Obsidian calls *path*, as the disk spells it."""
        for form in (path, normalize("NFD", path)):
            with suppress(VaultError):
                if self.house.vault.exists(form):
                    return form
        with suppress(VaultError):
            stem = places.stem_and_extension(path.rpartition("/")[2])[0]
            for candidate in self.house.shelf.paths_named(stem):
                if normalize("NFC", candidate) == path:
                    return candidate
        return None

    def _remembered(self) -> dict[str, Workspace]:
        """The workspaces as they were last seen; none of a state that is absent or damaged."""
        try:
            document = json.loads(files.read_bytes(self.house.vault.state / STATE_FILE))
        except (VaultError, ValueError, RecursionError):
            return {}
        if not isinstance(document, dict) or document.get("v") != STATE_VERSION:
            return {}
        saved = document.get("workspaces")
        if not isinstance(saved, dict):
            return {}
        found = {name: _from_state(saved[name]) for name in WORKSPACES if name in saved}
        return {name: workspace for name, workspace in found.items() if workspace is not None}

    def _remember(self, seen: Mapping[str, Workspace]) -> None:
        document = {
            "v": STATE_VERSION,
            "workspaces": {
                name: {
                    "active": workspace.active,
                    "recent": list(workspace.recent),
                    "open": sorted(workspace.open)[:MOST],
                }
                for name, workspace in seen.items()
            },
        }
        data = json.dumps(document, ensure_ascii=False, sort_keys=True).encode("utf-8")
        with suppress(VaultError):  # a full disk: what was opened is told once more next time, once a day
            files.write_state(prepare_state(self.house.vault) / STATE_FILE, data)


def count_openings(house: House, attention: Attention) -> tuple[str, ...]:
    """Count a use of each memory that a person opened in Obsidian since the last look, and name them.

    Whatever else was opened counts nothing. It never fails: a use is not worth an error.
    """
    from vault_palace.services import quiet  # which asks this module what is open

    counted: list[str] = []
    for path, at in attention.openings():
        with suppress(VaultError):
            note = house.look(path)
            if note.memory is not None and note.kind == "memory":
                quiet.touch(house, note, at)
                counted.append(path)
    return tuple(counted)


def _mark(vault: Vault, name: str) -> Mark | None:
    try:
        return vault.mark(name)
    except VaultError:
        return None


def _from_state(saved: object) -> Workspace | None:
    if not isinstance(saved, dict):
        return None
    active, recent, shown = (saved.get(key) for key in ("active", "recent", "open"))
    if not isinstance(recent, list) or not isinstance(shown, list):
        return None
    if not (active is None or isinstance(active, str)) or not all(isinstance(p, str) for p in recent + shown):
        return None
    return Workspace(active=active, recent=tuple(recent), open=frozenset(shown))


def seconds_since(mtime_ns: int, now: datetime) -> float:
    """How long ago a file was changed by *now*; a time in the future counts as long ago.

    A clock that was set back must not make a vault untouchable.
    """
    age = now.timestamp() - mtime_ns / 1e9
    return age if age >= 0 else float("inf")
