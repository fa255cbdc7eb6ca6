"""Merging two versions of a note: bodies by lines, properties by rule. Decides, and writes nothing.

What cannot be merged without a person is never guessed at: the answer then shows both texts between markers,
for a page of its own. A value that loses is told, so that nothing goes without a word.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from merge3 import Merge3

from vault_palace.core import frontmatter
from vault_palace.core.dates import read_when
from vault_palace.core.frontmatter import DELETE, Change, Delete, Header
from vault_palace.core.model import Memory, Value
from vault_palace.core.policy import Policy
from vault_palace.core.streak import links

OURS, MIDDLE, THEIRS = "<<<<<<< ", "=======", ">>>>>>> "

# What the program works out for the place where the main note lies: a copy has nothing to say on it.
PLACES = frozenset(
    {
        "id",
        "layer",
        "layer_since",
        "backlinks",
        "decays_on",
        "rises_on",
        "rises_to",
        "archived_on",
        "archived_reason",
        "archived_from",
    }
)
_BY_RULE = frozenset({"streak", "missed", "last_touched", "status", "density", "rated_on", "edited_on"})
_UNITED = ("tags", "aliases", "supersedes")


# -- bodies -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merged:
    """What two bodies make. With `clean` false, `text` holds both versions between markers."""

    text: str
    clean: bool


def merge_bodies(
    base: str | None, ours: str, theirs: str, *, our_name: str = "main", their_name: str = "copy"
) -> Merged:
    """*ours* with what *theirs* changed since *base*; line ends and the final newline are those of *ours*.

    Without a base only what needs none is merged: equal texts, and one that holds every line of the other.
    Lines that both added at the end are both kept, ours first, for that is what an append is.
    """
    mine, yours = _lines(ours), _lines(theirs)
    common = _common(mine, yours) if base is None else _lines(base)
    if common is None:
        text = [f"{OURS}{our_name}", *mine, MIDDLE, *yours, f"{THEIRS}{their_name}"]
        return Merged(_text(text, ours, theirs), clean=False)
    found: list[str] = []
    clean = True
    groups = list(Merge3(common, mine, yours).merge_groups())
    for number, (what, *parts) in enumerate(groups):
        if what != "conflict":
            found += parts[0]
        elif not parts[0] and number == len(groups) - 1:
            found += [*parts[1], *parts[2]]
        else:
            clean = False
            found += [f"{OURS}{our_name}", *parts[1], MIDDLE, *parts[2], f"{THEIRS}{their_name}"]
    return Merged(_text(found, ours, theirs), clean)


def holds_markers(text: str, *sides: str) -> bool:
    """Whether *text* has merge markers that stand in none of *sides*."""
    own = Counter(line for side in sides for line in _lines(side) if _is_marker(line))
    return any(_is_marker(line) and line not in own for line in _lines(text))


def same_lines(one: str, other: str) -> bool:
    """Whether two bodies differ in line ends and the final newline at most."""
    return _lines(one) == _lines(other)


def holds_all(text: str, other: str) -> bool:
    """Whether every line of *other* is in *text*, in the same order."""
    rest = iter(_lines(text))
    return all(line in rest for line in _lines(other))


def distance(one: str, other: str) -> int:
    """How many lines stand in one of two bodies only, wherever they stand."""
    mine, yours = Counter(_lines(one)), Counter(_lines(other))
    return ((mine - yours) + (yours - mine)).total()


def _is_marker(line: str) -> bool:
    return line.startswith((OURS, THEIRS)) or line == MIDDLE


def _common(mine: Sequence[str], yours: Sequence[str]) -> Sequence[str] | None:
    """What stands in for a base nobody has: of two bodies the one whose lines are all in the other."""
    for small, large in ((mine, yours), (yours, mine)):
        rest = iter(large)
        if all(line in rest for line in small):
            return small
    return None


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _text(lines: Sequence[str], ours: str, theirs: str) -> str:
    """*lines* as the text of our note; an empty one has no ways of its own and takes theirs."""
    like = ours or theirs
    eol = "\r\n" if like.count("\r\n") * 2 > like.count("\n") else "\n"
    if not lines:
        return ""
    # A last line that is blank cannot stand there without its end.
    return eol.join(lines) + (eol if like.endswith("\n") or not lines[-1] else "")


# -- properties ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergedProperties:
    """The properties of the main note that change, and in words what the copy said and did not get."""

    changes: Mapping[str, Change]
    told: tuple[str, ...]


def merge_properties(base: Header | None, main: Header, copy: Header, *, policy: Policy) -> MergedProperties:
    """What *copy* brings into the properties of *main*, which both began as *base* (None: nobody knows).

    Tags, aliases and `supersedes` are united; the density is the one a person changed, the later rated one
    where both were; every other property is the side's that changed it, main's where both did. Streak and
    touch are `merged_use`'s, and where a note lies is main's alone.
    """
    changes: dict[str, Change] = {}
    told: list[str] = []
    _unite(main, copy, changes)
    _rate(base, main, copy, policy, changes, told)
    united = {_spelled(header, key) for header in (main, copy) for key in _UNITED}
    for key in dict.fromkeys((*main.values, *copy.values)):
        if key in PLACES or key in _BY_RULE or key in united:
            continue
        before, mine, yours = (None if one is None else _essence(one, key) for one in (base, main, copy))
        if mine == yours or yours == before or (base is None and yours is None):
            continue
        if mine == before or (base is None and mine is None):
            changes[key] = _change(copy, key)
        else:
            told.append(_lost(key, copy))
    return MergedProperties(changes, tuple(told))


def merged_use(main: Memory, copy: Memory | None, *, touched: bool) -> dict[str, object]:
    """The fields of *main* that the copy's use changes: the larger use, the later touch and all its own.

    *touched*: whether the copy's own `last_touched` could be read. Backlinks are counted where main lies.
    """
    if copy is None:
        return {}
    fields: dict[str, object] = {}
    if copy.edited_on is not None and (main.edited_on is None or copy.edited_on > main.edited_on):
        fields["edited_on"] = copy.edited_on
    if main.streak is not None and copy.streak is not None:
        linked = links(main.backlinks)
        use = max(main.streak - linked, copy.streak - links(copy.backlinks))
        fields["streak"] = use + linked
    if touched and copy.last_touched > main.last_touched:
        fields |= {"last_touched": copy.last_touched, "missed": copy.missed, "status": copy.status}
    return fields


def _unite(main: Header, copy: Header, changes: dict[str, Change]) -> None:
    for key in _UNITED:
        mine, yours = _listed(main, key), _listed(copy, key)
        known = {item.casefold() for item in mine}
        new = [item for item in yours if item.casefold() not in known]
        if new:
            name = _spelled(main, key)
            changes[name if name in main.values else key] = [*mine, *new]


def _rate(
    base: Header | None,
    main: Header,
    copy: Header,
    policy: Policy,
    changes: dict[str, Change],
    told: list[str],
) -> None:
    before, mine, yours = (None if one is None else _essence(one, "density") for one in (base, main, copy))
    later = _later(_day(copy, policy), _day(main, policy))
    lone = base is not None and before in (mine, yours)
    if mine == yours or mine is None or yours is None:
        theirs = mine is None if mine != yours else later
    else:
        theirs = mine == before if lone else later
        if not lone:
            told.append(_lost("density", main if theirs else copy))
    if theirs:
        for key in ("density", "rated_on"):
            if _essence(copy, key) != _essence(main, key):
                changes[key] = _change(copy, key)


def _later(one: date | None, other: date | None) -> bool:
    return one is not None and (other is None or one > other)


def _day(header: Header, policy: Policy) -> date | None:
    at = read_when(header.values.get("rated_on"), policy.zone)
    return None if at is None else at.date()


def _listed(header: Header, key: str) -> list[str]:
    if key == "tags":
        return frontmatter.tags(header)
    if key == "aliases":
        return frontmatter.aliases(header)
    if key in header.items:
        return [item for item in header.items[key] if item is not None]
    source = header.sources.get(key, "").strip()
    return [source] if source and header.values.get(key) is not None else []


def _spelled(header: Header, key: str) -> str:
    """The property as the note spells it: Obsidian does not mind the case of `Tags` and `Aliases`."""
    if key in header.values or key == "supersedes":
        return key
    return next((name for name in header.values if name.casefold() == key), key)


def _essence(header: Header, key: str) -> str | None:
    """A property's value for comparing, whatever its quotes; None when it is absent."""
    if key not in header.values:
        return None
    return json.dumps(header.values[key], ensure_ascii=False, default=str, sort_keys=True)


def _change(header: Header, key: str) -> Value | Delete:
    return header.values.get(key, DELETE)


_PLAIN = re.compile(r"\s+")


def _lost(key: str, loser: Header) -> str:
    said = loser.sources.get(key)
    if said is None:
        said = _essence(loser, key) or "nothing"
    said = _PLAIN.sub(" ", said).strip()
    return f"{key} was also {said[:200]!r}" if key in loser.values else f"{key} was removed in the other"
