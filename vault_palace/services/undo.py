"""Taking back what an operation did: by its id, by note, or all that a session did, newest first.

Planned first, then carried out as an operation of its own, which can be undone like any other. Nothing newer
is overwritten: what changed since is merged or left, and said. A preview is the same plan, printed.
"""

from __future__ import annotations

from collections.abc import Sequence

from vault_palace.core import undo as undoing
from vault_palace.core.errors import Busy, Conflict, InvalidArguments, NoteChanged, NotFound, VaultError
from vault_palace.services import arguments, kept, quiet, relocate
from vault_palace.services.answers import UndoAnswer, UndoneAnswer
from vault_palace.services.history import SILENT, Subject, concerning, kept_of, subject
from vault_palace.services.house import REDO, House
from vault_palace.services.undoplan import DELETED, EDITED, VERSION, Plan, Target, View, planned, where
from vault_palace.storage.records import Entry

# What an undo by note passes over, besides the silent ones: it follows from other notes, or is an undo.
_PASSED = SILENT | {"relink", "undo"}
_SHORTEST = 6  # characters of an operation's id that are enough, when no other begins with them

_DEEDS = {
    "created": "A person made that note; delete it in Obsidian.",
    "renamed": "A person put it there; move_file takes it back.",
    "copied": "A person made that copy; delete it in Obsidian.",
}


def undo(
    house: House,
    what: str | None = None,
    *,
    session: str | None = None,
    version: str | None = None,
    preview: bool = False,
    confirm: bool = False,
) -> UndoAnswer:
    """Take back an operation (*what*: its id), the newest on a note (path, id or title), or all of a session.

    With *version* the note that *what* names gets the text of that kept version: what a person says in it,
    and the properties that they give; what the program derives stays. A note that is gone comes back.

    A *preview* writes nothing and answers what would change, line by line. Otherwise *confirm* is needed
    where Policy says so. A note where something newer stands in the way is refused; the others are done.
    """
    arguments.plain(what=what, session=session, version=version)
    if (what is None) == (session is None) or not (what or session or "").strip():
        raise InvalidArguments(
            "Say what to undo.",
            hint="An operation's id, a note, or --session with its name.",
            argument="what",
        )
    if version is not None and what is None:
        raise InvalidArguments("A version is one note's.", hint="Name the note.", argument="version")
    if not preview:
        house.writable()
        house.believed()
        house.destructive("undo", confirm)
    house.refresh(if_older=0)
    entries = house.journal.entries()
    if session is not None:
        targets = _of_session(entries, session)
    elif version is not None:
        targets = [_version(house, entries, what or "", version)]
    else:
        targets = [_meant(house, entries, what or "")]
    done = []
    view = View(house)
    for target in targets:
        if preview:
            try:
                plan = planned(view, entries, target)
            except VaultError as error:
                if session is None:
                    raise
                plan = _refusal(target, error)
            view.take(plan.edits)
            done.append(_answer(target, plan, ""))
        else:
            done.append(_undone(house, entries, target, alone=session is None))
    return UndoAnswer(
        preview=preview,
        undone=done,
        changed=sum(len(one["notes"]) for one in done),
        refused=sum(len(one["refused"]) for one in done),
    )


def _refusal(target: Target, error: VaultError) -> Plan:
    plan = Plan()
    path = error.facts.get("path")
    plan.refuse(path if isinstance(path, str) else where(target), str(error))
    return plan


def _answer(target: Target, plan: Plan, done: str) -> UndoneAnswer:
    return UndoneAnswer(
        op=target.op,
        verb=target.verb,
        why=target.why,
        undo_op=done,
        notes=plan.notes,
        refused=plan.refused,
        left=plan.left,
    )


def _undone(house: House, entries: Sequence[Entry], target: Target, *, alone: bool) -> UndoneAnswer:
    """Undo one operation; *alone*, what stands in the way of all of it is an error."""
    try:
        for _ in range(REDO):
            plan = planned(View(house), entries, target)
            if not plan.edits:
                return _answer(target, plan, "")
            quiet.wait_quiet(house, [edit.path for edit in plan.edits], body=True)
            house.refresh(if_older=0)  # names and links as they are now
            try:
                with house.locked():
                    plan = planned(View(house), entries, target)
                    done = ""
                    if plan.edits:
                        done = house.perform("undo", plan.edits, why=target.because)
                return _answer(target, plan, done)
            except NoteChanged:
                continue
            except relocate.Edited as error:
                quiet.wait_quiet(house, error.paths, body=True)
        raise Conflict(f"{where(target)} keeps changing.", hint="Repeat the call.", path=where(target))
    except (Busy, Conflict) as error:
        if alone:
            raise
        return _answer(target, _refusal(target, error), "")


# -- what is meant ------------------------------------------------------------------------------------------


def _of(entry: Entry) -> Target:
    return Target(entry.op, entry.verb, entry.why, entry)


def _of_session(entries: Sequence[Entry], session: str) -> list[Target]:
    undone = undoing.cancelled(entries)
    found = [
        _of(entry)
        for entry in reversed(entries)
        if entry.session == session
        and entry.steps
        and entry.verb not in _PASSED
        and entry.op not in undone
        and entry.state not in ("undone", "superseded")
    ]
    if not found:
        raise NotFound(f"The journals have nothing left to undo of session {session!r}.", session=session)
    return found


def _version(house: House, entries: Sequence[Entry], what: str, version: str) -> Target:
    it = subject(house, what, entries)
    one = kept.chosen(kept_of(house, it, entries), version, it.path)
    return Target(one.name, VERSION, "", note=it, version=one)


def _meant(house: House, entries: Sequence[Entry], what: str) -> Target:
    """The operation of that id, else the newest of the note that *what* names."""
    name = what.strip()
    for entry in entries:
        if entry.op == name:
            return _by_id(entry)
    if len(name) >= _SHORTEST:
        close = [entry for entry in entries if entry.op.startswith(name)]
        if len(close) == 1:
            return _by_id(close[0])
    return _newest(entries, subject(house, what, entries), what)


def _by_id(entry: Entry) -> Target:
    if entry.steps:
        return _of(entry)
    if entry.verb == EDITED and entry.notes:
        return _of(entry)
    if entry.verb == DELETED and entry.notes:
        it = Subject(entry.notes[0].id, entry.notes[0].path, False)
        return Target(entry.op, entry.verb, entry.why, deleted=it)
    hint = _DEEDS.get(entry.verb, "It changed no note.")
    raise InvalidArguments(f"There is nothing to take back of {entry.verb} {entry.op}.", hint=hint)


def _newest(entries: Sequence[Entry], it: Subject, what: str) -> Target:
    happened = concerning(entries, it)
    if not it.exists:
        last = next((one for one in happened if one.entry.verb not in SILENT), None)
        if last is not None and last.trace is not None and last.trace.kind == "remove":
            return _of(last.entry)
        deed = last.entry if last is not None and last.entry.verb == DELETED else None
        return Target(deed.op if deed else "deletion", DELETED, "deleted by a person", deleted=it)
    undone = undoing.cancelled(entries)
    for one in happened:
        entry = one.entry
        if entry.verb in _PASSED or entry.op in undone or entry.state in ("undone", "superseded"):
            continue
        if one.is_its_own:
            return _of(entry)
    raise NotFound(
        f"The journals have nothing left to undo of {it.path}.",
        hint=f"See: vault-palace history {what!r}.",
        path=it.path,
    )
