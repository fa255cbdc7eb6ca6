"""Which notes were replaced by which, from what they say of each other (`supersedes`, `superseded_by`).

A note is superseded when it, or any note that replaced it, says so; what holds now stands at the end of the
chain. Notes in a circle replaced each other, and so none of them is newer: each is current unless something
outside of the circle replaced one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


class Succession:
    """Notes by path; *replaced* are pairs of an older and a newer note, *archived* those that were let go.

    *own* are those of the pairs that the older note says itself: where several replaced it, its word counts.
    """

    def __init__(
        self,
        replaced: Iterable[tuple[str, str]],
        archived: Collection[str] = (),
        own: Iterable[tuple[str, str]] = (),
    ) -> None:
        said: dict[str, set[str]] = {}
        for old, new in replaced:
            if old != new:
                said.setdefault(old, set()).add(new)
        circle = _circles(said)
        left: dict[int, set[str]] = {}  # what replaced a circle, by its number
        for old, news in said.items():
            left.setdefault(circle[old], set()).update(new for new in news if circle[new] != circle[old])
        self._archived = frozenset(archived)
        self._newer = {old: tuple(sorted(left[circle[old]])) for old in said if left[circle[old]]}
        # Worked out once, for it is asked about each note of a search.
        self.old = frozenset(self._newer)  # every note that was replaced
        self.involved = self.old.union(*self._newer.values())  # and every one that replaced another
        self._own = dict(sorted(own, reverse=True))  # of two words of one note the first by path

    def __bool__(self) -> bool:
        return bool(self._newer)

    def __contains__(self, path: object) -> bool:
        """Whether the note at *path* was replaced."""
        return path in self._newer

    def by(self, path: str) -> str:
        """What holds now instead of *path*: the end of its chain, archived only if there is no other.

        Empty for a note that nothing replaced.
        """
        if path not in self._newer:
            return ""
        here = path
        while (new := self._own.get(here, "")) in self._newer.get(here, ()):  # which holds no circle
            here = new
        preferred = self._ends(here)
        return min(self._ends(path), key=lambda end: (end in self._archived, end not in preferred, end))

    def _ends(self, path: str) -> set[str]:
        ends, seen, open_ = set[str](), {path}, [path]
        while open_:
            newer = self._newer.get(here := open_.pop(), ())
            if not newer:
                ends.add(here)
            open_.extend(new for new in newer if new not in seen)
            seen.update(newer)
        return ends

    def ranked(self, scores: Mapping[str, float]) -> dict[str, tuple[float, int]]:
        """The rank of each superseded note of *scores* (the least first): behind all that replaced it.

        As near to its own score as that allows; the second number sets a note behind what has the same.
        """
        known: dict[str, tuple[float, int]] = {}

        def of(path: str) -> tuple[float, int]:
            newer = [known[new] for new in self._newer.get(path, ())]
            most = max((score for score, _ in newer), default=float("-inf"))
            return max(scores.get(path, most), most), max((steps for _, steps in newer), default=-1) + 1

        for path in scores:
            open_ = [path]
            while open_:
                here = open_[-1]
                missing = [new for new in self._newer.get(here, ()) if new not in known]
                if missing:
                    open_.extend(missing)
                    continue
                known[here] = of(here)
                open_.pop()
        return {path: known[path] for path in scores if path in self._newer}


def _circles(newer: Mapping[str, Collection[str]]) -> dict[str, int]:
    """A number for each note, the same for those that replaced each other in a circle (by Tarjan)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    circle: dict[str, int] = {}
    held: list[str] = []

    def close(root: str) -> None:
        while True:
            member = held.pop()
            circle[member] = number[root]
            if member == root:
                return

    for start in newer:
        if start in number:
            continue
        number[start] = lowest[start] = len(number)
        held.append(start)
        way = [(start, iter(sorted(newer[start])))]
        while way:
            here, following = way[-1]
            for new in following:
                if new not in number:
                    number[new] = lowest[new] = len(number)
                    held.append(new)
                    way.append((new, iter(sorted(newer.get(new, ())))))
                    break
                if new not in circle:
                    lowest[here] = min(lowest[here], number[new])
            else:
                way.pop()
                if way:
                    lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[here])
                if lowest[here] == number[here]:
                    close(here)
    return circle
