"""What keeps generated files from being written: the index note and its picture, journal and review notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vault_palace.core import mapnote, places
from vault_palace.core.errors import MalformedNote, NotFound, VaultError
from vault_palace.core.model import MAP_NOTE, SYSTEM, Problem
from vault_palace.services.house import House

PICTURE = "PALACE_MAP.svg"
JOURNAL_NOTE = f"{SYSTEM}/Journal.md"
REVIEW_NOTE = f"{SYSTEM}/Review.md"
UNRESOLVED = "unresolved_link"
_CODES = {MAP_NOTE: "broken_map", JOURNAL_NOTE: "broken_journal", REVIEW_NOTE: "broken_review"}


def problems(house: House) -> tuple[Problem, ...]:
    """What a person has to mend before these can be kept in step; nothing where they only are missing."""
    found = (hindrance(house, path) for path in (MAP_NOTE, PICTURE, JOURNAL_NOTE, REVIEW_NOTE))
    return tuple(problem for problem in found if problem is not None)


def outside(house: House, found: Iterable[Problem]) -> Iterator[Problem]:
    """*found* without links in generated blocks that lead nowhere: they stand in other notes, or did."""
    blocks: dict[str, range] = {}
    for problem in found:
        path = problem.path
        if problem.code == UNRESOLVED and path in _CODES:
            if path not in blocks:
                blocks[path] = _block(house, path)
            if problem.line in blocks[path]:
                continue
        yield problem


def _block(house: House, path: str) -> range:
    try:
        return mapnote.block_lines(house.vault.read(path).data.decode("utf-8", "replace"))
    except VaultError:
        return range(0)


def hindrance(house: House, path: str) -> Problem | None:
    """Why the generated file at *path* cannot be written, None when it can be."""
    try:
        if house.vault.is_folder(path):
            return _problem(
                path, "not_kept", "A folder has its name, so it cannot be made. Rename the folder."
            )
        stored = house.vault.read(path)
    except NotFound:
        return None
    except VaultError as error:
        return _problem(path, "not_kept", f"It cannot be kept in step: {error}")
    if not house.vault.is_writable(path):
        return _problem(
            path, "not_kept", "It may not be written to, so it stays as it is. Allow it, or move it."
        )
    if not places.is_note(path):
        return None
    try:
        mapnote.with_block(stored.data.decode("utf-8"), "")
    except UnicodeDecodeError:
        return _problem(path, "not_kept", "It is not UTF-8 text, so it stays as it is. Save it as UTF-8.")
    except MalformedNote as wrong:
        line = wrong.facts.get("line")
        message = f"It is left as it is: {wrong.message} {wrong.hint}".strip()
        return Problem(
            path=path, line=line if isinstance(line, int) else 0, code=_CODES[path], message=message
        )
    return None


def _problem(path: str, code: str, message: str) -> Problem:
    return Problem(path=path, line=0, code=code, message=message)
