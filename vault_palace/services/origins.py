"""The kept version from which two versions of a note went apart, for a three-way merge.

Of the versions that the journals name and that are kept, the one nearest to the copy is taken: the main
note's history passed through it, and the copy left it last. Where nothing tells whether the main note was
that version when the copy was made, none is taken; then a person decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from vault_palace.core import frontmatter, merge
from vault_palace.core import memory as memories
from vault_palace.core.errors import VaultError
from vault_palace.core.frontmatter import Header
from vault_palace.services.house import House, Note

MOST = 2_000  # kept versions that are looked through: a person waits for it


@dataclass(frozen=True, slots=True)
class _Version:
    header: Header
    created: bool  # whether the note began as this


def common(house: House, main: Note, copy: Note) -> Header | None:
    """The version that *main* and *copy* both began as; None when too little is known."""
    versions = _versions(house, main, {main.stored.fingerprint, copy.stored.fingerprint})
    if not versions:
        return None
    mine, theirs = main.header.body, copy.header.body

    def nearness(version: _Version) -> tuple[int, bool, int]:
        values, known = version.header.values, copy.header.values
        odd = sum(values.get(key) != known.get(key) for key in values.keys() | known.keys())
        unchanged = merge.same_lines(version.header.body, mine)
        return merge.distance(version.header.body, theirs), unchanged, odd

    best = min(versions, key=nearness)
    if not merge.same_lines(best.header.body, mine) or merge.holds_all(theirs, mine):
        return best.header
    # The main note as it stands would say that what it has and the copy lacks was deleted in the copy. That
    # is believed when other texts of it are known, and farther away, or when it never had another.
    others = any(not merge.same_lines(version.header.body, mine) for version in versions)
    begun = any(version.created and merge.same_lines(version.header.body, mine) for version in versions)
    return best.header if others or begun else None


def of_bytes(data: bytes | None) -> Header | None:
    """The header and body of a version; None for none, and for what is not UTF-8."""
    try:
        return None if data is None else frontmatter.read(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _versions(house: House, main: Note, now: Collection[str]) -> list[_Version]:
    """Every kept version of *main*, each text once, those the journals name before others.

    What the two are *now* is kept as well, and is no version that they began as, unless a journal says so.
    """
    found: dict[str, _Version] = {}
    for fingerprint, created in _marks(house, main, now):
        known = found.get(fingerprint)
        if known is not None:
            if created:
                found[fingerprint] = _Version(known.header, created=True)
            continue
        try:
            header = of_bytes(house.versions.get(fingerprint))
        except VaultError:  # pruned, or damaged
            continue
        if header is not None and header.usable and (memories.identity(header) or "") == main.id:
            found[fingerprint] = _Version(header, created)
    return list(found.values())


def _marks(house: House, main: Note, now: Collection[str]) -> Iterator[tuple[str, bool]]:
    """Fingerprints that may be versions of *main*, and whether the note was made with these bytes."""
    for entry in reversed(house.journal.entries()):
        paths = {fact.path for fact in entry.notes if fact.id == main.id} if main.id else {main.path}
        for step in entry.steps:
            if step.path in paths or step.to in paths:
                if step.after:
                    yield step.after, step.kind == "put" and step.before is None
                if step.before:
                    yield step.before, False
    if main.id:
        for fingerprint in house.versions.newest(MOST):
            if fingerprint not in now:
                yield fingerprint, False
