"""How much two notes say the same, judged by the words they share: near-duplicates, and what is worth a link.

Words are `core.text`'s, so case, accents and endings make no difference. Nothing is known of meaning: what is
said in other words throughout is not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import log

# Measured on pairs (tests/core/test_likeness.py): the same reworded shares 0.5 and more of the words,
# two notes on one subject 0.2 and less.
SAME = 0.4
# A short note that stands in a long one nearly whole says nothing new either.
HELD = 0.85
FEWEST = 6  # words a note needs for that
_FEW = 8  # notes among which the rarity of a word tells nothing yet


@dataclass(frozen=True, slots=True)
class Likeness:
    """`share` is what both say of what either says, `held` what both say of what the shorter says; 0 to 1."""

    share: float
    held: float

    @property
    def is_same(self) -> bool:
        """Whether the two are near-duplicates."""
        return self.share >= SAME or self.held >= HELD


def telling(words: Iterable[str], stop: Collection[str] = ()) -> frozenset[str]:
    """Those of *words* that may tell one note from another: no single signs, no stop words."""
    return frozenset(word for word in words if len(word) > 1 and word not in stop)


def weights(notes: Sequence[Set[str]]) -> Mapping[str, float]:
    """What each word weighs among *notes*: words of a template, which all of them have, weigh little."""
    if len(notes) < _FEW:
        return {}
    return {
        word: log(1 + len(notes) / count)
        for word, count in Counter(w for note in notes for w in note).items()
    }


def likeness(one: Set[str], other: Set[str], weight: Mapping[str, float]) -> Likeness:
    """How much two notes have in common; a word without a *weight* counts as 1."""
    common, first, second = (_sum(words, weight) for words in (one & other, one, other))
    if not common:
        return Likeness(0.0, 0.0)
    held = common / min(first, second) if min(len(one), len(other)) >= FEWEST else 0.0
    return Likeness(common / (first + second - common), held)


def _sum(words: Set[str], weight: Mapping[str, float]) -> float:
    return sum(weight.get(word, 1.0) for word in words)
