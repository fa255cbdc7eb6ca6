"""The review note: what waits for a person as tasks, and what a person ticked in it.

A line with a memory, why and when, and below it one task for each thing that can be said of it. Each task
names the memory by itself, so that it can be told wherever a person or a plugin puts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from vault_palace.core.frontmatter import BOM
from vault_palace.core.mapnote import block_lines
from vault_palace.core.model import Layer

KEEP, PROMOTE, ARCHIVE, PIN = "keep", "promote", "archive", "pin"
MERGE, BOTH, DROP, APART = "merge", "keep both", "archive the copy", "keep apart"
WORDS = (KEEP, PROMOTE, ARCHIVE, PIN)  # what the property `review` may say
_TICKABLE = (BOTH, DROP, APART, MERGE, *WORDS)  # the longer first, for one begins another
ANSWER = "? Say "  # what an answer to an unknown word holds; it is not answered again
MOST = 50  # entries of one kind

NOTHING = "Nothing waits for you."

_TASK = re.compile(r"(?P<lead>\s*(?:[-*+]|\d+[.)])\s+)\[(?P<mark>.)\](?P<rest>\s+.*)$")
_LINK = re.compile(r"\[\[(?P<path>[^\[\]|#^]+)(?:[#^|][^\[\]]*)?\]\]")


@dataclass(frozen=True, slots=True)
class Choice:
    """One task: the word, and what follows the memory's link."""

    word: str
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that waits: its link as ready text, what is said of it, and what can be ticked.

    `waits` says why what was ticked is not done yet; `ticked` are the words that stay ticked meanwhile.
    """

    link: str
    said: str
    choices: Sequence[Choice]
    waits: str = ""
    ticked: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Section:
    """All of one kind: `count` is how many there are, shown or not."""

    title: str
    items: Sequence[Item]
    count: int


@dataclass(frozen=True, slots=True)
class Tick:
    """A ticked task: its line in the text, counted from 0, the word, the link's path (both may be empty)."""

    line: int
    word: str
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the block shows: what waits, what was ticked and not understood, and what was done lately."""

    sections: Sequence[Section] = ()
    answers: Sequence[str] = ()
    done: Sequence[str] = field(default=())


def block(facts: Facts) -> str:
    """The generated text between the markers; the same facts give the same text."""
    parts = [
        line
        for section in facts.sections
        if section.items
        for line in (f"## {section.title}", "", *_section(section), "")
    ]
    if not any(section.items for section in facts.sections):
        parts += [NOTHING, ""]
    if facts.answers:
        parts += ["## Not understood", "", *(f"- [ ] {answer}" for answer in facts.answers), ""]
    if facts.done:
        parts += ["## Done lately", "", *(f"- {done}" for done in facts.done), ""]
    return "\n".join(parts).strip()


def _section(section: Section) -> Iterator[str]:
    for item in section.items:
        waits = f" ({item.waits})" if item.waits else ""
        yield f"- {item.link} {item.said}{waits}"
        for choice in item.choices:
            mark = "x" if choice.word in item.ticked else " "
            tail = f" {choice.tail}" if choice.tail else ""
            yield f"    - [{mark}] {choice.word} {item.link}{tail}"
    more = section.count - len(section.items)
    if more > 0:
        yield f"- and {more} more, shown as these are decided"


def ticks(text: str) -> tuple[Tick, ...]:
    """The ticked tasks between the markers of *text*, in their order; none where there are no markers."""
    lines = text.removeprefix(BOM).split("\n")
    found = []
    for number in block_lines(text):
        line = lines[number - 1] if number <= len(lines) else ""
        task = _TASK.match(line.rstrip("\r"))
        if task is None or task["mark"] not in "xX":
            continue
        said = task["rest"].strip()
        word = next((one for one in _TICKABLE if _begins(said, one)), "")
        link = _LINK.search(said)
        found.append(Tick(number - 1, word, link["path"].strip() if link else "", said))
    return tuple(found)


def _begins(said: str, word: str) -> bool:
    return said.casefold().startswith(word) and not said[len(word) : len(word) + 1].isalnum()


def unticked(text: str, lines: Iterable[int]) -> str:
    """*text* with the tasks on these lines, counted from 0, open again; nothing else changes."""
    mark = BOM if text.startswith(BOM) else ""
    parts = text.removeprefix(BOM).split("\n")
    for number in lines:
        task = _TASK.match(parts[number])
        if task is not None:
            at = task.start("mark")
            parts[number] = f"{parts[number][:at]} {parts[number][at + 1 :]}"
    return mark + "\n".join(parts)


def named_layer(said: str) -> Layer | None:
    """The layer that a task to promote names behind the link."""
    tail = _LINK.sub("", said).casefold()
    return next((layer for layer in Layer if re.search(rf"\bto {layer.value}\b", tail)), None)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of one memory: words that go together, or what is wrong with them."""

    words: tuple[str, ...]
    wrong: str = ""


def wish(words: Iterable[str]) -> Wish:
    """What these words mean together. To keep adds nothing to the others; to archive goes with none."""
    said = tuple(dict.fromkeys(word.strip().casefold() for word in words if word.strip()))
    unknown = [word for word in said if word not in WORDS]
    if unknown:
        return Wish((), f"{_short(unknown[0])}{ANSWER}keep, promote, archive or pin")
    if ARCHIVE in said and len(said) > 1:
        return Wish((), f"{' and '.join(said)}{ANSWER}one of them")
    doing = tuple(word for word in (PROMOTE, PIN, ARCHIVE) if word in said)
    return Wish(doing or ((KEEP,) if said else ()))


def property_words(value: object) -> tuple[str, ...]:
    """The words of a `review` property: text, or a list of it; answers of ours are none."""
    values = value if isinstance(value, list) else [value]
    words = [str(one) for one in values if one is not None and str(one).strip()]
    return tuple(word for word in words if ANSWER not in word)


def _short(word: str) -> str:
    plain = " ".join(word.split())
    return plain if len(plain) <= 40 else f"{plain[:39]}…"


def choices(layer: Layer | None, kinds: Mapping[Layer, Layer]) -> tuple[Choice, ...]:
    """What can be said of a memory in *layer*; *kinds* names the next layer down where there is one."""
    deeper = kinds.get(layer) if layer is not None else None
    found = [Choice(KEEP)]
    if deeper is not None:
        found.append(Choice(PROMOTE, f"to {deeper.value.capitalize()}"))
    return (*found, Choice(ARCHIVE, "now"), Choice(PIN))
