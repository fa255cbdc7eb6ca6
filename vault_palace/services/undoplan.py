"""What undoing one operation would do to each of its notes, as edits and in words. Writes nothing.

A step is taken back on the note as it is now, wherever it went since. What cannot be taken back is refused
with the reason, note by note, and the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from vault_palace.core import frontmatter, names, places, rules
from vault_palace.core import memory as memories
from vault_palace.core import undo as undoing
from vault_palace.core.changes import Mark
from vault_palace.core.errors import Busy, Conflict, NoteChanged, NotFound, VaultError
from vault_palace.core.frontmatter import DELETE
from vault_palace.core.model import Layer, Memory, Value
from vault_palace.services import finding, freshstart, kept, personedit, relocate
from vault_palace.services.answers import UndoneNote, UndoRefusal
from vault_palace.services.generated import REVIEW_NOTE
from vault_palace.services.history import Subject, concerning, id_at
from vault_palace.services.house import Edit, House, Move, Note, Put, Remove
from vault_palace.services.kept import Kept, bytes_of
from vault_palace.storage import files
from vault_palace.storage.records import Entry, Trace
from vault_palace.storage.vault import Stored

DELETED, EDITED = "deleted", "edited"  # verbs of a person's deeds
VERSION = "version"  # what is done is no undoing of an operation: a kept version is put back


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be undone: an operation, or (no steps in it) a deletion by a person, of that note.

    With `version` it is that text which the note gets, whatever was done since.
    """

    op: str
    verb: str
    why: str
    entry: Entry | None = None
    deleted: Subject | None = None
    note: Subject | None = None
    version: Kept | None = None

    @property
    def because(self) -> str:
        """Why it is done, for the journal."""
        if self.version is not None:
            return f"version {self.version.name} put back"
        return undoing.because(self.op, self.why or self.verb)


@dataclass(slots=True)
class Plan:
    """What undoing one operation would do."""

    edits: list[Edit] = field(default_factory=list)
    notes: list[UndoneNote] = field(default_factory=list)
    refused: list[UndoRefusal] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def refuse(self, path: str, reason: str) -> None:
        self.refused.append(UndoRefusal(path=path, reason=reason))


class View:
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
        stored = Stored(data, files.fingerprint(data), mark)
        return self.house.understand(path, stored, lambda memory, *_: memory)  # no person wrote these

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


def where(target: Target) -> str:
    it = target.deleted or target.note
    if it is not None:
        return it.path
    steps = target.entry.steps if target.entry is not None else ()
    return (steps[0].to or steps[0].path) if steps else ""


def planned(view: View, entries: Sequence[Entry], target: Target) -> Plan:
    plan = Plan()
    if target.deleted is not None:
        _bring_back_deleted(view, entries, target.deleted, plan)
        return plan
    if target.note is not None and target.version is not None:
        _put_version(view, target.note, target.version, plan)
        return plan
    entry = target.entry
    assert entry is not None
    if not entry.steps:
        _take_back_edits(view, entries, entry, plan)
        return plan
    if entry.state in ("undone", "superseded"):
        plan.refuse(where(target), "It was never done, or only in part; its note is as a person left it.")
        return plan
    moved = any(step.kind == "move" for step in entry.steps)
    for trace in entry.steps:
        if moved and trace.kind == "put":
            continue  # a link that followed the moved note follows it back
        if trace.path == REVIEW_NOTE:
            continue  # it is made anew, and asks again
        try:
            _plan_step(view, entries, entry, trace, plan)
        except (NoteChanged, Busy):
            raise
        except VaultError as error:
            plan.refuse(trace.to or trace.path, str(error))
    return plan


def _plan_step(view: View, entries: Sequence[Entry], entry: Entry, trace: Trace, plan: Plan) -> None:
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


def _now(view: View, entries: Sequence[Entry], entry: Entry, trace: Trace) -> Note | None:
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


def _versions(view: View, entry: Entry, trace: Trace, note: Note | None) -> tuple[bytes | None, bytes | None]:
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
    plan: Plan,
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


def _put_back(view: View, entry: Entry, trace: Trace, note: Note, plan: Plan) -> None:
    """A note that the operation changed gets its former words and values back."""
    old, new = _versions(view, entry, trace, note)
    assert old is not None
    assert new is not None
    found = _without(view.house, note, old, new)
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


def _take_back_edits(view: View, entries: Sequence[Entry], deed: Entry, plan: Plan) -> None:
    """The notes that a person edited get their former words back, and the values that a person gives."""
    house = view.house
    for fact in deed.notes:
        note = _now(view, entries, replace(deed, notes=(fact,)), Trace(kind="put", path=fact.path))
        if note is None:
            plan.refuse(fact.path, "It is gone; undo with its name brings a deleted note back.")
            continue
        edit = personedit.of(house, entries, deed, fact)
        see = f"vault-palace history {note.path!r} lists what is kept; undo with --version puts one back"
        if edit is None:
            plan.refuse(note.path, f"What that edit changed cannot be told any more. {see}.")
            continue
        found = _without(house, note, edit.before.encode("utf-8"), edit.after.encode("utf-8"))
        if found is None or found.text is None:
            plan.refuse(note.path, f"Left as it is, for {found.why if found else 'it is not text'}. {see}.")
            continue
        data = _judged(house, note, found.text).encode("utf-8")
        if found.text == note.text or data == note.stored.data:
            plan.refuse(note.path, f"Nothing of it is left to take back. {see}.")
            continue
        newer = _newer(found)
        if not edit.whole:
            newer = "; ".join(
                filter(None, (newer, "its properties, which that edit may have changed, are left"))
            )
        plan.edits.append(Put(path=note.path, before=note.stored, data=data))
        _told(plan, "changed back", note.path, note.stored.data, data, newer=newer)


def _put_version(view: View, it: Subject, version: Kept, plan: Plan) -> None:
    """The note gets the text of *version*; one that is gone comes back with it."""
    found = view.with_id(it.id) if it.id else [note for note in (view.at(it.path),) if note is not None]
    if len(found) > 1:
        paths = ", ".join(note.path for note in found)
        raise Conflict(f"Several notes have its id: {paths}.", hint="Give the copies ids of their own.")
    if not found:
        _return(view, it.id, it.path if places.is_note(it.path) else f"{it.path}.md", version.data, plan)
        return
    (note,) = found
    data, newer = _as_version(view.house, note, version.data)
    if data == note.stored.data:
        plan.refuse(note.path, "It says that already.")
        return
    plan.edits.append(Put(path=note.path, before=note.stored, data=data))
    _told(plan, "put back", note.path, note.stored.data, data, newer=newer)


def _as_version(house: House, note: Note, version: bytes) -> tuple[bytes, str]:
    """The bytes of *note* with the text of *version*, and what of that is left out, in words."""
    if note.kind not in ("memory", "archived") or note.text is None or not _is_text(version):
        return version, ""
    old = version.decode("utf-8")
    text = note.text
    if note.kind == "memory" and note.header.problem is None:
        text = house.kept_up(note, text)
    found = undoing.in_place(old, text, bare_dates=house.bare_dates())
    if found.text is None:
        raise Conflict(f"That version cannot be put back: {found.why}.", path=note.path)
    if found.newer:
        return found.text.encode("utf-8"), "its properties do not parse; those of now are left"
    return _judged(house, note, found.text, since=old).encode("utf-8"), ""


def _judged(house: House, note: Note, text: str, *, since: str = "") -> str:
    """*text*, about to be written into *note*, with the forecast that its density, pin and lifetime make.

    The lifetime that was the default of another layer, in *since*, becomes that of the layer of now.
    """
    if note.kind != "memory" or note.memory is None or note.header.problem is not None:
        return text
    data = text.encode("utf-8")
    fresh = house.understand(
        note.path, Stored(data, files.fingerprint(data), note.stored.mark), lambda memory, *_: memory
    )
    if fresh.memory is None or fresh.header.problem is not None:
        return text
    now, policy, wanted = house.now(), house.policy(), fresh.memory
    lifetime = _lifetime(house, wanted, since)
    after: Memory = note.memory
    if (after.pinned, after.decay_days) != (wanted.pinned, lifetime):
        after = rules.settle(after, now, policy)  # the days before count as they were
    if after.pinned and not wanted.pinned:
        after = rules.unpin(after, now, policy)
    after = replace(after, density=wanted.density, pinned=wanted.pinned, decay_days=lifetime)
    rated = fresh.header.values.get("rated_on")
    extra: dict[str, Value] = {} if rated is None else {"rated_on": rated}
    return house.with_memory(fresh, text, after, extra)


def _lifetime(house: House, wanted: Memory, since: str) -> float | None:
    word = frontmatter.read(since).values.get("layer") if since else None
    layer = next((known for known in Layer if known == word), None)
    policy = house.policy()
    if layer is None or layer is wanted.layer or wanted.decay_days != policy.lifetime(layer):
        return wanted.decay_days
    return policy.lifetime(wanted.layer)


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
    found = undoing.reverted(
        old.decode("utf-8"),
        new.decode("utf-8"),
        text,
        only=undoing.PLACE if place else None,
        bare_dates=house.bare_dates(),
    )
    return _not_asking(house, note, found)


def _not_asking(house: House, note: Note, found: undoing.Reverted) -> undoing.Reverted:
    """*found* without the person's word that was obeyed: brought back, it would be obeyed again."""
    if found.text is None or "review" in note.header.values:
        return found
    header = frontmatter.read(found.text)
    if "review" not in header.values or header.problem is not None:
        return found
    return replace(found, text=house.patched(note, found.text, {"review": DELETE}))


def _is_text(data: bytes) -> bool:
    with suppress(UnicodeDecodeError):
        data.decode("utf-8")
        return True
    return False


def _carry_back(view: View, entry: Entry, trace: Trace, note: Note, plan: Plan) -> None:
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
    text = freshstart.given(house, entry, note, to, found.text)
    wanted: dict[str, str] = {}
    if note.stored.data == new:
        wanted[to] = freshstart.given(house, entry, note, to, _decoded(old))
    for step in entry.steps:
        other = view.at(step.path) if step.kind == "put" and step.path != REVIEW_NOTE else None
        former = bytes_of(house, step.before) if step.before is not None else None
        if other is None or former is None or other.stored.fingerprint != step.after:
            continue
        referrer = _without(house, other, former, other.stored.data)
        if referrer is not None and referrer.text is not None:
            wanted[step.path] = referrer.text
    course = relocate.plotted(house, note, to, text, look=view.look, wanted=wanted)
    plan.edits += course.edits
    plan.left += course.left
    for edit in course.edits:
        if isinstance(edit, Move):
            how = "moved back" if text == found.text else "moved back with a fresh start, as by restore"
            _told(plan, how, edit.path, edit.before.data, edit.data, to=edit.to, newer=_newer(found))
        elif edit.before is not None:
            _told(plan, "links rewritten", edit.path, edit.before.data, edit.data)


def _take_away(view: View, entry: Entry, trace: Trace, note: Note, plan: Plan) -> None:
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


def _bring_back(view: View, entries: Sequence[Entry], entry: Entry, trace: Trace, plan: Plan) -> None:
    """A note that the operation removed comes back."""
    at = next((number for number, one in enumerate(entries) if one.op == entry.op), len(entries))
    old, _ = _versions(view, entry, trace, None)
    assert old is not None
    _return(view, id_at(entries[:at], trace.path), trace.path, old, plan)


def _return(view: View, id: str, path: str, data: bytes, plan: Plan) -> None:
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


def _bring_back_deleted(view: View, entries: Sequence[Entry], it: Subject, plan: Plan) -> None:
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
    for age, one in enumerate(kept.of_note(house, it.id)):
        facts = house.note_facts(it.path, one.data)
        if not facts:
            continue  # not to be read as a note now, so not what to begin with
        standing = (rank.get(facts[0].body, len(bodies)), age)
        if best is None or standing < best:
            best, found = standing, one.data
    if found is not None:
        return found
    marks = (mark for one in happened if one.trace for mark in (one.trace.after, one.trace.before) if mark)
    return next((data for data in (bytes_of(house, mark) for mark in marks) if data is not None), None)
