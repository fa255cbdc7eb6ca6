"""The kept versions of one note, whoever wrote them: found by its id, or by the fingerprints journals name.

Nothing is written. A version that a person saved stands in no journal; that it has the note's id tells whose
it is, also where its header does not parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from vault_palace.core import memory as memories
from vault_palace.core import places
from vault_palace.core.errors import Conflict, InvalidArguments, NotFound, VaultError
from vault_palace.services import origins
from vault_palace.services.house import House
from vault_palace.storage.vault import Stored

SHOWN = 12  # characters of a fingerprint that name a version
SHORTEST = 6  # characters that are enough, when no other version of the note begins with them
_PREFIX = re.compile(rf"[0-9a-f]{{{SHORTEST},64}}")


@dataclass(frozen=True, slots=True)
class Kept:
    """One version: its bytes, and when it was kept, in the file's seconds."""

    fingerprint: str
    at: float
    data: bytes

    @property
    def name(self) -> str:
        return name(self.fingerprint)


def name(fingerprint: str | None) -> str:
    """A version's name as a person is shown it; empty for nothing."""
    return (fingerprint or "")[:SHOWN]


def bytes_of(house: House, fingerprint: str, now: Stored | None = None) -> bytes | None:
    """The bytes of that fingerprint: the note's own, or a kept version; None when there are none."""
    if now is not None and now.fingerprint == fingerprint:
        return now.data
    with suppress(VaultError):
        return house.versions.get(fingerprint)
    return None


def of_note(house: House, id: str, marks: Iterable[str] = ()) -> Iterator[Kept]:
    """The kept versions of the note with this *id*, and those that *marks* name, newest first."""
    named = set(marks)
    found = named | set(house.versions.holding(id.encode("utf-8")) if id else ())
    dated = ((house.versions.kept_at(fingerprint), fingerprint) for fingerprint in found)
    for at, fingerprint in sorted(((at, mark) for at, mark in dated if at is not None), reverse=True):
        data = bytes_of(house, fingerprint)
        if data is not None and (fingerprint in named or has_id(data, id)):
            yield Kept(fingerprint, at, data)


def has_id(data: bytes, id: str) -> bool:
    """Whether these bytes are a note with this id."""
    header = origins.of_bytes(data)
    if header is not None and header.usable:
        return memories.identity(header) == id
    line = rb"(?m)^id:[ \t]*[\"']?" + re.escape(id.encode("utf-8")) + rb"[\"']?[ \t]*\r?$"
    return re.search(line, data) is not None


def said(house: House, path: str, data: bytes) -> str | bytes:
    """What people and agents say in a version of the note at *path*; what is derived makes no difference."""
    header = origins.of_bytes(data)
    if header is None or not header.usable:
        return data
    return memories.rev(header, house.policy(), places.layer_of(path) or places.archived_layer(path))


def chosen(versions: Iterable[Kept], wanted: str, path: str) -> Kept:
    """The one version of the note at *path* whose fingerprint begins with *wanted*."""
    prefix = wanted.strip().lower()
    see = f"See: vault-palace history {path!r} --all."
    if not _PREFIX.fullmatch(prefix):
        message = f"{wanted!r} names no version: it takes {SHORTEST} or more of its hex digits."
        raise InvalidArguments(message, hint=see, argument="version")
    found = [one for one in versions if one.fingerprint.startswith(prefix)]
    if not found:
        raise NotFound(f"No version {prefix} of {path} is kept here.", hint=see, path=path)
    if len(found) > 1:
        names = ", ".join(sorted(one.fingerprint[: len(prefix) + SHORTEST] for one in found))
        raise Conflict(f"Several versions begin with {prefix}: {names}.", hint="Give more of it.", path=path)
    return found[0]
