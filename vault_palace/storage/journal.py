"""The operation journal: what was about to change, by hashes, one file a machine, one JSON object a line.

A `begin` record is on the disk before anything is done; a closing record follows when it is finished, undone,
superseded by a person, or left open. The journal holds paths, hashes and reasons, never a note's text, and
only its owner can read it. Other machines' journals arrive by sync: they are read, never written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from vault_palace.core import places
from vault_palace.core.errors import InvalidArguments, NotFound, StorageFailed, VaultError
from vault_palace.core.model import SYSTEM, Problem
from vault_palace.storage import files
from vault_palace.storage.records import (
    STATES,
    VERSION,
    About,
    Entry,
    LastWrite,
    State,
    from_line,
    show,
    to_entry,
    to_last_write,
    to_line,
    to_record,
    to_time,
)
from vault_palace.storage.vault import Vault

_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TAIL_CHECK = 512
RECENT = 400  # operations that `recent` tells of
_BOM = b"\xef\xbb\xbf"
TIMED = frozenset({"metabolize"})  # verbs of which every time is at hand
OLD_JOURNAL = f"{SYSTEM}/journal.log"  # Sediment Palace's


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
        self._readers: dict[str, _Reader] = {}

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
                reader = _Reader(path, history=True)
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

    def times(self, verb: str, since: datetime) -> list[datetime]:
        """When operations of *verb*, one of `TIMED`, were begun on any machine, from *since* on; cheap."""
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
                    _problem(self.path, 0, "journal_older", "An older copy of the journal took its place.")
                )
            found.extend(self._odd_files())
        for entry in elsewhere:
            where = (
                f"{entry.machine} has not finished {entry.verb} {entry.op}; it recovers when it runs there."
            )
            path = entry.steps[0].path if entry.steps else ""
            found.append(_problem(path, 0, "open_elsewhere", where))
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
                yield _problem(path, 0, "conflict_copy", "A sync conflict copy of a journal; it is not read.")
            elif ".torn-" in path:
                yield _problem(
                    path, 0, "journal_torn", "Half a record that a killed run left was set aside here."
                )

    def _own(self) -> _Reader:
        reader = self._readers.setdefault(self.path, _Reader(self.path))
        reader.refresh(self.vault)
        return reader

    def _refresh_all(self) -> None:
        for path in {*self._paths(), self.path}:
            self._readers.setdefault(path, _Reader(path)).refresh(self.vault)


class _Reader:
    """Reads one journal from where it stopped last time, and from the start when the file was replaced."""

    def __init__(self, path: str, *, history: bool = False) -> None:
        self.path = path
        self.machine = path.rpartition("/")[2].removesuffix(".jsonl")
        self._keeps_history = history
        self.reset()

    def reset(self) -> None:
        self.offset = 0  # just behind the last whole line
        self.tail = b""
        self.line = 0
        self.open: dict[str, dict[str, object]] = {}  # `begin` records as they stand, and where they end
        self.known: dict[str, dict[str, object]] = {}  # a note's newest fact, and when it was written
        self.hashes: set[str] = set()
        self.ops: set[str] = set()
        self.history: dict[str, dict[str, object]] = {}
        self.times: dict[str, list[str]] = {}  # of each verb in `TIMED`
        self.newest: OrderedDict[str, dict[str, object]] = OrderedDict()
        self.problems: list[Problem] = []
        self.trouble: VaultError | None = None  # why it cannot be read
        self._seen = (0, 0, 0)
        self._last = b""  # the bytes just before `offset`, to notice that the file was rewritten

    @property
    def tail_is_whole(self) -> bool:
        records, odd = from_line(self.tail)
        return bool(records) and not odd

    def forget_tail(self) -> None:
        self.tail = b""
        self.problems = [problem for problem in self.problems if problem.line <= self.line]

    def refresh(self, vault: Vault) -> None:
        """Take in what came. A journal that cannot be read is taken for empty, reported, and asked again."""
        try:
            self._catch_up(vault)
            self.trouble = None
        except NotFound:
            self.reset()
            self.trouble = None
        except VaultError as error:
            self.reset()
            self.trouble = error
            self.problems = [_problem(self.path, 0, "journal_unreadable", error.message)]

    def _catch_up(self, vault: Vault) -> None:
        place = vault.locate(self.path)
        with files.told(place):
            found = os.stat(place, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            raise StorageFailed(f"{place.name}: a folder is in its place.", path=str(place))
        seen = (found.st_ino, found.st_size, found.st_mtime_ns)
        if seen == self._seen:
            return
        if found.st_size < self.offset or self._seen[0] not in {0, found.st_ino}:
            self.reset()
        with files.told(place), open(place, "rb", opener=files.read_only) as stream:
            stream.seek(self.offset - len(self._last))
            if stream.read(len(self._last)) != self._last:
                self.reset()
                stream.seek(0)
            self._read(stream)
            back = min(self.offset, _TAIL_CHECK)
            stream.seek(self.offset - back)
            self._last = stream.read(back)
        self._seen = seen

    def _read(self, stream: BinaryIO) -> None:
        self.forget_tail()
        for line in stream:
            if self.offset == 0 and line.startswith(_BOM):
                self.offset = len(_BOM)
                line = line[len(_BOM) :]
            if not line.endswith(b"\n"):
                # Honoured already; when its line end comes the same records are taken again, harmlessly.
                self.tail = line
                self._take(line, report=self.line + 1)
                return
            self.line += 1
            self.offset += len(line)
            self._take(line, report=self.line)

    def _take(self, line: bytes, *, report: int) -> None:
        records, odd = from_line(line)
        if odd:
            self.problems.append(
                _problem(
                    self.path, report, "journal_torn", "A record is torn or unreadable; it is passed over."
                )
            )
        for record in records:
            if record.get("v") != VERSION:
                what = f"A record of version {record.get('v')!r}, which this program does not know."
                self.problems.append(_problem(self.path, report, "journal_version", what))
            elif not self._apply(record):
                self.problems.append(
                    _problem(
                        self.path, report, "journal_torn", "A record lacks what it needs; it is passed over."
                    )
                )

    def _apply(self, record: dict[str, object]) -> bool:
        """Take in one record; False when it lacks what it needs."""
        op, state = record.get("op"), record.get("state")
        if not isinstance(op, str) or not isinstance(state, str) or state not in STATES:
            return False
        self.ops.add(op)
        if state == "begin":
            return self._begin(op, record)
        if op in self.open:  # its record is that of `newest`, as long as it stands there
            self.open[op].update(state=state, detail=record.get("detail", ""))
            if state != "open":
                del self.open[op]
        if self._keeps_history and op in self.history:
            self.history[op].update(state=state, detail=record.get("detail", ""))
        return True

    def _begin(self, op: str, record: dict[str, object]) -> bool:
        # A long journal is read at every start: values are made of the few records that are asked for.
        steps, notes, at = record.get("steps", []), record.get("notes", []), record.get("at")
        if not isinstance(steps, list) or not isinstance(notes, list) or not isinstance(at, str):
            return False
        try:
            for step in steps:
                self.hashes.update(filter(None, (step.get("before"), step.get("after"))))
            for note in notes:
                self.known[note["id"]] = {**note, "at": at}
        except (AttributeError, KeyError, TypeError):
            return False
        verb = record.get("verb")
        if isinstance(verb, str) and verb in TIMED:
            self.times.setdefault(verb, []).append(at)
        if self._keeps_history:
            self.history[op] = record
        self.open[op] = self.newest[op] = record
        self.newest.move_to_end(op)  # a line that was read before its end came is taken twice
        if len(self.newest) > RECENT:
            self.newest.popitem(last=False)
        return True

    def unfinished(self) -> list[Entry]:
        """The operations without a final record; one that lacks what recovery needs becomes a problem."""
        return self._values(self.open)

    def everything(self) -> list[Entry]:
        return self._values(self.history)

    def recent(self) -> list[Entry]:
        """The newest operations; one that lacks what it needs is left out, for it is told elsewhere."""
        found = (to_entry(record, self.machine) for record in self.newest.values())
        return [entry for entry in found if entry is not None]

    def _values(self, records: dict[str, dict[str, object]]) -> list[Entry]:
        found = []
        for op, record in list(records.items()):
            entry = to_entry(record, self.machine)
            if entry is None:
                del records[op]
                what = (
                    f"The record of operation {places.printable(op)} lacks what it needs; it is passed over."
                )
                self.problems.append(_problem(self.path, self.line, "journal_torn", what))
            else:
                found.append(entry)
        return found

    def last_write(self, id: str) -> LastWrite | None:
        note = self.known.get(id)
        return None if note is None else to_last_write(note)


def _problem(path: str, line: int, code: str, message: str) -> Problem:
    return Problem(path=path, line=line, code=code, message=message)


# -- Sediment Palace's journal ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class OldOperation:
    """What Sediment Palace's journal says it began: its id, verb, note (empty: none is named), line."""

    op: str
    verb: str
    path: str
    line: int

    @property
    def problem(self) -> Problem:
        what = f"{self.verb} of {self.path}" if self.path else self.verb
        message = f"Sediment Palace began {what} and did not complete it."
        return _problem(OLD_JOURNAL, self.line, "old_operation_open", message)


def old_operations(vault: Vault) -> list[OldOperation]:
    """Operations that Sediment Palace began and never completed: shown, never closed or changed."""
    try:
        lines = vault.read(OLD_JOURNAL).data.split(b"\n")
    except NotFound:
        return []
    begun: dict[str, OldOperation] = {}
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            op, state = str(event["operation_id"]), event["state"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if state == "started":
            given = event.get("payload")
            payload = given if isinstance(given, dict) else {}
            path = payload.get("path") or payload.get("source")
            verb = str(event.get("operation") or "an operation")
            begun[op] = OldOperation(op, verb, path if isinstance(path, str) else "", number)
        elif state == "completed":
            begun.pop(op, None)
    return list(begun.values())
