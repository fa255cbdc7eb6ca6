"""The house's shelf: the search cache, kept in step with the notes, and what can be asked of it.

`feed` takes in what a verb just wrote; `refresh` compares disk with cache by marks and reads only what
differs. The cache's troubles are remembered and told, and never stop a change of a note.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vault_palace.core import frontmatter, links, names, places, resolve
from vault_palace.core.changes import Changes, Mark, compare
from vault_palace.core.errors import NotFound, VaultError
from vault_palace.core.model import Layer, Memory, Problem
from vault_palace.index.cache import SCHEMA, Cache, CacheLost, CacheTrouble, IndexedNote, place_for
from vault_palace.index.graph import Graph
from vault_palace.services import copies, deeds, pace
from vault_palace.storage.listing import Listing
from vault_palace.storage.vault import Stored

if TYPE_CHECKING:
    from vault_palace.services.house import House, Note

T = TypeVar("T")

# A comparison is trusted for this long; a watcher that wakes it makes this unnecessary.
FRESH_SECONDS = 2.0
GONE_SECONDS = 0.1  # a missing file is believed gone when it is still missing after this (SPEC §6.5)
WAIT_SECONDS = 0.5  # how long a caller waits for a comparison that another thread is at
# Problems that leave every property readable.
ASIDE = frozenset({"unlinkable_name", "unquoted_link", "links_cut"})
MANY = 2_000  # from so many changed paths on, everything is compared
FEW = 20  # so many notes a person deletes at once without being asked
STALLED_SECONDS = 60.0  # a comparison that has not got on for so long will not end by itself
BATCH = 200  # notes read between two commits, so that other writers get their turn


class Shelf:
    """The cache of one house. Any thread may call any method."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._guard = threading.Lock()  # opening and closing; held for a moment
        self._comparing = threading.RLock()  # one comparison at a time; may be held for long
        self._naming = threading.RLock()  # who changes the resolver, or copies it; held for a moment
        self._cache: Cache | None = None
        self._resolver: resolve.Resolver | None = None
        self._listing = Listing(house.vault)
        self._marks: dict[str, Mark] | None = None  # what the cache knows, as the last comparison left it
        self._edition: tuple[int, int] | None = None  # of the cache of which that is true
        self._basis = ""
        self._fresh_at: float | None = None
        self.watched = False  # whether a watcher tells of every change, so that none need be looked for
        self._stirred: set[str] | None = None  # what it told of since the last comparison; None: anything
        self.strays: tuple[Problem, ...] = ()
        self.doubts: tuple[Problem, ...] = ()  # what the last comparison could not believe
        self.lag = ""  # why the cache is behind, empty when it is not
        self.filling = ""  # how far the cache is, in words, while many notes are read
        self.compared: datetime | None = None  # when disk and cache were last found or brought in step
        self._progress: float | None = None  # when the comparison under way last got on; None: none is
        self._unjudged: set[str] = set()  # ids of which a note came, went or changed: who is a copy of whom?

    @property
    def cache(self) -> Cache:
        """The open cache; opened on first use, empty when what was there cannot be used."""
        cache = self._cache
        if cache is not None:
            return cache
        with self._guard:
            if self._cache is None:
                self._cache = Cache.open(self.file, str(self.house.vault.root))
            return self._cache

    @property
    def file(self) -> Path:
        """Where this vault's cache is: in the user's cache folder, never in the vault (SPEC §1)."""
        folder = self.house.settings.cache_dir
        if folder is None:
            folder = self.house.vault.state / "cache"
        root = str(self.house.vault.root)
        return place_for(folder, hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()[:16])

    def close(self) -> None:
        with self._guard:
            if self._cache is not None:
                self._cache.close()
                self._cache = None

    def ask(self, question: Callable[[Cache], T]) -> T:
        """What *question* answers; a cache that turns out damaged is filled again and asked once more."""
        try:
            return question(self.cache)
        except CacheLost:
            self._forget()
            self.refresh(if_older=0)
            return question(self.cache)

    def _forget(self) -> None:
        self._resolver = self._marks = self._fresh_at = self._edition = None
        self._basis = ""

    def stir(self, paths: Iterable[str] | None = None) -> None:
        """These files may have changed (None: any may have): the next question compares them with the disk.

        A folder stands for all that lies below it, or lay there.
        """
        with self._guard:
            if paths is None:
                self._stirred = self._fresh_at = None
            elif self._stirred is not None:
                self._stirred.update(paths)
                if len(self._stirred) > MANY:
                    self._stirred = None

    def marks(self) -> Mapping[str, Mark] | None:
        """All files as the last comparison found them; None while they are not known."""
        return self._marks

    def trust(self, watched: bool) -> None:
        """Whether a watcher tells of every change from now on, so that none need be looked for."""
        with self._guard:
            self._stirred = None  # what came before nobody told
        self.watched = watched

    # -- keeping in step -----------------------------------------------------------------------------------

    def refresh(self, if_older: float = FRESH_SECONDS) -> None:
        """Compare disk with cache, unless that was done less than *if_older* seconds ago.

        While a watcher tells of changes, only what it told of is compared; 0 always compares everything.
        While another thread compares, callers that can do with what is known do not wait for it. Nor do they
        fail because the cache cannot be written now: `lag` says so.
        """
        if self._is_fresh(if_older):
            return
        wait = -1.0 if if_older <= 0 or self._resolver is None else WAIT_SECONDS
        if not self._comparing.acquire(timeout=wait):
            return
        try:
            if self._is_fresh(if_older):
                return
            self._progress = time.monotonic()
            for tries_left in (2, 1, 0):
                try:
                    self._catch_up(everything=if_older <= 0)
                    break
                except CacheLost:  # several processes may find the damage at once
                    self._forget()
                    if not tries_left:
                        raise
            self.lag = ""
            self._fresh_at = time.monotonic()
            self.compared = self.house.now()
        except CacheTrouble as error:
            self.lag = str(error)
            self.stir()
            if if_older <= 0 or self._resolver is None:
                raise
        finally:
            self.filling = ""
            self._progress = None
            self._comparing.release()

    def catch_up(self) -> None:
        """Compare what a watcher told of, or everything where that is not known."""
        with self._comparing:
            self.refresh(if_older=FRESH_SECONDS if self.watched and self._stirred is not None else 0)

    def _catch_up(self, *, everything: bool) -> None:
        """Compare what was stirred, or everything. What is stirred meanwhile waits for the next time."""
        with self._guard:
            stirred, self._stirred = self._stirred, set()
        if everything or stirred is None or not self.watched or self.doubts or not self._in_step():
            self._compare()
        elif stirred:
            self._compare_some(stirred)

    def _in_step(self) -> bool:
        """Whether what was remembered of the cache still holds, so that a part can be compared.

        Another process may have taken in the same changes already: then they are found to be known.
        """
        if self._marks is None or self._resolver is None or self._edition is None:
            return False
        return self.cache.is_same_file(self._edition) and self._basis == self._basis_now()

    def _is_fresh(self, if_older: float) -> bool:
        if self._fresh_at is None or if_older <= 0 or self._stirred:
            return False
        if self.watched:
            if self._stirred is None:
                return False
        elif time.monotonic() - self._fresh_at >= if_older:
            return False
        # A cache that was deleted, or made anew by another process, is empty whatever we knew of it.
        return self._edition is not None and self.cache.is_same_file(self._edition)

    def _basis_now(self) -> str:
        """Zone and default density are in every cached memory: with others, all is read anew."""
        policy = self.house.policy()
        return f"{policy.zone}|{policy.default_density}"

    def _compare(self) -> None:
        survey = self.house.vault.survey()
        self.strays = survey.strays
        cache = self.cache
        edition = cache.edition()
        remembered = self._marks if edition == self._edition else None
        known = cache.marks() if remembered is None else remembered
        self._marks = None  # until everything below has succeeded
        changes = compare(known, survey.files)
        self.doubts = self._doubts(changes, known, survey.files)
        if not survey.files and self.doubts:
            return
        basis = self._basis_now()
        if self._basis != basis and cache.settle_on(basis):
            changes = replace(compare({}, survey.files), removed=changes.removed)
        self._basis = basis
        removed = set(changes.removed)
        hidden = removed if self.doubts else {path for path in removed if _below(path, survey.unreadable)}
        if changes or self._resolver is None or remembered is None:
            # Names are known before the notes are read, so that nobody waits for the reading to write.
            # Another process may have told the cache of names that we never saw come.
            self._know_names([*survey.files, *hidden])
        self._take_in(cache, [*changes.added, *changes.modified], survey.files)
        gone = self._let_go(cache, sorted(removed - hidden))
        self._judge(cache)
        self._edition = edition
        if removed <= gone | hidden:
            self._marks = {**survey.files, **{path: known[path] for path in hidden}}

    def _compare_some(self, stirred: Iterable[str]) -> None:
        """`_compare` for these files and folders alone; all else is as it was."""
        cache = self.cache
        known = self._marks
        assert known is not None
        found: dict[str, Mark] = {}
        unreadable: set[str] = set()
        asked: dict[str, Mark] = {}
        for path in stirred:
            survey = self.house.vault.survey_of(path)
            found.update(survey.files)
            unreadable |= survey.unreadable
            if path in known:
                asked[path] = known[path]
            if path not in survey.files:
                asked.update({one: mark for one, mark in known.items() if one.startswith(f"{path}/")})
        changes = compare(asked, found)
        if not changes:
            return
        if changes.removed:
            others = dict.fromkeys(known.keys() - asked.keys())
            self.doubts = self._doubts(changes, known, {**others, **found})
        removed = {path for path in changes.removed if not _below(path, frozenset(unreadable))}
        if self.doubts:
            removed = set()
        self._marks = None
        with self._naming:
            if (resolver := self._resolver) is not None:
                for path in changes.added:
                    resolver.add(path)
                for path in removed:
                    resolver.remove(path)
        self._take_in(cache, [*changes.added, *changes.modified], found)
        gone = self._let_go(cache, sorted(removed))
        self._judge(cache)
        if removed <= gone:
            known.update(found)
            for path in gone:
                known.pop(path, None)
            self._marks = known

    def _take_in(self, cache: Cache, new: Sequence[str], found: Mapping[str, Mark]) -> None:
        """Read *new* into the cache, in batches that let others write between them."""
        observe = deeds.observer(self.house) if new else None
        for start in range(0, len(new), BATCH):
            if len(new) > BATCH:
                self.filling = f"{start} of {len(new)} notes are read"
                pace.step(start, len(new), "reading notes into the index")
            self._progress = time.monotonic()
            with cache.batch():
                for path in new[start : start + BATCH]:
                    self._take(cache, path, found[path], observe)

    def _doubts(
        self, changes: Changes, known: Mapping[str, Mark], left: Mapping[str, Mark | None]
    ) -> tuple[Problem, ...]:
        """Why what is missing cannot be a person's doing: a missing disk deletes nothing (SPEC §6.5).

        Everything is gone; a layer's folder is gone with its notes; or more than half of the notes are, and
        did not come up elsewhere.
        """
        if not changes.removed:
            return ()
        if not left:  # of the whole vault, whatever part was compared
            message = (
                f"{len(known)} files were known, none is there: is a disk not mounted? Nothing was forgotten."
            )
            return (Problem(path="", line=0, code="vault_empty", message=message),)
        moved = {mark.inode for path in changes.added if (mark := left.get(path)) is not None}
        lost = [
            path
            for path in changes.removed
            if places.kind(path) == "memory" and known[path].inode not in moved
        ]
        hint = "If that was meant, run `vault-palace reindex`; else bring them back. Nothing was forgotten."
        for layer in Layer:
            mine = [path for path in lost if path.startswith(f"{layer.folder}/")]
            if mine and not self.house.vault.is_folder(layer.folder):
                message = f"The folder is gone with {len(mine)} notes. {hint}"
                return (Problem(path=layer.folder, line=0, code="layer_missing", message=message),)
        if len(lost) > FEW and 2 * len(lost) > sum(places.kind(path) == "memory" for path in known):
            message = f"{len(lost)} memories are gone at once, more than half. {hint}"
            return (Problem(path="", line=0, code="notes_missing", message=message),)
        return ()

    def _know_names(self, paths: Iterable[str]) -> resolve.Resolver:
        """Begin anew with these names, and those that came while they were gathered."""
        with self._naming:
            self._resolver = resolver = resolve.Resolver(paths)
            self._listing.renew()
            for path in self._listing.paths():
                resolver.add(path)
            return resolver

    def _take(self, cache: Cache, path: str, mark: Mark, observe: deeds.Observe | None) -> None:
        if not places.is_note(path.rpartition("/")[2]):
            cache.put_file(path, mark)
            return
        try:
            stored = self.house.vault.read(path)
        except NotFound:
            return
        except VaultError as error:
            problem = Problem(path=path, line=0, code="unreadable", message=str(error))
            cache.put(
                IndexedNote(
                    path=path, kind=places.kind(path), mark=mark, title=_stem(path), problems=(problem,)
                )
            )
            return
        known = cache.get(path)
        if known is not None and known.fingerprint == stored.fingerprint:
            cache.put_file(path, stored.mark)
            return
        note = self.indexed(self.house.understand(path, stored, observe))
        self._doubt(note, known)
        cache.put(note)

    def _doubt(self, *notes: IndexedNote | None) -> None:
        with self._guard:
            self._unjudged.update(note.id for note in notes if note is not None and note.id)

    def _judge(self, cache: Cache) -> None:
        """Look again at who is a conflict copy, among the notes with an id of which something changed."""
        with self._guard:
            ids, self._unjudged = self._unjudged, set()
        if not ids:
            return
        wrong = copies.misjudged(cache, ids)
        with cache.batch():
            for path in wrong:
                with suppress(VaultError):  # gone meanwhile: the next comparison finds that
                    cache.put(self.indexed(self.house.understand(path, self.house.vault.read(path))))

    def _let_go(self, cache: Cache, missing: Sequence[str]) -> set[str]:
        """Forget those of *missing* that are still missing after a moment, and return them."""
        if not missing:
            return set()
        self.house.settings.sleep(GONE_SECONDS)
        gone = {path for path in missing if not self.house.vault.is_file(path)}
        with cache.batch():
            for path in sorted(gone):
                self._forget_note(cache, path)
        if len(gone) < len(missing):
            self._resolver = None
        return gone

    def _forget_note(self, cache: Cache, path: str) -> None:
        self._doubt(cache.get(path))
        cache.remove(path)

    def feed(self, held: Mapping[str, Stored], gone: Iterable[str] = ()) -> None:
        """Take in what was just written. Trouble is remembered; the next refresh catches up."""
        marks: dict[str, Mark] = {}
        try:
            cache = self.cache
            with cache.batch():
                for path in gone:
                    self._forget_note(cache, path)
                for path, stored in held.items():
                    mark = self.house.vault.mark(path) or stored.mark
                    fresh = Stored(stored.data, stored.fingerprint, mark)
                    marks[path] = mark
                    if not places.is_note(path.rpartition("/")[2]):
                        cache.put_file(path, mark)
                        continue
                    known = cache.get(path)
                    note = self.indexed(self.house.understand(path, fresh))
                    self._doubt(note, known)
                    cache.put(note)
            self._judge(cache)
        except VaultError as error:  # the cache's trouble, or the vault's: what was written stays written
            self.lag = str(error)
            self._marks = self._fresh_at = None
        all_known = self._marks
        if all_known is not None:
            all_known.update(marks)
            for path in gone:
                all_known.pop(path, None)
        with self._naming:
            resolver = self._resolver
            if resolver is not None:
                for path in gone:
                    resolver.remove(path)
                for path in held:
                    resolver.add(path)

    def indexed(self, note: Note) -> IndexedNote:
        """*note* as the cache holds it."""
        text = note.text
        # Obsidian reads the links of a note that is not UTF-8 as well.
        scanned = links.scan(note.shown)
        problems = list(note.reading.problems) if note.reading is not None else []
        wrong = note.header.problem
        if wrong is not None and note.reading is None:
            problems.append(
                Problem(path=note.path, line=wrong.line, code="bad_header", message=wrong.message)
            )
        if text is None:
            problems = [
                Problem(path=note.path, line=0, code="not_utf8", message="The file is not UTF-8 text.")
            ]
        if note.kind == "memory" and not names.linkable(note.stem):
            message = "The name holds what links cannot hold; rename it in Obsidian."
            problems.append(Problem(path=note.path, line=0, code="unlinkable_name", message=message))
        if scanned.cut:
            message = "Too large or too deeply nested to be read to its end for links."
            problems.append(Problem(path=note.path, line=0, code="links_cut", message=message))
        if note.kind == "memory":
            for item in scanned.unquoted:
                message = f"{item.key}: [[{item.name[:80]}]] is no link in Obsidian; put it in quotes."
                problems.append(
                    Problem(path=note.path, line=item.line, code="unquoted_link", message=message)
                )
        tags = [*frontmatter.tags(note.header)]
        tags += [tag.name for tag in scanned.tags]
        return IndexedNote(
            path=note.path,
            kind=note.kind,
            mark=note.stored.mark,
            fingerprint=note.stored.fingerprint,
            body_hash=note.body_hash,
            layer=note.layer if note.kind == "memory" else None,
            room=places.room_of(note.path),
            id=note.id,
            title=frontmatter.display_title(note.header, note.stem),
            memory=note.reading.memory if note.reading is not None else None,
            properties=frontmatter.shown(note.header),
            tags=tuple(dict.fromkeys(tags)),
            aliases=tuple(frontmatter.aliases(note.header)),
            links=tuple((link.path, links.link_key(link.path)) for link in scanned.links if link.path),
            unquoted=tuple((item.name, links.link_key(item.name)) for item in scanned.unquoted),
            older=tuple(_linked(scanned.links, "supersedes")),
            newer=tuple(_linked(scanned.links, "superseded_by")),
            problems=tuple(problems),
            text=note.header.body if text is not None else note.shown,
        )

    def erase(self) -> list[str]:
        """Take the cache's files away, so that nothing of any note is left in them, and fill it again.

        Answers the files that could not be taken away.
        """
        left = self.cache.erase()
        self._forget()
        self.refresh(if_older=0)
        return left

    def rebuild(self) -> int:
        """Empty the cache and fill it from the notes; how many notes there are."""
        self.cache.clear()
        self._forget()
        self.refresh(if_older=0)
        return len(self.cache.notes())

    # -- asking --------------------------------------------------------------------------------------------

    def renew_names(self) -> None:
        """Know which names are taken on disk at this moment; dear only for folders that changed."""
        self.resolver()
        with self._naming:
            came, went = self._listing.renew()
            resolver = self._resolver
            if resolver is None:
                return
            for path in went:
                resolver.remove(path)
            for path in came:
                resolver.add(path)

    def paths_named(self, stem: str) -> list[str]:
        """The notes whose file name is *stem*, case and Unicode form aside; conflict copies left out."""
        wanted = names.key(stem)
        found = self.resolver().candidates(f"{stem}.md")
        return [
            path for path in found if places.kind(path) != "conflict" and names.key(_stem(path)) == wanted
        ]

    def may_exist(self, name: str) -> bool:
        """Whether a file of this name is known somewhere in the vault, or names are not known yet."""
        resolver = self._resolver
        return resolver is None or bool(resolver.candidates(name))

    def is_copy(self, path: str) -> bool:
        """Whether the file at *path* is a conflict copy, by its name or by what the cache knows of its id."""
        name = path.rpartition("/")[2]
        if places.kind(path) == "conflict" or not places.possible_originals(name):
            return places.kind(path) == "conflict"
        note = self.ask(lambda cache: cache.get(path))
        return note is not None and note.kind == "conflict"

    def paths_aliased(self, title: str) -> list[str]:
        """The notes that have *title* as title or alias, when no file has that name."""
        return [note.path for note in self.ask(lambda cache: cache.by_name(title)) if note.kind != "conflict"]

    def paths_of_id(self, id: str) -> list[str]:
        return [note.path for note in self.ask(lambda cache: cache.by_id(id)) if note.kind != "conflict"]

    def resolver(self) -> resolve.Resolver:
        """Where links lead in the vault as it is known now."""
        resolver = self._resolver
        if resolver is None:
            try:
                self.refresh(if_older=0)
            except CacheTrouble:
                if self._resolver is None:
                    raise
            resolver = self._resolver  # the names come from the disk, before the cache is asked to hold them
        if resolver is None:
            # The vault looks empty, or files came while they were compared: what is known still counts. The
            # listing tells of a name once, so it is asked for all of them.
            resolver = self._know_names(self.ask(lambda cache: cache.paths()))
        return resolver

    def resolvers(self, path: str, to: str) -> tuple[resolve.Resolver, resolve.Resolver]:
        """Where links lead before and after a move of *path* to *to*."""
        before = self.resolver()
        with self._naming:
            return before, before.after({path: to})

    def referrers(self, path: str, to: str) -> list[str]:
        """The notes with a link whose meaning a move of *path* to *to* may change."""
        keys = link_keys(path) | link_keys(to)
        return list(self.ask(lambda cache: Graph(cache).referrers_by_key(keys)))

    def links_may_change(self, path: str, to: str) -> bool:
        """Whether a move of *path* to *to* can change where any link leads; false for most layer moves."""
        if names.key(_stem(path)) != names.key(_stem(to)):
            return True
        resolver = self.resolver()
        own = self.ask(lambda cache: cache.get(path))
        if own is None or any(
            "/" in link or len(resolver.candidates(link)) > 1 for link, _ in (*own.links, *own.unquoted)
        ):
            return True
        if len(resolver.candidates(_stem(path))) > 1:
            return True
        keys = link_keys(path)
        for holder in self.referrers(path, to):
            note = self.ask(lambda cache, holder=holder: cache.get(holder))  # type: ignore[misc]
            if note is None or any("/" in link for link, its in (*note.links, *note.unquoted) if its in keys):
                return True
        return False

    def backlinks(self, path: str) -> list[str]:
        """The memories whose links to *path* count, sorted; none while the cache cannot be used."""
        try:
            return list(self.ask(lambda cache: Graph(cache).backlinks(path)))
        except CacheTrouble as error:
            self.lag = str(error)
            return []

    def superseded_by(self, path: str) -> str:
        """The path of what holds now instead of the note at *path*; empty when nothing does."""
        try:
            return self.ask(lambda cache: cache.superseded_by(path))
        except VaultError:
            return ""

    def sources(self) -> dict[str, frozenset[str]]:
        """For each linked note, the memories that link to it and count (SPEC §3)."""
        return self.ask(lambda cache: Graph(cache).sources())

    def memories(self, paths: Collection[str] | None = None) -> dict[str, Memory]:
        """Every memory in the layers, or those of them that lie at *paths*, as it counts now, by path.

        A note that lacks a date is read from disk: what counts for it depends on the moment.
        """
        found: dict[str, Memory] = {}
        observe = deeds.observer(self.house)
        for note in self.ask(lambda cache: cache.notes("memory") if paths is None else cache.at(paths)):
            if note.memory is None or note.kind != "memory":
                continue
            if _unsettled(note):
                try:
                    fresh = self.house.look(note.path)
                except VaultError:
                    continue
                if fresh.memory is not None:
                    found[note.path] = fresh.memory
            else:
                found[note.path] = observe(note.memory, note.id, note.body_hash, note.mark.mtime_ns)
        return found

    def unwritten(self) -> set[str]:
        """The memories in which properties are missing, or of which nothing says yet what a person did."""
        observe, unseen = deeds.observer(self.house), deeds.unseen(self.house)
        found: set[str] = set()
        for note in self.ask(lambda cache: cache.notes("memory")):
            memory, known = note.memory, (note.id, note.body_hash)
            if (
                memory is None
                or _unsettled(note)
                or unseen(memory, *known)
                or observe(memory, *known, note.mark.mtime_ns) != memory
            ):
                found.add(note.path)
        return found

    def rooms(self) -> list[str]:
        return sorted(self.ask(lambda cache: cache.folders()))

    def counts(self) -> dict[str, int]:
        return self.ask(lambda cache: cache.counts())

    def state(self) -> dict[str, object]:
        """What is known of the cache without asking it, so that nothing is waited for."""
        cache, stalled = self._cache, self.stalled()
        state = "filling" if self.filling else "ready" if cache is not None else "closed"
        if self.lag or stalled >= STALLED_SECONDS:
            state = "behind"
        elif state == "ready" and cache is not None and cache.rebuilt:
            state = "rebuilt"
        reason = self.lag or self.filling or (cache.reason if cache is not None else "")
        return {
            "state": state,
            "path": str(cache.file if cache is not None else self.file),
            "reason": reason,
            "compared": "" if self.compared is None else self.compared.isoformat(timespec="seconds"),
            "schema": SCHEMA,
        }

    def stalled(self) -> float:
        """For how many seconds the comparison under way has not got on; 0 when none is."""
        at = self._progress
        return 0.0 if at is None else time.monotonic() - at

    def facts(self) -> dict[str, object]:
        """The cache's state for status and health: where, how many notes, behind or not, and why."""
        try:
            cache = self.cache
            counts = cache.counts()
            held = sum(number for name, number in counts.items() if name != "files")
            known = self.state()
            size = {"notes": held, "rows": counts["files"], "bytes": cache.size()}
            return {"state": known.pop("state"), **size, **known}
        except CacheTrouble as error:
            return {"state": "unusable", "notes": 0, "path": str(self.file), "reason": str(error)}

    def troubles(self) -> list[str]:
        """What is wrong with the cache itself, in words; empty when it is sound and in step."""
        try:
            found = self.ask(lambda cache: cache.troubles())
            if found:  # damage that no question met yet is mended like any other
                self.ask(lambda cache: cache.give_up_if_damaged())
                found = self.cache.troubles()
            return [*([self.lag] if self.lag else []), *found]
        except CacheTrouble as error:
            return [str(error)]


def _linked(found: Iterable[links.Link], name: str) -> Iterable[str]:
    """The paths of the links that the property *name* holds."""
    return dict.fromkeys(link.path for link in found if link.path and link.key.partition(".")[0] == name)


def _below(path: str, folders: frozenset[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _stem(path: str) -> str:
    return places.stem_and_extension(path.rpartition("/")[2])[0]


def link_keys(path: str) -> set[str]:
    """The keys of all links that may mean the note at *path*: `[[a.md]]` and `[[a]]` for `a.md`."""
    return {links.link_key(path), links.link_key(_stem(path))}


def _unsettled(note: IndexedNote) -> bool:
    """Whether the note's header leaves open what only the moment of reading can fill in."""
    odd = any(problem.code not in ASIDE for problem in note.problems)
    return odd or not note.id or not {"created", "last_touched"} <= note.properties.keys()
