"""What a note just written has beside it: notes that say the same already, and notes worth a link.

Both come as links ready to paste. Nothing is written, and the cache's troubles only leave the answer empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from itertools import islice

from vault_palace.core import likeness, names, places
from vault_palace.core import text as texts
from vault_palace.core.errors import PathViolation, VaultError
from vault_palace.core.linktext import encode
from vault_palace.index import search as searching
from vault_palace.index.cache import Cache
from vault_palace.index.notes import IndexedNote, Words
from vault_palace.services import finding
from vault_palace.services.answers import Related
from vault_palace.services.house import House, Note

DUPLICATE, LINK = "near-duplicate", "link"
DUPLICATES, LINKS = 5, 5  # the most that are told
CANDIDATES = 20
CHARACTERS = 20_000  # of a note that are compared
LONGEST_TITLE = 300
_NUMBER = re.compile(r" \d{1,3}\Z")  # what a taken name gets


def related(house: House, note: Note) -> list[Related]:
    """The notes of the layers that *note* repeats, then those it may link; neither superseded nor archived.

    A note that *note* links already is no candidate for a link.
    """
    try:
        return house.shelf.ask(lambda cache: _related(house, cache, note))
    except VaultError:
        return []


def _related(house: House, cache: Cache, note: Note) -> list[Related]:
    mine = cache.get(note.path)
    title = mine.title if mine is not None else note.stem
    body = note.header.body[:CHARACTERS]
    words = texts.words(f"{title} ; {note.stem} ; {body}")
    stop = texts.stop_words(words)
    own = likeness.telling(words, stop)
    linked = set(cache.linked_from(note.path))
    replaced = cache.succession()
    titled = [known for known in _same_title(cache, note, title) if known.path not in replaced]
    alike = [
        one
        for one in searching.like(cache, title, body, stop, limit=CANDIDATES)
        if one.note.path != note.path and one.note.path not in replaced
    ]
    sets = {one.note.path: likeness.telling(_words(one.words), stop) for one in alike}
    weight = likeness.weights([own, *sets.values()])

    duplicates = {
        known.path: _related_to(house, note, known, DUPLICATE, "the same title") for known in titled
    }
    scored: list[tuple[float, str, Related]] = []
    for one in alike:
        path = one.note.path
        # A link repeats the other's title; that is no part of what this note says itself.
        named = likeness.telling(texts.words(one.note.title), stop) if path in linked else frozenset()
        found = likeness.likeness(own - named, sets[path], weight)
        if path in duplicates:
            continue
        if found.is_same:
            percent = round(100 * max(found.share, found.held))
            why = f"{percent} % of {'its' if found.held > found.share else 'all'} words are the same"
            duplicates[path] = _related_to(house, note, one.note, DUPLICATE, why)
        elif path not in linked and (one.shared > 1 or one.titled):
            bonus = 1.0 if _is_named(one.note, own, stop) else 0.0
            scored.append((-found.share - bonus, path, _related_to(house, note, one.note, LINK, one.why)))
    scored.sort(key=lambda found: found[:2])
    return [*list(duplicates.values())[:DUPLICATES], *(link for _, _, link in scored[:LINKS])]


def _same_title(cache: Cache, note: Note, title: str) -> list[IndexedNote]:
    """The other memories called as *note* is, or was to be called before its name was found taken."""
    called = dict.fromkeys((title, note.stem, _NUMBER.sub("", note.stem)))
    found = {known.path: known for name in called for known in cache.by_name(name)}
    wanted = {names.key(name) for name in called}
    return [
        known
        for known in found.values()
        if known.kind == "memory"
        and known.path != note.path
        and wanted & {names.key(name) for name in (known.title, known.stem)}
    ]


def _words(words: Words) -> Iterator[str]:
    yield from words.title.split(" ")
    # As many words as the characters that are compared can hold, roughly.
    yield from islice(words.body.split(" "), CHARACTERS // 3)


def _is_named(other: IndexedNote, own: Set[str], stop: Set[str]) -> bool:
    """Whether the note speaks of *other* by its title: every word of it that tells something is there."""
    title = likeness.telling(texts.words(other.title), stop)
    return bool(title) and title <= own and not all(word.isdecimal() for word in title)


def _related_to(house: House, note: Note, other: IndexedNote, kind: str, why: str) -> Related:
    return Related(
        path=other.path,
        title=other.title[:LONGEST_TITLE],
        link=_pasted(house, other.path, note.path),
        kind=kind,
        why=why,
    )


def _pasted(house: House, path: str, source: str) -> str:
    """A link to *path* that means it in *source*: a Markdown link where `[[…]]` cannot name it."""
    try:
        return finding.wikilink(house, path, source)
    except PathViolation:
        stem = places.stem_and_extension(path.rpartition("/")[2])[0]
        label = re.sub(r"[^\w .-]", " ", stem)
        return f"[{label}]({encode(path, '', angled=False)})"
