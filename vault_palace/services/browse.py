"""Looking without asking for one thing by name: pages of notes, what fades soon, rooms and paths.

Nothing here is a use (SPEC §4), nothing is written, and whatever may be long is cut here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from vault_palace.core import budget, names, places, rules, sections
from vault_palace.core.changes import Mark
from vault_palace.core.errors import NotFound, VaultError
from vault_palace.core.model import ARCHIVE, MAP_NOTE, Memory
from vault_palace.index import search as searching
from vault_palace.services import arguments, finding, mapping, recall, relocate, safety
from vault_palace.services.answers import (
    BeforePurge,
    FadingAnswer,
    FadingNote,
    PageAnswer,
    SessionNote,
)
from vault_palace.services.caller import current
from vault_palace.services.house import House
from vault_palace.services.shelf import GONE_SECONDS

FADING = 50  # notes of the list of what fades; the soonest first
SEARCHED_FOR_A_ROOM = 2_000  # of what fades in the whole vault, when one room is asked for
HEADINGS = 20
LINKS_SHOWN = 5
SESSION_NOTES = 40
PAGE_TOKENS = 6_000


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A note as it was when it was last looked at; `rev` is empty while there is none."""

    mark: Mark | None
    rev: str


def page(house: House, path: str, *, max_tokens: int | None = None) -> PageAnswer:
    """The whole file of one note, its properties too, cut at *max_tokens*."""
    note = finding.one(house, path=path)
    most = PAGE_TOKENS if max_tokens is None else arguments.positive("max_tokens", max_tokens)
    text, truncated = budget.cut(note.shown, most)
    rev = house.rev(note)
    house.shown.keep(note, rev)
    answer = PageAnswer(path=note.path, text=text, rev=rev, truncated=truncated)
    if truncated:
        content = recall.content_of(note)
        before = len(note.shown) - len(content)  # the properties, which a read shows otherwise
        answer["next"] = sections.onward("", max(len(text) - before, 0))
        answer["headings"] = [entry.name for entry in sections.outline(content)[:HEADINGS]]
    return answer


def readable(house: House, path: str) -> str:
    """*path* as the vault spells such paths; refused for whatever can never be a note of it."""
    place = names.note_path(path, existing=True)
    if places.is_ignored(place):
        raise NotFound(f"{place} is no note of the vault.", hint="Search for it.", path=place)
    house.vault.locate(place)
    return place


def glimpse(house: House, path: str, before: Glimpse | None = None) -> Glimpse:
    """The note at *path* now, or *before* where the file is still the same."""
    found = _glimpsed(house, path, before)
    if found is None and before is not None and before.rev:
        return glimpses(house, {path: before}).get(path, before)
    return found or Glimpse(None, "")


def glimpses(house: House, before: Mapping[str, Glimpse | None]) -> dict[str, Glimpse]:
    """The notes at these paths now, but those that cannot be looked at.

    Missing notes are believed gone when they are so twice and nothing says that a disk is away (SPEC §6.5);
    that is waited for once, however many there are.
    """
    found: dict[str, Glimpse] = {}
    missing = list(before)
    for last in (False, True):
        unsure = []
        for path in missing:
            known = before[path]
            with suppress(VaultError):
                now = _glimpsed(house, path, known)
                if now is None and known is not None and known.rev:
                    unsure.append(path)
                else:
                    found[path] = now or Glimpse(None, "")
        missing = unsure
        if missing and not last:
            house.settings.sleep(GONE_SECONDS)
    if missing:
        with suppress(VaultError):
            house.present()
            house.refresh()
            if not house.shelf.doubts:
                found.update(dict.fromkeys(missing, Glimpse(None, "")))
    return found


def _glimpsed(house: House, path: str, before: Glimpse | None) -> Glimpse | None:
    """One look: None while there is no such note."""
    mark = house.vault.mark(path)
    if before is not None and mark is not None and mark == before.mark:
        return before
    try:
        note = house.look(path)
    except NotFound:
        return None
    return Glimpse(note.stored.mark, house.rev(note))


def glimpse_of_map(house: House, before: Glimpse | None = None) -> Glimpse:
    """The index note now; for it the bytes are the version."""
    mark = house.vault.mark(MAP_NOTE)
    if before is not None and mark == before.mark:
        return before
    if mark is None:
        house.present()
        return Glimpse(None, "")
    try:
        stored = house.vault.read(MAP_NOTE)
    except NotFound:
        return Glimpse(None, "")
    # A save in place is empty for a moment.
    return Glimpse(stored.mark, stored.fingerprint) if stored.data or before is None else before


def fading(house: House, *, room: str | None = None, limit: int = FADING) -> FadingAnswer:
    """What goes to the archive within Policy's horizon if nobody uses it, the soonest first."""
    arguments.plain(None, room=room)
    arguments.within("room", room or "", house.settings.limits.room)
    house.present()
    house.refresh()
    folders = searching.folders_of(room or "")
    if folders and not house.shelf.ask(lambda cache: searching.room_exists(cache, room or "")):
        raise NotFound(
            f"There is no room {room!r}.",
            hint=f"Rooms: {', '.join(house.shelf.rooms()[:20]) or 'none yet'}.",
            room=room,
        )
    policy, today = house.policy(), house.today()
    horizon = max(int(policy.horizon_days), 0)
    last = date.fromordinal(min(today.toordinal() + horizon, date.max.toordinal()))
    memories, count = _leaving(house, last, SEARCHED_FOR_A_ROOM if folders else limit)
    if folders:
        memories = [one for one in memories if any(one.path.startswith(f"{place}/") for place in folders)]
        count = len(memories)
    why = mapping.reasons(house)
    notes = [
        FadingNote(
            path=one.path,
            decays_on=one.decays_on.isoformat(),
            density=one.density,
            streak=one.streak,
            why=why(one, one.decays_on, ARCHIVE),
        )
        for one in memories[:limit]
        if one.decays_on is not None
    ]
    return FadingAnswer(room=room or "", horizon_days=horizon, notes=notes, count=count)


def _leaving(house: House, last: date, most: int) -> tuple[list[Memory], int]:
    """The memories that leave by *last*, the soonest first, and how many there are in all."""
    seen, undated = house.shelf.ask(lambda cache: cache.leaving(last, most))
    found = list(seen.first)
    now, policy = house.now(), house.policy()
    for memory in undated.first:  # no day is written in them yet, so it is worked out
        foretold = rules.forecast(memory, len(house.shelf.backlinks(memory.path)), now, policy)
        if foretold.decays_on is not None and foretold.decays_on <= last:
            found.append(foretold)
    found.sort(key=lambda memory: (memory.decays_on or last, memory.path))
    return found, seen.count + len(found) - len(seen.first)


def rooms(house: House) -> list[str]:
    """What can be given as a room: layers, rooms by their bare name, and folders; each once."""
    house.refresh()
    folders = house.shelf.rooms()
    found: dict[str, None] = {}
    for folder in folders:
        if (layer := places.layer_of(f"{folder}/")) is not None:
            found.setdefault(layer.value)
    for folder in folders:
        if bare := places.room_of(f"{folder}/x.md"):
            found.setdefault(bare)
    found.update(dict.fromkeys(folders))
    return list(found)


def paths(house: House, *, archived: bool = False) -> Sequence[str]:
    """The paths of all memories, or of all archived notes, sorted."""
    house.refresh()
    return house.shelf.ask(lambda cache: cache.paths_of("archived" if archived else "memory"))


def before_purge(house: House, path: str, reason: str) -> BeforePurge:
    """What `purge` would do, refused where that would be; nothing is done."""
    house.writable()
    arguments.plain(path=path)
    arguments.plain(house.settings.limits.reason, reason=reason)
    safety.check_words(house, reason=reason)
    note = finding.memory_note(house, path)
    house.refresh()
    linked = house.shelf.backlinks(note.path)
    return BeforePurge(
        path=note.path,
        rev=house.rev(note),
        archived_to=relocate.archive_place(house, note.path),
        backlinks=linked[:LINKS_SHOWN],
        backlink_count=len(linked),
    )


def must_confirm(house: House) -> bool:
    """Whether Policy wants destructive calls confirmed; refused where there can be none."""
    house.writable()
    return house.policy().destructive_require_confirm


def session_notes(house: House) -> list[SessionNote]:
    """The notes that this caller's session wrote or used, as far as the newest operations tell."""
    session = current(house.settings).session
    seen: dict[str, SessionNote] = {}
    for entry in house.journal.recent():
        if not session or entry.session != session:
            continue
        for fact in entry.notes:
            known = seen.setdefault(fact.id, SessionNote(path=fact.path, verbs=[]))
            known["path"] = fact.path
            if entry.verb not in known["verbs"]:
                known["verbs"].append(entry.verb)
    return list(seen.values())[-SESSION_NOTES:]
