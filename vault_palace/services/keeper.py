"""The keeper: sees what people did in the vault and keeps properties, links, index note and ages in step.

Events only wake it. What it finds is told by state: the notes on disk, the journals' facts and the cache; so
lost, doubled or reordered events, its own writes and times without a keeper cost nothing (SPEC §7). It gives
way to whoever types, and writes nothing where there is no `_System/Policy.md`.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from vault_palace.core import places
from vault_palace.core.errors import Busy, LockTimeout, NoteChanged, NotFound, StorageFailed, VaultError
from vault_palace.core.model import POLICY_NOTE, Problem
from vault_palace.index.cache import IndexedNote
from vault_palace.services import ageing, attention, deeds, journalnote, mapping, quiet, review, stale, upkeep
from vault_palace.services.ageing import never
from vault_palace.services.house import House
from vault_palace.services.linkcounts import LinkCounts
from vault_palace.services.shelf import link_keys
from vault_palace.services.trail import GONE_FOR, NOTES, Found, Known, Trail

logger = logging.getLogger(__name__)

SLICE = 200  # notes that are written to in one step; the rest waits for the next one, which comes at once
KEPT_SLICE = 300  # notes whose version is looked after in one step
ALL_AT_ONCE = 1_000  # notes that are judged together; more than that are not looked at one by one
BULK = 20  # so many texts changed within `BULK_WINDOW` are a tool's doing, such as a checkout: no one's use
BULK_WINDOW = timedelta(seconds=10)
COPY_SECONDS = 5.0  # a copy may be half of a move between disks: its original goes within this
ROUNDS, ROUND_WINDOW = 5, timedelta(minutes=10)  # the brake: writes to one note, in answer to others' writes
LATELY = timedelta(days=1)  # renames on record for longer have had their links followed, or are left
LINK_PAUSE = timedelta(seconds=5)  # a note with links to a moved one may be open for minutes
LONGEST_PAUSE = timedelta(minutes=10)  # between two tries of what goes on failing
AGAIN = 1.0  # seconds until what could not be done now is tried again
MAP_PAUSE, JOURNAL_PAUSE = 0.25, 20.0  # seconds between two renewals of what is generated
MAP_SHARE = 5  # a renewal that took long is not repeated for so many times as long


@dataclass(slots=True)
class _Due:
    """What one note waits for."""

    at: datetime
    deeds: dict[str, str] = field(default_factory=dict)  # verb -> why, to be put on record when it is done
    twin_of: str = ""
    was: str = ""  # where it was before a person moved it
    changed: datetime | None = None  # when a person was last seen to change it


class Keeper:
    """What one process does for the vault while it holds the lease. Its methods belong to one thread."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.trail = Trail()
        self._due: dict[str, _Due] = {}
        self._renames: set[str] = set()  # the operations whose renames were taken up
        self._moves: dict[str, str] = {}  # old path -> new path, until the links to them are looked after
        self._linked: dict[str, str] = {}  # the moves for which all notes were looked at, and who waits still
        self._unlinked: frozenset[str] = frozenset()
        self._link_again: datetime | None = None
        self._moved_at: dict[str, datetime] = {}  # new path -> when the move was seen
        self._changed_at: dict[str, datetime] = {}  # notes changed by people lately
        self._told: dict[str, datetime] = {}  # when an edit of a note was last put on record
        self._late: dict[int, str] = {}  # where files with another note's id were first seen, by inode
        self._put_off: dict[str, tuple[datetime, float]] = {}  # what failed, until when, and for how long
        self._left: dict[str, tuple[str, datetime]] = {}  # the bytes left in notes it wrote to, and when
        self._rounds: dict[str, deque[datetime]] = defaultdict(deque)
        self._unkept: dict[str, str] = {}  # path -> fingerprint of versions to look after
        self._attention = attention.Attention(house)
        self._stale = stale.Overwritten(house)
        self._review = review.Review(house)
        self._review_at: datetime | None = None
        self._policy: object = None
        self._policy_changed = False
        self._rejudged: set[str] | None = None  # the notes with a stale forecast, after an edit of the policy
        self._links = LinkCounts(house.shelf)
        self._map_dirty = self._journal_dirty = True
        self._map_at: datetime | None = None
        self._journal_at: datetime | None = None
        self._pruned_on: date | None = None
        self._day: date | None = None

    # -- the one step --------------------------------------------------------------------------------------

    def step(self, paths: Collection[str] | None = None, *, stop: Callable[[], bool] = never) -> float | None:
        """Look at *paths* (None: at everything), do what is due, and say in how many seconds more is.

        One thing that cannot be done now hinders nothing else. None: nothing waits but changes to come.
        """
        house = self.house
        try:
            house.present()
            if not self.may_write():
                self._only_look(paths)
                return None
            self._look(paths)
        except VaultError as error:
            logger.info("The vault cannot be looked at: %s", error)
            return AGAIN * 5
        if house.shelf.doubts:
            return None  # nothing is believed, nothing is written; the next look at everything may differ
        waits: list[float | None] = [GONE_FOR.total_seconds()] if self.trail.gone else []
        now = house.now()
        for act in (
            self._keep_versions,
            self._keep_up,
            self._follow_links,
            self._count_openings,
            self._renew_review,
            self._renew_map,
            self._renew_journal,
            self._age,
            self._prune,
        ):
            if stop():
                break
            until, pause = self._put_off.get(act.__name__, (now, 0.0))
            if timedelta(0) < until - now <= LONGEST_PAUSE:
                waits.append((until - now).total_seconds())
                continue
            try:
                waits.append(act(stop))
                self._put_off.pop(act.__name__, None)
            except VaultError as error:
                logger.info("%s waits: %s", act.__name__, error)
                pause = min(max(2 * pause, AGAIN), LONGEST_PAUSE.total_seconds())
                self._put_off[act.__name__] = (now + timedelta(seconds=pause), pause)
                waits.append(pause)
        return min((wait for wait in waits if wait is not None), default=None)

    def may_write(self) -> bool:
        """Whether there is anything for a keeper to write here: not read-only, and a palace after `init`."""
        return not self.house.read_only() and self.house.vault.exists(POLICY_NOTE)

    def _only_look(self, paths: Collection[str] | None) -> None:
        if paths is None:
            self.house.refresh(if_older=0)
        else:
            self.house.shelf.stir(paths)
            self.house.shelf.catch_up()

    # -- looking -------------------------------------------------------------------------------------------

    def _look(self, paths: Collection[str] | None) -> None:
        house = self.house
        self._only_look(paths)
        known = house.shelf.marks()
        if known is None:  # files came or went while they were compared
            house.refresh(if_older=0)
            known = house.shelf.marks()
        if house.shelf.doubts or known is None:
            return
        changed, vanished = self.trail.differences(known, paths)
        now = house.now()
        self._see_policy()
        self._new_day(now)
        first, few = not self.trail.known, len(changed) <= ALL_AT_ONCE
        for start in range(0, len(changed) or len(vanished[:1]), ALL_AT_ONCE):  # never a whole vault at once
            rows = self._rows(changed[start : start + ALL_AT_ONCE])
            self._judge(rows, vanished if start == 0 else [], now, first=first, few=few and not first)
        self._see_deleted(now)
        for path in self._links.miscounted():
            if path in self.trail.known:
                self._due.setdefault(path, _Due(now))

    def _rows(self, paths: Collection[str]) -> dict[str, IndexedNote]:
        return {note.path: note for note in self.house.shelf.ask(lambda cache: cache.at(paths))}

    def _judge(
        self,
        rows: Mapping[str, IndexedNote],
        vanished: Collection[str],
        now: datetime,
        *,
        first: bool,
        few: bool,
    ) -> None:
        """Judge these notes. *first*: the keeper sees the vault for the first time. *few*: not many changed.

        Bytes that the program once wrote may be put there again by hand: few notes are all looked at.
        """
        house = self.house
        came = rows.keys() - self.trail.known.keys()
        last_write = house.journal.last_writes()

        def id_at(path: str) -> str:
            row = rows.get(path)
            if row is not None:
                return row.id
            known = self.trail.known.get(path)
            if known is None and first:  # not judged yet
                row = house.shelf.ask(lambda cache: cache.get(path))
                return row.id if row is not None and house.vault.exists(path) else ""
            return known.id if known is not None else ""

        if first:
            # Which of two files with one id came later cannot be told: the journals say it, else the name.
            for path in sorted(rows):
                self.trail.homes.setdefault(rows[path].id, path)
            self.trail.homes.pop("", None)
        ours = house.journal.accounts_for_all({row.fingerprint for row in rows.values()})
        outside = {path for path, row in rows.items() if row.kind in NOTES and row.fingerprint not in ours}
        if first:  # a keeper keeps a version of all that it sees, so another one saw these come
            outside = {path for path in outside if not house.versions.knows(rows[path].fingerprint)}
        bulk = self._bulk(rows, outside, last_write)
        found = self.trail.take(rows, vanished, last_write, id_at, now)
        unseen, styling = deeds.unseen(house), house.styling()
        new: list[IndexedNote] = []
        self._review.see(rows)
        for path, row in rows.items():
            self._unkept[path] = row.fingerprint
            if row.kind not in NOTES:
                continue
            known = bool(row.id) and last_write(row.id) is not None
            if path in outside and not first:
                self._changed_at[path] = now
            moved = path in found.renamed or path in found.twins
            # What no journal tells of was written by somebody who knew how; the daily run sees to the rest.
            told = path in outside and (known or not first)
            if few or told or moved or upkeep.wants(row, unseen, styling):
                edited = path in outside and path not in bulk
                self._wait_for(path, row, found, now, edited=edited, known=known, first=first)
            elif path in outside:
                new.append(row)
        deeds.see_new(house, new)
        for path in vanished:
            self._due.pop(path, None)
        for path in self._stale.suspects() & self.trail.known.keys():
            self._due.setdefault(path, _Due(now))
        self._see_moves(found, now)
        self._see_old_names(list(rows.values()) if few else [rows[path] for path in outside], now)
        self._links.question(rows, vanished, came)
        self._map_dirty = self._journal_dirty = True
        self._forget_old(now)

    def _bulk(
        self, rows: Mapping[str, IndexedNote], outside: set[str], last_write: deeds.LastWriteOf
    ) -> set[str]:
        """The notes whose text changed together with too many others to be anyone's use; on record now."""
        changed: list[tuple[int, str]] = []
        for path, row in rows.items():
            last = last_write(row.id) if row.id and row.kind in NOTES else None
            if last is None or not last.body or last.path != path:
                continue
            if path in outside or last.body != row.body_hash:
                changed.append((row.mark.mtime_ns, path))
        changed.sort()
        window = int(BULK_WINDOW.total_seconds() * 1e9)
        found: set[str] = set()
        start = 0
        for end, (at, _) in enumerate(changed):
            while at - changed[start][0] > window:
                start += 1
            if end - start + 1 > BULK:
                found.update(path for _, path in changed[start : end + 1])
        if found:
            deeds.see_many(self.house, [rows[path] for path in sorted(found)], last_write)
        return found

    def _wait_for(
        self,
        path: str,
        row: IndexedNote,
        found: Found,
        now: datetime,
        *,
        edited: bool,
        known: bool,
        first: bool,
    ) -> None:
        """Have the note looked after as soon as it is quiet."""
        due = self._due.get(path)
        if due is None:
            due = self._due[path] = _Due(now)
        due.at = now
        due.twin_of = ""
        due.deeds.pop("copied", None)
        if edited:
            due.changed = now
        if path in found.renamed:
            due.was = found.renamed[path]
            due.deeds["renamed"] = f"moved from {due.was}"
        elif path in found.twins:
            self._late.setdefault(row.mark.inode, path)
            due.twin_of = found.twins[path]
            due.deeds["copied"] = f"copied from {due.twin_of}"
            due.at = now + timedelta(seconds=COPY_SECONDS)
        elif path in found.came and not first:
            due.deeds["created"] = "a new note"
        elif edited and row.id and not due.deeds and known:
            due.deeds["edited"] = "edited"

    def _see_moves(self, found: Found, now: datetime) -> None:
        onward = {old: new for new, old in found.renamed.items()}
        self._moves = {first: onward.get(mid, mid) for first, mid in self._moves.items()} | onward
        self._moved_at.update(dict.fromkeys(found.renamed, now))
        for entry in self.house.journal.recent():  # seen by whoever wrote to a moved note first
            if entry.verb != "renamed" or entry.op in self._renames or now - entry.at > LATELY:
                continue
            self._renames.add(entry.op)
            for fact in entry.notes:
                new = self.trail.homes.get(fact.id, fact.path)
                if fact.was and fact.was not in self._moves and fact.was != new:
                    self._moves[fact.was] = new
                    self._moved_at.setdefault(new, now)

    def _see_old_names(self, rows: Collection[IndexedNote], now: datetime) -> None:
        """Have links followed that an old text brings back: to names that notes had before they moved."""
        named = {key for row in rows if row.kind in NOTES for _, key in row.links}
        if not named:
            return
        onward = self.house.journal.onward()
        for old in onward:
            if old in self.trail.known or old in self._moves or not link_keys(old) & named:
                continue
            new, seen = onward[old], {old}
            while new not in self.trail.known and new in onward and new not in seen:
                seen.add(new)
                new = onward[new]
            if new in self.trail.known and places.kind(new) in NOTES:
                self._moves[old] = new
                self._moved_at.setdefault(new, now)

    def _see_deleted(self, now: datetime) -> None:
        gone = self.trail.deleted(now)
        if not gone:
            return
        ours = {
            step.path for entry in self.house.journal.recent() for step in entry.steps if step.kind != "put"
        }
        for path, known in gone:
            self._map_dirty = self._journal_dirty = True
            elsewhere = known.id and self.house.shelf.paths_of_id(known.id)
            if path in ours or elsewhere or places.kind(path) not in NOTES:
                continue
            deeds.put_on_record(self.house, "deleted", "deleted", path=path, id=known.id)

    def _see_policy(self) -> None:
        """An edit of the policy has every forecast made anew."""
        policy = self.house.policy()
        if self._policy is None:
            if self.house.applied_policy is None:
                self.house.policy_applied(styled=True)
            self._policy = self.house.applied_policy  # it may have been edited while nobody kept the vault
            self._policy_changed = self.house.styling() is False
        if self._policy != policy:
            self._policy_changed = self._map_dirty = True
        self._policy = policy
        if self._policy_changed:
            now = self.house.now()
            self._rejudged = set(upkeep.out_of_policy(self.house))
            for path in self._rejudged:
                due = self._due.setdefault(path, _Due(now))
                due.at = min(due.at, now)
            self._policy_changed = False
        elif self._rejudged is not None and not self._rejudged & self._due.keys():
            self.house.policy_applied(styled=True)
            self._rejudged = None

    def _new_day(self, now: datetime) -> None:
        today = self.house.policy().today(now)
        if self._day is not None and self._day != today:
            self._map_dirty = True
        self._day = today

    def _forget_old(self, now: datetime) -> None:
        for path in [path for path, (_, at) in self._left.items() if now - at > ROUND_WINDOW]:
            del self._left[path]
            self._rounds.pop(path, None)
        for lately in (self._changed_at, self._moved_at, self._told):
            for path in [path for path, at in lately.items() if now - at > timedelta(hours=1)]:
                del lately[path]

    # -- acting --------------------------------------------------------------------------------------------

    def _keep_up(self, stop: Callable[[], bool]) -> float | None:
        """Write what is due and quiet, a slice of it."""
        now = self.house.now()
        ready = [path for path, due in self._due.items() if due.at <= now]
        for path in ready[:SLICE]:
            if stop():
                return 0.0
            due = self._due.pop(path)
            try:
                wait = self._one(path, due)
            except NotFound:
                continue
            except (LockTimeout, NoteChanged, Busy):
                wait = AGAIN
            except VaultError as error:
                logger.info("%s cannot be kept up: %s", path, error)
                continue  # malformed, not writable: reported by whoever reads it
            if wait is not None and path not in self._due:
                due.at = now + timedelta(seconds=wait)
                self._due[path] = due
        if not self._due:
            return 0.0 if self._rejudged is not None else None
        now = self.house.now()
        return max(0.0, min((due.at - now).total_seconds() for due in self._due.values()))

    def _one(self, path: str, due: _Due) -> float | None:
        """Look after one note; the seconds until it must be tried again, None when it is done."""
        house = self.house
        note = house.look(path)
        if note.kind not in NOTES:
            return None
        wait = upkeep.unquiet(house, note)
        if wait is not None:
            return wait
        if self._braked(path):
            return ROUND_WINDOW.total_seconds()
        if due.twin_of and self._twin(path, due):
            return None
        found = note.stored.fingerprint
        if not due.twin_of:  # what was done to the other one is told by the id that both have
            note = self._stale.put_back(note)
        count = len(house.shelf.backlinks(path))
        wrote = upkeep.keep(house, note, count, new_id=bool(due.twin_of))
        self._links.hold(path, count)  # also where the note cannot say so: it is not tried for ever
        if wrote or note.stored.fingerprint != found:
            self._see_own(path)
            # Whatever the journals say of the bytes: they are not those that the keeper left here.
            left, _ = self._left.get(path, (found, None))
            if due.changed is not None or left != found:
                self._rounds[path].append(house.now())
            if path in self.trail.known:
                self._left[path] = (self.trail.known[path].fingerprint, house.now())
        return self._record(path, due, wrote=wrote)

    def _see_own(self, path: str) -> None:
        """Know the note as this keeper just wrote it: it may be gone before the event comes."""
        row = self.house.shelf.ask(lambda cache: cache.get(path))
        if row is not None:
            self.trail.known[path] = Known(row.mark, row.id, row.fingerprint)
            self._unkept[path] = row.fingerprint
            if row.id:
                self.trail.homes[row.id] = path

    def _record(self, path: str, due: _Due, *, wrote: bool) -> float | None:
        """Put on record what a person did, once the note has what follows from it.

        Somebody who types for an hour saves a thousand times: one line in a while is enough.
        """
        house, now = self.house, self.house.now()
        if set(due.deeds) == {"edited"} and not wrote:
            told = self._told.get(path)
            pause = timedelta(minutes=house.policy().settle_minutes)
            if told is not None and timedelta(0) <= now - told < pause:
                return (told + pause - now).total_seconds()
        note = house.look(path)
        if due.deeds:
            for verb, why in due.deeds.items():
                was = due.was if verb == "renamed" else ""
                if was and wrote:
                    continue  # it stands before what was written
                deeds.put_on_record(house, verb, why, note=note, was=was)
            self._told[path] = now
            self._journal_dirty = self._map_dirty = True
        elif deeds.has_news(house, note):
            with house.locked(AGAIN):
                deeds.see(house, note)
        return None

    def _twin(self, path: str, due: _Due) -> bool:
        """Whether it was a late save of a moved note and is dealt with; else it gets an id of its own."""
        home = due.twin_of
        known = self.trail.known.get(path)
        if not self.house.vault.exists(home) and known is not None and known.id:
            others = [other for other in self.house.shelf.paths_of_id(known.id) if other != path]
            home = due.twin_of = others[0] if others else home  # the original went on
        if not self.house.vault.exists(home):
            due.twin_of = ""  # it was half of a move
            due.was, due.deeds = home, {"renamed": f"moved from {home}"}
            if known is not None and known.id:
                self.trail.homes[known.id] = path
            self._moves[home] = path
            self._moved_at[path] = self.house.now()
            return False
        origin = self._late.get(known.mark.inode, path) if known is not None else path
        if not self._stale.take_back(home, path, origin):
            return False
        self._map_dirty = self._journal_dirty = True
        return True

    def _braked(self, path: str) -> bool:
        """Whether this note was written to so often, in answer to others, that two programs quarrel."""
        rounds, now = self._rounds.get(path, deque()), self.house.now()
        while rounds and not timedelta(0) <= now - rounds[0] < ROUND_WINDOW:
            rounds.popleft()
        if len(rounds) < ROUNDS:
            if path in self.house.quarrels:
                del self.house.quarrels[path]
            return False
        message = (
            f"Another program changed it each of the {ROUNDS} times that its properties were brought in step;"
            f" it is left alone for {ROUND_WINDOW.seconds // 60} minutes."
        )
        self.house.quarrels[path] = Problem(path=path, line=0, code="quarrel", message=message)
        return True

    def _follow_links(self, _stop: Callable[[], bool]) -> float | None:
        """Rewrite links to notes that people moved, where Obsidian did not."""
        if not self._moves:
            return None
        house, now = self.house, self.house.now()
        pause = timedelta(seconds=house.policy().quiet_seconds)
        newest = max(
            (self._moved_at[new] for new in self._moves.values() if new in self._moved_at), default=None
        )
        if newest is not None and timedelta(0) <= now - newest < pause:
            return (newest + pause - now).total_seconds()
        moves = {old: new for old, new in self._moves.items() if old != new and house.vault.exists(new)}
        if self._link_again is not None and now < self._link_again:
            return (self._link_again - now).total_seconds()
        only = self._unlinked if moves == self._linked else None
        done = upkeep.relink(house, moves, self._changed_at, self._moved_at, only)
        self._journal_dirty = self._journal_dirty or bool(done.written)
        self._moves = dict(moves) if done.waiting else {}
        self._linked, self._unlinked = dict(self._moves), done.waiting
        self._link_again = now + LINK_PAUSE if done.waiting else None
        return LINK_PAUSE.total_seconds() if done.waiting else None

    def _count_openings(self, _stop: Callable[[], bool]) -> float | None:
        attention.count_openings(self.house, self._attention)
        quiet.flush_touches(self.house)
        return AGAIN * 2 if self.house.touches else None

    def _keep_versions(self, stop: Callable[[], bool]) -> float | None:
        """Keep a version of each note as it is, so that what a person deletes or overwrites is not lost."""
        versions = self.house.versions
        for _ in range(min(KEPT_SLICE, len(self._unkept))):
            path, fingerprint = self._unkept.popitem()
            if stop():
                return 0.0
            if fingerprint and versions.knows(fingerprint):
                continue
            try:
                stored = self.house.vault.read(path)
                if stored.data:
                    versions.keep(stored.data)
            except StorageFailed as error:
                logger.info("No version of %s can be kept: %s", path, error)
                self._unkept.clear()
                return None
            except VaultError:
                continue
        return 0.0 if self._unkept else None

    def _renew_review(self, _stop: Callable[[], bool]) -> float | None:
        """Do what a person ticked or said, and bring the review note in step, with pauses as for the map."""
        now = self.house.now()
        self._review.dirty = self._review.dirty or self._map_dirty
        if not self._review.pending:
            return None
        if self._review_at is not None and timedelta(0) < self._review_at - now <= LONGEST_PAUSE:
            return (self._review_at - now).total_seconds()
        started = time.monotonic()
        wait = self._review.act()
        pause = max(MAP_PAUSE, MAP_SHARE * (time.monotonic() - started))
        self._review_at = now + timedelta(seconds=pause)
        if wait is not None and self._review.dirty:
            self._journal_dirty = True
        return None if wait is None else max(wait, pause)

    def _renew_map(self, _stop: Callable[[], bool]) -> float | None:
        if not self._map_dirty:
            return None
        now = self.house.now()
        if self._map_at is not None and self._map_at > now:
            return (self._map_at - now).total_seconds()
        renewal = mapping.renew(self.house)
        pause = max(MAP_PAUSE, MAP_SHARE * renewal.seconds)
        self._map_at = now + timedelta(seconds=pause)
        self._map_dirty = renewal.waits
        return AGAIN * 2 if renewal.waits else None

    def _renew_journal(self, _stop: Callable[[], bool]) -> float | None:
        if not self._journal_dirty:
            return None
        now = self.house.now()
        if self._journal_at is not None and now < self._journal_at:
            return (self._journal_at - now).total_seconds()
        journalnote.renew(self.house)
        self._journal_at = now + timedelta(seconds=JOURNAL_PAUSE)
        self._journal_dirty = False
        return None

    def _age(self, stop: Callable[[], bool]) -> float | None:
        if ageing.run_if_due(self.house, stop) is not None:
            self._map_dirty = self._journal_dirty = True
            return 0.0
        return ageing.seconds_left(self.house)

    def _prune(self, _stop: Callable[[], bool]) -> float | None:
        """Once a day, let go of versions that are older or more than Policy says."""
        today = self.house.today()
        if self._pruned_on != today and not self._unkept:
            self.house.prune_versions()
            self._pruned_on = today
        return None
