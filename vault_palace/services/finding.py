"""Which note is meant: by path, id, title or link; and which names are still free."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vault_palace.core import links, names, places
from vault_palace.core.errors import Conflict, Exists, InvalidArguments, NotFound, PathViolation, VaultError
from vault_palace.core.model import ARCHIVE, MAP_NOTE, POLICY_NOTE, SYSTEM, Layer
from vault_palace.index import search as searching
from vault_palace.services import arguments
from vault_palace.services.house import House, Note

FOLLOWED, MOMENT = 20, 0.05  # how often a note that moves away is looked for, and seconds between


def one(house: House, *, path: str | None = None, id: str | None = None, title: str | None = None) -> Note:
    """The one note that *path*, *id* or *title* means; refused when none or several are given or fit."""
    arguments.plain(path=path, id=id, title=title)
    given = [value for value in (path, id, title) if value is not None]
    if len(given) != 1 or not given[0].strip():
        raise InvalidArguments(
            "Give exactly one of path, id and title, not empty.",
            hint="A search answers paths.",
            argument="path",
        )
    if path is not None:
        return _by_path(house, path)
    if id is not None:
        return _unique(house, id, "id", lambda: house.shelf.paths_of_id(id.strip()))
    assert title is not None
    return _unique(house, title, "title", lambda: paths_titled(house, title))


def _by_path(house: House, path: str) -> Note:
    place = names.note_path(path, existing=True)
    if places.is_ignored(place):
        raise NotFound(f"{place} is no note of the vault.", hint="Search for it.", path=place)
    try:
        return house.look(place)
    except NotFound:
        house.present()
        stem = places.stem_and_extension(place.rpartition("/")[2])[0]
        try:
            house.refresh(if_older=0)
            known = followed(house, place)
            found = known or paths_named(house, stem)
        except VaultError:
            known = found = []  # reading by path never needs the cache
        is_ = "is now" if known else "may be"
        hint = f"It {is_} at {', '.join(found[:5])}." if found else "Search for it."
        raise NotFound(f"{place} does not exist.", hint=hint, path=place, now_at=found[:5]) from None


def followed(house: House, place: str) -> list[str]:
    """Where the note is now that was at *place* when the journals last told of it, whoever moved it."""
    for entry in reversed(house.journal.recent_of(place, "")):
        for fact in entry.notes:
            if fact.id and fact.path == place:
                return house.shelf.paths_of_id(fact.id)
    return []


def _unique(house: House, given: str, what: str, ask: Callable[[], list[str]]) -> Note:
    found = ask()
    if not found:
        house.refresh(if_older=0)
        found = ask()
    if not found:
        house.present()
        raise NotFound(f"No note has the {what} {given!r}.", hint="Search for it.", **{what: given})
    if len(found) > 1:
        raise Conflict(
            f"Several notes have the {what} {given!r}: {', '.join(found[:5])}.",
            hint="Name the one you mean by its path.",
            paths=found[:20],
        )
    for _ in range(FOLLOWED):
        try:
            return house.look(found[0])
        except NotFound:  # it was moved since the cache was asked, or is being moved
            house.settings.sleep(MOMENT)
            house.refresh(if_older=0)
            found = ask()
            if not found:
                raise
    return house.look(found[0])


def find(house: House, name: str) -> Note:
    """The note that a title, a path or a `[[link]]` means; what is a title as it stands is that title."""
    house.refresh()
    for title in dict.fromkeys((name, name.strip())):
        if house.shelf.paths_named(title) or house.shelf.paths_aliased(title):
            return one(house, title=title)
    text = name.strip()
    bracketed = text.startswith("[[") and text.endswith("]]")
    linked = links.split_wikilink(text[2:-2] if bracketed else text).path
    if not linked:
        raise InvalidArguments(f"{name!r} names no note.", hint="Give a title or a path.")
    resolver = house.shelf.resolver()
    if bracketed and ("/" in linked or len(resolver.candidates(linked)) == 1):
        target = resolver.resolve(linked, "")
        if target is not None and places.is_note(target):
            return house.look(target)
    if bracketed or linked == text:
        return _named(house, linked)
    try:
        return _named(house, text)  # outside of brackets a `#` may be part of the name (WL-13)
    except NotFound:
        return _named(house, linked)


def _named(house: House, name: str) -> Note:
    if "/" in name or name.casefold().endswith(".md"):
        return one(house, path=name)
    return one(house, title=name)


def folders_of_room(house: House, room: str) -> tuple[str, ...] | None:
    """The folders that *room* means, None for everywhere (`index.search.folders_of`); refused where none is.

    A folder without a note is a room as well. The cache is taken as it is.
    """
    folders = searching.folders_of(room)
    if house.shelf.ask(lambda cache: searching.room_exists(cache, room)):
        return folders
    if any(house.vault.is_folder(folder) for folder in folders or ()):
        return folders
    raise NotFound(
        f"There is no room {room!r}.",
        hint=f"Rooms: {', '.join(house.shelf.rooms()[:20]) or 'none yet'}.",
        room=room,
    )


def memory_note(house: House, path: str) -> Note:
    """The memory at *path*; refused for notes outside the layers."""
    return in_layer(_by_path(house, path))


_NO_MEMORY = {
    "archived": "restore_memory brings it back.",
    "conflict": "It is a sync tool's conflict copy; `vault-palace resolve` merges it.",
}


def in_layer(note: Note) -> Note:
    """*note*, refused when it is no memory in a layer."""
    if note.kind != "memory":
        hint = _NO_MEMORY.get(note.kind, "Memories lie in the layer folders.")
        raise PathViolation(f"{note.path} is not a memory in a layer.", hint=hint, path=note.path)
    return note


def archived_note(house: House, path: str) -> Note:
    """The archived note at *path*, which may be given with or without the archive's folder."""
    clean = names.note_path(path, existing=True)
    if not clean.startswith(f"{ARCHIVE}/"):
        inside = f"{ARCHIVE}/{clean}"
        clean = inside if house.vault.exists(inside) or not house.vault.exists(clean) else clean
    note = _by_path(house, clean)
    if note.kind != "archived":
        raise PathViolation(
            f"{note.path} is not in the archive.",
            hint=f"Archived notes lie below {ARCHIVE}/.",
            path=note.path,
        )
    return note


def paths_titled(house: House, title: str) -> list[str]:
    """Notes whose file name, else whose alias, is *title*; memories before others."""
    house.refresh()
    shelf = house.shelf
    found = (
        shelf.paths_named(title) or shelf.paths_named(names.file_name(title)) or shelf.paths_aliased(title)
    )
    found = [path for path in found if not shelf.is_copy(path)]
    memories_first = [path for path in found if places.kind(path) == "memory"]
    return memories_first or found


def paths_named(house: House, stem: str) -> list[str]:
    house.refresh()
    return house.shelf.paths_named(stem)


def name_taken(house: House, stem: str, besides: str = "") -> bool:
    """Whether some note of the vault, archive included, has this base name (SPEC §2, Names).

    A name like `plan.pdf` is taken by the attachment, to which `[[plan.pdf]]` leads.
    """
    resolver = house.shelf.resolver()
    # `x.md.md` is what `[[x.md]]` means until there is an `x.md`.
    others = [
        *house.shelf.paths_named(stem),
        *resolver.candidates(stem),
        *resolver.candidates(f"{stem}{names.EXTENSION}"),
    ]
    return any(path != besides and places.kind(path) != "conflict" for path in others)


def still_free(house: House, path: str, besides: str = "") -> None:
    """Raise `Exists` when the base name of *path* was taken meanwhile. The lock must be held.

    A free name is found before the lock is taken, and another process may have been quicker.
    """
    house.shelf.renew_names()
    if _clashes(house, path, besides):
        raise Exists(f"The name of {path} was taken a moment ago.", hint="Repeat the call.", path=path)


def _clashes(house: House, path: str, besides: str = "") -> bool:
    """Whether another note stands at *path* or, unless *besides* has that name already, has its name.

    A duplicate that a person made keeps its name when it changes the layer (SPEC §2): they link it by path.
    """
    folder, _, name = path.rpartition("/")
    stem = places.stem_and_extension(name)[0]
    own = places.stem_and_extension(besides.rpartition("/")[2])[0]
    if names.key(stem) != names.key(own):
        return name_taken(house, stem, besides) or house.vault.is_folder(path)
    here = names.key(folder)
    others = (other for other in house.shelf.paths_named(stem) if other != besides)
    return any(names.key(other.rpartition("/")[0]) == here for other in others) or (
        path != besides and names.key(path) != names.key(besides) and house.vault.exists(path)
    )


def refuse_taken(house: House, path: str) -> None:
    """Raise `Exists` with the rev of what stands at *path*, whatever its case; else return."""
    folder, _, name = path.rpartition("/")
    if house.vault.is_folder(path):
        raise PathViolation(f"{path} is a folder.", hint="Choose another name.", path=path)
    if house.vault.exists(path):
        taken = path
    else:
        known = house.shelf.paths_named(places.stem_and_extension(name)[0])
        taken = next((other for other in known if other.rpartition("/")[0] == folder), "")
    if not taken:
        return
    note = house.look(taken)
    raise Exists(
        f"{taken} exists; nothing was written.",
        hint="Append to it, replace it with its rev, or choose another name.",
        path=taken,
        rev=house.rev(note),
    )


def open_to_notes(house: House, folder: str) -> None:
    """Refuse a *folder* that cannot be made because a file stands in its way."""
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        above = "/".join(parts[:count])
        if house.vault.exists(above) and not house.vault.is_folder(above):
            raise PathViolation(f"{above} is a file, not a room.", hint="Choose another room.", path=above)


def free_place(house: House, path: str, besides: str) -> str:
    """*path*, with a number behind the name when another note has it; `.MD` becomes `.md`."""
    folder, _, name = path.rpartition("/")
    lead = f"{house.vault.spelled(folder)}/" if folder else ""
    own = places.stem_and_extension(name)[0]
    stem = names.unique(own, lambda taken: _clashes(house, f"{lead}{taken}.md", besides))
    return f"{lead}{stem}.md"


def wikilink(house: House, path: str, source: str) -> str:
    """The shortest `[[link]]` by which the note *source* means *path*; refused when no link can name it."""
    text = links.link_to(path, house.shelf.resolver(), source)
    if not names.linkable(text):
        raise PathViolation(
            f"{path} cannot be linked: its name holds # ^ [ ] | or %%.", hint="Rename it first.", path=path
        )
    return f"[[{text}]]"


def inside(path: str, layer: Layer | None, *, argument: str, existing: bool = False) -> Inside:
    """What *path*, which is relative to a layer, means: layer (None: not said), room, and stem of the note.

    A leading layer folder is accepted, in any case, when it does not contradict *layer*. A *path* that ends
    with `/`, or is a layer's folder, is a room, and its stem is empty. The archive and the palace's own
    folder are no rooms. An *existing* note may have a name that no new one gets.
    """
    is_room = path.endswith("/")
    if not path.strip("/"):
        return Inside(layer, "", "")
    clean = names.note_path(path.rstrip("/"), existing=existing)[: -len(names.EXTENSION)]
    head, _, rest = clean.partition("/")
    folder = next((known for known in Layer if names.key(known.folder) == names.key(head)), None)
    if names.key(head) in _NO_ROOMS:
        raise PathViolation(
            f"{clean} is no place for a memory: {argument} is relative to the layer.",
            hint="restore_memory brings an archived note back."
            if names.key(head) == names.key(ARCHIVE) and rest
            else "Name a room of the layer, or leave it out.",
            path=clean,
        )
    if folder is not None:
        if layer is not None and layer is not folder:
            raise InvalidArguments(
                f"{argument} lies in {folder.folder}, but the layer is to be {layer.value}.",
                hint="Give the one or the other.",
                argument=argument,
            )
        layer, clean, is_room = folder, rest, is_room or not rest
    if is_room:
        return Inside(layer, clean, "")
    room, _, stem = clean.rpartition("/")
    return Inside(layer, room, stem)


_NO_ROOMS = frozenset({names.key(ARCHIVE), names.key(SYSTEM)})


class Inside(NamedTuple):
    """A place in a layer, as a caller names it."""

    layer: Layer | None
    room: str
    stem: str


def is_ours(stem: str) -> bool:
    """Whether the palace has, or will have, a note of its own called *stem*: links to that would be torn."""
    return names.key(stem) in _OURS


_OURS = frozenset(names.key(own.rpartition("/")[2].removesuffix(".md")) for own in (MAP_NOTE, POLICY_NOTE))


def layer_named(name: str) -> Layer:
    """The layer called *name*, or a refusal that lists the layers."""
    try:
        return Layer(name.strip().casefold())
    except ValueError:
        found = Layer.of_folder(name.strip())
        if found is not None:
            return found
        raise InvalidArguments(
            f"layer {name[:40]!r} is unknown.",
            hint=f"Use one of: {', '.join(layer.value for layer in Layer)}.",
            argument="layer",
        ) from None
