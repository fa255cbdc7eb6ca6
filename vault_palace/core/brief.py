"""Fits the parts of a briefing into a budget, so that its beginning stays the same from call to call.

The parts that come first have shares of the budget, whatever the others need: a prompt cache goes by the
longest beginning that stayed the same, and what changes often must not decide how much is shown of what does
not. The others take turns, a line each, for what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vault_palace.core import budget

_A_LINE = 2  # tokens: the line end, and what JSON makes of it
_COUNTS = 6  # tokens that "(3 of 12)" may cost behind a title


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `argument` is what the next call takes, `text` what is said of it.

    Lines are chosen in the order in which they come, and shown by `order`.
    """

    argument: str
    text: str = ""
    order: tuple[int | float | str, ...] = ()

    @property
    def shown(self) -> str:
        return f"- {self.argument}{self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One list; `count` is how many lines it has in all.

    A part with a `share` (of 1) takes that much at most; of the others those with the smallest `turn` are
    served first, all of one turn by turns.
    """

    name: str
    title: str
    lines: Iterable[Line]
    count: int
    share: float = 0.0
    turn: int = 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a part."""

    part: Part
    lines: tuple[Line, ...] = ()

    @property
    def left_out(self) -> int:
        return max(0, self.part.count - len(self.lines))

    @property
    def text(self) -> str:
        some = f" ({len(self.lines)} of {self.part.count})" if self.left_out else ""
        return "\n".join((f"{self.part.title}{some}:", *(line.shown for line in self.lines)))


def fit(parts: Sequence[Part], most: int) -> list[Shown]:
    """What of *parts* fits into *most* tokens: those with a line at least, in their order."""
    takers = [_Taker(part) for part in parts]
    left = float(most)
    for taker in takers:
        if taker.part.share:
            allowed = taker.part.share * most
            while spent := taker.take(allowed):
                allowed -= spent
                left -= spent
    for turn in sorted({part.turn for part in parts if not part.share}):
        waiting = [taker for taker in takers if not taker.part.share and taker.part.turn == turn]
        while waiting:
            for taker in tuple(waiting):
                spent = taker.take(left)
                left -= spent
                if not spent:
                    waiting.remove(taker)
    return [
        Shown(taker.part, tuple(sorted(taker.taken, key=lambda line: line.order)))
        for taker in takers
        if taker.taken
    ]


@dataclass(slots=True)
class _Taker:
    """A part while its lines are chosen; they are made one by one, for each may cost a look at a file."""

    part: Part
    taken: list[Line] = field(default_factory=list)
    _rest: Iterator[Line] | None = None
    _next: Line | None = None

    def take(self, most: float) -> float:
        """Take the next line if it costs no more than *most* tokens; what it costs, 0 when none was taken."""
        if self._rest is None:
            self._rest = iter(self.part.lines)
            self._next = next(self._rest, None)
        if self._next is None:
            return 0
        price = cost(self._next.shown)
        if not self.taken:
            price += cost(self.part.title) + _COUNTS
        if price > most:
            return 0
        self.taken.append(self._next)
        self._next = next(self._rest, None)
        return price


def cost(text: str) -> int:
    """What *text* costs in tokens as a line of its own."""
    return budget.tokens(text) + _A_LINE
