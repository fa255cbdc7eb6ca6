"""How one step of an operation is done, undone, and found out about afterwards, by fingerprints alone.

A file that holds neither what a step started from nor what it makes was changed by a person since; nothing
here writes over such a file.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from vault_palace.core.errors import Exists, NoteChanged, NotFound, StorageFailed, VaultError
from vault_palace.storage import files
from vault_palace.storage.records import Trace
from vault_palace.storage.vault import Mark, Stored, Vault
from vault_palace.storage.versions import Versions

Standing = Literal[
    "before",  # not done, and what it wants to change is as it was
    "middle",  # a move: the file has its new name and not yet its new bytes
    "copied",  # a move: the file has both names, because the old one was not removed yet
    "after",  # done
    "edited",  # done, and changed by a person since
    "taken",  # not done, and a person changed what it wants to change
    "gone",  # a removal: the file is neither there nor set aside; it was finished, or a person did it
]
UNDONE_LATER: frozenset[Standing] = frozenset({"before", "middle", "copied"})


class Steps:
    """The acts on one vault's files. The caller holds the write lock."""

    def __init__(self, vault: Vault, versions: Versions) -> None:
        self.vault = vault
        self.versions = versions

    # -- finding out ---------------------------------------------------------------------------------------

    def standing(self, trace: Trace) -> Standing:
        """Where the step stands now."""
        place = self.vault.locate(trace.path)
        if trace.kind == "move":
            return self._move_standing(trace, place, self.vault.locate(trace.to))
        found = files.fingerprint_at(place)
        if trace.kind == "remove":
            if found is None:
                return "after" if self._taken_away(trace) else "gone"
            return "before" if found == trace.before else "taken"
        if found == trace.after:
            return "after"
        waits = self.waits(trace)
        if found == trace.before:
            # A note that was to be created, is not there, and waits no more was made and then deleted.
            return "before" if waits or found is not None else "edited"
        return "taken" if waits else "edited"

    def _move_standing(self, trace: Trace, place: Path, target: Path) -> Standing:
        old = files.fingerprint_at(place) if _has_name(place, target) else None
        new = files.fingerprint_at(target) if _has_name(target, place) else None
        if old == trace.before:
            return "before" if new is None else "copied" if new == trace.before else "taken"
        if new == trace.after:
            return "after"
        if new == trace.before:
            return "middle"
        if new is None or old is not None:
            return "taken"
        return "edited"

    def way_back_is_taken(self, trace: Trace, standing: Standing) -> bool:
        """Whether the move is done and there is a new file of a person's at the old name."""
        if trace.kind != "move" or standing not in {"after", "middle"}:
            return False
        return _has_name(self.vault.locate(trace.path), self.vault.locate(trace.to))

    def _taken_away(self, trace: Trace) -> bool:
        return trace.staged is not None and self._at(trace.staged) == trace.before

    def waits(self, trace: Trace) -> bool:
        """Whether the step's new bytes still lie beside their target, whole."""
        return trace.staged is not None and self._at(trace.staged) == trace.after

    def can_go_on(self, trace: Trace, standing: Standing) -> bool:
        """Whether a step that is not done yet has all it needs."""
        if standing not in UNDONE_LATER:
            return False
        return trace.kind == "remove" or trace.staged is None or self.waits(trace)

    def temporaries(self, trace: Trace) -> list[Path]:
        """The temporary files that this step may have left."""
        if trace.staged is None:
            return []
        staged = self.vault.locate(trace.staged)
        return [staged, files.kept_beside(staged)]

    def _at(self, path: str) -> str | None:
        return files.fingerprint_at(self.vault.locate(path))

    # -- forward -------------------------------------------------------------------------------------------

    def forward(self, trace: Trace, data: bytes | None = None) -> Stored | None:
        """Do the step, or the rest of it, and return what its path holds now; None when that is nothing.

        `NoteChanged` when a person saved in between, `Exists` when a name was taken. *data* are the staged
        bytes where the caller has them: they are not read again.
        """
        place = self.vault.locate(trace.path)
        if trace.kind == "remove":
            aside, before = self.vault.locate(_known(trace.staged)), _known(trace.before)
            self._let_go(aside, {before}, keep=False)  # a second name, when the kill came before the unlink
            files.take_away(place, aside, before)
            return None
        path = trace.to or trace.path
        target = self.vault.locate(path)
        if trace.kind == "move":
            self._move(place, target, _known(trace.before))
        if trace.staged is None:
            return self.vault.read(path)
        staged = self.vault.locate(trace.staged)
        if data is None:
            data = self.vault.read(trace.staged).data
        with files.told(staged):
            ours = os.lstat(staged)
        known = {mark for mark in (trace.before, trace.after) if mark is not None}
        self._let_go(files.kept_beside(staged), known, keep=False)  # a killed try may have left it
        files.put(staged, target, expect=trace.before)
        return Stored(data, _known(trace.after), _mark_now(target, ours))

    def _move(self, place: Path, target: Path, before: str) -> None:
        """Give the file its new name, whatever part of that a killed run has done already."""
        if not _has_name(place, target):
            return
        if _has_name(target, place):
            if files.fingerprint_at(target) != before:
                raise Exists(f"{target.name} exists already.", path=self.vault.rel(target))
            if files.fingerprint_at(place) == before:  # else it is a person's new file: moved already
                files.remove(place, before)
            return
        files.rename_new(place, target)
        found = files.fingerprint_at(target)
        if found != before:  # saved between the last look and the rename: their save stays where they made it
            with contextlib.suppress(VaultError):
                files.rename_new(target, place)
            raise NoteChanged(
                f"{place.name} was changed while it was moved.",
                hint="Read it again and repeat the move.",
                path=self.vault.rel(place),
                expected=before,
                found=found,
            )

    # -- back ----------------------------------------------------------------------------------------------

    def backward(self, trace: Trace, standing: Standing) -> None:
        """Undo what was done of the step; what a person changed since stays, and so does what never began."""
        place = self.vault.locate(trace.path)
        if trace.kind == "put" and standing == "after":
            self._restore(place, trace)
        elif trace.kind == "remove" and standing == "after":
            files.rename_new(self.vault.locate(_known(trace.staged)), place)
        elif trace.kind == "move":
            target = self.vault.locate(trace.to)
            if standing == "copied":
                files.remove(target, _known(trace.before))
            if standing == "after" and trace.after != trace.before:
                self._restore(target, trace)
            if standing in {"after", "middle"}:
                files.rename_new(target, place)

    def _restore(self, place: Path, trace: Trace) -> None:
        if trace.before is None:
            files.remove(place, _known(trace.after))
        else:
            data = self.versions.get(trace.before)
            staged = files.stage(place, data)
            try:
                files.put(staged, place, expect=trace.after)
            except VaultError:
                self._let_go(staged, {files.fingerprint(data)}, keep=False)
                raise

    def rescue(self, trace: Trace) -> None:
        """Give a person's save back its place when a kill came between the swap and its check.

        Then the temporary file holds bytes that the step neither found nor made, and they are the newer ones.
        """
        target = self.vault.locate(trace.to or trace.path)
        for temporary in self.temporaries(trace):
            held = files.fingerprint_at(temporary)
            if held in {None, trace.before, trace.after} or files.fingerprint_at(target) != trace.after:
                continue
            if trace.kind == "remove":
                files.rename_new(temporary, target)
                continue
            self.versions.keep(files.read_bytes(target), durable=True)
            files.put_back(temporary, target, ours=_known(trace.after))

    # -- clearing up ---------------------------------------------------------------------------------------

    def drop(self, traces: Iterable[Trace], *, keep: bool) -> None:
        """Remove the temporary files of these steps.

        With *keep* the new bytes that never reached their place are kept as versions; bytes of a person
        always are. `StorageFailed` when they cannot be: then their file stays.
        """
        for trace in traces:
            ours = {mark for mark in (trace.before, trace.after) if mark is not None}
            for temporary in self.temporaries(trace):
                self._let_go(temporary, ours, keep=keep)

    def _let_go(self, temporary: Path, ours: set[str], *, keep: bool) -> None:
        try:
            data = files.read_bytes(temporary)
        except NotFound:
            return
        if keep or files.fingerprint(data) not in ours:
            self.versions.keep(data, durable=True)
        files.discard(temporary)


def _mark_now(target: Path, ours: os.stat_result) -> Mark:
    """The mark of our file at its new name, whose change time the rename has moved.

    When somebody saved over it already, the mark of what we wrote: then a comparison sees the difference.
    """
    with contextlib.suppress(OSError):
        found = os.lstat(target)
        same = (found.st_ino, found.st_size, found.st_mtime_ns) == (
            ours.st_ino,
            ours.st_size,
            ours.st_mtime_ns,
        )
        if same:
            return Mark.of(found)
    return Mark.of(ours)


def _has_name(place: Path, rival: Path) -> bool:
    """Whether a file of exactly this name is there.

    Where case does not count, a file answers to both spellings of a move that changes only the case; then
    the folder's listing tells.
    """
    if not os.path.lexists(place):
        return False
    if place.parent == rival.parent and place.name.casefold() == rival.name.casefold():
        return place.name in os.listdir(place.parent)
    return True


def _known(value: str | None) -> str:
    """The fingerprint or name that a step of this kind always has; a journal without it is damaged."""
    if value is None:
        raise StorageFailed("The journal's record lacks what its step needs.", reason="damaged")
    return value
