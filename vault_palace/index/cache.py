"""The search cache: one disposable SQLite file that can always be made again from the notes.

It is fed, never trusted, and its troubles never hurt a note. A file that is missing, damaged, of another
version or another vault is set aside (never deleted, at most two are kept) and an empty one takes its place;
`rebuilt` and `reason` say so. Whoever feeds the cache compares `marks()` with the disk: a note whose `put`
failed is simply unknown or old there, so the next comparison catches up.

Any thread may call any method. Several processes may hold the same file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date, datetime
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar, TypeVar

from vault_palace.core.changes import Mark
from vault_palace.core.errors import StorageFailed
from vault_palace.core.model import Memory, Problem
from vault_palace.core.succession import Succession
from vault_palace.index import due, engine, overview, queries, sql
from vault_palace.index.notes import DamagedRowError, IndexedNote
from vault_palace.index.overview import Brief, Overview, Some, Troubled, Waiting, Written
from vault_palace.index.queries import Match, Only

__all__ = ["Cache", "CacheBusy", "CacheLost", "CacheTrouble", "IndexedNote", "Only", "place_for"]

T = TypeVar("T")

PATIENCE = 5.0  # seconds to wait for another process; after waiting in vain, only IMPATIENCE until it is free
IMPATIENCE = 0.1
_KEPT_ASIDE = 2
_IDLE_READERS = 4
_SIDE_FILES = ("-wal", "-shm")
SCHEMA = sql.SCHEMA


class CacheTrouble(StorageFailed):
    """The search cache could not be used. The notes are as they were; the next refresh catches up."""


class CacheBusy(CacheTrouble):
    """Another process holds the search cache for longer than we wait."""

    code: ClassVar[str] = "lock_timeout"
    exit_status: ClassVar[int] = 18


class CacheLost(CacheTrouble):
    """The search cache was damaged; an empty one is in its place. Refresh, then repeat the call."""


def place_for(cache_dir: Path, vault_id: str) -> Path:
    """The file of a vault's cache; each version of the schema has its own, so that versions never meet."""
    name = blake2b(vault_id.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return cache_dir / name / f"index-{sql.SCHEMA}.sqlite3"


class Cache:
    """The open cache. Make one with `Cache.open`; close it, or use it in a `with` statement."""

    def __init__(self, file: Path | None, vault_id: str, patience: float) -> None:
        self.file = file or Path(":memory:")
        self.rebuilt = False
        self.reason = ""
        self._vault_id = vault_id
        self._patience = patience
        self._impatient = False
        self._closed = False
        self._on_disk = file is not None
        self._identity: tuple[int, int] | None = None
        self._lock = threading.RLock()  # who writes, and who opens
        self._owner: int | None = None  # the thread whose transaction is open
        self._questioned: set[str] = set()  # link keys to answer anew before that transaction ends
        self._pool = threading.Lock()  # the connections; held for moments only, always after `_lock`
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._generation = 0  # of connections; those of an older one are not used again

    @classmethod
    def open(cls, file: Path | None, vault_id: str, *, patience: float = PATIENCE) -> Cache:
        """The cache in *file* for the vault *vault_id*, empty if what is there cannot be used.

        Never fails because of the file: where none can be made, or another process does not finish making
        it, the cache lives in memory until this one ends, and `reason` says so. None asks for that.
        """
        cache = cls(file, vault_id, patience)
        with cache._lock:
            cache._start()
        return cache

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Calling it again does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._let_go()
            if self._on_disk:
                self._seal()

    # --- feeding ---

    def put(self, note: IndexedNote) -> None:
        """Hold *note* instead of what was known of its path."""

        def act(db: sqlite3.Connection) -> None:
            number, key = sql.put(db, note)
            self._question(key)
            queries.resolve(db, {key for _, key in note.links}, number)

        self._write(act)

    def put_file(self, path: str, mark: Mark) -> None:
        """Know a file that is no note, or a note whose mark alone has changed: links may lead to it."""
        self._write(lambda db: self._question(sql.put_file(db, path, mark)))

    def remove(self, path: str) -> None:
        """Forget a file, and the note; an unknown path is forgotten already."""
        self._write(lambda db: self._question(sql.remove(db, path)))

    def clear(self) -> None:
        """Forget everything. Inside a batch, readers see the old state until the new one is whole."""
        self._write(sql.clear)

    def erase(self) -> list[str]:
        """Take the file away with all that lies beside it, and begin an empty one.

        `clear` is not enough where nothing may be left: what was deleted stands on in free pages and in the
        log. Other processes follow to the new file. Answers the files that could not be taken away.
        """
        left: list[str] = []
        with self._lock:
            self._let_go()
            if self._on_disk:
                with _alone(self.file, self._patience):
                    for name in sorted(os.listdir(self.file.parent)):
                        if ".sqlite3" in name and not name.endswith(".guard"):
                            try:
                                os.unlink(self.file.with_name(name))
                            except OSError:  # a folder, or open in another program where that forbids it
                                left.append(str(self.file.with_name(name)))
            self._start()
        return left

    def settle_on(self, basis: str) -> bool:
        """Forget everything that was read by other settings than *basis*; whether there was anything."""

        def act(db: sqlite3.Connection) -> bool:
            known = sql.basis(db)
            if known == basis:
                return False
            if known:
                sql.clear(db)
            sql.set_basis(db, basis)
            return bool(known)

        # Asked at every start, which shall not wait for another process that writes.
        return self._read(sql.basis) != basis and self._write(act)

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Everything put and removed inside becomes visible together, or not at all when an error leaves it.

        Other threads wait to write meanwhile: keep a batch to some hundred notes where they should not.
        """
        with self._transaction():
            yield

    def _question(self, key: str | None) -> None:
        if key is not None:
            self._questioned.update((key, key.removesuffix(".md")))

    # --- asking ---

    def edition(self) -> tuple[int, int]:
        """Differs from before when another file took this one's place, or another process wrote to it.

        What was kept in memory of the cache holds only as long as this is the same.
        """
        with self._lock, self._guarded():
            self._notice_replacement()
            (foreign,) = self._alive().execute("PRAGMA data_version").fetchone()
            return self._generation, int(foreign)

    def is_same_file(self, edition: tuple[int, int]) -> bool:
        """Whether the file of that `edition` is still the one in use; never waits for a writer."""
        with self._guarded():
            self._notice_replacement()
        return edition[0] == self._generation

    def marks(self) -> dict[str, Mark]:
        """All known files with their marks."""
        return self._read(sql.marks)

    def fingerprints(self) -> frozenset[str]:
        """The fingerprints of all notes as they are now."""
        return self._read(sql.fingerprints)

    def paths(self) -> list[str]:
        """All known files, sorted."""
        return self._read(sql.paths)

    def get(self, path: str) -> IndexedNote | None:
        """The note at exactly this path."""
        return self._read(lambda db: sql.get(db, path))

    def at(self, paths: Collection[str]) -> tuple[IndexedNote, ...]:
        """The notes at exactly these paths, those that are there."""
        return self._read(lambda db: tuple(sql.notes_at(db, sorted(paths))))

    def by_id(self, id: str) -> tuple[IndexedNote, ...]:
        """The notes with this id, by path: more than one when a person or a sync tool copied a note."""
        return self._read(lambda db: sql.by_id(db, id))

    def shared_ids(self) -> tuple[str, ...]:
        """The ids that more than one note has."""
        return self._read(sql.shared_ids)

    def copies_by_name(self) -> tuple[str, ...]:
        """The files that are no notes because a merge tool set a note aside, such as `Plan.md.orig`."""
        return self._read(sql.set_aside)

    def by_name(self, name: str) -> tuple[IndexedNote, ...]:
        """The notes with this file name; if there are none, with this title; if there are none, alias."""
        return self._read(lambda db: sql.by_name(db, name))

    def notes(self, *kinds: str) -> tuple[IndexedNote, ...]:
        """All notes of these kinds, by path; of all kinds when none is named."""
        return self._read(lambda db: sql.notes_of_kind(db, kinds))

    def all_memories(self) -> tuple[Memory, ...]:
        """What the rules know of each memory in the layers, by path."""
        return self._read(sql.memories)

    def problems(self) -> tuple[Problem, ...]:
        """The problems of all notes, by path and line."""
        return self._read(sql.problems)

    def counts(self) -> dict[str, int]:
        """Memories by layer, other notes by kind, and `files`."""
        return self._read(sql.counts)

    def size(self) -> int:
        """How many bytes the file and those beside it take; 0 for a cache in memory."""
        total = 0
        for name in (str(self.file), *(f"{self.file}{side}" for side in _SIDE_FILES)):
            with contextlib.suppress(OSError):
                total += os.stat(name).st_size if self._on_disk else 0
        return total

    def folders(self, *kinds: str) -> dict[str, int]:
        """Folders that hold notes of these kinds (memories, when none is named), with how many."""
        return self._read(lambda db: queries.folders(db, kinds or ("memory",)))

    def overview(self, last: date, most: int = overview.MOST) -> Overview:
        """What the index note shows, from one state: what leaves and rises by *last*, and the like."""
        return self._read(lambda db: overview.gather(db, last, most))

    def leaving(self, last: date, most: int) -> tuple[Some[Memory], Some[Memory]]:
        """The memories that leave by the day *last*, and those with no day yet; see `overview.leaving`."""
        return self._read(lambda db: overview.leaving(db, last, most))

    def paths_of(self, *kinds: str) -> list[str]:
        """The paths of all notes of these kinds, sorted."""
        return self._read(lambda db: queries.paths_of(db, kinds))

    def waiting(self, last: date, most: int) -> Waiting:
        """What may wait for a person; see `overview.waiting`."""
        return self._read(lambda db: overview.waiting(db, last, most))

    def brief(self, today: date, last: date, valued: float, only: Only) -> Brief:
        """What a briefing shows of the memories that *only* means, from one state."""
        return self._read(lambda db: overview.brief(db, today, last, valued, only))

    def written_since(self, at_ns: int, most: int) -> tuple[Written, ...]:
        """The memories whose files were changed since then, the newest first."""
        return self._read(lambda db: overview.written_since(db, at_ns, most))

    def troubled(self, most: int) -> Troubled:
        """The first problems of notes, and the first of those that share a name or an id, with how many."""
        return self._read(lambda db: overview.troubled(db, most))

    def born_since(self, wall: datetime, most: int) -> tuple[tuple[str, str, datetime], ...]:
        """Path, id and birth, by the wall clock, of the memories created since *wall*, the newest first."""
        return self._read(lambda db: overview.born_since(db, wall, most))

    def may_be_due(self, last: date) -> tuple[str, ...]:
        """The notes that leave or rise by the day *last*, or of which nobody has worked that out; by path."""
        return self._read(lambda db: due.may_be_due(db, last))

    def linked_from(self, path: str) -> tuple[str, ...]:
        """The files that the links of the note at *path* lead to."""
        return self._read(lambda db: due.linked_from(db, path))

    def last_touch(self) -> date | None:
        """The newest day on which a memory of the layers was touched; None without memories."""
        return self._read(due.last_touch)

    def troubles(self) -> tuple[str, ...]:
        """What is wrong with the cache itself, in words: damage, and tables that do not fit together."""
        with self._transaction() as db:
            return (*sql.damage(db), *sql.disagreements(db))

    def give_up_if_damaged(self) -> None:
        """Set a damaged file aside and begin an empty one, which raises `CacheLost`; a sound one stays."""
        with self._transaction() as db:
            wrong = sql.damage(db)
            if wrong:
                raise DamagedRowError("; ".join(wrong))

    # --- links: `index.graph` gives these their meaning ---

    def referrers(self, target: str, *, counted: bool) -> tuple[str, ...]:
        return self._read(lambda db: queries.referrers(db, target, counted=counted))

    def counted_links(self) -> list[tuple[str, str]]:
        return self._read(lambda db: list(queries.counted_links(db)))

    def targets(self, source: str) -> tuple[str, ...]:
        """The files that the counted links of the memory at *source* lead to."""
        return self._read(lambda db: queries.targets(db, source))

    def succession(self) -> Succession:
        """Which notes were replaced by which."""
        return self._read(queries.succession)

    def superseded_by(self, path: str) -> str:
        """The note that holds now instead of the one at *path*; empty when nothing replaced it."""
        return self._read(lambda db: queries.succession(db).by(path) if queries.takes_part(db, path) else "")

    def unresolved(self) -> tuple[tuple[str, str], ...]:
        return self._read(queries.unresolved)

    def proposed(self, most: int = 1) -> tuple[tuple[str, ...], int]:
        return self._read(lambda db: queries.proposed(db, most))

    def orphans(self) -> tuple[str, ...]:
        return self._read(queries.orphans)

    def holders(self, keys: Iterable[str]) -> tuple[str, ...]:
        return self._read(lambda db: queries.holders(db, tuple(keys)))

    # --- words: `index.search` gives these their meaning ---

    def matches(
        self, expression: str, only: Only, weights: Sequence[float], *, limit: int, offset: int = 0
    ) -> tuple[list[Match], int]:
        return self._read(
            lambda db: queries.matches(db, expression, only, weights, limit=limit, offset=offset)
        )

    def holds_any(self, only: Only) -> bool:
        return self._read(lambda db: queries.any_note(db, only))

    def frequency(self, word: str) -> int:
        return self._read(lambda db: queries.frequency(db, word))

    def frequencies(self, words: Collection[str]) -> dict[str, int]:
        """In how many notes each of *words* stands; one that stands nowhere is left out."""
        return self._read(lambda db: queries.frequencies(db, words))

    def searched_count(self) -> int:
        return self._read(queries.searched_count)

    # --- transactions ---

    def _read(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """What *ask* answers from one state; inside a batch of this thread it sees what the batch did."""
        if self._owner == threading.get_ident():
            return ask(self._alive())
        if not self._on_disk:
            with self._lock:
                return ask(self._alive())
        with self._guarded():
            self._notice_replacement()
            with self._reader() as db:
                db.execute("BEGIN")
                try:
                    return ask(db)
                finally:
                    db.execute("COMMIT")

    def _write(self, act: Callable[[sqlite3.Connection], T]) -> T:
        with self._transaction() as db:
            return act(db)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """The writer within a transaction of this thread; the outermost one commits, or takes all back."""
        if self._owner == threading.get_ident():
            yield self._alive()
            return
        with self._lock, self._guarded():
            self._notice_replacement()
            db = self._alive()
            self._begin(db)
            self._owner = threading.get_ident()
            try:
                yield db
                queries.resolve(db, sorted(self._questioned))
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
            finally:
                self._owner = None
                self._questioned.clear()

    def _begin(self, db: sqlite3.Connection) -> None:
        """Take the write lock. Who waited in vain does not wait long again: each call would stand still."""
        engine.wait_at_most(db, IMPATIENCE if self._impatient else self._patience)
        self._impatient = True
        db.execute("BEGIN IMMEDIATE")
        self._impatient = False

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Errors of the engine become ours; a damaged file is replaced by an empty one on the way."""
        generation = self._generation
        try:
            yield
        except DamagedRowError as error:
            raise self._lost(generation, f"it was damaged ({error})") from error
        except sqlite3.Error as error:
            if engine.is_damage(error):
                raise self._lost(generation, f"it was damaged ({error})") from error
            if engine.code(error) in engine.BUSY:
                raise CacheBusy(
                    "Another program holds the search cache.",
                    hint="The notes are not affected; the cache catches up by itself once it is free.",
                    cache=str(self.file),
                ) from error
            if engine.code(error) in engine.TAKEN_AWAY and self._was_replaced():
                raise _gone(self.file) from error
            raise CacheTrouble(
                f"The search cache cannot be used: {error}.",
                hint="The notes are not affected; see to the cache folder, then repeat the call.",
                cache=str(self.file),
            ) from error

    def _lost(self, generation: int, reason: str) -> CacheLost:
        with self._lock:
            if generation == self._generation:  # else another thread has seen to it
                self._let_go()
                self._start(spoilt=reason)
        return _gone(self.file)

    def _was_replaced(self) -> bool:
        """Whether another process makes the file anew, or just did; then it is waited for and followed."""
        generation = self._generation
        self._notice_replacement()
        return generation != self._generation

    # --- connections ---

    @contextlib.contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection that no other thread uses meanwhile."""
        with self._pool:
            self._alive()
            generation = self._generation
            db = self._readers.pop() if self._readers else None
        if db is None:
            # The engine finds its side files by name: nobody may open while the file is set aside.
            with _alone(self.file, self._patience):
                db = engine.connect(self.file, self._patience)
        try:
            yield db
        finally:
            with self._pool:
                current = generation == self._generation and not self._closed
                keep = current and not db.in_transaction and len(self._readers) < _IDLE_READERS
                if keep:
                    self._readers.append(db)
            if not keep:
                db.close()

    def _alive(self) -> sqlite3.Connection:
        if self._writer is None:
            raise CacheTrouble("The search cache is closed.", cache=str(self.file))
        return self._writer

    def _notice_replacement(self) -> None:
        """Follow the file when it was removed, or another process put a new one in its place."""
        if not self._on_disk or self._identity == _identity(self.file):
            return
        with self._lock:
            if not self._closed and self._identity != _identity(self.file):
                self._let_go()
                self._start()

    def _let_go(self) -> None:
        """Close all connections that are not in use; those in use are closed when they come back."""
        with self._pool:
            self._generation += 1
            idle, self._readers = self._readers, []
            writer, self._writer = self._writer, None
        for db in (*idle, *((writer,) if writer is not None else ())):
            db.close()

    # --- opening ---

    def _start(self, spoilt: str = "") -> None:
        """Open the file, or an empty one instead; *spoilt* says why the present one is not to be used."""
        if not self._on_disk:
            self._writer = engine.in_memory(self._vault_id)
            self.rebuilt, self.reason = True, spoilt or "it lives in memory"
            return
        try:
            os.makedirs(self.file.parent.parent, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.file.parent, 0o700)
            with _alone(self.file, self._patience):
                # Another process may have seen to it while we waited: then a good file is there.
                still = self._identity == _identity(self.file)
                wrong = (spoilt if still else "") or self._take()
                if wrong:
                    _set_aside(self.file)
                    self._make()
        except (OSError, ValueError, sqlite3.Error) as error:  # ValueError: NUL in the path
            self._let_go()
            self._writer = engine.in_memory(self._vault_id)
            self._on_disk = False
            wrong = f"its file cannot be used ({error}), so it lives in memory until this program ends"
        if wrong:
            self.rebuilt, self.reason = True, wrong

    def _take(self) -> str:
        """Open the file that is there. Returns why it cannot be used, in words, or nothing."""
        if not os.path.lexists(self.file):
            return "there was none yet"
        if not self.file.is_file():
            return "something else than a file was in its place"
        db: sqlite3.Connection | None = None
        try:
            db = engine.connect(self.file, self._patience)
            wrong = sql.why_not_ours(db, self._vault_id) or self._found_damaged(db)
        except sqlite3.Error as error:
            if engine.code(error) in engine.BUSY:
                if db is not None:
                    db.close()
                raise
            wrong = f"it could not be read ({error})"
        if wrong:
            if db is not None:
                db.close()
            return wrong
        self._hold(db)
        return ""

    def _make(self) -> None:
        os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        db = engine.connect(self.file, self._patience)
        try:
            db.execute("PRAGMA journal_mode = WAL")  # stays with the file
            sql.create(db, self._vault_id)
        except BaseException:
            db.close()
            raise
        self._hold(db)

    def _hold(self, db: sqlite3.Connection | None) -> None:
        with self._pool:
            self._writer = db
            self._identity = _identity(self.file)

    # --- the seal: a file that is as we left it needs no check ---

    def _found_damaged(self, db: sqlite3.Connection) -> str:
        """What a whole check finds wrong with a file that is not as its last user left it, in words.

        Pages that were overwritten in place often read as fewer hits, not as an error.
        """
        state = _state(self.file)
        if state == _read_text(self._seal_file):
            return ""
        try:
            engine.wait_at_most(db, IMPATIENCE)
            found = sql.damage(db)
        except sqlite3.Error as error:
            if engine.code(error) in engine.BUSY:
                return ""  # somebody works with it: it is in use, and checked another time
            raise
        if found:
            return f"it was damaged ({found[0]})"
        self._seal()
        return ""

    @property
    def _seal_file(self) -> Path:
        return self.file.with_name(f"{self.file.name}.seal")

    def _seal(self) -> None:
        with contextlib.suppress(OSError):
            self._seal_file.write_text(_state(self.file), encoding="ascii")


def _gone(file: Path) -> CacheLost:
    return CacheLost(
        "The search cache was damaged and has been set aside.",
        hint="The notes are not affected; it is made again from them at the next refresh.",
        cache=str(file),
    )


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        stat = os.stat(file)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _state(file: Path) -> str:
    stat = os.stat(file)
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


@contextlib.contextmanager
def _alone(file: Path, patience: float) -> Iterator[None]:
    """Only one process at a time opens or makes the file. The engine's own lock, which dies with it."""
    guard = file.with_name(f"{file.name}.guard")
    db = sqlite3.connect(guard, timeout=2 * patience, isolation_level=None, check_same_thread=False)
    try:
        db.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        db.close()


def _set_aside(file: Path) -> None:
    """Give what is at *file* and its side files another name; older ones beyond two are let go."""
    if not os.path.lexists(file):
        return
    prefix = f"{file.name}.bad-"
    numbers = sorted(
        {
            int(number)
            for entry in os.listdir(file.parent)
            if entry.startswith(prefix) and (number := entry[len(prefix) :].partition("-")[0]).isdecimal()
        }
    )
    following = numbers[-1] + 1 if numbers else 1
    for side in (*_SIDE_FILES, ""):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{file}{side}", file.with_name(f"{prefix}{following}{side}"))
    for old in [*numbers, following][:-_KEPT_ASIDE]:
        for side in (*_SIDE_FILES, ""):
            with contextlib.suppress(OSError):  # a folder that was in the way is left to the person
                os.unlink(file.with_name(f"{prefix}{old}{side}"))
