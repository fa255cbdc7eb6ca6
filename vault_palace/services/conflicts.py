"""Resolving a sync tool's conflict copy: merged into its note where that is sure, else put before a person.

One copy at a time, in one operation that can be undone; the bytes of both stay kept versions. Merge markers
stand on a page of their own below `_System/Conflicts`, never in a note that an agent reads as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vault_palace.core import frontmatter, merge, names, places
from vault_palace.core import memory as memories
from vault_palace.core.errors import (
    Busy,
    Conflict,
    InvalidArguments,
    NoteChanged,
    NotFound,
    PathViolation,
    VaultError,
)
from vault_palace.core.frontmatter import DELETE, Change, Header
from vault_palace.core.model import SYSTEM
from vault_palace.core.streak import links
from vault_palace.services import arguments, finding, origins, quiet, relocate
from vault_palace.services.answers import ResolveAnswer
from vault_palace.services.copies import Copy, copies
from vault_palace.services.house import REDO, Edit, House, Move, Note, Put, Remove
from vault_palace.storage import files
from vault_palace.storage.vault import Stored

__all__ = ["Copy", "copies", "merge_back", "resolve"]

KEEPS = ("main", "copy", "both")
PAGES = f"{SYSTEM}/Conflicts"
# A page is never called like the note: a bare link to that would then mean two files.
PAGE = " (two versions)"
_MOST_PAGES = 20
_STEM = 60
_HOW_TO = (
    "%% palace: two versions of one note stand below, each between marker lines. Make one text of them, take"
    " the marker lines out, then run: vault-palace resolve NOTE. This line goes away by itself. %%"
)
_HOW_TO_LINE = re.compile(r"\A%% palace: .*? %%[ \t]*\r?\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What is to be done about one copy."""

    what: str
    edits: Sequence[Edit]
    page: str = ""
    told: tuple[str, ...] = ()


def resolve(house: House, note: str, *, keep: str | None = None, dry_run: bool = False) -> ResolveAnswer:
    """Resolve the conflict copy *note*, or the first one of the note *note*, and say what became of it.

    *keep* decides without a merge: the text of the `main` note, of the `copy`, or `both` as two memories.
    Refused when there is no copy; `Busy` while a person edits either. A *dry_run* writes nothing.
    """
    if not dry_run:
        house.writable()
    arguments.plain(note=note)
    if keep is not None and keep not in KEEPS:
        raise InvalidArguments(
            f"keep {keep[:40]!r} is unknown.", hint=f"Use one of: {', '.join(KEEPS)}.", argument="keep"
        )
    house.refresh(if_older=0)
    copy, left = _meant(house, note)
    if copy.main is None:
        return _adopt(house, copy, keep=keep, dry_run=dry_run)
    for _ in range(REDO):
        if not dry_run:
            quiet.wait_quiet(house, _at_stake(house, copy), body=True)
        main, other = house.look(copy.main), house.look(copy.path)
        if keep == "both":
            saved_as = _separate(house, main, other, dry_run=dry_run)
            if saved_as is None:
                continue
            return _answer(copy, "both", dry_run=dry_run, left=left, saved_as=saved_as)
        outcome = _decide(house, main, other, keep)
        if not dry_run and outcome.edits:
            try:
                with house.locked():
                    for note_now in (main, other):  # what a person decides later starts from these
                        house.versions.keep(note_now.stored.data)
                    house.perform("resolve", outcome.edits, why=_why(outcome, copy))
            except NoteChanged:
                continue
        return _answer(
            copy, outcome.what, dry_run=dry_run, left=left, page=outcome.page, told=list(outcome.told)
        )
    raise Conflict(f"{copy.path} keeps changing.", hint="Repeat the call.", path=copy.path)


def merge_back(house: House, main: str, copy: str, base: bytes | None) -> bool:
    """Merge the note at *copy*, a late save of what had become *main*, into *main* and take it away.

    *base* are the bytes that the save began with; None: the kept version nearest to it. False, and both are
    left, when a person has to decide or the two are not one memory. `Busy` while a person is at either.
    """
    house.writable()
    for _ in range(REDO):
        ours, theirs = house.look(main), house.look(copy)
        for note in (ours, theirs):
            if reason := quiet.attended(house, note, body=True):
                raise Busy(f"{note.path} is being edited: {reason}.", hint="Retry later.", path=note.path)
        sound = all(note.text is not None and note.header.usable for note in (ours, theirs))
        if not sound or not ours.id or ours.id != memories.identity(theirs.header):
            return False
        began = origins.of_bytes(base) if base is not None else origins.common(house, ours, theirs)
        body = merge.merge_bodies(None if began is None else began.body, ours.header.body, theirs.header.body)
        if not body.clean:
            return False
        text, _ = _merged(house, ours, theirs, began, body.text)
        edits: list[Edit] = [_put(ours, text), Remove(path=theirs.path, before=theirs.stored)]
        try:
            with house.locked():
                house.perform("resolve", edits, why=f"a late save had made {copy} anew")
        except NoteChanged:
            continue
        return True
    return False


def set_aside(house: House, main: str, copy: str) -> str:
    """Give the note at *copy*, a late save that cannot be merged into *main*, the name of a conflict copy.

    It lies beside *main* then, no memory, until somebody resolves it; its new path is returned.
    """
    house.writable()
    theirs = house.look(copy)
    if reason := quiet.attended(house, theirs, body=True):
        raise Busy(f"{copy} is being edited: {reason}.", hint="Retry later.", path=copy)
    folder, _, name = main.rpartition("/")
    stem = places.stem_and_extension(name)[0]
    when = house.policy().wall(house.now()).strftime("%Y-%m-%d %H%M%S")
    to = f"{folder}/{stem} (conflicted copy {when}).md"
    with house.locked():
        move = Move(path=copy, to=to, before=theirs.stored, data=theirs.stored.data)
        house.perform("set aside", [move], why=f"a late save of what had become {main}")
    return to


# -- which copy ---------------------------------------------------------------------------------------------


def _meant(house: House, note: str) -> tuple[Copy, list[str]]:
    """The copy that *note* means, itself or through its main note, and the other copies of that note."""
    known = copies(house)
    wanted = _paths(house, note)
    for copy in known:
        if copy.path in wanted:
            left = [one.path for one in known if one.main == copy.main and one is not copy and copy.main]
            return copy, left
    mine = [copy for copy in known if copy.main in wanted]
    if mine:
        return mine[0], [copy.path for copy in mine[1:]]
    raise NotFound(
        f"{note} has no conflict copy and is none.", hint="`vault-palace check` lists them.", path=note
    )


def _paths(house: House, note: str) -> set[str]:
    """The paths that *note* may mean: as it stands, with `.md`, or where a note of that title is."""
    plain = note.strip().removeprefix("./")
    found = {plain, f"{plain}{names.EXTENSION}"}
    if not any(house.vault.exists(path) for path in found):
        found.add(finding.find(house, note).path)
    return found


def _at_stake(house: House, copy: Copy) -> list[str]:
    page, _ = _page(house, copy.main or copy.path, copy.path)
    return [path for path in (copy.main, copy.path, page) if path]


# -- what becomes of it -------------------------------------------------------------------------------------


def _decide(house: House, main: Note, copy: Note, keep: str | None) -> _Outcome:
    page, there = _page(house, main.path, copy.path)
    edits: list[Edit] = [Remove(path=copy.path, before=copy.stored)]
    if there is not None:
        edits.append(Remove(path=page, before=there.stored))
    if keep == "main":
        return _Outcome(what="main", edits=edits)
    if keep == "copy":
        return _Outcome(what="copy", edits=[_put(main, _as_main(house, main, copy)), *edits])
    house.refuse_malformed(main)
    house.refuse_malformed(copy)
    base = origins.common(house, main, copy)
    if there is not None:
        body = _decided(house, there, main, copy)
        if body is None:
            return _Outcome(what="page", edits=(), page=page)
    else:
        merged = merge.merge_bodies(
            None if base is None else base.body,
            main.header.body,
            copy.header.body,
            our_name=main.path,
            their_name=copy.path,
        )
        if not merged.clean:
            put = Put(path=page, before=None, data=_page_text(main, copy, merged.text))
            return _Outcome(what="page", edits=[put], page=page)
        body = merged.text
    text, told = _merged(house, main, copy, base, body)
    return _Outcome(what="merged", edits=[_put(main, text), *edits], told=told)


def _merged(
    house: House, main: Note, copy: Note, base: Header | None, body: str
) -> tuple[str, tuple[str, ...]]:
    """The text of *main* with *body* and what the copy brings into its properties; and what it does not."""
    properties = merge.merge_properties(base, main.header, copy.header, policy=house.policy())
    text = main.editable
    if not merge.same_lines(body, main.header.body):
        text = frontmatter.replace_body(text, body)
    text = house.patched(main, text, properties.changes)
    return _used(house, main, text, copy), properties.told


def _used(house: House, main: Note, text: str, other: Note) -> str:
    """*text*, about to be that of the memory *main*, with the use that *other* had and a fresh forecast."""
    if main.kind != "memory":
        return text
    note = _read_as(house, main, text)
    if note.memory is None or not note.header.usable:
        return text
    fields: dict[str, Any] = {}
    if other.header.usable and other.text is not None:
        theirs = memories.read_memory(
            main.path,
            note.memory.layer,
            other.header,
            file_time=house.now(),
            now=house.now(),
            policy=house.policy(),
        )
        touched = "last_touched" not in theirs.fills
        fields = merge.merged_use(note.memory, theirs.memory, touched=touched)
    return house.with_memory(note, text, replace(note.memory, **fields), {})


def _as_main(house: House, main: Note, copy: Note) -> str:
    """The text of *copy* as *main* is to have it: what the place decides stays as it is in *main*."""
    house.refuse_malformed(copy)
    if main.text is None or not main.header.usable:
        return copy.editable
    changes: dict[str, Change] = {}
    for key in merge.PLACES:
        if main.header.values.get(key) != copy.header.values.get(key):
            changes[key] = main.header.values.get(key, DELETE)
    return _used(house, main, house.patched(copy, copy.editable, changes), main)


def _read_as(house: House, main: Note, text: str) -> Note:
    """The note at the place of *main* if it had *text*."""
    data = text.encode("utf-8")
    return house.understand(main.path, Stored(data, files.fingerprint(data), main.stored.mark))


def _put(main: Note, text: str) -> Put:
    return Put(path=main.path, before=main.stored, data=text.encode("utf-8"))


def _separate(house: House, main: Note, copy: Note, *, dry_run: bool) -> str | None:
    """Make the copy a memory of its own, with an id and a name of its own; None when it changed meanwhile."""
    if places.kind(copy.path) not in ("memory", "archived", "conflict") or main.kind not in (
        "memory",
        "archived",
    ):
        raise PathViolation(
            f"{main.path} is no memory, so there can be only one of it.",
            hint="Keep main or copy.",
            path=main.path,
        )
    house.refuse_malformed(copy)
    to = _free_place(house, copy.path)
    if dry_run:
        return to
    text = _with_new_id(house, copy, to)
    page, there = _page(house, main.path, copy.path)
    why = f"{copy.path} is a memory of its own"
    try:
        with house.locked():
            if to == copy.path:
                house.perform("resolve", [_put(copy, text)], why=why)
            else:
                relocate.carry(house, copy, to, text, verb="resolve", why=why)
            if there is not None:
                house.perform("resolve", [Remove(path=page, before=there.stored)], why=why)
    except NoteChanged:
        return None
    return to


def _free_place(house: House, path: str) -> str:
    """Where the copy at *path* can be a note: its own name when that is a title, else its original's."""
    folder, _, name = path.rpartition("/")
    if not places.is_conflict_copy(name):
        return finding.free_place(house, path, besides=path)
    wanted = places.original_names(name)
    if not wanted:
        raise PathViolation(f"{name} is no copy of a note.", hint="Delete it when it is done.", path=path)
    return finding.free_place(house, f"{folder}/{wanted[0]}" if folder else wanted[0], besides=path)


def _with_new_id(house: House, copy: Note, to: str) -> str:
    text = house.patched(copy, copy.editable, {"id": house.new_id()})
    data = text.encode("utf-8")
    note = house.understand(to, Stored(data, files.fingerprint(data), copy.stored.mark))
    memory = note.memory
    if note.kind != "memory" or memory is None:
        return text
    streak = None if memory.streak is None else memory.streak - links(memory.backlinks)
    return house.with_memory(note, text, replace(memory, streak=streak, backlinks=0), {})


def _adopt(house: House, copy: Copy, *, keep: str | None, dry_run: bool) -> ResolveAnswer:
    """A copy whose note is gone becomes that note: its text exists nowhere else."""
    if keep == "main":
        raise NotFound(
            f"There is no note that {copy.path} is a copy of.", hint="Keep the copy.", path=copy.path
        )
    for _ in range(REDO):
        if not dry_run:
            quiet.wait_quiet(house, [copy.path], body=True)
        note = house.look(copy.path)
        to = _free_place(house, copy.path)
        if not dry_run:
            try:
                with house.locked():
                    relocate.carry(
                        house, note, to, note.editable, verb="resolve", why=f"{copy.path} had lost its note"
                    )
            except NoteChanged:
                continue
        return _answer(Copy(copy.path, to), "copy", dry_run=dry_run, left=[])
    raise Conflict(f"{copy.path} keeps changing.", hint="Repeat the call.", path=copy.path)


# -- the page for a person ----------------------------------------------------------------------------------


def _page(house: House, main: str, copy: str) -> tuple[str, Note | None]:
    """The page about these two, and a free path for it where there is none yet."""
    stem = names.file_name(places.stem_and_extension(main.rpartition("/")[2])[0][:_STEM])
    for number in range(1, _MOST_PAGES):
        behind = f" {number}" if number > 1 else ""
        path = f"{PAGES}/{stem}{PAGE}{behind}{names.EXTENSION}"
        try:
            note = house.look(path)
        except NotFound:
            return path, None
        if note.header.values.get("conflict_copy") == copy:
            return path, note
    raise Conflict(f"{PAGES} holds too many pages about {stem}.", hint="Resolve those first.", path=PAGES)


def _page_text(main: Note, copy: Note, text: str) -> bytes:
    values = {
        "conflict_main": main.path,
        "conflict_copy": copy.path,
        "main_version": main.stored.fingerprint,
        "copy_version": copy.stored.fingerprint,
    }
    eol = "\r\n" if "\r\n" in text else "\n"
    return frontmatter.compose(values, f"{_HOW_TO}{eol}{text}").encode("utf-8")


def _decided(house: House, page: Note, main: Note, copy: Note) -> str | None:
    """The text that a person made of both, None while markers are left in it.

    What was written into either note since the page was made is merged in; `Conflict` when that cannot be.
    """
    house.refuse_malformed(page)
    text = _HOW_TO_LINE.sub("", page.header.body)
    if merge.holds_markers(text, main.header.body, copy.header.body):
        return None
    for note, key in ((main, "main_version"), (copy, "copy_version")):
        version = page.header.values.get(key)
        if version == note.stored.fingerprint:
            continue
        try:
            old = origins.of_bytes(house.versions.get(str(version)))
        except VaultError:
            old = None
        merged = merge.merge_bodies(old.body if old is not None else text, text, note.header.body)
        if old is None or not merged.clean:
            raise Conflict(
                f"{note.path} was changed since {page.path} was made.",
                hint=f"Take what is new there into {note.path}, delete {page.path}, then repeat.",
                path=note.path,
            )
        text = merged.text
    return text


# -- words --------------------------------------------------------------------------------------------------


def _why(outcome: _Outcome, copy: Copy) -> str:
    if outcome.what == "page":
        return f"two versions of {copy.main} for a person"
    return {
        "main": f"{copy.path} was let go",
        "copy": f"{copy.path} took its place",
        "merged": f"merged with {copy.path}",
    }[outcome.what]


def _answer(
    copy: Copy,
    outcome: str,
    *,
    dry_run: bool,
    left: list[str],
    page: str = "",
    saved_as: str = "",
    told: list[str] | None = None,
) -> ResolveAnswer:
    return ResolveAnswer(
        main=copy.main or "",
        copy=copy.path,
        outcome=outcome,
        dry_run=dry_run,
        page=page,
        saved_as=saved_as,
        told=told or [],
        left=left,
    )
