"""The simulation's own record: every word that anybody wrote, and what people did to them since.

A word is one token (`pxqhrwzva`, unlike any other, as a merge by likeness needs it), written once by one
actor. The record knows which words were saved by a person, which were acknowledged to an agent, which a
person took out on purpose, which one of their own programs wrote over, and which never reached the disk, and
why. What the vault holds at the end is compared with this, never with what the product says about itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from string import ascii_lowercase

WORD = re.compile(r"\b[pacr]x[a-z]{7}\b")
MARK = re.compile(r"\bK\d+K\b")
LINK = re.compile(r"\[\[([^\[\]|\n]*)\|(L\d+L)\]\]")

MOST_UNSAVED = 2.0  # seconds of typing that Obsidian keeps to itself


def words(text: str) -> set[str]:
    return set(WORD.findall(text))


def marks(text: str) -> set[str]:
    return set(MARK.findall(text))


SOON = 60.0  # within it a text with an old rating was made from an old text
_LINES = re.compile(r"^(density|last_touched): *(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Dropped:
    """Words that were typed and never saved, because the editor let go of them."""

    words: frozenset[str]
    path: str
    why: str  # `merged`: the outside text had no place for them; `closed`: the file was gone
    typing_since: float
    at: float
    quiet_for: float  # seconds since a person's last save of that note
    by_person: bool  # the outside change was another program's of the same person

    def in_window(self, settle_seconds: float) -> bool:
        """Whether this is the one loss that no program can prevent.

        Typing begun less than 2 s before a replace or move of a note that was quiet for `settle_minutes`.
        """
        return self.at - self.typing_since <= MOST_UNSAVED + 0.5 and self.quiet_for >= settle_seconds


@dataclass
class Ledger:
    """What was written, by whom, and what people did with it. Times are the stage's."""

    written: dict[str, str] = field(default_factory=dict)  # word -> the mark of its note
    saved: set[str] = field(default_factory=set)  # words that a person's save brought to the disk
    answered: set[str] = field(default_factory=set)  # words of calls that an agent was told were done
    removed: set[str] = field(default_factory=set)  # words that a person took out on purpose, or with a note
    cut: set[str] = field(
        default_factory=set
    )  # of these, all that ever were, though another text had them still
    over: set[str] = field(default_factory=set)  # a person's words that their own programs wrote over
    stale: set[str] = field(default_factory=set)  # an agent's words that a person's old text wrote over
    replaced: set[str] = field(default_factory=set)  # words that an agent's replace or new body left out
    dropped: list[Dropped] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # marks of notes that a person deleted
    rated_at: dict[str, float] = field(default_factory=dict)
    taken_back: int = 0  # ratings that a person's text of unknown age took back
    deleted: set[str] = field(default_factory=set)  # marks of notes that a person deleted at some time
    copied: set[str] = field(default_factory=set)  # marks of notes that people's programs have there twice
    links: dict[str, str] = field(default_factory=dict)  # a link's alias -> the mark of the note it leads to
    ratings: dict[str, float | None] = field(default_factory=dict)  # as last given; None: a person's
    saved_at: dict[str, float] = field(default_factory=dict)  # mark -> when a person last saved it
    by_people: set[str] = field(default_factory=set)  # texts that people's programs wrote
    moved_by_people: dict[str, float] = field(default_factory=dict)  # path -> when one of them took it away
    unsaved: set[str] = field(default_factory=set)  # words that a person took out again before any save
    wrote: Callable[[str], object] = lambda _text: None  # told of each text that a person's program wrote
    counts: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    rng: Random = field(default_factory=lambda: Random(0))
    _number: int = 0

    def tell(self, at: float, what: str) -> None:
        self.story.append(f"{at:.3f} {what}")

    def number(self) -> int:
        self._number += 1
        return self._number

    def word(self, kind: str, mark: str) -> str:
        """A new word; *kind* is p (a person), or c, a, r (an agent's create, append, replace)."""
        made = f"{kind}x{''.join(self.rng.choices(ascii_lowercase, k=7))}"
        self.written[made] = mark
        return made

    # -- what people's programs do ---------------------------------------------------------------------------

    def person_wrote(self, before: str, after: str, at: float, taken_out: set[str]) -> None:
        """A person's program put *after* where *before* was; *taken_out* are words they deleted in it."""
        old, new = words(before), words(after)
        self.saved |= {word for word in new if word.startswith("p")}
        for known in (self.removed, self.over, self.stale):
            known -= new  # it is back, by the person's own hand
        lost = old - new
        self.removed |= lost & taken_out
        self.cut |= lost & taken_out
        for word in lost - taken_out:
            (self.over if word.startswith("p") else self.stale).add(word)
        self.gone -= marks(after)
        for mark in marks(after):
            self.saved_at[mark] = at
            self._see_rating(mark, before, after, at)
        self.by_people.add(after)
        self.wrote(after)

    def _see_rating(self, mark: str, before: str, after: str, at: float) -> None:
        """A rating that a person's text takes back long after, with no line that tells the text's age.

        Whether they chose the older value or did not know of the newer one cannot be told: theirs counts. A
        text that changes words as well was made from an old one.
        """
        given = self.rated_at.get(mark, float("-inf"))
        if self.ratings.get(mark) is None or at - given <= SOON:
            return
        now, then = (dict(_LINES.findall(text)) for text in (after, before))
        if now.get("density") == then.get("density") or now.get("last_touched") != then.get("last_touched"):
            return
        if words(after) == words(before):
            self.ratings[mark] = None
            self.taken_back += 1

    def person_deleted(self, text: str, path: str, at: float) -> None:
        """A person deleted the note with this text."""
        self.removed |= words(text)
        self.gone |= marks(text) - self.copied  # the other one is still there
        self.deleted |= marks(text)
        for mark in marks(text):  # whatever comes of an old text of it, this is not asked of it any more
            self.ratings.pop(mark, None)
        self.moved_by_people[path] = at

    def person_moved(self, path: str, at: float) -> None:
        self.moved_by_people[path] = at

    def person_made_anew(self, path: str, text: str) -> None:
        """A person's program wrote where no file was: a copy, if a person's program had moved the note."""
        if path in self.moved_by_people:
            self.copied |= marks(text) - self.gone

    def person_took_away(self, path: str, at: float) -> bool:
        """Whether it was a person's program that took this path away just now."""
        return at - self.moved_by_people.get(path, float("-inf")) < 0.5

    def drop(self, dropped: Dropped) -> None:
        if dropped.words:
            self.dropped.append(dropped)
            self.counts[f"dropped, {dropped.why}"] += len(dropped.words)
