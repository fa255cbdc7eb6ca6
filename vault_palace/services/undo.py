"""Taking back what an operation did: by its id, by note, or all that a session did, newest first.

Planned first, then carried out as an operation of its own, which can be undone like any other. Nothing newer
is overwritten: what changed since is merged or left, and said. A preview is the same plan, printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from vault_palace.core import memory as memories
from vault_palace.core import names, places
from vault_palace.core import undo as undoing
from vault_palace.core.changes import Mark
from vault_palace.core.errors import Busy, Conflict, InvalidArguments, NoteChanged, NotFound, VaultError
from vault_palace.services import arguments, finding, quiet, relocate
from vault_palace.services.answers import UndoAnswer, UndoneAnswer, UndoneNote, UndoRefusal
from vault_palace.services.history import SILENT, Subject, bytes_of, concerning, id_at, subject
from vault_palace.services.house import REDO, Edit, House, Move, Note, Put, Remove
from vault_palace.storage import files
from vault_palace.storage.records import Entry, Trace
from vault_palace.storage.vault import Stored

# What an undo by note passes over, besides the silent ones: it follows from other notes, or is an undo.
_PASSED = SILENT | {"relink", "undo"}
_DELETED = "deleted"
_SHORTEST = 6  # characters of an operation's id that are enough, when no other begins with them

_DEEDS = {
    "edited": "A person wrote that; their versions are kept: see its history.",
    "created": "A person made that note; delete it in Obsidian.",
    "renamed": "A person put it there; move_file takes it back.",
    "copied": "A person made that copy; delete it in Obsidian.",
}


@dataclass(frozen=True, slots=True)
class _Target:
    """What is to be undone: an operation, or (no steps in it) a deletion by a person, of that note."""

    op: str
    verb: str
    why: str
    entry: Entry | None = None
    deleted: Subject | None = None


@dataclass(slots=True)
class _Plan:
    """What undoing one operation would do."""

    edits: list[Edit] = field(default_factory=list)
    notes: list[UndoneNote] = field(default_factory=list)
    refused: list[UndoRefusal] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def refuse(self, path: str, reason: str) -> None:
        self.refused.append(UndoRefusal(path=path, reason=reason))


class _View:
    """The notes as they are, or as they will be once what was planned so far is done."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._planned: dict[str, bytes | None] = {}

    def look(self, path: str) -> Note:
        """The note at *path*; `NotFound` when there is none."""
        if path not in self._planned:
            return self.house.look(path)
        data = self._planned[path]
        if data is None:
            raise NotFound(f"{path} does not exist.", path=path)
        mark = Mark(len(data), int(self.house.now().timestamp() * 1e9), 0)
        return self.house.understand(path, Stored(data, files.fingerprint(data), mark))

    def at(self, path: str) -> Note | None:
        with suppress(NotFound):
            return self.look(path)
        return None

    def with_id(self, id: str) -> list[Note]:
        known = [path for path in self.house.shelf.paths_of_id(id) if path not in self._planned]
        known += [path for path, data in self._planned.items() if data is not None]
        found = (self.at(path) for path in known)
        return [note for note in found if note is not None and note.id == id]

    def take(self, edits: Sequence[Edit]) -> None:
        """From now on see the vault as these leave it."""
        for edit in edits:
            if isinstance(edit, Move | Remove):
                self._planned[edit.path] = None
            if isinstance(edit, Move):
                self._planned[edit.to] = edit.data
            elif isinstance(edit, Put):
                self._planned[edit.path] = edit.data


def undo(
    house: House,
    what: str | None = None,
    *,
    session: str | None = None,
    preview: bool = False,
    confirm: bool = False,
) -> UndoAnswer:
    """Take back an operation (*what*: its id), the newest on a note (path, id or title), or all of a session.

    A *preview* writes nothing and answers what would change, line by line. Otherwise *confirm* is needed
    where Policy says so. A note where something newer stands in the way is refused; the others are done.
    """
    arguments.plain(what=what, session=session)
    if (what is None) == (session is None) or not (what or session or "").strip():
        raise InvalidArguments(
            "Say what to undo.",
            hint="An operation's id, a note, or --session with its name.",
            argument="what",
        )
    if not preview:
        house.writable()
        house.destructive("undo", confirm)
    house.refresh(if_older=0)
    entries = house.journal.entries()
    targets = _of_session(entries, session) if session is not None else [_meant(house, entries, what or "")]
    done = []
    view = _View(house)
    for target in targets:
        if preview:
            try:
                plan = _planned(view, entries, target)
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


def _refusal(target: _Target, error: VaultError) -> _Plan:
    plan = _Plan()
    path = error.facts.get("path")
    plan.refuse(path if isinstance(path, str) else _where(target), str(error))
    return plan


def _where(target: _Target) -> str:
    if target.deleted is not None:
        return target.deleted.path
    steps = target.entry.steps if target.entry is not None else ()
    return (steps[0].to or steps[0].path) if steps else ""


def _answer(target: _Target, plan: _Plan, done: str) -> UndoneAnswer:
    return UndoneAnswer(
        op=target.op,
        verb=target.verb,
        why=target.why,
        undo_op=done,
        notes=plan.notes,
        refused=plan.refused,
        left=plan.left,
    )


def _undone(house: House, entries: Sequence[Entry], target: _Target, *, alone: bool) -> UndoneAnswer:
    """Undo one operation; *alone*, what stands in the way of all of it is an error."""
    try:
        for _ in range(REDO):
            plan = _planned(_View(house), entries, target)
            if not plan.edits:
                return _answer(target, plan, "")
            quiet.wait_quiet(house, [edit.path for edit in plan.edits], body=True)
            house.refresh(if_older=0)  # names and links as they are now
            try:
                with house.locked():
                    plan = _planned(_View(house), entries, target)
                    done = ""
                    if plan.edits:
                        why = undoing.because(target.op, target.why or target.verb)
                        done = house.perform("undo", plan.edits, why=why)
                return _answer(target, plan, done)
            except NoteChanged:
                continue
            except relocate.Edited as error:
                quiet.wait_quiet(house, error.paths, body=True)
        raise Conflict(f"{_where(target)} keeps changing.", hint="Repeat the call.", path=_where(target))
    except (Busy, Conflict) as error:
        if alone:
            raise
        return _answer(target, _refusal(target, error), "")


# -- what is meant ------------------------------------------------------------------------------------------


def _of(entry: Entry) -> _Target:
    return _Target(entry.op, entry.verb, entry.why, entry)


def _of_session(entries: Sequence[Entry], session: str) -> list[_Target]:
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


def _meant(house: House, entries: Sequence[Entry], what: str) -> _Target:
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


def _by_id(entry: Entry) -> _Target:
    if entry.steps:
        return _of(entry)
    if entry.verb == _DELETED and entry.notes:
        it = Subject(entry.notes[0].id, entry.notes[0].path, False)
        return _Target(entry.op, entry.verb, entry.why, deleted=it)
    hint = _DEEDS.get(entry.verb, "It changed no note.")
    raise InvalidArguments(f"There is nothing to take back of {entry.verb} {entry.op}.", hint=hint)


def _newest(entries: Sequence[Entry], it: Subject, what: str) -> _Target:
    happened = concerning(entries, it)
    if not it.exists:
        last = next((one for one in happened if one.entry.verb not in SILENT), None)
        if last is not None and last.trace is not None and last.trace.kind == "remove":
            return _of(last.entry)
        deed = last.entry if last is not None and last.entry.verb == _DELETED else None
        return _Target(deed.op if deed else "deletion", _DELETED, "deleted by a person", deleted=it)
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


# -- planning -----------------------------------------------------------------------------------------------


def _planned(view: _View, entries: Sequence[Entry], target: _Target) -> _Plan:
    plan = _Plan()
    if target.deleted is not None:
        _bring_back_deleted(view, entries, target.deleted, plan)
        return plan
    entry = target.entry
    assert entry is not None
    if entry.state in ("undone", "superseded"):
        plan.refuse(_where(target), "It was never done, or only in part; its note is as a person left it.")
        return plan
    moved = any(step.kind == "move" for step in entry.steps)
    for trace in entry.steps:
        if moved and trace.kind == "put":
            continue  # a link that followed the moved note follows it back
        try:
            _plan_step(view, entries, entry, trace, plan)
        except (NoteChanged, Busy):
            raise
        except VaultError as error:
            plan.refuse(trace.to or trace.path, str(error))
    return plan


def _plan_step(view: _View, entries: Sequence[Entry], entry: Entry, trace: Trace, plan: _Plan) -> None:
    if trace.kind == "remove":
        _bring_back(view, entries, entry, trace, plan)
        return
    note = _now(view, entries, entry, trace)
    if note is None:
        if trace.kind == "put" and trace.before is None:
            plan.refuse(trace.path, "It is gone already.")
        else:
            plan.refuse(trace.to or trace.path, "It is gone; undo with its name brings a deleted note back.")
    elif trace.kind == "move":
        _carry_back(view, entry, trace, note, plan)
    elif trace.before is None:
        _take_away(view, entry, trace, note, plan)
    else:
        _put_back(view, entry, trace, note, plan)


def _now(view: _View, entries: Sequence[Entry], entry: Entry, trace: Trace) -> Note | None:
    """The note of a step as it is now, wherever it went since; None when it is gone."""
    place = trace.to or trace.path
    known = next((fact.id for fact in entry.notes if fact.path == place), "")
    here = view.at(place)
    if known:
        if here is not None and here.id == known:
            return here
        found = view.with_id(known)
        if len(found) > 1:
            paths = ", ".join(note.path for note in found)
            raise Conflict(f"Several notes have its id: {paths}.", hint="Give the copies ids of their own.")
        if found:
            return found[0]
        return here if here is not None and not here.id else None
    at = next((number for number, one in enumerate(entries) if one.op == entry.op), len(entries))
    for later in entries[at + 1 :]:
        place = next((step.to for step in later.steps if step.kind == "move" and step.path == place), place)
    return view.at(place)


def _versions(
    view: _View, entry: Entry, trace: Trace, note: Note | None
) -> tuple[bytes | None, bytes | None]:
    """What the step found and left; a refusal when that is not kept any more."""
    now = None if note is None else note.stored
    pair: list[bytes | None] = []
    for mark in (trace.before, trace.after):
        data = None if mark is None else bytes_of(view.house, mark, now)
        if mark is not None and data is None:
            house = view.house
            elsewhere = entry.machine != house.machine
            where = f"kept on {entry.machine} only" if elsewhere else "no longer kept (versions_keep_days)"
            raise NotFound(f"The version it would need is {where}.", hint="Change the note by hand.")
        pair.append(data)
    return pair[0], pair[1]


def _decoded(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")


def _told(
    plan: _Plan,
    what: str,
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    to: str = "",
    newer: str = "",
) -> None:
    plan.notes.append(
        UndoneNote(
            path=path,
            to=to or path,
            what=what,
            diff=undoing.difference(_decoded(before), _decoded(after)),
            newer=newer,
        )
    )


def _newer(found: undoing.Reverted) -> str:
    return f"changed since, and left: {', '.join(found.newer)}" if found.newer else ""


def _put_back(view: _View, entry: Entry, trace: Trace, note: Note, plan: _Plan) -> None:
    """A note that the operation changed gets its former words and values back."""
    house = view.house
    old, new = _versions(view, entry, trace, note)
    assert old is not None
    assert new is not None
    found = _without(house, note, old, new)
    data = old if found is None else (found.text or "").encode("utf-8")
    if found is not None and found.text is None:
        how = "undo what was done since first, or change the note by hand"
        plan.refuse(note.path, f"Left as it is, for {found.why}; {how}.")
    elif data == note.stored.data:
        plan.refuse(note.path, "Nothing of it is left to take back.")
    else:
        newer = "" if found is None else _newer(found)
        plan.edits.append(Put(path=note.path, before=note.stored, data=data))
        _told(plan, "changed back", note.path, note.stored.data, data, newer=newer)


def _without(
    house: House, note: Note, old: bytes, new: bytes, *, place: bool = False
) -> undoing.Reverted | None:
    """The note's text without the operation; None for exactly the old bytes, whatever they are."""
    if note.text is None or not _is_text(old) or not _is_text(new):
        if note.stored.data == new and not place:
            return None
        return undoing.Reverted(None, "it is not UTF-8 text")
    text = note.text
    if note.kind == "memory" and note.header.problem is None:
        text = house.kept_up(note, text)  # what a person did since must not get lost to our write
    return undoing.reverted(
        old.decode("utf-8"),
        new.decode("utf-8"),
        text,
        only=undoing.PLACE if place else None,
        bare_dates=house.bare_dates(),
    )


def _is_text(data: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        data.decode("utf-8")
        return True
    return False


def _carry_back(view: _View, entry: Entry, trace: Trace, note: Note, plan: _Plan) -> None:
    """A note that the operation moved goes back to where it was, its links and the links to it kept."""
    house = view.house
    old, new = _versions(view, entry, trace, note)
    assert old is not None
    assert new is not None
    if note.path != trace.to:
        if names.key(note.path) == names.key(trace.path):
            plan.refuse(note.path, "It is back already.")
        else:
            plan.refuse(note.path, "It was moved again since; undo that first, or move it.")
        return
    found = _without(house, note, old, new, place=True)
    if found is None or found.text is None:
        plan.refuse(note.path, f"It stays where it is, for {found.why if found else 'it is not text'}.")
        return
    folder = trace.path.rpartition("/")[0]
    if folder:
        finding.open_to_notes(house, folder)
    to = finding.free_place(house, trace.path, besides=note.path)
    wanted = {to: _decoded(old)} if note.stored.data == new else {}
    for step in entry.steps:
        other = view.at(step.path) if step.kind == "put" else None
        former = bytes_of(house, step.before) if step.before is not None else None
        if other is None or former is None or other.stored.fingerprint != step.after:
            continue
        referrer = _without(house, other, former, other.stored.data)
        if referrer is not None and referrer.text is not None:
            wanted[step.path] = referrer.text
    course = relocate.plotted(house, note, to, found.text, look=view.look, wanted=wanted)
    plan.edits += course.edits
    plan.left += course.left
    for edit in course.edits:
        if isinstance(edit, Move):
            _told(plan, "moved back", edit.path, edit.before.data, edit.data, to=edit.to, newer=_newer(found))
        elif edit.before is not None:
            _told(plan, "links rewritten", edit.path, edit.before.data, edit.data)


def _take_away(view: _View, entry: Entry, trace: Trace, note: Note, plan: _Plan) -> None:
    """A note that the operation made goes, unless somebody said anything in it since."""
    _, new = _versions(view, entry, trace, note)
    assert new is not None
    made = view.house.understand(note.path, Stored(new, trace.after or "", note.stored.mark))
    policy = view.house.policy()
    same = memories.rev(made.header, policy, note.layer) == memories.rev(note.header, policy, note.layer)
    if made.body_hash != note.body_hash or not (same or note.kind == "archived"):
        how = "undo what was done since first, purge it, or delete it in Obsidian"
        plan.refuse(note.path, f"It was written in since, so it stays; {how}.")
        return
    plan.edits.append(Remove(path=note.path, before=note.stored))
    _told(plan, "removed", note.path, note.stored.data, None)


def _bring_back(view: _View, entries: Sequence[Entry], entry: Entry, trace: Trace, plan: _Plan) -> None:
    """A note that the operation removed comes back."""
    at = next((number for number, one in enumerate(entries) if one.op == entry.op), len(entries))
    old, _ = _versions(view, entry, trace, None)
    assert old is not None
    _return(view, id_at(entries[:at], trace.path), trace.path, old, plan)


def _return(view: _View, id: str, path: str, data: bytes, plan: _Plan) -> None:
    there = view.with_id(id) if id else []
    if there:
        plan.refuse(path, f"It is in the vault already, at {there[0].path}.")
        return
    folder = path.rpartition("/")[0]
    if folder:
        finding.open_to_notes(view.house, folder)
    to = finding.free_place(view.house, path, besides="")
    plan.edits.append(Put(path=to, before=None, data=data))
    _told(plan, "brought back", path, None, data, to=to)


def _bring_back_deleted(view: _View, entries: Sequence[Entry], it: Subject, plan: _Plan) -> None:
    """A note that a person deleted comes back from the newest version that is kept of it."""
    data = _newest_kept(view.house, entries, it)
    if data is None:
        plan.refuse(it.path, "No version of it is kept; look into .trash and your own copies.")
        return
    path = it.path if places.is_note(it.path) else f"{it.path}.md"
    _return(view, it.id, path, data, plan)


def _newest_kept(house: House, entries: Sequence[Entry], it: Subject) -> bytes | None:
    """The kept version that the journals know as the newest; else, by age, one that has the note's id."""
    happened = concerning(entries, it)
    bodies = [fact.body for one in happened for fact in one.entry.notes if fact.id == it.id and fact.body]
    rank = {body: number for number, body in reversed(list(enumerate(bodies)))}
    best: tuple[int, int] | None = None
    found: bytes | None = None
    for age, data in enumerate(_kept_of(house, it.id)):
        (fact,) = house.note_facts(it.path, data)
        standing = (rank.get(fact.body, len(bodies)), age)
        if best is None or standing < best:
            best, found = standing, data
    if found is not None:
        return found
    marks = (mark for one in happened if one.trace for mark in (one.trace.after, one.trace.before) if mark)
    return next((data for data in (bytes_of(house, mark) for mark in marks) if data is not None), None)


def _kept_of(house: House, id: str) -> Iterator[bytes]:
    """The kept versions of the note with this id, newest first."""
    if id:
        for fingerprint in house.versions.holding(id.encode("utf-8")):
            data = bytes_of(house, fingerprint)
            facts = house.note_facts("01_Shallow/x.md", data) if data is not None else []
            if data is not None and facts and facts[0].id == id:
                yield data
