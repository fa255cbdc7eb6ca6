"""Whether searches help: which of them were followed by a read of what they found.

A search is *followed* when one of the notes it showed is read by the same caller within `MINUTES` and
`CALLS` calls after it, by path, id or title or as a resource; it is *missed* when that time is over, or at
once when it found nothing. A further page of a search, or the same question again while it is undecided,
belongs to the first one and counts no second time. wake_up, healthcheck and get_metrics are neither searches
nor calls here. Of reading what nobody searched for nothing is said.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from vault_palace.services.caller import Caller

MINUTES = 10
CALLS = 20
CALLERS = 256  # that are remembered; the one that was silent for longest is forgotten for a new one
OPEN = 32  # undecided searches a caller
NAMES = 500  # paths and ids of what one search showed
MEMORY_URI = "palace://memory/"
ASIDE = frozenset({"wake_up", "healthcheck", "get_metrics"})
# What asks for more or less of the same question.
_PAGING = frozenset({"cursor", "limit", "max_tokens"})

_Asked = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How the searches of one tool ended so far."""

    followed: int
    missed: int
    waiting: int

    @property
    def rate(self) -> float | None:
        """The share of those followed among those decided; None before any is."""
        decided = self.followed + self.missed
        return round(self.followed / decided, 3) if decided else None


@dataclass(slots=True, eq=False)
class _Search:
    tool: str
    asked: _Asked
    names: set[str]
    at: float
    calls: int = 0


class Followup:
    """What callers searched for and read lately. Safe to use from several threads, and bounded."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: OrderedDict[Caller, list[_Search]] = OrderedDict()
        self._followed: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()

    def answered(
        self, caller: Caller, tool: str, given: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> None:
        """A call of *tool* went well: *answer* is what the caller got to see."""
        if tool in ASIDE:
            return
        with self._lock:
            searches = self._of(caller)
            for search in searches:
                search.calls += 1
            self._drop_late(searches)
            if isinstance(answer.get("matches"), list):
                self._searched(searches, tool, given, answer["matches"])
            elif tool == "read_memory":
                properties = answer.get("metadata")
                known = properties.get("id") if isinstance(properties, Mapping) else None
                self._read(searches, [answer.get("path"), known])

    def resource_read(self, caller: Caller, uri: str) -> None:
        """The caller read the resource *uri*: the note of a memory's counts as read."""
        if not uri.startswith(MEMORY_URI):
            return
        path = unquote(uri[len(MEMORY_URI) :])
        with self._lock:
            searches = self._of(caller)
            self._drop_late(searches)
            self._read(searches, [path, f"{path}.md"])

    def counts(self) -> dict[str, Followed]:
        """How the searches ended, for each tool that has searched."""
        with self._lock:
            waiting: Counter[str] = Counter()
            for caller in list(self._open):
                self._drop_late(self._open[caller])
                waiting.update(search.tool for search in self._open[caller])
                if not self._open[caller]:
                    del self._open[caller]
            return {
                tool: Followed(
                    followed=self._followed[tool], missed=self._missed[tool], waiting=waiting[tool]
                )
                for tool in sorted({*self._followed, *self._missed, *waiting})
            }

    def _of(self, caller: Caller) -> list[_Search]:
        searches = self._open.setdefault(caller, [])
        self._open.move_to_end(caller)
        while len(self._open) > CALLERS:
            _, forgotten = self._open.popitem(last=False)
            self._missed.update(search.tool for search in forgotten)
        return searches

    def _drop_late(self, searches: list[_Search]) -> None:
        since = self._clock() - MINUTES * 60
        late = [search for search in searches if search.at < since or search.calls > CALLS]
        self._missed.update(search.tool for search in late)
        searches[:] = [search for search in searches if search not in late]

    def _searched(
        self, searches: list[_Search], tool: str, given: Mapping[str, Any], matches: Iterable[Any]
    ) -> None:
        asked = tuple(sorted((key, repr(value)) for key, value in given.items() if key not in _PAGING))
        shown = [match for match in matches if isinstance(match, Mapping)]
        names = {str(match[key]) for match in shown for key in ("path", "id") if match.get(key)}
        same = next((search for search in searches if (search.tool, search.asked) == (tool, asked)), None)
        if same is not None:
            same.names.update(sorted(names)[: max(NAMES - len(same.names), 0)])
        elif given.get("cursor"):
            return  # a page of a search that is decided
        elif not names:
            self._missed[tool] += 1
        else:
            searches.append(_Search(tool, asked, set(sorted(names)[:NAMES]), self._clock()))
            if len(searches) > OPEN:
                self._missed[searches.pop(0).tool] += 1

    def _read(self, searches: list[_Search], names: Iterable[object]) -> None:
        read = {name for name in names if isinstance(name, str) and name}
        hits = [search for search in searches if search.names & read]
        self._followed.update(search.tool for search in hits)
        searches[:] = [search for search in searches if search not in hits]
