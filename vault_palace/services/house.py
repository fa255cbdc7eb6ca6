"""What every verb stands on: the open vault, its policy, journal, cache and lock, and one note as read.

The files are the truth. The cache is fed by the call that writes and by `refresh`, which compares disk
with cache; a note is always read from disk before anything is decided about it alone.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from vault_palace.core import frontmatter, places, rules, styles
from vault_palace.core import memory as memories
from vault_palace.core.changes import Mark
from vault_palace.core.errors import (
    Busy,
    MalformedNote,
    NotFound,
    PathViolation,
    PolicyViolation,
    RateLimited,
    VaultError,
)
from vault_palace.core.frontmatter import Delete, Header, HeaderProblem
from vault_palace.core.memory import Reading
from vault_palace.core.model import OLD_POLICY, POLICY_NOTE, Layer, Memory, Problem, Status, Value
from vault_palace.core.policy import Policy
from vault_palace.core.streak import resting
from vault_palace.services import caller, copies, deeds, pace, policies
from vault_palace.services.machine import machine_id
from vault_palace.services.shelf import FRESH_SECONDS, Shelf
from vault_palace.services.shown import Shown
from vault_palace.services.values import (
    Edit,
    Limits,
    Move,
    Note,
    PalaceSettings,
    Put,
    Remove,
    body_hash,
    system_clock,
)
from vault_palace.storage import files, operations
from vault_palace.storage.journal import Journal
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.operations import Operation, Recovered, Step
from vault_palace.storage.records import NoteFact
from vault_palace.storage.vault import Stored, Vault, find_palace, palace_mark
from vault_palace.storage.versions import Versions

__all__ = [
    "REDO",
    "Edit",
    "House",
    "Limits",
    "Move",
    "Note",
    "PalaceSettings",
    "Put",
    "Remove",
    "body_hash",
    "machine_id",
    "system_clock",
]

EMPTY_SECONDS = 0.1  # an empty note is read again after this before it is believed
OUTSIDE_SECONDS = 6 * 3600  # nobody settles for longer than that
REDO = 50  # how often an edit is made anew on a note that changed under it; twenty agents may write at once


def _wait_for_lock(seconds: float) -> None:
    pace.wait_on()
    time.sleep(seconds)


_RIDING: ContextVar[list[Put] | None] = ContextVar("riding", default=None)


@contextmanager
def riding(edit: Put) -> Iterator[None]:
    """Within it, the next operation makes *edit* as well: both are done, or neither."""
    token = _RIDING.set([edit])
    try:
        yield
    finally:
        _RIDING.reset(token)


class House:
    """The open palace. Its methods are what the verbs share; the verbs themselves are in their modules."""

    def __init__(self, vault: Vault, settings: PalaceSettings, machine: str) -> None:
        self.vault = vault
        self.settings = settings
        self.machine = machine
        self.versions = Versions(vault)
        self.journal = Journal(vault, machine, clock=settings.clock)
        self._lock = WriteLock(vault, wait=_wait_for_lock)
        self.guard = threading.RLock()
        self._policy: tuple[tuple[Mark | None, Mark | None], Policy, tuple[Problem, ...]] | None = None
        self._applied = policies.Applied(vault)
        self._destructive: deque[datetime] = deque()
        self.touches: dict[str, datetime] = {}
        self.touching: set[str] = set()  # those that a thread is writing now
        self.recovered: tuple[Recovered, ...] = ()  # unfinished ones ended by the way, until told
        self.outside: dict[str, int] = {}
        self.quarrels: dict[str, Problem] = {}  # notes that another program and the keeper kept changing
        self.shelf = Shelf(self)
        self.shown = Shown()
        self.watcher: Callable[[], dict[str, object]] | None = None  # this process's, as it speaks of itself

    @classmethod
    def open(cls, root: Path, settings: PalaceSettings) -> House:
        """The house at *root*; nothing is written to the vault yet."""
        return cls(find_palace(root), settings, machine_id(settings.state_dir))

    def close(self) -> None:
        """Let the cache go."""
        self.shelf.close()

    # -- the clock and the policy --------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.settings.clock()

    def today(self) -> date:
        """The calendar day in the vault's zone."""
        return self.policy().today(self.now())

    def policy(self) -> Policy:
        """The policy as the vault holds it now; a bad value is reported and the last good one counts."""
        with self.guard:
            marks = (self._mark(POLICY_NOTE), self._mark(OLD_POLICY))
            if self._policy is None or self._policy[0] != marks:
                self._policy = (marks, *self._policy_now())
            return self._policy[1]

    def _mark(self, path: str) -> Mark | None:
        """The file's mark; None also where it cannot be looked at, as behind a link."""
        try:
            return self.vault.mark(path)
        except VaultError:
            return None

    def policy_problems(self) -> tuple[Problem, ...]:
        self.policy()
        assert self._policy is not None
        return self._policy[2]

    def _policy_now(self) -> tuple[Policy, tuple[Problem, ...]]:
        return policies.read(self.vault, self._applied.policy())

    @property
    def applied_policy(self) -> Policy | None:
        """The policy that the last whole run went by; None before any."""
        return self._applied.policy()

    def earlier_policies(self) -> tuple[Policy, ...]:
        """The policies whose default lifetimes may stand in notes as defaults, the oldest first."""
        return self._applied.all()

    def policy_applied(self, *, styled: bool = False) -> None:
        """Remember that every note was judged by the policy in force, and, if *styled*, has its classes."""
        self.present()
        self._applied.complete(self.policy(), styled=styled)

    def styling(self) -> bool | None:
        """Whether notes have the program's items in `cssclasses` (SPEC §2); None: it never put any there.

        Then such an item is a person's, as every other one.
        """
        if self.policy().style_classes:
            return True
        return False if any(policy.style_classes for policy in self.earlier_policies()) else None

    def styled(self, text: str) -> str:
        """*text*, a note about to be written, with the items of `cssclasses` that its properties want."""
        on = self.styling()
        return text if on is None else styles.styled(text, on, bare_dates=self.bare_dates())

    def prune_versions(self) -> None:
        """Drop kept versions that are older or more than Policy says.

        Unfinished operations keep theirs, and each note the one that it is: a person may delete it tomorrow.
        """
        policy = self.policy()
        needed = {
            mark
            for entry in self.journal.unfinished()
            for step in entry.steps
            for mark in (step.before, step.after)
            if mark is not None
        }
        needed |= self.shelf.ask(lambda cache: cache.fingerprints())
        with self.locked():
            self.versions.prune(
                policy.versions_keep_days, policy.versions_keep_mb, self.now().timestamp(), spare=needed
            )

    # -- who may do what -----------------------------------------------------------------------------------

    def read_only(self) -> bool:
        return self.settings.read_only or self.policy().read_only

    def mode(self) -> str:
        if self.read_only():
            return "read-only"
        return "palace" if self.vault.exists(POLICY_NOTE) else "sediment-palace"

    def present(self) -> None:
        """Refuse when the vault is not at its place any more: a missing disk has neither notes nor room."""
        if palace_mark(self.vault.root) is None:
            raise NotFound(
                f"The vault is not at {self.vault.root} any more.",
                hint="Was it moved, or is a disk not mounted? Bring it back, then repeat the call.",
                path=str(self.vault.root),
            )

    def believed(self) -> None:
        """Refuse while what is missing in the vault cannot be a person's doing: nothing is decided by it."""
        self.refresh(if_older=0)
        if self.shelf.doubts:
            doubt = self.shelf.doubts[0]
            raise NotFound(
                doubt.message, hint="Bring them back, or run `vault-palace reindex`.", path=doubt.path
            )

    def writable(self) -> None:
        """Refuse when the vault may only be read, or is not there."""
        self.present()
        if self.read_only():
            raise PolicyViolation(
                "The vault is read-only here.",
                hint="Start without --read-only, or set read_only: false in Policy.",
            )

    def destructive(self, verb: str, confirm: bool) -> None:
        """Refuse a destructive call that is not confirmed, or one too many within a minute (SPEC §9)."""
        policy = self.policy()
        if policy.destructive_require_confirm and not confirm:
            first = "the note" if verb in ("purge_memory", "forget") else "a dry run"
            raise PolicyViolation(
                f"{verb} needs confirm: true.", hint=f"Look at {first} first, then confirm."
            )
        if not policy.max_destructive_per_minute:
            raise RateLimited(
                "Policy allows no destructive calls.", hint="Raise max_destructive_per_minute in it.", limit=0
            )
        now = self.now()
        window = timedelta(seconds=policy.destructive_window_seconds)
        with self.guard:
            while self._destructive and not now - window < self._destructive[0] <= now:
                self._destructive.popleft()
            if len(self._destructive) >= policy.max_destructive_per_minute:
                raise RateLimited(
                    f"{len(self._destructive)} destructive calls in {policy.destructive_window_seconds} s.",
                    hint="Wait a minute, or raise max_destructive_per_minute in Policy.",
                    limit=policy.max_destructive_per_minute,
                )
            self._destructive.append(now)

    @contextmanager
    def locked(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the vault's write lock, after finishing what a killed process of this machine left behind.

        *timeout* is how many seconds to wait for it, for whom that is not worth the usual patience.
        """
        self.present()
        with self._lock if timeout is None else WriteLock(self.vault, timeout=timeout):
            self.present()  # it may have gone while we waited
            if any(entry.state == "begin" for entry in self.journal.unfinished()):
                ended = operations.recover(self.vault, self.journal, self.versions, sweep=False)
                self.recovered += tuple(ended)
            yield

    def refresh(self, if_older: float = FRESH_SECONDS) -> None:
        """Bring the cache in step with the disk, unless it was less than *if_older* seconds ago."""
        try:
            self.shelf.refresh(if_older)
        except NotFound:
            self.present()  # which says what to do, if it is the vault that is missing
            raise

    def lock_holder(self) -> str:
        """Who holds the write lock now, in words; empty when it is free."""
        holder = self._lock.holder()
        return "" if holder is None else str(holder)

    # -- one note ------------------------------------------------------------------------------------------

    def look(self, path: str) -> Note:
        """The note at *path* as it is on disk now; `NotFound` when there is none."""
        stored = self.vault.read(path)
        if not stored.data and places.is_note(path):
            # Obsidian saves in place: for a moment a reader may see an empty file (SPEC §6.5).
            self.settings.sleep(EMPTY_SECONDS)
            stored = self.vault.read(path)
        return self.understand(path, stored)

    def written(self, path: str, text: str) -> Note:
        """The note at *path* as *text* says, which was just written there; the disk is not asked."""
        data = text.encode("utf-8")
        at = int(self.now().timestamp() * 1e9)
        return self.understand(path, Stored(data, files.fingerprint(data), Mark(len(data), at, 0)))

    def understand(self, path: str, stored: Stored, observe: deeds.Observe | None = None) -> Note:
        """What the bytes of *path* say. *observe* is `deeds.observer`'s, for whoever reads many notes."""
        kind = places.kind(path)
        layer = places.layer_of(path) or places.archived_layer(path)
        try:
            text = stored.data.decode("utf-8")
        except UnicodeDecodeError:
            text = None
        if text is None:
            wrong = HeaderProblem(0, "The file is not UTF-8 text.")
            header = Header(present=False, body="", body_line=1, problem=wrong)
        else:
            header = frontmatter.read(text)
        reading = memory = None
        if kind in ("memory", "archived") and header.usable:
            known = memories.identity(header)
            if known and copies.main_of(self, path, known, stored.fingerprint) is not None:
                kind = "conflict"
        if kind in ("memory", "archived") and places.is_note(path):
            reading = memories.read_memory(
                path,
                layer or Layer.SHALLOW,
                header,
                file_time=datetime.fromtimestamp(stored.mark.mtime_ns / 1e9, UTC),
                now=self.now(),
                policy=self.policy(),
            )
            memory = reading.memory
            if reading.id is not None and header.usable:
                observe = observe or deeds.observer(self)
                memory = observe(memory, reading.id, body_hash(header.body), stored.mark.mtime_ns)
        return Note(
            path=path,
            kind=kind,
            layer=layer,
            stored=stored,
            text=text,
            header=header,
            reading=reading,
            memory=memory,
        )

    def rev(self, note: Note) -> str:
        """The version of what people and agents say in *note* (SPEC §9)."""
        return memories.rev(note.header, self.policy(), note.layer)

    def memory_of(self, note: Note) -> Memory:
        """The memory, for a change of its properties; refused for other notes and unreadable headers."""
        if note.memory is None:
            raise PathViolation(
                f"{note.path} is not a memory.", hint="Memories lie in the layer folders.", path=note.path
            )
        self.refuse_malformed(note)
        return note.memory

    def refuse_malformed(self, note: Note) -> None:
        """Refuse a note whose properties cannot be written: a person has to mend it first."""
        _ = note.editable
        if note.header.problem is not None:
            raise MalformedNote(
                f"The header of {note.path} does not parse (line {note.header.problem.line}):"
                f" {note.header.problem.message}.",
                hint="Nothing was changed; mend that line in Obsidian, then repeat.",
                path=note.path,
                line=note.header.problem.line,
            )

    def with_memory(self, note: Note, text: str, after: Memory, extra: Mapping[str, Value]) -> str:
        """*text* of *note* with the properties of *after*, its forecast, and what was missing so far."""
        now, policy = self.now(), self.policy()
        if after.status is None:
            decision = rules.decide(after, after.backlinks, now, policy)
            stays = decision.to is None and decision.after.status is not None
            after = replace(after, status=decision.after.status if stays else resting(after.layer))
        after = rules.forecast(after, after.backlinks, now, policy)
        changes = memories.changes(self._read(note).memory, after, self._fills(note))
        return self.styled(self.patched(note, text, {**changes, **self._rated_by_hand(note), **extra}))

    def _rated_by_hand(self, note: Note) -> dict[str, Value]:
        """The day on which a person gave the note another density than the program last wrote (SPEC §2)."""
        last = self.journal.last_known(note.id) if note.id else None
        density = memories.density_of(note.header)
        if last is None or last.density is None or density is None or density == last.density:
            return {}
        edited = datetime.fromtimestamp(note.stored.mark.mtime_ns / 1e9, UTC)
        return {"rated_on": self.policy().today(min(edited, self.now())).isoformat()}

    def kept_up(self, note: Note, text: str) -> str:
        """*text* of *note*, about to be written for what is no use, with what a person did to the note.

        Whoever looks next compares with this write, and could not see it any more. What is missing is filled
        in: a note without `created` is as old as its file, which this write makes new.
        """
        if note.kind == "archived" or (note.kind == "memory" and note.untouched):
            return self.styled(text)
        if note.kind != "memory":
            return text
        return self.with_memory(note, text, self.memory_of(note), {})

    @staticmethod
    def _read(note: Note) -> Reading:
        assert note.reading is not None
        return note.reading

    def _fills(self, note: Note) -> dict[str, Value | Delete]:
        reading = self._read(note)
        return {**({} if reading.id else {"id": self.new_id()}), **reading.fills}

    def used(self, note: Note, text: str, extra: Mapping[str, Value]) -> str:
        """*text* of *note* after a use, with *extra* properties set."""
        if note.memory is None or note.kind != "memory":
            return self.patched(note, text, extra)
        memory = note.memory
        density = extra.get("density")
        if isinstance(density, int | float):
            memory = replace(memory, density=float(density))
        return self.with_memory(note, text, rules.touch(memory, self.now(), self.policy()), extra)

    def archived_text(self, note: Note, reason: str, *, after: Memory | None = None) -> str:
        """The text of *note* as the archive keeps it, with why and from where."""
        memory = self.memory_of(note)
        if after is None:
            after = rules.archive(rules.settle(memory, self.now(), self.policy()))
        changes = memories.archived_changes(
            self._read(note).memory,
            after,
            self._fills(note),
            now=self.now(),
            policy=self.policy(),
            reason=f"{reason}{memories.UNAPPROVED}" if memory.status is Status.PROPOSED else reason,
            archived_from=note.path,
        )
        return self.styled(self.patched(note, note.editable, changes))

    def patched(self, note: Note, text: str, changes: Mapping[str, Value | Delete]) -> str:
        """*text* of *note* with the properties in *changes*; a refusal says which note it is."""
        if not changes:
            return text
        try:
            return frontmatter.patch(text, changes, bare_dates=self.bare_dates())
        except MalformedNote as error:
            facts = {"path": note.path, **error.facts}
            raise MalformedNote(f"{note.path}: {error.message}", hint=error.hint, **facts) from error

    def bare_dates(self) -> bool:
        """Whether dates go without quotes: only after `init`. Sediment Palace's server ends on a bare one."""
        return self.vault.exists(POLICY_NOTE)

    def changed_outside(self, note: Note) -> int | None:
        """The file's time, in ns, when a person last changed *note*, as far as any process saw it."""
        self.see_outside(note.path, note.stored)
        last = self.journal.last_known(note.id) if note.id else None
        seen = (self.outside.get(note.path), last.outside if last is not None else None)
        return max((at for at in seen if at is not None), default=None)

    def see_outside(self, path: str, stored: Stored) -> None:
        """Remember when *path* was last changed outside: by bytes that no journal line accounts for.

        The file's time alone would forget it as soon as the program writes a line into the note.
        """
        newest = self.outside.get(path, -1)
        if stored.mark.mtime_ns > newest and not self.journal.accounts_for(stored.fingerprint):
            self.outside[path] = stored.mark.mtime_ns

    def new_id(self) -> str:
        return f"mem_{secrets.token_hex(6)}"

    # -- changing ------------------------------------------------------------------------------------------

    def perform(self, verb: str, edits: Sequence[Edit], *, why: str) -> str:
        """Carry *edits* out as one journalled operation and feed the cache. The lock must be held.

        The operation's id is returned.
        """
        self._applied.written_by(self.policy())
        steps: list[Step] = []
        facts: list[NoteFact] = []
        riders = _RIDING.get() or []
        taken = {edit.path for edit in riders}
        edits = [*(edit for edit in edits if edit.path not in taken), *riders]
        for edit in edits:
            place = edit.to if isinstance(edit, Move) else edit.path
            if any(part.startswith(".") for path in (edit.path, place) for part in path.split("/")):
                raise PathViolation(f"{place} is hidden, and never written to.", path=place)
            if edit.before is not None:
                self.see_outside(edit.path, edit.before)
            if isinstance(edit, Remove):
                steps.append(Step(kind="remove", path=edit.path, before=edit.before.data))
                continue
            if isinstance(edit, Move):
                steps.append(
                    Step(kind="move", path=edit.path, to=edit.to, before=edit.before.data, after=edit.data)
                )
            else:
                before = None if edit.before is None else edit.before.data
                steps.append(Step(kind="put", path=edit.path, before=before, after=edit.data))
            if edit.before is not None:
                deeds.see_rename(self, edit.path, edit.before.data)
            facts += self.note_facts(edit.to if isinstance(edit, Move) else edit.path, edit.data, edit.path)
        operation = Operation(
            id=secrets.token_hex(8),
            verb=verb,
            at=self.now(),
            session=caller.current(self.settings).session,
            why=why,
            steps=tuple(steps),
            notes=tuple(facts),
        )
        held = operations.carry_out(self.vault, self.journal, self.versions, operation)
        riders.clear()
        self.shelf.feed(held, gone=[edit.path for edit in edits if isinstance(edit, Move | Remove)])
        return operation.id

    def twin_of(self, note: Note) -> str:
        """Where another note with the same id lies, the one that the journals mean; empty when none does."""
        last = self.journal.last_known(note.id) if note.id else None
        if last is None or last.path in ("", note.path) or not self._is_at(note.id, last.path):
            return ""
        return last.path

    def refuse_twin(self, note: Note) -> None:
        """Refuse to move a copy that still has the id of another note: nobody could tell them apart then."""
        if other := self.twin_of(note):
            raise Busy(
                f"{note.path} has the id of {other}: a copy, or a late save, that nobody looked after yet.",
                hint="Retry in some seconds; without a keeper run `vault-palace watch --once`.",
                path=note.path,
            )

    def _is_at(self, id: str, path: str) -> bool:
        """Whether the note at *path* has this id, as it is on disk."""
        try:
            return memories.identity(frontmatter.read(self.vault.read(path).data.decode("utf-8"))) == id
        except (VaultError, UnicodeDecodeError):
            return False

    def note_facts(self, path: str, data: bytes, came_from: str = "") -> list[NoteFact]:
        """What the journal is to know of the note *data* at *path*; nothing of a note without an id.

        When a person last changed it goes along, for processes that did not see it happen.
        """
        if places.kind(path) not in ("memory", "archived"):
            return []
        try:
            header = frontmatter.read(data.decode("utf-8"))
        except UnicodeDecodeError:
            return []
        known = memories.identity(header)
        streak = header.values.get("streak")
        if known is None:
            return []
        whole = streak if isinstance(streak, int) and not isinstance(streak, bool) else None
        pinned = memories.means_pinned(header.values.get("pinned"))
        density = memories.density_of(header)
        last = self.journal.last_known(known)
        if last is not None and last.path not in ("", path, came_from) and self._is_at(known, last.path):
            return []  # a copy that still has the id of the other one: nothing of it is that one's
        seen = [self.outside.get(place) for place in {path, came_from}]
        seen.append(last.outside if last is not None else None)
        outside = max((at for at in seen if at is not None), default=None)
        if outside is not None and self.now().timestamp() - outside / 1e9 > OUTSIDE_SECONDS:
            outside = None
        return [
            NoteFact(
                id=known,
                path=path,
                body=body_hash(header.body),
                streak=whole,
                pinned=pinned,
                density=density,
                outside=outside,
            )
        ]
