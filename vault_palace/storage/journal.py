"""The operation journal: what was about to change, by hashes, one file a machine, one JSON object a line.

A `begin` record is on the disk before anything is done; a closing record follows when it is finished, undone,
superseded by a person, or left open. The journal holds paths, hashes and reasons, never a note's text, and
only its owner can read it. Other machines' journals arrive by sync: they are read, never written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path

from vault_palace.core import places
from vault_palace.core.errors import InvalidArguments, NotFound, VaultError
from vault_palace.core.model import Problem
from vault_palace.storage import files
from vault_palace.storage.journalreader import RECENT, JournalReader, problem_at
from vault_palace.storage.oldjournal import old_operations
from vault_palace.storage.records import (
    VERSION,
    About,
    Entry,
    LastWrite,
    State,
    from_line,
    show,
    to_line,
    to_record,
    to_time,
)
from vault_palace.storage.vault import Vault

__all__ = ["RECENT", "Journal", "can_name"]

_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def can_name(machine: str) -> bool:
    """Whether a journal can be called after *machine*: its name is a file's name."""
    return _MACHINE.fullmatch(machine) is not None


class Journal:
    """This machine's journal in a vault, and the others' for reading. `begin` and `close` need the lock."""

    def __init__(
        self, vault: Vault, machine: str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if not can_name(machine):
            raise InvalidArguments(f"{machine!r} cannot name a machine's journal.", machine=machine)
        self.vault = vault
        self.machine = machine
        self.path = f"{places.JOURNALS}/{machine}.jsonl"
        self._clock = clock
        self._guard = threading.RLock()
        self._readers: dict[str, JournalReader] = {}

    # -- writing -------------------------------------------------------------------------------------------

    def begin(self, entry: Entry) -> None:
        """Put the operation on record, down to the disk, before any of it is done."""
        with self._guard:
            files.make_folders(self.vault.locate(self.path).parent)
            self._append(to_record(entry), durable=True)
            self._remember(entry.op)

    def close(self, op: str, state: State, detail: str = "") -> None:
        """Record how an operation ended, or that it must stay open. A lost closing line is harmless."""
        record: dict[str, object] = {"v": VERSION, "op": op, "at": show(self._clock()), "state": state}
        if detail:
            record["detail"] = detail
        with self._guard:
            self._append(record, durable=False)

    def _append(self, record: dict[str, object], *, durable: bool) -> None:
        place = self.vault.locate(self.path)
        glue = self._mend(place)
        files.append(place, glue + to_line(record), durable=durable)

    def _mend(self, place: Path) -> bytes:
        """What must stand before the next record, after half a record has been set aside.

        A killed or powered-off run may leave half a line. It is copied to a file of its own, reported, and
        cut off; a whole record that lacks only its line end stays.
        """
        reader = self._own()
        if reader.trouble is not None:
            raise reader.trouble
        if not reader.tail:
            return b""
        if reader.tail_is_whole:
            return b"\n"
        torn = reader.tail.strip(b"\0")
        if torn:
            aside = f"{places.JOURNALS}/{self.machine}.torn-{hashlib.sha256(torn).hexdigest()[:8]}"
            files.write_state(self.vault.locate(aside), torn, durable=True)
        files.cut(place, reader.offset)
        reader.forget_tail()
        return b""

    def _remember(self, op: str) -> None:
        """Note the newest operation outside the synced folder, so that an older journal is noticed."""
        with contextlib.suppress(VaultError):
            files.write_state(self._memory(), op.encode())

    def _memory(self) -> Path:
        return self.vault.state / f"journal-{self.machine}"

    # -- reading -------------------------------------------------------------------------------------------

    def unfinished(self) -> list[Entry]:
        """This machine's operations without a final record, oldest first."""
        with self._guard:
            return self._own().unfinished()

    def elsewhere(self) -> list[Entry]:
        """Other machines' unfinished operations: theirs to recover, reported here."""
        with self._guard:
            self._refresh_all()
            return [
                entry
                for path, reader in sorted(self._readers.items())
                if path != self.path
                for entry in reader.unfinished()
            ]

    def entries(self) -> list[Entry]:
        """Every operation of every machine as it stands now, oldest first."""
        found: list[Entry] = []
        with self._guard:
            for path in self._paths():
                reader = JournalReader(path, history=True)
                reader.refresh(self.vault)
                found.extend(reader.everything())
        return sorted(found, key=lambda entry: entry.at)

    def recent(self) -> list[Entry]:
        """The newest operations of all machines as they stand now, at most `RECENT`, oldest first.

        No journal is read anew for it: a reader keeps the newest records it came by.
        """
        with self._guard:
            self._refresh_all()
            found = [entry for reader in self._readers.values() for entry in reader.recent()]
        return sorted(found, key=lambda entry: (entry.at, entry.machine))[-RECENT:]

    def recent_of(self, path: str, id: str) -> list[Entry]:
        """The newest operations, oldest first, that left a file at *path* or tell of the note *id*.

        As `recent`, but those of every machine go as far back as its reader remembers, and one that changes
        no file and tells of many notes at once is left out.
        """
        with self._guard:
            self._refresh_all()
            found = [entry for reader in self._readers.values() for entry in reader.naming(path, id).values()]
        return sorted(found, key=lambda entry: (entry.at, entry.machine))

    def wrote_lately(self, fingerprint: str) -> bool:
        """Whether one of the newest operations left these bytes."""
        with self._guard:
            self._refresh_all()
            return any(fingerprint in reader.written for reader in self._readers.values())

    def onward(self) -> dict[str, str]:
        """For each place that a note ever left, as far as the journals tell, the place it went to."""
        found: dict[str, str] = {}
        with self._guard:
            self._refresh_all()
            for reader in self._readers.values():
                found |= reader.onward
        return found

    def times(self, verb: str, since: datetime) -> list[datetime]:
        """When operations of *verb*, one of the reader's `TIMED`, were begun on any machine since then."""
        with self._guard:
            self._refresh_all()
            begun = [at for reader in self._readers.values() for at in reader.times.get(verb, ())]
        first = show(since)
        return sorted(filter(None, (to_time(at) for at in begun if at >= first)))

    def accounts_for(self, fingerprint: str) -> bool:
        """Whether some journal names these bytes as before or after a change: then no person made them."""
        with self._guard:
            self._refresh_all()
            return any(fingerprint in reader.hashes for reader in self._readers.values())

    def accounts_for_all(self, fingerprints: Collection[str]) -> set[str]:
        """Those of *fingerprints* that `accounts_for` is true of."""
        with self._guard:
            self._refresh_all()
            return {one for one in fingerprints if any(one in its.hashes for its in self._readers.values())}

    def last_known(self, id: str) -> LastWrite | None:
        """The newest program write of the note with this id, None when no journal tells of one."""
        return self.last_writes()(id)

    def last_writes(self) -> Callable[[str], LastWrite | None]:
        """`last_known` as of now, for asking after many notes without looking at the journals again."""
        with self._guard:
            self._refresh_all()
            readers = list(self._readers.values())

        def newest(id: str) -> LastWrite | None:
            found = (reader.last_write(id) for reader in readers)
            return max(
                (write for write in found if write is not None), key=lambda write: write.at, default=None
            )

        return newest

    def is_older(self) -> bool:
        """Whether the journal lacks the operation this machine last began: an older copy took its place."""
        with self._guard:
            try:
                newest = files.read_bytes(self._memory()).decode("utf-8", "replace")
            except NotFound:
                return False
            own = self._own()
            return bool(newest) and newest not in own.ops and own.trouble is None

    def problems(self) -> list[Problem]:
        """What a person should know: torn or foreign records, copies, operations open elsewhere."""
        with self._guard:
            self._refresh_all()
            self.unfinished()  # finds records that lack something
            elsewhere = self.elsewhere()
            found = [problem for reader in self._readers.values() for problem in reader.problems]
            if self.is_older():
                found.append(
                    problem_at(self.path, 0, "journal_older", "An older copy of the journal took its place.")
                )
            found.extend(self._odd_files())
        for entry in elsewhere:
            where = (
                f"{entry.machine} has not finished {entry.verb} {entry.op}; it recovers when it runs there."
            )
            path = entry.steps[0].path if entry.steps else ""
            found.append(problem_at(path, 0, "open_elsewhere", where))
        return found + [old.problem for old in old_operations(self.vault)]

    # -- erasing -------------------------------------------------------------------------------------------

    def forget(
        self, paths: Collection[str], ids: Collection[str], said: re.Pattern[str] | None = None
    ) -> int:
        """Take every mention of these notes out of this machine's journal; returns the lines changed.

        Reasons and details in which *said* is found go as well, whatever note they are about.
        """
        about = About(frozenset(paths), frozenset(ids), said)
        with self._guard:
            place = self.vault.locate(self.path)
            reader = self._own()
            kept: list[bytes] = []
            changed = 0
            try:
                lines = files.read_bytes(place).split(b"\n")
            except NotFound:
                return 0
            for line in lines:
                records, odd = from_line(line)
                if not odd and not any(about.mentions(record) for record in records):
                    kept.append(line)
                    continue
                changed += 1
                kept.extend(to_line(about.redacted(record)).rstrip(b"\n") for record in records)
            if changed:
                files.write_state(place, b"\n".join(kept), durable=True)
                with files.told(place):
                    files.sync_folder(place.parent)
                reader.reset()
            for path in self._listed():
                if path.startswith(f"{places.JOURNALS}/{self.machine}.torn-"):
                    files.discard(self.vault.locate(path))
            return changed

    # -- inside --------------------------------------------------------------------------------------------

    def _listed(self) -> list[str]:
        with contextlib.suppress(NotFound), files.told(self.vault.root / places.JOURNALS):
            folder = self.vault.locate(places.JOURNALS)
            return sorted(f"{places.JOURNALS}/{name}" for name in os.listdir(folder))
        return []

    def _paths(self) -> list[str]:
        return [path for path in self._listed() if path.endswith(".jsonl") and places.kind(path) == "system"]

    def _odd_files(self) -> Iterator[Problem]:
        for path in self._listed():
            if places.kind(path) == "conflict":
                yield problem_at(
                    path, 0, "conflict_copy", "A sync conflict copy of a journal; it is not read."
                )
            elif ".torn-" in path:
                yield problem_at(
                    path, 0, "journal_torn", "Half a record that a killed run left was set aside here."
                )

    def _own(self) -> JournalReader:
        reader = self._readers.setdefault(self.path, JournalReader(self.path))
        reader.refresh(self.vault)
        return reader

    def _refresh_all(self) -> None:
        for path in {*self._paths(), self.path}:
            self._readers.setdefault(path, JournalReader(path)).refresh(self.vault)
