"""Parts of a note that can be asked for: a section by its heading, and the text from a character on.

A heading is named by its title, by the way to it (`Setup > Linux`), or by its number among equals
(`Log #2`); `from 5120` is the text from there to its end, of a section `Setup > from 5120`. So a note of any
form can be read to its end, piece by piece, whatever a piece may cost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from unicodedata import normalize

from markdown_it import MarkdownIt

from vault_palace.core import budget
from vault_palace.core.errors import InvalidArguments, NotFound

WAY = " > "
_LISTED = 40
_LONGEST = 120  # characters of a heading in an answer
_FROM = re.compile(r"(?:(?P<head>.*?)\s*>\s*)?from\s+(?P<at>\d{1,12})\s*", re.DOTALL | re.IGNORECASE)
_NTH = re.compile(r"(?P<title>.*?)\s*#(?P<nth>\d{1,6})\s*", re.DOTALL)
_SIZED = re.compile(r"(?P<name>.*?)\s*\(\d+\)\s*", re.DOTALL)  # as an outline shows it


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a note, with the characters of its section, and the headings above it."""

    title: str
    level: int
    start: int
    end: int  # where the next one begins that is not below it
    path: tuple[str, ...]  # titles from the outermost heading to this one


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an outline: what `part` takes for the section, its depth, and about what it costs."""

    name: str
    level: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.name} ({self.tokens})"


@dataclass(frozen=True, slots=True)
class Part:
    """What was asked for: the section's name (empty: the note), where in it the text begins, the text."""

    name: str
    start: int
    text: str

    def onward(self, shown: int) -> str:
        """What to ask for when the first *shown* characters of the text were shown."""
        return onward(self.name, self.start + shown)


def onward(name: str, at: int) -> str:
    """What to ask for to read the section *name* (empty: the note) from the character *at* on."""
    return f"{name}{WAY}from {at}" if name else f"from {at}"


# Headings are blocks; what stands inside a paragraph would cost seconds in a note that is all brackets.
_MD = MarkdownIt("commonmark", {"html": True}).disable("inline")


def headings(text: str) -> list[Heading]:
    """The headings as the parser sees them: none in code, none inside quotes and lists."""
    found: list[tuple[str, int, int, tuple[str, ...]]] = []
    above: list[tuple[int, str]] = []
    # The parser counts these line ends alone.
    starts = [0, *accumulate(map(len, re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)))]
    for token, inline in pairwise(_MD.parse(text)):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        level, title = int(token.tag[1:]), normalize("NFC", " ".join(inline.content.split()))
        above = [*((depth, name) for depth, name in above if depth < level), (level, title)]
        found.append((title, level, starts[token.map[0]], tuple(name for _, name in above)))
    ends = [len(text)] * len(found)
    open_: list[int] = []
    for at, (_, level, start, _) in enumerate(found):
        while open_ and found[open_[-1]][1] >= level:
            ends[open_.pop()] = start
        open_.append(at)
    return [
        Heading(title, level, start, end, path)
        for (title, level, start, path), end in zip(found, ends, strict=True)
    ]


def outline(text: str, most: int = _LISTED, *, below: str = "") -> list[Entry]:
    """The headings of *text* as `part` takes them, with what each section costs; *most* at the most.

    Where they are more, the deepest are left out first, and of the first level that does not fit whole those
    in its middle: what a note begins with and what it ends with stays. *below* is a section's name: only
    those inside of it.
    """
    known = headings(text)
    # Each stretch between two headings is counted once, whatever it is a part of.
    marks = [0, *(heading.start for heading in known), len(text)]
    spent = [0, *accumulate(budget.tokens(text[start:end]) for start, end in pairwise(marks))]
    number = {heading.start: at for at, heading in enumerate(known, 1)} | {len(text): len(known) + 1}
    chosen = _upper(_titled(known, below), most)
    return [
        Entry(name, heading.level, spent[number[heading.end]] - spent[number[heading.start]])
        for heading, name in zip(chosen, _names(known, chosen), strict=True)
    ]


def count(text: str, *, below: str = "") -> int:
    """How many headings an outline without a limit would have."""
    return len(_titled(headings(text), below))


def _titled(known: Sequence[Heading], below: str) -> list[Heading]:
    inside = known
    if below:
        (outer,) = _named(known, below)
        inside = [heading for heading in known if outer.start < heading.start < outer.end]
    return [heading for heading in inside if heading.title]


def _upper(inside: Sequence[Heading], most: int) -> list[Heading]:
    """*most* of the headings at the most, in their order: whole levels, of the next one both ends.

    Where whole levels make an outline, the next one adds nothing; a title above all else makes none.
    """
    level = 0
    while level < 6 and sum(heading.level <= level + 1 for heading in inside) <= most:
        level += 1
    next_ = [heading for heading in inside if heading.level == level + 1]
    whole = sum(heading.level <= level for heading in inside)
    room = most - whole if whole <= most // 4 else 0
    kept = {heading.start for heading in next_[: room - room // 2] + next_[len(next_) - room // 2 :]}
    return [heading for heading in inside if heading.level <= level or heading.start in kept]


def _names(known: Sequence[Heading], chosen: Sequence[Heading]) -> list[str]:
    """A name for each of the *chosen* headings that means it alone."""
    titles = Counter(heading.title for heading in known)
    paths = Counter(heading.path for heading in known)
    seen: Counter[tuple[str, ...]] = Counter()
    numbers: dict[int, int] = {}
    for heading in known:
        seen[heading.path] += 1
        numbers[heading.start] = seen[heading.path]
    found = []
    for heading in chosen:
        way = WAY.join(heading.path)
        numbered = f"{way} #{numbers[heading.start]}"
        names = [heading.title] if titles[heading.title] == 1 else []
        names += [way] if paths[heading.path] == 1 else []
        fits = (name for name in (*names, numbered) if _short(name) == name)
        named = (name for name in fits if _named(known, name) == [heading])
        found.append(next(named, f"#{known.index(heading) + 1}"))
    return found


def part(text: str, wanted: str) -> Part:
    """The part of *text* that *wanted* names: a section with its heading, or what follows a character.

    *wanted* is a title, with or without its `#`, a way `A > B` (or `A/B`), either with ` #2` behind it for
    the second of equals, or `from N`, alone or behind one of these. The case may differ where that is not
    ambiguous. Several that fit: `InvalidArguments` with all of them. None: `NotFound` with the outline.
    """
    known = headings(text)
    chosen = _named(known, wanted)
    start = 0
    asked = wanted
    if not chosen and (onwards := _FROM.fullmatch(wanted.strip())):
        start = int(onwards["at"])
        asked = onwards["head"] or ""
        if not asked.strip():
            return Part("", min(start, len(text)), text[start:])
        chosen = _named(known, asked)
    if not chosen and (sized := _SIZED.fullmatch(asked)):
        chosen = _named(known, sized["name"])
    if not chosen:
        raise _missing(text, wanted)
    if len(chosen) > 1:
        raise _ambiguous(text, known, chosen, asked)
    heading = chosen[0]
    section = text[heading.start : heading.end]
    (name,) = _names(known, chosen)
    return Part(name, min(start, len(section)), section[start:])


def _missing(text: str, wanted: str) -> NotFound:
    names = [entry.name for entry in outline(text)]
    return NotFound(
        f"No section {_short(wanted)!r}.",
        hint=f"The headings are: {'; '.join(names)}."
        if names
        else "The note has no headings; leave section out.",
        section=_short(wanted),
        outline=names,
    )


def _ambiguous(
    text: str, known: Sequence[Heading], chosen: Sequence[Heading], wanted: str
) -> InvalidArguments:
    listed = chosen[:_LISTED]
    places = [
        f"{name} (line {text.count(chr(10), 0, heading.start) + 1})"
        for name, heading in zip(_names(known, listed), listed, strict=True)
    ]
    return InvalidArguments(
        f"Several sections are called {_short(wanted)!r}: {'; '.join(places)}.",
        hint="Give the name of one as it stands here.",
        argument="section",
        candidates=places,
    )


def _short(title: str) -> str:
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"


def _named(known: Sequence[Heading], wanted: str) -> list[Heading]:
    """The headings that *wanted* fits best: as a title or a way, else as the n-th of those that fit."""
    found = _fitting(known, wanted)
    if found or not (nth := _NTH.fullmatch(wanted)):
        return found
    found = _fitting(known, nth["title"]) if nth["title"].strip() else list(known)
    return found[int(nth["nth"]) - 1 : int(nth["nth"])] if int(nth["nth"]) else []


def _fitting(known: Sequence[Heading], wanted: str) -> list[Heading]:
    """Exactly, else but for case; by title, else by the end of the way."""
    marks, title = re.fullmatch(r"\s*(#{0,6})\s*(.*?)\s*", wanted, re.DOTALL).groups()  # type: ignore[union-attr]
    title = normalize("NFC", " ".join(title.split()))
    level = len(marks)
    ways = [tuple(step.strip() for step in title.split(sign)) for sign in (">", "/") if sign in title]
    tests: list[Callable[[Heading], bool]] = [lambda found: found.title == title]
    tests += [lambda found, way=way: found.path[-len(way) :] == way for way in ways]  # type: ignore[misc]
    tests.append(lambda found: found.title.casefold() == title.casefold())
    tests += [
        lambda found, way=way: _folded(found.path[-len(way) :]) == _folded(way)  # type: ignore[misc]
        for way in ways
    ]
    tests.append(lambda found: _short(found.title) == title)
    for fits in tests:
        chosen = [found for found in known if fits(found) and level in {0, found.level}]
        if chosen:
            return chosen
    return []


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(step.casefold() for step in path)
