"""What is odd in notes, journals and policy, each with its path and line: for a person to look at.

None of it keeps the palace from working; what does is `services/health.py`'s. All of it, or as much as
somebody shows, so that a vault with ten thousand dead links answers as soon as one with ten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vault_palace.core import links, names
from vault_palace.core.errors import VaultError
from vault_palace.core.model import Problem
from vault_palace.index.cache import IndexedNote
from vault_palace.index.graph import Graph
from vault_palace.index.overview import Twin
from vault_palace.services import copies, generated
from vault_palace.services.house import House
from vault_palace.storage.operations import open_operations


@dataclass(frozen=True, slots=True)
class Troubles:
    """The first problems by path and line, and how many there are."""

    first: tuple[Problem, ...] = ()
    count: int = 0


def everything(house: House) -> list[Problem]:
    """All that is wrong as far as the cache, the journals and the policy know, each once, sorted."""
    ask = house.shelf.ask
    found = [*ask(lambda cache: cache.problems()), *_twins(ask(lambda cache: cache.notes()))]
    return _sorted(house, [*found, *_leading_nowhere(house, _unresolved(house))])


def some(house: House, most: int) -> Troubles:
    """The first *most* of `everything`, or others of them where one kind has more, and how many there are.

    Only notes that are shown are read, so the links of the others are counted once a target.
    """
    seen = house.shelf.ask(lambda cache: cache.troubled(most))
    unresolved = _unresolved(house)
    found = [*seen.problems.first, *map(twin, seen.twins.first)]
    shown = _sorted(house, [*found, *_leading_nowhere(house, unresolved[:most])])
    more = sum(len(missing) for _, missing in unresolved[most:])
    more += sum(kind.count - len(kind.first) for kind in (seen.problems, seen.twins))
    return Troubles(tuple(shown[:most]), len(shown) + more)


def twin(one: Twin) -> Problem:
    """A note whose id or name another one has too, as a problem."""
    return _twin(one.path, one.first, one.code, one.value)


def _twin(path: str, first: str, code: str, value: str) -> Problem:
    what = "id" if code == "duplicate_id" else "name"
    return Problem(path=path, line=0, code=code, message=f"Its {what} {value!r} is also that of {first}.")


def _sorted(house: House, of_notes: Iterable[Problem]) -> list[Problem]:
    found = {
        *generated.outside(house, of_notes),
        *beside_notes(house),
        *_conflict_copies(house),
        *house.journal.problems(),
        *generated.problems(house),
    }
    return sorted(found, key=lambda item: (item.path, item.line, item.code, item.message))


def beside_notes(house: House) -> Iterator[Problem]:
    """What policy, disk, operations left open and other programs give to see to, as it is known anyway."""
    yield from house.shelf.strays
    yield from house.shelf.doubts
    yield from house.policy_problems()
    yield from open_operations(house.journal)
    yield from house.quarrels.values()


def _conflict_copies(house: House) -> Iterator[Problem]:
    for copy in copies.copies(house):
        of = f" of {copy.main}" if copy.main else ""
        message = f"A sync tool's conflict copy{of}; it is no memory until you resolve it or rename it."
        yield Problem(path=copy.path, line=0, code="conflict_copy", message=message)


def _twins(notes: Iterable[IndexedNote]) -> Iterator[Problem]:
    by_id: dict[str, list[str]] = defaultdict(list)
    by_name: dict[str, list[str]] = defaultdict(list)
    for note in notes:
        if note.kind in ("memory", "archived"):
            by_name[names.key(note.stem)].append(note.path)
            if note.id:
                by_id[note.id].append(note.path)
    for code, groups in (("duplicate_id", by_id), ("duplicate_name", by_name)):
        for value, paths in groups.items():
            for path in paths[1:]:
                yield _twin(path, paths[0], code, value)


def _unresolved(house: House) -> list[tuple[str, set[str]]]:
    """The notes with links that lead nowhere, and where those would lead."""
    by_note: dict[str, set[str]] = defaultdict(set)
    for path, link in house.shelf.ask(lambda cache: Graph(cache).unresolved()):
        by_note[path].add(link)
    return list(by_note.items())


def _leading_nowhere(house: House, unresolved: Iterable[tuple[str, set[str]]]) -> Iterator[Problem]:
    for path, missing in unresolved:
        try:
            text = house.look(path).editable
        except VaultError:
            continue
        for found in links.find(text):
            if found.path in missing:
                message = f"No note is called {found.path[:80]!r}."
                yield Problem(path=path, line=found.line, code="unresolved_link", message=message)
