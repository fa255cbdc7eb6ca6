"""`_System/Journal.md`: the newest operations as a note with links, made anew only when it would differ.

What a person wrote outside the markers stays. It gives way to a person who is at work in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vault_palace.core import journalnote, links, mapnote, names, places
from vault_palace.core.errors import LockTimeout, NoteChanged, NotFound, VaultError
from vault_palace.core.model import MAP_NOTE, POLICY_NOTE
from vault_palace.services import generated, quiet
from vault_palace.services.generated import JOURNAL_NOTE
from vault_palace.services.history import DEEDS, PERSON, SILENT
from vault_palace.services.house import House, Put
from vault_palace.storage.records import Entry

_OPENING = (
    "# Journal\n\nWhat was done in this vault lately, by agents, people and ageing. Your own lines stay.\n"
)
_GENERATED = (MAP_NOTE, JOURNAL_NOTE)
_PATIENCE = 1.0  # seconds for the lock: it is made again soon enough


def renew(house: House, *, without: Callable[[Entry], bool] | None = None) -> bool:
    """Bring the note in step with the journals; whether anything was written.

    Nothing is written in a vault that is read-only, is no palace yet, or of which the last comparison has
    its doubts. Operations that *without* picks are left out.
    """
    if house.read_only() or not house.vault.exists(POLICY_NOTE) or house.shelf.doubts:
        return False
    if generated.hindrance(house, JOURNAL_NOTE) is not None:
        return False  # reported as a problem
    found = [entry for entry in house.journal.recent() if _is_shown(entry)]
    shown = [entry for entry in reversed(found) if without is None or not without(entry)]
    try:
        note = house.look(JOURNAL_NOTE)
        before, text = note.stored, note.editable
        if quiet.attended(house, note, body=True):
            return False
    except NotFound:
        before, text = None, _OPENING
    made = journalnote.block(
        (_line(house, entry) for entry in shown[: journalnote.MOST]), left=len(shown) > journalnote.MOST
    )
    fresh = mapnote.with_block(text, made)
    if before is not None and fresh == text:
        return False
    try:
        with house.locked(_PATIENCE):
            house.perform(
                "index", [Put(path=JOURNAL_NOTE, before=before, data=fresh.encode("utf-8"))], why="journal"
            )
    except (NoteChanged, LockTimeout):
        return False  # next time
    return True


def _is_shown(entry: Entry) -> bool:
    return entry.verb not in SILENT and entry.state == "done" and any(_paths(entry))


def _paths(entry: Entry) -> Iterator[str]:
    """The notes that an operation was about, the one it was made for first; generated ones are nobody's."""
    moves = [step for step in entry.steps if step.kind == "move"]
    paths = [step.to or step.path for step in (*moves, *entry.steps)] or [fact.path for fact in entry.notes]
    yield from dict.fromkeys(path for path in paths if path and path not in _GENERATED)


def _is_there(house: House, path: str) -> bool:
    """Whether there is a file at *path*; a record may name anything, and one bad one costs only its link."""
    try:
        return house.vault.exists(path)
    except VaultError:
        return False


def _line(house: House, entry: Entry) -> journalnote.Line:
    path, *others = _paths(entry)
    known = next((fact.id for fact in entry.notes if fact.path == path), "")
    there = house.shelf.paths_of_id(known) if known else []
    now = path if _is_there(house, path) else there[0] if len(there) == 1 else ""
    link = ""
    if now and places.is_note(now):
        text = links.link_to(now, house.shelf.resolver(), JOURNAL_NOTE)
        link = f"[[{text}]]" if names.linkable(text) else ""
    return journalnote.Line(
        at=house.policy().wall(entry.at),
        verb=entry.verb,
        link=link,
        name=places.stem_and_extension(path.rpartition("/")[2])[0],
        others=len(others),
        why=entry.why,
        session=PERSON if entry.verb in DEEDS else entry.session,
        op=entry.op,
    )
