"""Reading one machine's journal: on from where the last look stopped, never writing to it.

A record that is torn, foreign or lacks something is reported and passed over; every whole record counts.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import BinaryIO

from vault_palace.core import places
from vault_palace.core.errors import NotFound, StorageFailed, VaultError
from vault_palace.core.model import Problem
from vault_palace.storage import files
from vault_palace.storage.records import (
    STATES,
    VERSION,
    Entry,
    LastWrite,
    from_line,
    to_entry,
    to_last_write,
)
from vault_palace.storage.vault import Vault

_TAIL_CHECK = 512
RECENT = 2_000  # operations that `recent` tells of
_BOM = b"\xef\xbb\xbf"
TIMED = frozenset({"metabolize"})  # verbs of which every time is at hand


class JournalReader:
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
        self.onward: dict[str, str] = {}  # where a note went from each place it ever left
        self._made: dict[str, tuple[object, Entry | None]] = {}  # of `recent`, by operation and state
        self.times: dict[str, list[str]] = {}  # of each verb in `TIMED`
        self.newest: OrderedDict[str, dict[str, object]] = OrderedDict()
        self.written: Counter[str] = Counter()  # the bytes that the operations in `newest` left
        self._naming: dict[str, dict[str, None]] = {}  # those operations, by what `naming` finds them by
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
            self.problems = [problem_at(self.path, 0, "journal_unreadable", error.message)]

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
                problem_at(
                    self.path, report, "journal_torn", "A record is torn or unreadable; it is passed over."
                )
            )
        for record in records:
            if record.get("v") != VERSION:
                what = f"A record of version {record.get('v')!r}, which this program does not know."
                self.problems.append(problem_at(self.path, report, "journal_version", what))
            elif not self._apply(record):
                self.problems.append(
                    problem_at(
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
                # What was set aside is a copy: the note stays where it is.
                if step.get("kind") == "move" and record.get("verb") != "set aside":
                    self.onward[str(step["path"])] = str(step["to"])
            for note in notes:
                self.known[note["id"]] = {**note, "at": at}
                if was := note.get("was"):
                    self.onward[str(was)] = str(note["path"])
        except (AttributeError, KeyError, TypeError):
            return False
        verb = record.get("verb")
        if isinstance(verb, str) and verb in TIMED:
            self.times.setdefault(verb, []).append(at)
        if self._keeps_history:
            self.history[op] = record
        if op in self.newest:  # a line that was read before its end came is taken twice
            self._let_go(op, self.newest.pop(op))
        self.open[op] = self.newest[op] = record
        for key in _keys(record):
            self._naming.setdefault(key, {})[op] = None
        self.written.update(_afters(record))
        if len(self.newest) > RECENT:
            self._let_go(*self.newest.popitem(last=False))
        return True

    def _let_go(self, op: str, record: dict[str, object]) -> None:
        self._made.pop(op, None)
        for key in _keys(record):
            if ops := self._naming.get(key):
                ops.pop(op, None)
                if not ops:
                    del self._naming[key]
        self.written.subtract(_afters(record))
        for after in _afters(record):
            if self.written[after] <= 0:
                del self.written[after]

    def unfinished(self) -> list[Entry]:
        """The operations without a final record; one that lacks what recovery needs becomes a problem."""
        return self._values(self.open)

    def everything(self) -> list[Entry]:
        return self._values(self.history)

    def recent(self) -> list[Entry]:
        """The newest operations; one that lacks what it needs is left out, for it is told elsewhere."""
        return list(filter(None, map(self._entry, self.newest)))

    def naming(self, path: str, id: str) -> dict[str, Entry]:
        """Those of `recent` that left a file at *path*, or tell of the note *id*, by operation.

        One that changes no file and tells of many notes at once is not told.
        """
        ops = {**self._naming.get(f"path {path}", {}), **(self._naming.get(f"id {id}", {}) if id else {})}
        return {op: entry for op in ops if (entry := self._entry(op)) is not None}

    def _entry(self, op: str) -> Entry | None:
        """The operation in `newest` as a value, made once for each state."""
        record = self.newest[op]
        state, known = record.get("state"), self._made.get(op)
        if known is None or known[0] != state:
            known = self._made[op] = (state, to_entry(record, self.machine))
        return known[1]

    def _values(self, records: dict[str, dict[str, object]]) -> list[Entry]:
        found = []
        for op, record in list(records.items()):
            entry = to_entry(record, self.machine)
            if entry is None:
                del records[op]
                what = (
                    f"The record of operation {places.printable(op)} lacks what it needs; it is passed over."
                )
                self.problems.append(problem_at(self.path, self.line, "journal_torn", what))
            else:
                found.append(entry)
        return found

    def last_write(self, id: str) -> LastWrite | None:
        note = self.known.get(id)
        return None if note is None else to_last_write(note)


def _keys(record: dict[str, object]) -> Iterator[str]:
    """What `naming` finds a record by, which `_begin` has looked at."""
    steps, notes = record.get("steps", []), record.get("notes", [])
    assert isinstance(steps, list)
    assert isinstance(notes, list)
    for step in steps:
        yield f"path {step.get('to') or step.get('path')}"
    for note in notes if steps or len(notes) == 1 else ():
        yield f"id {note['id']}"


def _afters(record: dict[str, object]) -> list[str]:
    steps = record.get("steps", [])
    assert isinstance(steps, list)
    return [after for step in steps if isinstance(after := step.get("after"), str)]


def problem_at(path: str, line: int, code: str, message: str) -> Problem:
    """One problem of a journal, at a line of it; 0 is the whole file."""
    return Problem(path=path, line=line, code=code, message=message)
