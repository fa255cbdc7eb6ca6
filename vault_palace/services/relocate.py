"""Moving notes: to another layer or room, to the archive and back, with every link kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from vault_palace.core import links, names, places, rules
from vault_palace.core import memory as memories
from vault_palace.core.errors import (
    Busy,
    Conflict,
    Exists,
    MalformedNote,
    NoteChanged,
    PolicyViolation,
    VaultError,
)
from vault_palace.core.model import Layer, Memory, Status
from vault_palace.services import arguments, caller, finding, pace, quiet, remember, safety
from vault_palace.services.answers import MoveAnswer, PurgeAnswer, RestoreAnswer
from vault_palace.services.house import REDO, House, Move, Note, Put


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move did: the new path, links rewritten, and the notes whose links it had to leave."""

    path: str
    rewritten: int
    left: tuple[str, ...]


class Edited(Busy):
    """Notes that link to the moved one are being edited: they have to be quiet first."""

    def __init__(self, notes: dict[str, str]) -> None:
        path, reason = next(iter(notes.items()))
        super().__init__(f"{path} links to it and is being edited: {reason}.", hint="Retry later.", path=path)
        self.paths = list(notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The edits that take a note to another place, links kept, and what `Moved` tells of them."""

    edits: tuple[Put | Move, ...]
    rewritten: int
    left: tuple[str, ...]


def carry(house: House, note: Note, to: str, text: str, *, verb: str, why: str) -> Moved:
    """Take *note* to the free place *to* with *text*, rewriting each link that would break (SPEC §3).

    One operation: all or nothing. A referrer that cannot be written is left and listed. `Edited` when a
    person is at work in one: rewriting the paragraph they type in would lose their words (SPEC §6.3).
    """
    course = plotted(house, note, to, text)
    house.perform(verb, course.edits, why=why)
    return Moved(path=to, rewritten=course.rewritten, left=course.left)


def plotted(
    house: House,
    note: Note,
    to: str,
    text: str,
    *,
    look: Callable[[str], Note] | None = None,
    wanted: Mapping[str, str] | None = None,
) -> Course:
    """What `carry` does, not yet done. *look* reads a note as it will be then, `house.look` if not given.

    *wanted* are the texts that notes had before: where links have to be written, one whose links lead to the
    same notes is taken as it stands.
    """
    look = look or house.look
    wanted = wanted or {}
    try:
        finding.still_free(house, to, besides=note.path)
    except Exists as error:
        raise NoteChanged(error.message, hint=error.hint, path=to) from error
    followed = _Followed()
    if house.shelf.links_may_change(note.path, to):
        before, after = house.shelf.resolvers(note.path, to)
        done = links.rewritten(
            text, old_source=note.path, new_source=to, before=before, after=after, moved={note.path: to}
        )
        text = _as_wanted(done.text, wanted.get(to), to, after)
        followed.rewritten += done.changed
        followed.left += _left(to, done)
        _follow(house, note.path, to, before, after, followed, look, wanted)
    if followed.edited:
        raise Edited(followed.edited)
    move = Move(path=note.path, to=to, before=note.stored, data=text.encode("utf-8"))
    return Course(edits=(*followed.edits, move), rewritten=followed.rewritten, left=tuple(followed.left))


@dataclass(slots=True)
class _Followed:
    """The edits by which notes follow a note that they link to, those left, and those a person is at."""

    edits: list[Put] = field(default_factory=list)
    rewritten: int = 0
    left: list[str] = field(default_factory=list)
    edited: dict[str, str] = field(default_factory=dict)


def _follow(
    house: House,
    path: str,
    to: str,
    before: links.Resolver,
    after: links.Resolver,
    followed: _Followed,
    look: Callable[[str], Note],
    wanted: Mapping[str, str],
) -> None:
    """Have the other notes that link to *path* link to *to*."""
    holders = house.shelf.referrers(path, to)
    for number, holder in enumerate(holders):
        if holder in (path, to):
            continue
        pace.step(number, len(holders), holder)  # nothing is written until all are looked at
        try:
            other = look(holder)
        except VaultError as error:
            followed.left.append(f"{holder}: {error}")
            continue
        done = links.rewritten(
            other.shown, old_source=holder, new_source=holder, before=before, after=after, moved={path: to}
        )
        followed.left += _left(holder, done)
        if not done.changed:
            continue
        if why_not := hindrance(house, other):
            followed.left.append(f"{holder}: {why_not}")
            continue
        followed.rewritten += done.changed
        new = _as_wanted(done.text, wanted.get(holder), holder, after)
        in_body = not new.endswith(other.header.body)
        if reason := quiet.attended(house, other, body=in_body):
            followed.edited[holder] = reason
        followed.edits.append(Put(path=holder, before=other.stored, data=kept_up(house, other, new)))


def _as_wanted(text: str, wanted: str | None, source: str, after: links.Resolver) -> str:
    """*wanted* when its links, in the note *source*, lead where those of *text* lead; else *text*."""
    if wanted is None or wanted == text:
        return text
    ends = [
        [after.resolve(link.path, source) for link in links.scan(version).links] for version in (text, wanted)
    ]
    return wanted if ends[0] == ends[1] else text


def hindrance(house: House, note: Note) -> str:
    """Why the links of *note* cannot be rewritten, in words; empty when they can."""
    if note.text is None:
        return "not UTF-8 text; save it as UTF-8 and mend its links"
    if note.header.problem is not None and note.header.problem.conflict:
        return "merge markers; two versions of the note stand there"
    return "" if house.vault.is_writable(note.path) else "no permission to write"


def kept_up(house: House, note: Note, text: str) -> bytes:
    """The bytes of a referrer; one whose properties are out of reach gets its links all the same."""
    with suppress(MalformedNote):
        text = house.kept_up(note, text)
    return text.encode("utf-8")


def _left(path: str, done: links.Rewritten) -> list[str]:
    """What of the links of the note at *path* could not be kept true, in words."""
    left = [f"{path}, line {line}: no link text can name the new place" for line in done.left]
    if done.cut:
        left.append(f"{path}: too large or too deeply nested to be read to its end; look for links there")
    return left


def move(house: House, source: str, dest_layer: str, *, new_path: str | None = None) -> MoveAnswer:
    """Move a memory to *dest_layer*, into *new_path* there or (without it) into the room it is in.

    Its links keep leading to it. A taken explicit destination raises `Exists`; nothing is overwritten. To
    repeat a move that was made rewrites the links that it had to leave, as far as they can be written now.
    """
    house.writable()
    arguments.plain(source=source, new_path=new_path)
    layer = finding.layer_named(dest_layer)
    if (went := _made_before(house, source, layer, new_path)) is not None:
        return _finish(house, *went)
    for _ in range(REDO):
        note = finding.memory_note(house, source)
        quiet.wait_quiet(house, [note.path], body=True)
        house.refresh(if_older=0)  # names and links as they are now
        note = house.look(note.path)
        memory = house.memory_of(note)
        house.refuse_twin(note)
        refuse_unapproved(house, memory)
        to = _destination(house, note, layer, new_path)
        safety.check_words(house, new_path=new_path)
        if to == note.path:
            return MoveAnswer(source=note.path, destination=to, links_rewritten=0, links_left=[])
        text = note.editable
        if layer is not note.layer:
            after = rules.move_to(memory, layer, house.now(), house.policy())
            text = house.with_memory(note, text, after, {})
        else:
            text = house.kept_up(note, text)
        try:
            with house.locked():
                done = carry(house, note, to, text, verb="move", why=f"moved to {layer.value}")
        except NoteChanged:
            continue
        except Edited as error:
            quiet.wait_quiet(house, error.paths, body=True)
            continue
        return MoveAnswer(
            source=note.path,
            destination=done.path,
            links_rewritten=done.rewritten,
            links_left=list(done.left),
        )
    raise Conflict(f"{source} keeps changing.", hint="Repeat the call.", path=source)


def _made_before(house: House, source: str, layer: Layer, new_path: str | None) -> tuple[str, str] | None:
    """From where to where this very move was made lately, if its note is there and none in the old place."""
    path = names.note_path(source, existing=True)
    if house.vault.exists(path):
        return None
    made = [
        step.to for entry in house.journal.recent() for step in entry.steps if step.path == path and step.to
    ]
    if not made or places.layer_of(made[-1]) is not layer or not house.vault.exists(made[-1]):
        return None
    room, stem = places.room_of(path), _stem(path)
    if new_path:
        place = finding.inside(new_path, layer, argument="new_path")
        room, stem = place.room, place.stem or stem
    return (path, made[-1]) if (room, stem) == (places.room_of(made[-1]), _stem(made[-1])) else None


def _finish(house: House, path: str, to: str) -> MoveAnswer:
    """Have the links follow that a move from *path* to *to* had to leave."""
    for _ in range(REDO):
        house.refresh(if_older=0)
        after = house.shelf.resolver()
        followed = _Followed()
        _follow(house, path, to, after.after({to: path}), after, followed, house.look, {})
        if followed.edited:
            quiet.wait_quiet(house, list(followed.edited), body=True)
            continue
        try:
            if followed.edits:
                with house.locked():
                    house.perform("relink", followed.edits, why=f"links follow {to}")
        except NoteChanged:
            continue
        return MoveAnswer(
            source=path, destination=to, links_rewritten=followed.rewritten, links_left=followed.left
        )
    raise Conflict(f"Notes that link to {to} keep changing.", hint="Repeat the call.", path=to)


def _stem(path: str) -> str:
    return places.stem_and_extension(path.rpartition("/")[2])[0]


def _destination(house: House, note: Note, layer: Layer, new_path: str | None) -> str:
    if new_path:
        place = finding.inside(new_path, layer, argument="new_path")
        room, stem = place.room, place.stem or note.stem
        names.within_reach("/".join(part for part in (layer.folder, room, f"{stem}.md") if part))
    else:
        room, stem = places.room_of(note.path), note.stem
    folder_path = house.vault.spelled("/".join(part for part in (layer.folder, room) if part))
    finding.open_to_notes(house, folder_path)
    wanted = f"{folder_path}/{stem}.md"
    if wanted == note.path:
        return wanted
    if new_path and names.key(wanted) != names.key(note.path):
        finding.refuse_taken(house, wanted)
    return finding.free_place(house, wanted, besides=note.path)


def archive_place(house: House, path: str) -> str:
    """A free place in the archive that mirrors the layer and room of *path*."""
    return finding.free_place(house, places.archive_place(path), besides=path)


def purge(house: House, path: str, *, reason: str = "unspecified", confirm: bool = False) -> PurgeAnswer:
    """Take a memory to the archive now, with *reason*. Needs *confirm*; `restore` brings it back."""
    house.writable()
    arguments.plain(path=path)
    arguments.plain(house.settings.limits.reason, reason=reason)
    safety.check_words(house, reason=reason)
    note = finding.memory_note(house, path)
    house.destructive("purge_memory", confirm)
    for _ in range(REDO):
        quiet.wait_quiet(house, [note.path], body=True)
        house.refresh(if_older=0)  # names and links as they are now
        note = house.look(note.path)
        house.refuse_malformed(note)
        house.memory_of(note)
        house.refuse_twin(note)
        why = memories.purged(reason)
        text = house.archived_text(note, why)
        to = archive_place(house, note.path)
        try:
            with house.locked():
                done = carry(house, note, to, text, verb="purge", why=why)
        except (NoteChanged, Exists):
            continue
        except Edited as error:
            quiet.wait_quiet(house, error.paths, body=True)
            continue
        purged = PurgeAnswer(path=note.path, archived_to=done.path, reason=reason)
        if done.left:
            purged["links_left"] = list(done.left)
        return purged
    raise Conflict(f"{path} keeps changing.", hint="Repeat the call.", path=path)


def restore(house: House, path: str, *, to_layer: str | None = None) -> RestoreAnswer:
    """Bring an archived note back to the layer it came from, or to *to_layer*, links intact.

    It counts as having entered the layer now, so that no rule undoes it the next night (SPEC §5).
    """
    house.writable()
    arguments.plain(path=path)
    note = finding.archived_note(house, path)
    for _ in range(REDO):
        quiet.wait_quiet(house, [note.path], body=True)
        house.refresh(if_older=0)  # names and links as they are now
        note = house.look(note.path)
        memory = house.memory_of(note)
        layer = finding.layer_named(to_layer) if to_layer else _came_from(note)
        after = rules.move_to(memory, layer, house.now(), house.policy())
        if remember.waits(house) and _was_proposed(note):
            after = replace(after, status=Status.PROPOSED)
        text = house.with_memory(note, note.editable, after, {})
        room = places.room_of(note.path)
        folder = "/".join(part for part in (layer.folder, room) if part)
        to = finding.free_place(house, f"{folder}/{note.stem}.md", besides=note.path)
        try:
            with house.locked():
                done = carry(house, note, to, text, verb="restore", why="restored")
        except (NoteChanged, Exists):
            continue
        except Edited as error:
            quiet.wait_quiet(house, error.paths, body=True)
            continue
        restored = RestoreAnswer(path=note.path, restored_to=done.path, layer=layer.value)
        if done.left:
            restored["links_left"] = list(done.left)
        return restored
    raise Conflict(f"{path} keeps changing.", hint="Repeat the call.", path=path)


def _was_proposed(note: Note) -> bool:
    """Whether no person had said yes to the note when it was archived."""
    reason = note.header.values.get("archived_reason")
    return isinstance(reason, str) and reason.endswith(memories.UNAPPROVED)


def refuse_unapproved(house: House, memory: Memory) -> None:
    """Refuse that an agent moves what waits for a person: to sink deeper is theirs to say."""
    if memory.status is Status.PROPOSED and caller.current(house.settings).agent:
        raise PolicyViolation(
            f"{memory.path} is proposed: a person approves it first.",
            hint="It waits in _System/Review.md.",
            path=memory.path,
        )


def _came_from(note: Note) -> Layer:
    """The layer that the archive's folders mirror, else the one the note names, else Shallow."""
    parts = note.path.split("/")
    if len(parts) > 2:
        layer = Layer.of_folder(parts[1])
        if layer is not None:
            return layer
    if note.reading is not None and note.reading.memory.recorded_layer is not None:
        return note.reading.memory.recorded_layer
    return Layer.SHALLOW
