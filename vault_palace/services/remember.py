"""Writing: a new memory, more text in one, its body replaced, its value rated."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as with_values

from vault_palace.core import content as contents
from vault_palace.core import frontmatter, links, names, places, rules
from vault_palace.core import memory as memories
from vault_palace.core.dates import show_day
from vault_palace.core.errors import (
    Conflict,
    Exists,
    InvalidArguments,
    NoteChanged,
    NotFound,
    VaultError,
)
from vault_palace.core.model import Layer, Memory, Value
from vault_palace.services import arguments, caller, finding, quiet, related, safety, since
from vault_palace.services.answers import RateAnswer, WriteAnswer
from vault_palace.services.house import REDO, House, Note, Put

MODES = ("create", "append", "replace")
SEPARATOR = "\n"  # the blank line between header and text, which readers do not see
UNNAMED = "Memory"  # the title of text that holds no word
PROPOSED = (
    "It is proposed: a person has to approve it in _System/Review.md; until then searches leave it out, and"
    " what it supersedes stays current."
)
TITLE_LENGTH = 60  # a title made from the text is cut at a word before this


@dataclass(frozen=True, slots=True)
class _Said:
    """What the caller said of the memory besides its text; None where nothing was said."""

    density: float | None
    tags: tuple[str, ...] | None
    session: str | None

    def properties(self, house: House, note: Note, mode: str) -> dict[str, Value]:
        """The same as properties of *note*, which exists; to append adds tags, to replace sets them."""
        found: dict[str, Value] = {}
        if self.density is not None:
            found |= {"density": self.density, "rated_on": show_day(house.today())}
        if self.tags is not None:
            known = frontmatter.tags(note.header) if mode == "append" else []
            tags = _grown(known, self.tags)
            if tags != known:
                found["tags"] = [*tags]
        if self.session is not None:
            found["source_session"] = self.session
        return found


def write(
    house: House,
    content: str,
    *,
    layer: str | None = None,
    path: str | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    density: float | None = None,
    source_session: str | None = None,
    mode: str = "create",
    if_rev: str | None = None,
    supersedes: str | Sequence[str] | None = None,
) -> WriteAnswer:
    """Write a memory and return where it is, once it is on disk and found by the next search.

    `create` makes a new note and never overwrites: a taken explicit *path* raises `Exists` with its
    rev, a name that is taken elsewhere gets a number. `append` adds to a note, `replace` puts *content*
    in place of its body if *if_rev* is still its rev. Refused: text over the limit, text that would run
    in Obsidian (`UnsafeContent`), a path outside the layer (SPEC §9).
    """
    house.writable()
    content = content.removeprefix(frontmatter.BOM)  # a file has one in front or none (FM-20)
    _check_text(house, content)
    if mode not in MODES:
        raise InvalidArguments(
            f"mode {mode!r} is unknown.", hint=f"Use one of: {', '.join(MODES)}.", argument="mode"
        )
    arguments.plain(path=path, title=title, source_session=source_session, if_rev=if_rev)
    safety.check_words(house, title=title, source_session=source_session)
    said = _Said(
        density=None if density is None else arguments.density(density),
        tags=None if tags is None else tuple(arguments.tags(tags)),
        session=source_session or None,
    )
    older = _older(house, supersedes)
    if mode == "create":
        return _create(house, content, layer, path, title, said, older)
    return _change(house, content, layer, path, title, said, older, mode, if_rev)


def _check_text(house: House, content: str) -> None:
    arguments.plain(None, content=content)
    if not content.strip():
        raise InvalidArguments("content is empty.", hint="Give the text to remember.", argument="content")
    arguments.within(
        "content", content, house.settings.limits.content, "Split it into several linked memories."
    )
    safety.check_text(house, content)


def _older(house: House, supersedes: str | Sequence[str] | None) -> list[Note]:
    """The memories that *supersedes* names, each once, when nobody is typing in them."""
    found: dict[str, Note] = {}
    given = [supersedes] if isinstance(supersedes, str) else supersedes or []
    arguments.listed(supersedes=given)
    if given:
        house.refresh()
    for name in given:
        arguments.plain(supersedes=name)
        known = house.shelf.paths_of_id(name.strip())
        note = finding.one(house, id=name) if known else finding.find(house, name)
        if note.kind not in ("memory", "archived"):
            raise InvalidArguments(
                f"{note.path} is no memory, so nothing supersedes it.",
                hint="Name a memory.",
                argument="supersedes",
            )
        found[note.path] = note
    quiet.wait_quiet(house, list(found))
    return [house.look(path) for path in found]


def _refuse_circle(house: House, newer: str, older: list[Note]) -> None:
    """Refuse that the note at *newer* supersedes itself, or one that superseded it: neither is newer then."""
    named = {note.path for note in older}
    open_notes, seen = [*older], set[str]()
    while open_notes:
        note = open_notes.pop()
        if note.path == newer:
            what = "itself" if newer in named else "a note that superseded it"
            raise InvalidArguments(
                f"{newer} cannot supersede {what}.", hint="Name the older note.", argument="supersedes"
            )
        if note.path in seen:
            continue
        seen.add(note.path)
        for link in links.find(note.shown):
            if link.key.partition(".")[0] == "supersedes":
                path = house.shelf.resolver().resolve(link.path, note.path)
                if path is not None and places.is_note(path):
                    with suppress(VaultError):
                        open_notes.append(house.look(path))


def _superseding(house: House, note: Note, older: list[Note]) -> list[Value]:
    """What *note* supersedes: what it says so far, and *older*."""
    known = note.header.values.get("supersedes")
    texts = known if isinstance(known, list) else [known] if isinstance(known, str) else []
    return _grown(texts, [finding.wikilink(house, other.path, note.path) for other in older])


def _grown(known: Sequence[Value], more: Sequence[str]) -> list[Value]:
    """*known* with those of *more* behind it that it lacks; case aside."""
    folded = {text.casefold() for text in known if isinstance(text, str)}
    return [*known, *(text for text in more if text.casefold() not in folded)]


def _title_of(content: str) -> str:
    """A title for text that came without one: its first heading, else the start of its first line."""
    lines = [line.strip() for line in content.splitlines() if line.strip()]
    line = next((line for line in lines if line.startswith("#")), lines[0])
    line = re.sub(r"[*_`\[\]|<>]|^\W+", "", line).strip()
    if len(line) > TITLE_LENGTH:
        line = line[:TITLE_LENGTH].rsplit(" ", 1)[0]
    return line or UNNAMED


def target(
    layer: str | None, path: str | None, title: str | None, content: str
) -> tuple[Layer, str, str, bool]:
    """Where a write goes: layer, room, stem, and whether the caller named the file itself.

    See `finding.inside` for *path*; without a name in it, the title names the file.
    """
    chosen = finding.layer_named(layer) if layer else None
    place = finding.inside(path or "", chosen, argument="path")
    stem = place.stem or names.file_name(title or _title_of(content))
    where = place.layer or Layer.SHALLOW
    names.within_reach(_join(where.folder, place.room, f"{stem}{names.EXTENSION}"))
    return where, place.room, stem, bool(place.stem)


def _join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _create(
    house: House,
    content: str,
    layer: str | None,
    path: str | None,
    title: str | None,
    said: _Said,
    older: list[Note],
) -> WriteAnswer:
    where, room, stem, named = target(layer, path, title, content)
    safety.check_words(house, path=path)
    proposed = waits(house)
    warnings = _warnings(content, older)
    if proposed:
        warnings.append(PROPOSED)
    folder = house.vault.spelled(_join(where.folder, room))
    finding.open_to_notes(house, folder)

    def taken(name: str) -> bool:
        there = _join(folder, f"{name}{names.EXTENSION}")
        return finding.is_ours(name) or finding.name_taken(house, name) or house.vault.is_folder(there)

    for _ in range(REDO):
        house.shelf.renew_names()
        if named:
            finding.refuse_taken(house, _join(folder, f"{stem}.md"))
        free = names.unique(stem, taken)
        place = _join(folder, f"{free}.md")
        memory = memories.new_memory(
            place, where, now=house.now(), policy=house.policy(), density=said.density, proposed=proposed
        )
        values = memories.new_memory_properties(
            memory,
            id=house.new_id(),
            rated=said.density is not None,
            supersedes=[finding.wikilink(house, note.path, place) for note in older],
            tags=said.tags or (),
            source_session=said.session,
        )
        if title and free != title:
            values["aliases"] = [title]  # the file system could not hold it; Obsidian finds it by the alias
        text = frontmatter.compose(values, SEPARATOR + content, bare_dates=house.bare_dates())
        text = house.styled(text)
        try:
            with house.locked():
                edits = [Put(path=place, before=None, data=text.encode("utf-8"))]
                if not proposed:
                    edits += superseded(house, older, place, link=f"[[{free}]]")
                finding.still_free(house, place)
                house.perform("write", edits, why="created")
        except Exists:
            if named:
                finding.refuse_taken(house, place)
            continue
        except NoteChanged:
            older = [house.look(note.path) for note in older]
            continue
        if free != stem:
            warnings.insert(0, f"The name {stem!r} was taken; the memory is called {free!r}.")
        elif title and free != title:
            warnings.append(f"A link to it is [[{free}]]: the title is not the file's name, only an alias.")
        return _answer(house, place, text, "create", warnings + _marked([] if proposed else older))
    raise Conflict("The folder keeps changing.", hint="Repeat the call.", path=folder)


def waits(house: House) -> bool:
    """Whether what the caller makes waits for a person's yes: agents' memories do where Policy says so."""
    return house.policy().agent_writes == "proposed" and bool(caller.current(house.settings).agent)


def superseded(house: House, older: list[Note], newer: str, *, link: str = "") -> list[Put]:
    """The edits that say that the note at *newer* replaced *older*; *link* names one that is yet to be."""
    edits = []
    for note in older:
        by = link or finding.wikilink(house, newer, note.path)
        text = house.patched(note, note.editable, {"superseded_by": by})
        edits.append(Put(path=note.path, before=note.stored, data=house.kept_up(note, text).encode("utf-8")))
    return edits


def _marked(older: Sequence[Note]) -> list[str]:
    return [f"{note.path} is marked as superseded by it." for note in older]


def _warnings(content: str, older: Sequence[Note]) -> list[str]:
    found = [
        f"The body sets {name}:: inline; Dataview merges that with the property of that name."
        for name in contents.inline_fields(content)
    ]
    for note in older:
        by = note.header.values.get("superseded_by")
        if isinstance(by, str) and by.strip():
            found.append(
                f"{note.path} was superseded already, by {by.strip()[:120]}; does this replace that too?"
            )
    return found


def _answer(house: House, path: str, text: str, mode: str, warnings: list[str]) -> WriteAnswer:
    """What was done. Its rev is of the *text* written: a person may have saved over it since, or moved it."""
    note = house.written(path, text)
    return WriteAnswer(
        saved_path=path,
        id=note.id,
        rev=house.rev(note),
        mode=mode,
        related=related.related(house, note),
        warnings=warnings,
    )


def _change(
    house: House,
    content: str,
    layer: str | None,
    path: str | None,
    title: str | None,
    said: _Said,
    older: list[Note],
    mode: str,
    if_rev: str | None,
) -> WriteAnswer:
    place = _existing(house, layer, path, title)
    _refuse_circle(house, place, older)
    if mode == "replace" and not if_rev:
        raise Conflict(
            f"replace needs if_rev: the rev of {place} that you read.",
            hint="Read the note, then repeat with its rev.",
            path=place,
            rev=house.rev(house.look(place)),
        )
    warnings = _warnings(content, older)
    for _ in range(REDO):
        if mode == "replace":
            quiet.wait_quiet(house, [place], body=True)
        note = quiet.look_whole(house, place)
        if if_rev and house.rev(note) != if_rev:
            raise since.conflict(house, note, if_rev)
        if mode == "replace":
            house.refuse_malformed(note)
            text = frontmatter.replace_body(note.editable, SEPARATOR + content)
        else:
            text = frontmatter.append_body(note.editable, content)
            safety.check_joined(house, note.header.body, frontmatter.read(text).body, content)
        extra = said.properties(house, note, mode)
        if older:
            extra["supersedes"] = _superseding(house, note, older)
        notes: list[str] = []
        if note.header.problem is None and not (mode == "append" and quiet.unheaded(house, note)):
            text = house.used(note, text, extra)
        elif extra:
            house.refuse_malformed(note)
            quiet.refuse_attended(house, note)
        elif note.header.problem is not None:
            notes.append(
                f"The header of {place} does not parse (line {note.header.problem.line}): text only."
            )
        try:
            with house.locked():
                # Another agent may have said the opposite since.
                _refuse_circle(house, place, [house.look(other.path) for other in older])
                edits = [Put(path=place, before=note.stored, data=text.encode("utf-8"))]
                edits += superseded(house, older, place)
                house.perform(mode, edits, why="replaced" if mode == "replace" else "appended")
        except NoteChanged:
            older = [house.look(other.path) for other in older]
            continue
        return _answer(house, place, text, mode, warnings + notes + _marked(older))
    raise Conflict(f"{place} keeps changing.", hint="Read it again, then repeat.", path=place)


def _existing(house: House, layer: str | None, path: str | None, title: str | None) -> str:
    """The note that an append or a replace means; not found names where it is now, if it moved."""
    chosen = finding.layer_named(layer) if layer else None
    asked = finding.inside(path, chosen, argument="path", existing=True) if path else None
    stem = (asked.stem if asked else "") or (names.file_name(title) if title else "")
    if asked and stem:
        # The file's name as it was given: a person's `.MD` stays.
        name = names.note_path(path or "", existing=True).rpartition("/")[2] if asked.stem else f"{stem}.md"
        wanted = _join((asked.layer or Layer.SHALLOW).folder, asked.room, name)
        if house.vault.exists(wanted):
            return finding.memory_note(house, wanted).path
        elsewhere = names.note_path(path or "", existing=True) if asked.stem else ""
        if elsewhere and asked.layer is None and house.vault.exists(elsewhere):
            return finding.memory_note(house, elsewhere).path
        house.refresh(if_older=0)
        moved = finding.paths_named(house, stem)
        hint = f"It is now at {', '.join(moved)}." if moved else "Write it with mode create."
        raise NotFound(f"{wanted} does not exist.", hint=hint, path=wanted, now_at=moved)
    if title and not path:
        return finding.in_layer(finding.find(house, title)).path
    raise InvalidArguments("path or title is missing.", hint="Say which note is meant.", argument="path")


def rate(
    house: House,
    *,
    path: str | None = None,
    id: str | None = None,
    density: float | None = None,
    pinned: bool | None = None,
    decay_days: float | None = None,
) -> RateAnswer:
    """Set how valuable a memory is (*density* 0…1), whether it is *pinned*, its lifetime in days.

    Rating is not a use: `last_touched` stays (SPEC §4). Answers the values before and after.
    """
    house.writable()
    if density is None and pinned is None and decay_days is None:
        raise InvalidArguments(
            "Nothing to set.", hint="Give density, pinned or decay_days.", argument="density"
        )
    if density is not None:
        density = arguments.density(density)
    if decay_days is not None:
        decay_days = arguments.lifetime(decay_days)
    place = finding.one(house, path=path, id=id).path
    for _ in range(REDO):
        quiet.wait_quiet(house, [place])
        note = house.look(place) if id is None else finding.one(house, id=id)
        place = note.path  # the id goes along when somebody moves the note
        memory = house.memory_of(note)
        now, policy = house.now(), house.policy()
        # The days before a pin count as they were; a note that a person dragged has arrived first.
        after = rules.settle(rules.arrive(memory, now, policy), now, policy)
        extra: dict[str, Value] = {}
        if density is not None:
            after = with_values(after, density=density)
            extra["rated_on"] = show_day(house.today())
        if pinned is False and after.pinned:
            after = rules.unpin(after, now, policy)
        elif pinned is not None:
            after = with_values(after, pinned=pinned)
        if decay_days is not None:
            after = with_values(after, decay_days=decay_days)
        text = house.with_memory(note, note.editable, after, extra)
        try:
            with house.locked():
                house.perform(
                    "rate", [Put(path=place, before=note.stored, data=text.encode("utf-8"))], why="rated"
                )
        except NoteChanged:
            continue
        fresh = house.written(place, text)
        assert note.memory is not None
        rated = house.memory_of(fresh)
        return RateAnswer(
            path=place,
            id=fresh.id,
            before=_rating(note.memory, house),
            after=_rating(rated, house),
            decays_on=show_day(rated.decays_on) if rated.decays_on else None,
            rev=house.rev(fresh),
        )
    raise Conflict(f"{place} keeps changing.", hint="Repeat the call.", path=place)


def _rating(memory: Memory, house: House) -> dict[str, object]:
    lifetime = memory.decay_days
    if lifetime is None:
        lifetime = house.policy().lifetime(memory.layer)
    return {"density": memory.density, "pinned": memory.pinned, "decay_days": lifetime}
