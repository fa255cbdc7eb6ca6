"""The one real erasure: a note, its kept versions, what the cache and the journal say of it (SPEC §5).

The journal is written last, so that a run that was killed can be repeated by the same name. What cannot be
erased from here (other machines' journals, copies in other hands) is listed and never touched.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vault_palace.core import frontmatter, links, mapnote, places
from vault_palace.core import memory as memories
from vault_palace.core.errors import NotFound, PathViolation, PolicyViolation, VaultError
from vault_palace.core.model import MAP_NOTE, STATE
from vault_palace.services import deeds, generated, journalnote, mapping, quiet, review
from vault_palace.services.answers import ForgetAnswer
from vault_palace.services.generated import JOURNAL_NOTE, REVIEW_NOTE
from vault_palace.services.history import Subject, concerning, subject
from vault_palace.services.house import House, body_hash
from vault_palace.services.kept import bytes_of
from vault_palace.storage import files, forgotten
from vault_palace.storage.records import Entry

GENERATED = (MAP_NOTE, JOURNAL_NOTE, REVIEW_NOTE)
_OWN_STATE = frozenset({".gitignore", "lock", "keeper", "policy.json", forgotten.FILE})
_LARGEST = 64 * 1024 * 1024  # bytes of a file that is searched for what is left
_SHOWN = 50
_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class _Erased:
    """All that tells the note: its id, every path it had, the fingerprints and bodies of its versions."""

    id: str
    paths: frozenset[str]
    marks: frozenset[str]
    bodies: frozenset[str]
    said: re.Pattern[str]

    def is_about(self, entry: Entry) -> bool:
        """Whether a journal's entry is about the note or names it."""
        return (
            any(step.path in self.paths or step.to in self.paths for step in entry.steps)
            or any(fact.id == self.id or fact.path in self.paths for fact in entry.notes)
            or self.said.search(entry.why) is not None
        )

    def is_it(self, data: bytes) -> bool:
        """Whether these bytes are a version of the note."""
        if files.fingerprint(data) in self.marks:
            return True
        header = frontmatter.read(data.decode("utf-8", "replace"))
        known = memories.identity(header)
        if known is not None or not header.body.strip():
            return bool(self.id) and known == self.id
        return body_hash(header.body) in self.bodies


def forget(house: House, note: str, *, confirm: bool = False) -> ForgetAnswer:
    """Erase a note in a layer or the archive, or one that is gone already, from everything that is ours.

    Always needs *confirm*, for nothing brings it back. Links to it stay in other notes and are listed.
    """
    house.writable()
    house.believed()
    if not confirm:
        raise PolicyViolation(
            "forget needs confirm: true, for nothing brings the note back.",
            hint="purge archives it; history shows what is kept of it.",
        )
    house.refresh(if_older=0)
    entries = house.journal.entries()
    it = subject(house, note, entries)
    if places.kind(it.path) not in ("memory", "archived"):
        raise PathViolation(f"{it.path} is no memory.", hint="Delete other notes in Obsidian.", path=it.path)
    house.destructive("forget", confirm)
    if it.exists:
        quiet.wait_quiet(house, [it.path], body=True)
    linking = _linking(house, it) if it.exists else []
    with house.locked():
        erased = _all_of(house, entries, it)
        if it.exists:
            _remove(house, it)
        forgotten.add(house.vault, [it.id] if it.id else sorted(erased.paths))
        _drop_staged(house, erased)
        count = _drop_versions(house, entries, erased)
        with house.guard:
            for path in erased.paths:
                house.touches.pop(path, None)
                house.outside.pop(path, None)
        house.shelf.feed({}, gone=[it.path])
        _drop_state(house, erased)
    _renew(house, erased)
    # Only now: until then the cache knew the generated notes with its name in them.
    left = [f"{path}: the search cache cannot be taken away now" for path in house.shelf.erase()]
    with house.locked():
        _drop_versions(house, house.journal.entries(), erased)  # of the map and the journal before this
        lines = house.journal.forget(erased.paths, {it.id} if it.id else set(), erased.said)
        deeds.note_down(house, "forget", "a note was erased for good")
    left += _left(house, erased, linking)
    return ForgetAnswer(
        path=it.path, id=it.id, versions=count, journal_lines=lines, links=linking, left=left[:_SHOWN]
    )


# -- what there is of it ------------------------------------------------------------------------------------


def _all_of(house: House, entries: Sequence[Entry], it: Subject) -> _Erased:
    happened = concerning(entries, it)
    paths = {it.path}
    marks: set[str] = set()
    bodies: set[str] = set()
    for one in happened:
        paths.add(one.path)
        paths.update(fact.path for fact in one.entry.notes if it.id and fact.id == it.id and fact.path)
        bodies.update(fact.body for fact in one.entry.notes if it.id and fact.id == it.id and fact.body)
        if one.trace is not None:
            paths.update(filter(None, (one.trace.path, one.trace.to)))
            marks.update(filter(None, (one.trace.before, one.trace.after)))
    if it.exists:
        with contextlib.suppress(NotFound):
            there = house.look(it.path)
            marks.add(there.stored.fingerprint)
            bodies.add(body_hash(there.header.body))
    stems = {re.escape(_stem(path)) for path in paths}
    said = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(stems))})(?!\w)")
    return _Erased(it.id, frozenset(paths), frozenset(marks), frozenset(bodies), said)


def _stem(path: str) -> str:
    return places.stem_and_extension(path.rpartition("/")[2])[0]


def _linking(house: House, it: Subject) -> list[str]:
    """The notes with a link that leads to the note."""
    resolver = house.shelf.resolver()
    found = []
    for path in house.shelf.referrers(it.path, it.path):
        if path == it.path or path in GENERATED:
            continue
        with contextlib.suppress(VaultError):
            text = house.look(path).shown
            if any(resolver.resolve(link.path, path) == it.path for link in links.find(text) if link.path):
                found.append(path)
    return sorted(found)


# -- erasing ------------------------------------------------------------------------------------------------


def _remove(house: House, it: Subject) -> None:
    """The note itself: exactly the bytes that were looked at, or, when a person saves, what they leave."""
    for last in (*(False,) * (_AT_ONCE - 1), True):
        try:
            stored = house.vault.read(it.path)
            files.remove(house.vault.locate(it.path), stored.fingerprint)
        except NotFound:
            return
        except VaultError:
            if last:
                raise
        else:
            return


def _drop_staged(house: House, erased: _Erased) -> None:
    """Temporary files of ours that hold its bytes, or have its name."""
    names = tuple(f".{path.rpartition('/')[2]}." for path in erased.paths)
    for place in list(files.leftovers(house.vault.root)):
        with contextlib.suppress(VaultError):
            if place.name.startswith(names) or erased.is_it(files.read_bytes(place)):
                files.discard(place)


def _drop_versions(house: House, entries: Iterable[Entry], erased: _Erased) -> int:
    """Every kept version of the note, and those of the generated notes in which it is named."""
    count = 0
    marks = {
        mark
        for entry in entries
        for step in entry.steps
        if step.path in GENERATED
        for mark in (step.before, step.after)
        if mark is not None
    }
    for fingerprint in house.versions.holding(b""):
        data = bytes_of(house, fingerprint)
        if data is None or erased.is_it(data):  # None: damaged, and of no use to anybody
            count += house.versions.forget(fingerprint)
        elif fingerprint in marks and erased.said.search(data.decode("utf-8", "replace")):
            house.versions.forget(fingerprint)
    return count


def _drop_state(house: House, erased: _Erased) -> None:
    """This machine's own state that names the note: all of it can be made again."""
    words = [word for path in erased.paths for word in (path, _stem(path))] + [erased.id]
    house.shown.clear()
    folder = house.vault.locate(STATE)
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder)):
            place = folder / name
            if name in _OWN_STATE or not place.is_file():
                continue
            with contextlib.suppress(VaultError):
                if _holds(files.read_bytes(place), words):
                    files.discard(place)


def _holds(data: bytes, words: Iterable[str]) -> bool:
    """Whether one of *words* stands in *data*, as it is or as JSON escapes it."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(UnicodeError):
        text += re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return any(word in text for word in words if word)


def _renew(house: House, erased: _Erased) -> None:
    """The generated notes without the note; where a person is at work in one, `_left` says so."""
    with contextlib.suppress(VaultError):
        if house.vault.exists(JOURNAL_NOTE):
            journalnote.renew(house, without=erased.is_about)
    with contextlib.suppress(VaultError):
        if house.vault.exists(REVIEW_NOTE):
            review.renew(house, without=erased.is_about)
    with contextlib.suppress(VaultError):
        _renew_map(house, erased)


def _renew_map(house: House, erased: _Erased) -> None:
    if house.vault.exists(MAP_NOTE):
        lately = [entry for entry in house.journal.recent() if not erased.is_about(entry)]
        mapping.renew(house, deeds=lately)


# -- what is left -------------------------------------------------------------------------------------------


def _left(house: House, erased: _Erased, linking: Sequence[str]) -> list[str]:
    """What still names the note or holds its words, with why it is left."""
    words = [*(path for path in erased.paths), *([erased.id] if erased.id else [])]
    found: list[str] = []
    for path, data in _everything(house):
        name = path.rpartition("/")[2]
        told = erased.said.search(places.stem_and_extension(name)[0])
        hit = _holds(data, words) or (
            path in GENERATED and erased.said.search(data.decode("utf-8", "replace"))
        )
        if path in linking or not (hit or (told and _is_copy(path))):
            continue
        why = _why_generated(house, path, data, erased) if path in GENERATED else _why(path)
        found.append(f"{path}: {why}")
    return found + _other_caches(house, erased)


def _other_caches(house: House, erased: _Erased) -> list[str]:
    """Search caches of other vaults that hold the note's id: of this one at another place, or of a copy."""
    found: list[str] = []
    own = house.shelf.file.parent
    if not erased.id:
        return found
    for place in sorted(own.parent.glob("*/index-*")):
        if place.parent == own or not place.is_file():
            continue
        with contextlib.suppress(VaultError):
            if erased.id.encode("utf-8") in files.read_bytes(place):
                why = "the search cache of another place where this vault was, or a copy is; delete it"
                found.append(f"{place}: {why}")
    return found


def _is_copy(path: str) -> bool:
    return path.startswith(".trash/") or places.kind(path) == "conflict"


def _why(path: str) -> str:
    if path.startswith(f"{places.JOURNALS}/"):
        return "another machine's journal names it; run forget there as well"
    if path.startswith(".trash/"):
        return "Obsidian's trash; empty it"
    if places.kind(path) == "conflict":
        return "a sync tool's copy; delete it"
    if path.startswith(".obsidian/"):
        return "Obsidian's own state"
    return "it names the note or its id; see to it yourself"


def _why_generated(house: House, path: str, data: bytes, erased: _Erased) -> str:
    """Why a generated note names the note even after it was to be made anew."""
    found = generated.hindrance(house, path)
    if found is not None:
        return f"it cannot be made anew. {found.message}"
    text = data.decode("utf-8", "replace")
    outside = mapnote.with_block(text, "")
    if erased.said.search(outside) or _holds(outside.encode("utf-8"), [*erased.paths, erased.id]):
        return "a person wrote of it outside the markers; take that out yourself"
    with contextlib.suppress(VaultError):
        if quiet.attended(house, house.look(path), body=True):
            return "a person is at work in it; it is made anew when they are done"
    if path == MAP_NOTE:
        return "it lists links of other notes that lead to it, and so nowhere; it follows when those are gone"
    return "it could not be made anew now; the keeper does it"


def _everything(house: House) -> Iterator[tuple[str, bytes]]:
    """Every file of the vault but this program's own state, dot-folders included."""
    root = house.vault.root
    for folder, below, names in os.walk(root):
        place = os.path.relpath(folder, root).replace(os.sep, "/")
        below[:] = sorted(name for name in below if name not in ("node_modules", ".git"))
        if place == ".":
            below[:] = [name for name in below if name != STATE]
        for name in sorted(names):
            path = name if place == "." else f"{place}/{name}"
            with contextlib.suppress(OSError, VaultError):
                full = os.path.join(folder, name)
                if not os.path.islink(full) and os.path.getsize(full) <= _LARGEST:
                    with open(full, "rb") as stream:
                        yield path, stream.read()
