"""Search: which notes answer a query, best first, and why.

Any word of the query makes a note a match; notes with more and rarer words come first, a word in the title
or a tag weighs more than one in the text (BM25). The order is total: equal scores go by path. A note's age
or density never changes its place; one that was superseded stands behind what replaced it.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from vault_palace.core.errors import InvalidArguments
from vault_palace.core.model import ARCHIVE, Layer
from vault_palace.core.text import Term, fold, query_words
from vault_palace.index.cache import Cache, IndexedNote, Only
from vault_palace.index.notes import Words

# Of title (with file name and aliases), tags, folders, text.
WEIGHTS = (4.0, 3.0, 1.5, 1.0)
_COLUMNS = ("title", "tags", "folder", "text")
_FORMS = 200  # of all words of a query together

# Lists of stop words hold words of content too (`system`, `value`, `research`). A long one that hardly any
# note has tells something in this vault.
_LONG_STOP_WORD = 5
_TELLING_SHARE = 50
_FEW_NOTES = 20  # so many may share a word in a small vault, and it tells something still
_BESIDE_TITLE = 4  # how much rarer a word of the text has to be than one of the title
_LIKE_TERMS = 12
_LIKE_LOOKED = 40
_LIKE_CHARACTERS, _LIKE_PIECE = 4_000, 400
_NAME = re.compile(r"(?<![.!?:\n] )\b[A-Z]\w+")


@dataclass(frozen=True, slots=True)
class Hit:
    """One note that matches. `why` says in words what matched where; `superseded_by` is what replaced it."""

    note: IndexedNote
    score: float
    why: str
    superseded_by: str = ""

    @property
    def path(self) -> str:
        return self.note.path


@dataclass(frozen=True, slots=True)
class Hits:
    """One page of matches: how many there are in all, how to get the next page, and a hint where there is
    something to say. `terms` are what was searched for, as `core.text.excerpt` wants them."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
    cursor: str | None = None
    terms: tuple[Term, ...] = ()
    hint: str = ""
    proposed: int = 0  # how many more match, were proposed by agents, and were not asked for


def search(
    cache: Cache,
    query: str,
    *,
    room: str = "",
    layer: Layer | None = None,
    tags: Sequence[str] = (),
    min_density: float | None = None,
    include_archived: bool = False,
    include_proposed: bool = False,
    limit: int = 10,
    cursor: str | None = None,
) -> Hits:
    """The notes that match *query*, best first, *limit* of them from *cursor* on.

    *room* is as `room_exists` reads it; all *tags* must be there, `a` also as `a/b`. Raises InvalidArguments
    for a cursor that does not belong to this very search.
    """
    only = Only(
        kinds=("memory", "archived") if include_archived else ("memory",),
        folders=folders_of(room, include_archived=include_archived),
        layer=layer,
        tags=tuple(tags),
        min_density=min_density,
        proposed=include_proposed,
    )
    digest = _digest(query, only)
    offset = _offset(cursor, digest)
    terms, dropped = query_words(query)
    if not terms:
        return Hits(hint="The query holds no word or number to search for.")
    telling = [term for term in dropped if _tells(cache, term)]
    terms = (*terms, *telling)
    page, total = cache.matches(_expression(terms), only, WEIGHTS, limit=limit, offset=offset)
    if not total and len(telling) < len(dropped):
        terms = (*terms, *(term for term in dropped if term not in telling))
        page, total = cache.matches(_expression(terms), only, WEIGHTS, limit=limit, offset=offset)
    following = offset + len(page)
    return Hits(
        hits=tuple(Hit(note, score, _why(terms, words), by) for score, note, words, by in page),
        total=total,
        cursor=_cursor(following, digest) if page and following < total else None,
        terms=terms,
        hint="" if page else _hint(cache, terms, only, total),
        proposed=_left_out(cache, terms, only),
    )


def _left_out(cache: Cache, terms: Sequence[Term], only: Only) -> int:
    """How many proposed memories match that *only* leaves out."""
    if only.proposed or not cache.proposed()[1]:
        return 0
    with_them, without = (
        cache.matches(_expression(terms), one, WEIGHTS, limit=1)[1]
        for one in (replace(only, proposed=True), only)
    )
    return with_them - without


@dataclass(frozen=True, slots=True)
class Alike:
    """A memory with rare words of a text: how many, whether a title has one, where, and all its words."""

    note: IndexedNote
    words: Words
    shared: int
    titled: bool
    why: str


def like(cache: Cache, title: str, text: str, stop: Collection[str] = (), *, limit: int) -> tuple[Alike, ...]:
    """The memories most like *text*, by its rarest words: common ones would touch half the vault.

    Words of the *title* are taken before others. What only one note has tells nothing: it is this very one.
    """
    asked = _asked_of(title, text, stop)
    counted = cache.frequencies([term.forms[0] for term, _ in asked])
    most = max(cache.searched_count() // _TELLING_SHARE, _FEW_NOTES)
    telling = [
        (count if in_title else count * _BESIDE_TITLE, term, in_title)
        for term, in_title in asked
        if 1 < (count := counted.get(term.forms[0], 0)) <= most
    ]
    chosen = sorted(telling, key=lambda found: found[0])[:_LIKE_TERMS]
    terms = [term for _, term, _ in chosen]
    if not terms:
        return ()
    page, _ = cache.matches(_expression(terms), Only(kinds=("memory",)), WEIGHTS, limit=limit)
    own = [term for _, term, in_title in chosen if in_title]
    return tuple(
        Alike(
            note,
            words,
            shared=_shared(terms, " ".join(words.columns)),
            titled=_shared(terms, words.title) > 0 or _shared(own, " ".join(words.columns)) > 0,
            why=_why(terms, words),
        )
        for _, note, words, _ in page
    )


def _asked_of(title: str, text: str, stop: Collection[str]) -> list[tuple[Term, bool]]:
    """The words worth a look at how rare they are, each with whether the *title* has it.

    To look costs, so names (words with a capital) and long words come first.
    """
    named = {fold(name) for name in _NAME.findall(text)}
    held = query_words(title)[0]
    found = {term: True for term in held if not term.prefix}
    others = {
        term: None
        for at in range(0, min(len(text), _LIKE_CHARACTERS), _LIKE_PIECE)
        for term in query_words(text[at : at + _LIKE_PIECE])[0]
        if not term.prefix and term not in found and term.forms[0] not in stop
    }
    order = sorted(others, key=lambda term: (term.shown not in named, -len(term.shown)))
    return [*found.items(), *((term, False) for term in order)][:_LIKE_LOOKED]


def _shared(terms: Sequence[Term], words: str) -> int:
    held = frozenset(words.split(" "))
    return sum(term.matches(held) for term in terms)


def folders_of(room: str, *, include_archived: bool = False) -> tuple[str, ...] | None:
    """The folders that *room* means, or None for everywhere.

    `01_Shallow/ideas` is that folder, `ideas` is one in every layer, a layer's name or folder is the layer;
    empty or `.` is everywhere. Below `_Archive` the same rooms count when the archive is searched.
    """
    parts = [part for part in room.strip().split("/") if part not in ("", ".")]
    if not parts:
        return None
    if parts[0].lower() == ARCHIVE.lower():
        parts[0] = ARCHIVE
        return ("/".join(parts),)
    named = parts[0].lower()
    first = next((layer for layer in Layer if named in (layer.folder.lower(), layer.value)), None)
    layers = [first] if first is not None else list(Layer)
    rest = parts[1:] if first is not None else parts
    found = ["/".join((layer.folder, *rest)) for layer in layers]
    return tuple(found + ([f"{ARCHIVE}/{folder}" for folder in found] if include_archived else []))


def room_exists(cache: Cache, room: str, *, include_archived: bool = False) -> bool:
    """Whether *room* is everywhere, a layer, or a folder that holds a note at any depth."""
    folders = folders_of(room, include_archived=include_archived)
    if folders is None or any("/" not in folder for folder in folders):
        return True
    return cache.holds_any(Only(kinds=("memory", "archived"), folders=folders))


def rooms(cache: Cache) -> dict[str, int]:
    """The folders in the layers that hold memories, with how many, sorted."""
    return cache.folders("memory")


def _expression(terms: Iterable[Term]) -> str:
    """The engine's way to say: any of these. Words hold no sign that would mean something to it."""
    parts = [f'"{form}"{" *" if term.prefix else ""}' for term in terms for form in term.forms]
    return " OR ".join(dict.fromkeys(parts[:_FORMS]))


def _tells(cache: Cache, term: Term) -> bool:
    """Whether a stop word is rare enough here to tell something."""
    if len(term.forms[0]) < _LONG_STOP_WORD:
        return False
    return 0 < cache.frequency(term.forms[0]) * _TELLING_SHARE <= cache.searched_count()


def _why(terms: Sequence[Term], words: Words) -> str:
    """What matched where, each word once, at the place that weighs most: `title: apollo; text: event`."""
    found: dict[str, list[str]] = {}
    missing = list(terms)
    for column, text in zip(_COLUMNS, words.columns, strict=True):
        held = frozenset(text.split(" "))
        here = [term for term in missing if term.matches(held)]
        if here:
            found[column] = [term.shown for term in here]
            missing = [term for term in missing if term not in here]
    return "; ".join(f"{column}: {', '.join(shown)}" for column, shown in found.items())


def _hint(cache: Cache, terms: Sequence[Term], only: Only, total: int) -> str:
    """Why there is nothing to see, and what would help, in words."""
    if total:
        return f"There is no further page: all {total} matches were shown."
    asked = ", ".join(term.shown for term in terms)
    everywhere = Only(kinds=only.kinds, proposed=only.proposed)
    if only != everywhere:
        _, elsewhere = cache.matches(_expression(terms), everywhere, WEIGHTS, limit=1)
        if elsewhere:
            notes = "1 note matches" if elsewhere == 1 else f"{elsewhere} notes match"
            return f"Nothing here holds: {asked}. Without room, layer, tags and density {notes}."
    if "archived" not in only.kinds:
        _, archived = cache.matches(
            _expression(terms), replace(everywhere, kinds=("archived",)), WEIGHTS, limit=1
        )
        if archived:
            notes = "1 archived note does" if archived == 1 else f"{archived} archived notes do"
            return f"No memory holds: {asked}; {notes}."
    return f"No memory holds: {asked}. Try other words, or a beginning with a star (`mart*`)."


# --- cursors ---------------------------------------------------------------------------------------------


def _digest(query: str, only: Only) -> str:
    """What makes this search this one."""
    asked = json.dumps(
        [query, only.kinds, only.folders, only.layer, only.tags, only.min_density, only.proposed]
    )
    return blake2b(asked.encode("ascii"), digest_size=6).hexdigest()


def _cursor(offset: int, digest: str) -> str:
    return urlsafe_b64encode(f"{offset}.{digest}".encode("ascii")).decode("ascii").rstrip("=")


def _offset(cursor: str | None, digest: str) -> int:
    if cursor is None:
        return 0
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        offset, _, of = urlsafe_b64decode(padded).decode("ascii").partition(".")
        if of == digest and offset.isdecimal() and len(offset) < 16:
            return int(offset)
    except (binascii.Error, ValueError):
        pass
    raise InvalidArguments(
        "This cursor does not belong to this search.",
        hint="Repeat the search that gave it with the same arguments, or leave the cursor out.",
    )
