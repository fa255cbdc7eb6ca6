"""What the keeper writes into notes: properties that follow from people's deeds, and links to moved notes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from vault_palace.core import links, mapnote, rules, styles
from vault_palace.core import memory as memories
from vault_palace.core.errors import LockTimeout, MalformedNote, NoteChanged, VaultError
from vault_palace.core.model import MAP_NOTE, Memory, Status, Value
from vault_palace.core.streak import dragged
from vault_palace.index.cache import IndexedNote
from vault_palace.services import deeds, quiet, relocate
from vault_palace.services.generated import JOURNAL_NOTE
from vault_palace.services.house import House, Note, Put
from vault_palace.services.trail import NOTES

# What each memory says once the program has written it.
WRITTEN = frozenset({"created", "last_touched", "layer", "density", "streak", "decay_days", "status"})
PATIENCE = 0.5  # seconds to wait for another writer; the keeper comes again
BY_HAND = "put here by hand"
REUSED = timedelta(seconds=1)  # a note changed so short before a move was seen may have been changed for it


@dataclass(frozen=True, slots=True)
class Relinked:
    """How many notes were written, and those that must be tried again."""

    written: int = 0
    waiting: frozenset[str] = frozenset()


def wants(row: IndexedNote, unseen: Callable[[Memory, str, str], bool], styling: bool | None = None) -> bool:
    """Whether the note lacks properties, lies elsewhere than they say, or has a deed nobody recorded.

    *styling* is the house's: a note whose style classes are out of step wants to be written too.
    """
    memory = row.memory
    if memory is None:
        return False
    if unstyled(row, styling):
        return True
    if row.kind == "archived":
        return bool(row.id) and memory.status is not Status.ARCHIVED
    if not row.id or WRITTEN - row.properties.keys():
        return True
    return dragged(memory) or unseen(memory, row.id, row.body_hash)


def unstyled(row: IndexedNote, styling: bool | None) -> bool:
    """Whether the note's `cssclasses` has other items of the program's than it should have."""
    if styling is None or row.memory is None or not row.id:
        return False
    return styles.out_of_step(cast("Mapping[str, Value]", row.properties), styling)


def unquiet(house: House, note: Note) -> float | None:
    """The seconds until a person is likely to let the note be; None when it is quiet."""
    reason = quiet.attended(house, note, body=False)
    if not reason:
        return None
    return max(0.2, float(house.policy().quiet_seconds))


def keep(house: House, note: Note, backlinks: int, *, new_id: bool = False) -> bool:
    """Bring the properties of *note* in step, in one small patch; whether it was written to."""
    if note.memory is None or note.header.problem is not None or note.text is None:
        return False
    extra: dict[str, Value] = {"id": house.new_id()} if new_id else {}
    if note.kind == "archived":
        text = _archived(house, note)
        text = house.patched(note, text, extra)
    else:
        after = rules.arrive(note.memory, house.now(), house.policy())
        text = house.with_memory(note, note.editable, rules.recount(after, backlinks), extra)
    if text == note.text:
        return False
    with house.locked(PATIENCE):
        edit = Put(path=note.path, before=note.stored, data=text.encode("utf-8"))
        house.perform("keep", [edit], why="kept in step")
    return True


def _archived(house: House, note: Note) -> str:
    """The text of a note that a person put into the archive, with where it was, as far as that is known."""
    assert note.memory is not None
    if not note.id or note.memory.status is Status.ARCHIVED:
        return house.styled(note.editable) if note.id else note.editable
    last = house.journal.last_known(note.id)
    text = house.archived_text(note, memories.purged(BY_HAND))
    if last is not None and last.path and last.path != note.path:
        text = house.patched(note, text, {"archived_from": last.path})
    return text


def out_of_policy(house: House) -> list[str]:
    """The notes that say other than the policy in force has them say, told from the cache."""
    styling = house.styling()
    found = set(stale_forecasts(house))
    if styling is not None:
        rows = house.shelf.ask(lambda cache: cache.notes(*NOTES))
        found |= {row.path for row in rows if unstyled(row, styling)}
    return sorted(found)


def stale_forecasts(house: House) -> list[str]:
    """The memories whose forecast is another under the policy in force, told from the cache."""
    now, policy = house.now(), house.policy()
    observe = deeds.observer(house)
    found = []
    for row in house.shelf.ask(lambda cache: cache.notes("memory")):
        memory = row.memory
        if memory is None or not row.id:
            continue
        seen = observe(memory, row.id, row.body_hash, row.mark.mtime_ns)
        if rules.forecast(seen, seen.backlinks, now, policy) != memory:
            found.append(row.path)
    return found


def _generated_only(note: Note, text: str) -> bool:
    """Whether *text* differs from the index note only in the block that is made anew."""
    if note.path != MAP_NOTE:
        return False
    try:
        return mapnote.with_block(text, "") == mapnote.with_block(note.editable, "")
    except MalformedNote:
        return False


def relink(
    house: House,
    moves: Mapping[str, str],
    changed_at: Mapping[str, datetime],
    moved_at: Mapping[str, datetime],
    only: Collection[str] | None = None,
) -> Relinked:
    """Have every link to a note that a person moved (*moves*: old path to new) lead to it again.

    Where a link leads nowhere now, it is rewritten in any note. Where another note has taken the old name,
    only in notes that nobody changed since: there Obsidian, or the person, may mean the newcomer. *only* are
    the notes that waited when all were looked at.
    """
    if not moves:
        return Relinked()
    resolver = house.shelf.resolver()
    origin = {new: old for old, new in moves.items()}
    before = resolver.with_files(moves)  # a note may have gone on from each of its old places
    free = {old: new for old, new in moves.items() if not house.vault.exists(old)}
    since = min((moved_at[new] for new in moves.values() if new in moved_at), default=None)
    written, waiting = 0, set[str]()
    if only is None:
        holders = {path for old, new in moves.items() for path in house.shelf.referrers(old, new)}
        only = (holders | origin.keys()) - {JOURNAL_NOTE}  # which is made anew
    for path in sorted(only):
        try:
            note = house.look(path)
        except VaultError:
            continue
        at = changed_at.get(path)
        edited = at is not None and since is not None and at >= since - REUSED
        done = links.rewritten(
            note.shown,
            old_source=origin.get(path, path),
            new_source=path,
            before=before,
            after=resolver,
            moved=free if edited else moves,
        )
        if not done.changed or relocate.hindrance(house, note) or _generated_only(note, done.text):
            continue
        in_body = not done.text.endswith(note.header.body)
        if quiet.attended(house, note, body=in_body):
            waiting.add(path)
            continue
        try:
            with house.locked(PATIENCE):
                data = relocate.kept_up(house, note, done.text)
                edit = Put(path=path, before=note.stored, data=data)
                moved = ", ".join(sorted(moves.values())[:3])
                house.perform("relink", [edit], why=f"links follow {moved}")
            written += 1
        except (NoteChanged, LockTimeout):
            waiting.add(path)
    return Relinked(written, frozenset(waiting))
