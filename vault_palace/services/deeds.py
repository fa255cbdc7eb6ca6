"""What a person did to a note since the program last wrote it, told from the journals' facts (SPEC §4, §6.7).

Nothing here writes a note. `see` puts on record what needs no line in the note, so that it is seen once.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vault_palace.core import rules
from vault_palace.core.model import Memory
from vault_palace.core.policy import carry_defaults
from vault_palace.index.cache import IndexedNote
from vault_palace.storage import forgotten
from vault_palace.storage.records import Entry, LastWrite, NoteFact

if TYPE_CHECKING:
    from vault_palace.services.house import House, Note


# A memory with what a person did, by memory as read, id, `body_hash` and the file's time.
Observe = Callable[[Memory, str, str, int], Memory]
# What the journals last wrote about an id.
LastWriteOf = Callable[[str], LastWrite | None]
FACTS_A_LINE = 500


def observer(house: House) -> Observe:
    """A memory with what a person did, by memory as read, id, `body_hash` and the file's time.

    For many notes as of now: policy and journals are asked once. A streak that a person set is theirs: no
    lifetime before now is taken off it. Of the time for which they pinned the note nothing is taken off
    either; a pin was set or taken out at the file's time. A body they changed is a use on the day they
    changed it, the file's again, and `edited_on` is that day. A second use on one day needs no line in the
    note, and gets none: who writes after each save of a person writes in their way.
    """
    policy, now = house.policy(), house.now()
    earlier = house.earlier_policies()
    last_write = _last_writes(house)

    def observe(memory: Memory, id: str, body: str, mtime_ns: int) -> Memory:
        for before in earlier:
            memory = carry_defaults(memory, before, policy)
        last = last_write(memory, id)
        if last is None:
            return memory
        edited = min(datetime.fromtimestamp(mtime_ns / 1e9, UTC), now)
        if last.streak is not None and memory.streak is not None and memory.streak != last.streak:
            memory = rules.respect_streak(memory, now, policy)
        elif last.pinned is not None and last.pinned != memory.pinned:
            # A file restored with an old time was changed after the program's last write all the same.
            at = min(max(edited, last.at), now)
            if not memory.pinned:
                memory = rules.unpin(memory, at, policy)
            elif last.body == body:  # else the file's time may be that of a later edit
                memory = replace(rules.settle(replace(memory, pinned=False), at, policy), pinned=True)
        if last.body and last.body != body:
            day = policy.wall(edited).date()
            if day > memory.last_touched.date():
                memory = rules.touch(memory, edited, policy)
                if memory.edited_on is None or day > memory.edited_on:
                    memory = replace(memory, edited_on=day)
        return memory

    return observe


def unseen(house: House) -> Callable[[Memory, str, str], bool]:
    """Whether the journals do not have yet what a person did, by memory as read, id and `body_hash`."""
    last_write = _last_writes(house)

    def differs(memory: Memory, id: str, body: str) -> bool:
        last = last_write(memory, id)
        if last is None:
            return False
        known = (last.body or body, last.streak, last.pinned)
        there = (body, memory.streak, memory.pinned)
        return any(old is not None and old != new for old, new in zip(known, there, strict=True))

    return differs


def has_news(house: House, note: Note) -> bool:
    """Whether a person did something to *note* that the journals do not have yet."""
    return note.reading is not None and unseen(house)(note.reading.memory, note.id, note.body_hash)


def see(house: House, note: Note) -> None:
    """Put on record what a person did to *note*, where the note itself needs no change. Lock held.

    Else the next change of theirs would look like this one, and this one like one made then.
    """
    if not has_news(house, note):
        return
    _record(house, "seen", "a person changed it", house.note_facts(note.path, note.stored.data))


def see_many(house: House, rows: Sequence[IndexedNote], last_write: LastWriteOf) -> None:
    """Put on record that the texts of these memories changed all at once: by no one's reading, so as no use.

    What became of their properties is still to be seen, in each of them.
    """
    facts = []
    for row in rows:
        last = last_write(row.id)
        if last is not None:
            known = NoteFact(id=row.id, path=row.path, body=row.body_hash, streak=last.streak)
            facts.append(replace(known, pinned=last.pinned, density=last.density, outside=last.outside))
    with house.locked():
        for start in range(0, len(facts), FACTS_A_LINE):
            why = f"{len(facts)} notes changed at once; that counts as no use"
            _record(house, "edited", why, facts[start : start + FACTS_A_LINE])


def see_new(house: House, rows: Sequence[IndexedNote]) -> None:
    """Put on record how these memories were found, of which no journal tells: a later edit is told by it."""
    facts = [
        NoteFact(
            id=row.id,
            path=row.path,
            body=row.body_hash,
            streak=row.memory.streak,
            pinned=row.memory.pinned,
            density=row.memory.density,
        )
        for row in rows
        if row.memory is not None and row.id
    ]
    for start in range(0, len(facts), FACTS_A_LINE):
        with house.locked():
            _record(house, "seen", "found in the vault", facts[start : start + FACTS_A_LINE])


def put_on_record(
    house: House,
    verb: str,
    why: str,
    *,
    note: Note | None = None,
    path: str = "",
    id: str = "",
    was: str = "",
) -> None:
    """Journal what a person did: to *note* as it is now, or to the one with *id* that was at *path*."""
    facts = house.note_facts(note.path, note.stored.data) if note is not None else []
    place = note.path if note is not None else path
    if not facts and id:
        facts = [NoteFact(id=id, path=place, body="")]
    if note is None and forgotten.holds(house.vault, id or path):
        return  # it was erased, not deleted: no journal is to name it again
    facts = [replace(fact, was=was) for fact in facts]
    with house.locked():
        _record(house, verb, why if facts else f"{why}: {place}", facts)


def see_rename(house: House, path: str, data: bytes) -> None:
    """Put on record that a person moved the note *data* to *path*, before the program writes it. Lock held.

    What is written next names the new path, and nobody could tell any more that links have to follow.
    """
    for fact in house.note_facts(path, data):
        last = house.journal.last_known(fact.id)
        if last is None or last.path in ("", path) or house.vault.exists(last.path):
            continue
        told = replace(fact, was=last.path, body=last.body, streak=last.streak, pinned=last.pinned)
        _record(house, "renamed", f"moved from {last.path}", [replace(told, density=last.density)])


def note_down(house: House, verb: str, why: str) -> None:
    """Journal what was done to no note that may be named. Lock held."""
    _record(house, verb, why, ())


def _record(house: House, verb: str, why: str, facts: Sequence[NoteFact]) -> None:
    """One journal line about what needs no change of a file. Lock held."""
    entry = Entry(
        op=secrets.token_hex(8),
        verb=verb,
        at=house.now(),
        session="",  # whoever notices is not who did it
        why=why,
        notes=tuple(facts),
        machine=house.machine,
    )
    house.journal.begin(entry)
    house.journal.close(entry.op, "done")


def _last_writes(house: House) -> Callable[[Memory, str], LastWrite | None]:
    """What the journals last wrote about a memory with this id; nothing when it was about its twin."""
    last_write = house.journal.last_writes()

    def of(memory: Memory, id: str) -> LastWrite | None:
        last = last_write(id)
        if last is not None and last.path not in ("", memory.path) and house.vault.exists(last.path):
            return None  # a person copied the note, id and all; the record is the other file's
        return last

    return of
