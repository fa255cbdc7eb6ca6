"""Which lines of two texts differ, in a time that a file of any size allows.

What both texts begin and end with is set aside first: a change of ours is one place in a file, and comparing
all lines with all others would take minutes in a large one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence


def differing(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[range, range]]:
    """Each stretch that differs, as the numbers of its lines in both."""
    head = alike(before, after)
    tail = alike(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for kind, start, end, first, last in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield range(head + start, head + end), range(head + first, head + last)


def alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items, or characters, both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
