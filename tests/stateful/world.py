"""The vault as a reader of the folder sees it at one moment, for comparing it with the moment before.

Read with means of its own, but for what a link is and where it leads, which have tests of theirs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from vault_palace.core import links
from vault_palace.core.model import OWNED
from vault_palace.core.resolve import Resolver
from vault_palace.services.palace import Palace

BOM = "\ufeff".encode()


@dataclass(frozen=True)
class Seen:
    """One note as a reader of the folder sees it. Link texts are left out of `body`: see `World.links`."""

    path: str
    data: bytes
    header: str
    body: str

    @property
    def broken(self) -> bool:
        return "density: [" in self.header

    @property
    def theirs(self) -> list[str]:
        """The header's lines that the program has no business with: all, when it cannot be read."""
        kept, key = [], ""
        for line in self.header.splitlines():
            mark = line == "---"
            if not mark and not line.startswith((" ", "-")):
                key = line.partition(":")[0]
            if self.broken or (not mark and key not in OWNED):
                kept.append(line)
        return kept

    def value(self, key: str) -> str:
        found = re.search(rf"^{key}: (.*?)\r?$", self.header, re.MULTILINE)
        return found[1] if found else ""


@dataclass(frozen=True)
class World:
    """The whole vault at one moment: notes by their marker, and where every link leads."""

    notes: dict[str, Seen]
    links: dict[str, str]  # the link's alias, which is its own, and the marker of the note it leads to
    aside: dict[str, str]  # conflict copies, which are nobody's business but the person's; without link texts

    def of(self, *folders: str) -> list[str]:
        return sorted(mark for mark, seen in self.notes.items() if seen.path.partition("/")[0] in folders)


def unlinked(text: str) -> str:
    """*text* without what its links lead by; their aliases stay."""
    return re.sub(r"\[\[[^\]|]*\|", "[[|", text)


def look(root: Path) -> World:
    paths: list[str] = []
    notes: dict[str, Seen] = {}
    aside: dict[str, str] = {}
    found: dict[str, str] = {}
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name not in (".palace", "journal"))
        for name in sorted(names):
            place = Path(folder) / name
            path = place.relative_to(root).as_posix()
            assert not name.startswith("."), f"left behind: {path}"
            paths.append(path)
            if "sync-conflict" in name:
                aside[path] = unlinked(place.read_bytes().decode("utf-8"))
            elif path != "_System/Policy.md":
                found[path] = place.read_bytes().decode("utf-8")
    resolver = Resolver(paths)
    marks: dict[str, str] = {}
    for path, text in found.items():
        if path.startswith(("0", "_Archive")):
            whole = re.match(r"\ufeff?(---\r?\n.*?^---\r?\n)?(.*)", text, re.DOTALL | re.MULTILINE)
            assert whole is not None
            body = unlinked(whole[2])
            (mark,) = re.findall(r"<(K\d+)>", body)
            assert mark not in notes, f"{mark} is at {notes[mark].path} and at {path}"
            notes[mark] = Seen(path, text.encode(), whole[1] or "", body)
            marks[path] = mark
    leads = {
        link.alias: marks.get(resolver.resolve(link.path, path) or "", "")
        for path, text in found.items()
        for link in links.find(text)
        if link.alias is not None and re.fullmatch(r"L\d+", link.alias)
    }
    return World(notes, leads, aside)


def known(palace: Palace) -> tuple[object, ...]:
    """All that the cache knows of the vault, once it is in step."""
    palace.house.refresh(if_older=0)
    cache = palace.house.shelf.cache
    notes = {
        note.path: (note.fingerprint, note.id, note.links, note.tags, note.kind) for note in cache.notes()
    }
    return notes, sorted(cache.counted_links()), sorted(cache.unresolved()), cache.counts()
