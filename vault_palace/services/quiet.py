"""Giving way to a person: waiting until a note is quiet, and counting a use when it is (SPEC §4, §6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from vault_palace.core import rules
from vault_palace.core.errors import Busy, Conflict, LockTimeout, NotFound, VaultError
from vault_palace.services import pace
from vault_palace.services.attention import open_notes, seconds_since
from vault_palace.services.house import House, Note, Put

# How long a command waits for a note that keeps changing, and how often it looks (SPEC §6.3).
PATIENCE_SECONDS = 10.0
LOOK_SECONDS = 0.2
OPEN = "it is open in Obsidian"  # how a reason begins that no patience outlasts
SAVE_SECONDS, SAVE_LOOKS = 0.1, 5  # how long an editor may pause within one save, and how often we look
# How long a use waits for another writer before it is put off, and before it is given up at the end.
TOUCH_SECONDS, LEAVING_SECONDS = 0.2, 2.0


def attended(house: House, note: Note, *, body: bool) -> str:
    """Why a person's attention forbids a change now, in words; empty when it does not (SPEC §6.3).

    *body*: the change replaces the body, moves, archives or renames the note. A header where there was none
    is as much: what is typed below it unsaved finds no place any more when Obsidian merges.
    """
    policy, now = house.policy(), house.now()
    changed_ns = house.changed_outside(note)
    if changed_ns is None:
        return ""
    body = body or not note.header.present
    age = seconds_since(changed_ns, now)
    if age < policy.quiet_seconds:
        return "it was changed outside a moment ago"
    if body and age < policy.settle_minutes * 60 and note.path in open_notes(house.vault):
        left = policy.settle_minutes - age / 60
        return f"{OPEN} and was edited {age / 60:.0f} minutes ago; try again in {max(left, 1):.0f} minutes"
    return ""


def unheaded(house: House, note: Note) -> bool:
    """Whether *note* has no properties and a person is typing in it: it gets them when they are done."""
    return not note.header.present and bool(attended(house, note, body=True))


def refuse_attended(house: House, note: Note) -> None:
    """Refuse to change the properties of a note that a person is typing in and that has none yet."""
    if unheaded(house, note):
        raise Busy(
            f"{note.path} is being edited and has no properties yet.",
            hint="Append without tags or density, or retry in some minutes.",
            path=note.path,
        )


def look_whole(house: House, path: str) -> Note:
    """The note for an append, which waits for nobody; but half of a save is not taken for the whole."""
    note = house.look(path)
    for _ in range(SAVE_LOOKS):
        age = seconds_since(note.stored.mark.mtime_ns, house.now())
        if age >= SAVE_SECONDS or house.journal.accounts_for(note.stored.fingerprint):
            break
        house.settings.sleep(SAVE_SECONDS)
        note = house.look(path)
    return note


def wait_quiet(house: House, paths: Sequence[str], *, body: bool = False) -> None:
    """Wait until nobody has changed *paths* for Policy's `quiet_seconds`; `Busy` after 10 s."""
    waited = 0.0
    while True:
        reason = path = ""
        for path in paths:
            try:
                reason = attended(house, house.look(path), body=body)
            except NotFound:
                continue
            if reason:
                break
        if not reason:
            return
        if waited >= PATIENCE_SECONDS or reason.startswith(OPEN):  # which lasts minutes, not seconds
            raise Busy(
                f"{path} is being edited: {reason}.", hint="Retry later; appending works at once.", path=path
            )
        pace.wait_on()
        house.settings.sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS


def touch(house: House, note: Note, at: datetime | None = None) -> None:
    """Count a use of *note* as soon as it is quiet; reading never waits and never fails for it.

    The use is of *at* (None: of now), however late it is written. A second use on one day that would change
    nothing but the clock time is not written: every rule counts days.
    """
    if note.memory is None or note.kind != "memory" or note.header.problem is not None or house.read_only():
        return
    with house.guard:
        waiting = house.touches.get(note.path)
        if at is None or waiting is None or waiting < at:
            house.touches[note.path] = at or house.now()
    flush_touches(house)


def flush_touches(house: House, patience: float = TOUCH_SECONDS) -> None:
    """Write the uses that wait. What cannot be written now goes on waiting.

    What another thread is at is left to it: of many agents that read at once, each would do the work of all.
    """
    with house.guard:
        waiting = {path: at for path, at in house.touches.items() if path not in house.touching}
        ours = set(waiting)
        house.touching |= ours
    try:
        for path, at in waiting.items():
            try:
                done = _write_touch(house, path, at, patience)
            except LockTimeout:
                return
            except (Busy, Conflict):
                done = False
            except VaultError:
                done = True  # gone, malformed or not writable: a use is not worth an error
            with house.guard:
                ours.discard(path)
                house.touching.discard(path)
                if done and house.touches.get(path) == at:
                    del house.touches[path]
    finally:
        with house.guard:
            house.touching -= ours


def _write_touch(house: House, path: str, at: datetime, patience: float) -> bool:
    note = house.look(path)
    if note.memory is None or note.kind != "memory":
        return True
    if attended(house, note, body=False):
        return False
    policy = house.policy()
    after = rules.touch(note.memory, at, policy)
    same_day = note.memory.last_touched.date() == after.last_touched.date()
    if same_day and replace(after, last_touched=note.memory.last_touched) == note.memory and note.untouched:
        return True
    text = house.with_memory(note, note.editable, after, {})
    if text != note.text:
        with house.locked(patience):
            house.perform(
                "touch", [Put(path=path, before=note.stored, data=text.encode("utf-8"))], why="read"
            )
    return True
