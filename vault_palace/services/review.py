"""The review queue: `_System/Review.md` says what waits for a person, and what they tick there is done once.

A deed and the unticking of its task, or the clearing of the property `review`, are one journalled operation:
whatever stops the program, both are done or neither. Text with ticks that were obeyed already, which a sync
tool or an editor brings back, is not obeyed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from vault_palace.core import links, mapnote, names, places, reviewnote, rules
from vault_palace.core import memory as memories
from vault_palace.core import undo as undoing
from vault_palace.core.errors import (
    Busy,
    Exists,
    LockTimeout,
    NoteChanged,
    NotFound,
    VaultError,
)
from vault_palace.core.frontmatter import DELETE
from vault_palace.core.model import POLICY_NOTE, Layer, Memory, Status
from vault_palace.core.reviewnote import (
    ARCHIVE,
    BOTH,
    DROP,
    KEEP,
    MERGE,
    PIN,
    PROMOTE,
    Choice,
    Item,
    Section,
    Tick,
)
from vault_palace.index.cache import IndexedNote
from vault_palace.services import conflicts, finding, generated, mapping, quiet, related, relocate, remember
from vault_palace.services.attention import seconds_since
from vault_palace.services.caller import Caller, calling
from vault_palace.services.generated import REVIEW_NOTE
from vault_palace.services.history import PERSON
from vault_palace.services.house import Edit, House, Note, Put, riding
from vault_palace.storage.records import Entry

VERB = "review"
SETTLED = 3.0  # seconds: Obsidian saves within two, and a person may tick a second task
PATIENCE = 0.5  # for the lock; the keeper comes again
DONE = 20  # deeds of the review that are shown
COMPARED = 20  # of the newest memories, so many are compared with the others
DEEPER = {Layer.SHALLOW: Layer.SEDIMENT, Layer.SEDIMENT: Layer.BEDROCK}
WAITING = "waits until nobody is at work in it"
IN_NOTE = f"ticked in {REVIEW_NOTE}"
IN_PROPERTY = "said in its properties"
_OPENING = (
    "# Review\n\nWhat waits for you. Tick a task and it is done within seconds; what was done stands at the"
    " end, with\nhow to take it back. The same words can stand in a memory's own property `review`. Your own"
    " lines above\nand below the markers stay.\n"
)


class _Waits(Exception):
    """The deed has to wait; why, in words that a person is shown."""


@dataclass(slots=True)
class Review:
    """What one keeper remembers of the review: what it has to look at, and what it compared already."""

    house: House
    wished: set[str] = field(default_factory=set)  # notes whose property says something
    ticked: bool = True  # whether the note may hold ticks that were not looked at
    dirty: bool = True
    waits: dict[str, str] = field(default_factory=dict)  # path of a memory -> why its tick waits
    answers: dict[str, str] = field(default_factory=dict)  # a task as it was ticked -> the answer to it
    _alike: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def see(self, rows: Mapping[str, IndexedNote]) -> None:
        """Take notice of these notes, which changed."""
        if REVIEW_NOTE in rows:
            self.ticked = self.dirty = True
        for path, row in rows.items():
            if row.kind == "memory" and reviewnote.property_words(row.properties.get("review")):
                self.wished.add(path)
        self.dirty = True

    @property
    def pending(self) -> bool:
        """Whether there may be anything to do."""
        return bool(self.wished) or self.ticked or self.dirty

    def act(self) -> float | None:
        """Obey what is quiet, and bring the note in step; in how many seconds more is due, if anything is."""
        if self.house.read_only() or not self.house.vault.exists(POLICY_NOTE) or self.house.shelf.doubts:
            return None
        waits = [wait for wait in (self._obey_properties(), self._obey_ticks()) if wait is not None]
        if self.dirty and 0.0 not in waits:
            self.dirty = renew(self.house, self) is None
            if self.dirty:
                waits.append(2.0)
        return min(waits, default=None)

    # -- properties ------------------------------------------------------------------------------------------

    def _obey_properties(self) -> float | None:
        wait: float | None = None
        for path in sorted(self.wished):
            try:
                done = _obey_property(self.house, path)
            except NotFound:
                done = True
            except (_Waits, Busy, NoteChanged, Exists, LockTimeout):
                done = False
            except VaultError:
                done = True  # its header cannot be written: reported by whoever reads it
            if done:
                self.wished.discard(path)
                self.dirty = True
            else:
                wait = 2.0
        return wait

    # -- ticks -----------------------------------------------------------------------------------------------

    def _obey_ticks(self) -> float | None:
        if not self.ticked:
            return None
        house = self.house
        try:
            note = house.look(REVIEW_NOTE)
        except NotFound:
            self.ticked = False
            return None
        if note.text is None or generated.hindrance(house, REVIEW_NOTE) is not None:
            self.ticked = False
            return None
        found = reviewnote.ticks(note.text)
        if not found:
            self.ticked = False
            return None
        settled = max(SETTLED, float(house.policy().quiet_seconds))
        age = seconds_since(note.stored.mark.mtime_ns, house.now())
        if age < settled:
            return settled - age
        if _obeyed(house, note.stored.fingerprint):
            return self._untick(note, found)
        return self._obey(note, found)

    def _obey(self, note: Note, found: Collection[Tick]) -> float | None:
        """Do what was ticked for one memory after the other; the text is another after each."""
        groups: dict[str, list[Tick]] = {}
        for tick in found:
            groups.setdefault(tick.path or f"\0{tick.line}", []).append(tick)
        for path, ticks in groups.items():
            try:
                target, answer = self._meant(path, ticks)
                if answer:
                    self.answers[ticks[0].text] = answer
                    self._untick(note, ticks)
                else:
                    _carry_out(self.house, note, ticks, target)
                    self.waits.pop(target, None)
            except (_Waits, Busy):
                self._wait(self._path(path))
                continue
            except LockTimeout:
                return 1.0
            except (NoteChanged, Exists):
                return 1.0  # the text, or the memory, changed: look again
            except VaultError as error:
                self.answers[ticks[0].text] = f"{_plainly(ticks[0].text)}: {error.message}"
                self._untick(note, ticks)
            self.dirty = True
            return 0.0  # what is left is looked at anew
        return 2.0  # all of it waits

    def _wait(self, path: str) -> None:
        """Say once that this memory's tick waits; minutes that pass are no news."""
        if path not in self.waits:
            self.waits[path] = WAITING
            self.dirty = True

    def _path(self, link: str) -> str:
        return self.house.shelf.resolver().resolve(link, REVIEW_NOTE) or ""

    def _meant(self, link: str, ticks: Collection[Tick]) -> tuple[str, str]:
        """The memory that is meant, and the answer where nothing can be done."""
        first = next(iter(ticks))
        if not all(tick.word for tick in ticks):
            said = _plainly(first.text)
            return "", f"{said}{reviewnote.ANSWER}keep, promote, archive or pin, and the memory"
        path = self._path(link)
        if not path:
            return "", f"{_plainly(first.text)}: there is no such memory any more"
        words = {tick.word for tick in ticks}
        if len(words) > 1 and not words <= set(reviewnote.WORDS):
            return path, f"{_plainly(link)}: {' and '.join(sorted(words))}{reviewnote.ANSWER}one of them"
        wrong = reviewnote.wish(words & set(reviewnote.WORDS)).wrong
        return path, f"{_plainly(link)}: {wrong}" if wrong else ""

    def _untick(self, note: Note, ticks: Collection[Tick]) -> float | None:
        """Open these tasks again, without doing anything."""
        text = reviewnote.unticked(note.editable, [tick.line for tick in ticks])
        try:
            with self.house.locked(PATIENCE):
                edit = Put(path=REVIEW_NOTE, before=note.stored, data=text.encode("utf-8"))
                self.house.perform("index", [edit], why="review")
        except (NoteChanged, LockTimeout):
            return 1.0
        return 0.0

    # -- near-duplicates -------------------------------------------------------------------------------------

    def alike(self, memory: Memory) -> tuple[tuple[str, str], ...]:
        """The notes that this memory repeats, with why; compared once for each text of it."""
        row = self.house.shelf.ask(lambda cache: cache.get(memory.path))
        if row is None:
            return ()
        key = (memory.path, row.body_hash)
        if key not in self._alike:
            try:
                note = self.house.look(memory.path)
            except VaultError:
                return ()
            found = related.related(self.house, note)
            self._alike[key] = tuple(
                (one["path"], one["why"]) for one in found if one["kind"] == related.DUPLICATE
            )
            while len(self._alike) > 4 * COMPARED:
                self._alike.pop(next(iter(self._alike)))
        return self._alike[key]


# -- doing it -----------------------------------------------------------------------------------------------


def _obeyed(house: House, fingerprint: str) -> bool:
    """Whether these very bytes of the review note were obeyed already: an old text was brought back.

    What was taken back since may be asked for again.
    """
    entries = house.journal.recent()
    undone = undoing.cancelled(entries)
    return any(
        step.path == REVIEW_NOTE and step.before == fingerprint and entry.verb != "index"
        for entry in entries
        if entry.op not in undone and entry.state not in ("undone", "superseded")
        for step in entry.steps
    )


def _carry_out(house: House, note: Note, ticks: Collection[Tick], path: str) -> None:
    """Do what these ticks say of the memory at *path*, and untick them, in one operation."""
    text = reviewnote.unticked(note.editable, [tick.line for tick in ticks])
    rider = Put(path=REVIEW_NOTE, before=note.stored, data=text.encode("utf-8"))
    words = [tick.word for tick in ticks]
    with calling(Caller(session=PERSON)):
        if words[0] in (MERGE, BOTH, DROP):
            keep = {MERGE: None, BOTH: "both", DROP: "main"}[words[0]]
            with riding(rider):
                conflicts.resolve(house, path, keep=keep)
            return
        if words[0] == reviewnote.APART:
            with house.locked(PATIENCE):
                house.perform(VERB, [rider], why=f"{_pair(house, ticks)} are kept apart, {IN_NOTE}")
            return
        layer = next((found for tick in ticks if (found := reviewnote.named_layer(tick.text))), None)
        _do(house, house.look(path), reviewnote.wish(words).words, IN_NOTE, layer=layer, rider=rider)


def _pair(house: House, ticks: Collection[Tick]) -> str:
    """The ids of the two notes that a task to keep apart names, so that the journal knows the pair."""
    resolver = house.shelf.resolver()
    ids = []
    for link in links.find(next(iter(ticks)).text):
        path = resolver.resolve(link.path, REVIEW_NOTE)
        if path is not None:
            ids.append(house.look(path).id)
    return " and ".join(sorted(ids))


def _obey_property(house: House, path: str) -> bool:
    """Do what the property `review` of the memory at *path* says; whether nothing of it is left to do."""
    note = house.look(path)
    words = reviewnote.property_words(note.header.values.get("review"))
    if note.kind != "memory" or not words or note.header.problem is not None:
        return True
    if quiet.attended(house, note, body=False):
        return False
    wish = reviewnote.wish(words)
    with calling(Caller(session=PERSON)):
        if not wish.wrong:
            _do(house, note, wish.words, IN_PROPERTY)
            return True
        text = house.patched(note, note.editable, {"review": [wish.wrong]})
        with house.locked(PATIENCE):
            edit = Put(path=path, before=note.stored, data=house.kept_up(note, text).encode("utf-8"))
            house.perform(VERB, [edit], why=f"answered, {IN_PROPERTY}")
    return True


def _do(
    house: House,
    note: Note,
    words: Collection[str],
    how: str,
    *,
    layer: Layer | None = None,
    rider: Put | None = None,
) -> None:
    """Do *words* to *note* as one operation, with *rider* and without the property `review`.

    *layer* is where a task says that it rises to: one that is there already stays where it is.
    """
    memory = house.memory_of(note)
    house.refuse_twin(note)
    moves = ARCHIVE in words or PROMOTE in words
    reason = quiet.attended(house, note, body=moves)
    if reason:
        raise _Waits(reason)
    if note.kind != "memory":
        _leave(house, note, "it is in the archive already", how, rider)
        return
    why = f"{' and '.join(words)}, {how}"
    if ARCHIVE in words:
        rejected = memory.status is Status.PROPOSED
        text = _cleared(
            house, note, house.archived_text(note, memories.purged("rejected" if rejected else how))
        )
        _move(house, note, relocate.archive_place(house, note.path), text, "purge", why, rider)
        return
    now, policy = house.now(), house.policy()
    approved = memory.status is Status.PROPOSED
    after = rules.settle(rules.arrive(memory, now, policy), now, policy)
    if KEEP in words and not approved:
        after = rules.touch(memory, now, policy)  # who keeps it came back to it; the other words are no use
    after = rules.approve(after)
    if PIN in words:
        after = replace(after, pinned=True)
    deeper = DEEPER.get(memory.layer) if PROMOTE in words else None
    if PROMOTE in words and deeper is None and not approved:
        _leave(house, note, "there is no deeper layer", how, rider)
        return
    if deeper is not None and (layer is None or memory.layer.rank < layer.rank):
        after = rules.move_to(after, deeper, now, policy)
        text = _cleared(house, note, house.with_memory(note, note.editable, after, {}))
        room = places.room_of(note.path)
        place = "/".join(part for part in (deeper.folder, room, f"{note.stem}.md") if part)
        _move(house, note, finding.free_place(house, place, besides=note.path), text, "move", why, rider)
        return
    text = _cleared(house, note, house.with_memory(note, note.editable, after, {}))
    edits: list[Edit] = [Put(path=note.path, before=note.stored, data=text.encode("utf-8"))]
    if approved:
        edits += _superseded(house, note)
    with house.locked(PATIENCE):
        house.perform(VERB, [*edits, *([rider] if rider else [])], why=why)


def _leave(house: House, note: Note, why: str, how: str, rider: Put | None) -> None:
    """Nothing can be done: clear what was said, and put on record why."""
    edits: list[Edit] = [] if rider is None else [rider]
    text = _cleared(house, note, note.editable)
    if text != note.text:
        edits.insert(0, Put(path=note.path, before=note.stored, data=text.encode("utf-8")))
    with house.locked(PATIENCE):
        house.perform(VERB, edits, why=f"nothing was done: {why}, {how}")


def _cleared(house: House, note: Note, text: str) -> str:
    return house.patched(note, text, {"review": DELETE}) if "review" in note.header.values else text


def _superseded(house: House, note: Note) -> list[Edit]:
    """What an approved memory supersedes is marked, as it is for one that needs no approval."""
    older = []
    for link in links.find(note.shown):
        if link.key.partition(".")[0] == "supersedes":
            path = house.shelf.resolver().resolve(link.path, note.path)
            if path is not None and places.is_note(path) and path != note.path:
                older.append(house.look(path))
    return [*remember.superseded(house, older, note.path)]


def _move(house: House, note: Note, to: str, text: str, verb: str, why: str, rider: Put | None) -> None:
    course = relocate.plotted(house, note, to, text)
    # Links in the review note follow when it is made anew; it cannot be written twice in one operation.
    edits = [edit for edit in course.edits if rider is None or edit.path != rider.path]
    with house.locked(PATIENCE):
        house.perform(verb, [*edits, *([rider] if rider else [])], why=why)


# -- the note -----------------------------------------------------------------------------------------------


def renew(
    house: House, review: Review | None = None, *, without: Callable[[Entry], bool] | None = None
) -> bool | None:
    """Bring the review note in step; whether it was written, None when it has to be tried again.

    Operations that *without* picks are left out.

    Nothing is written to a read-only vault, without a policy note, or while a person ticks in the note.
    """
    if house.read_only() or not house.vault.exists(POLICY_NOTE) or house.shelf.doubts:
        return False
    if house.shelf.lag or house.shelf.filling:
        return None
    if generated.hindrance(house, REVIEW_NOTE) is not None:
        return False  # reported as a problem
    review = review or Review(house)
    try:
        note = house.look(REVIEW_NOTE)
        before, text = note.stored, note.editable
        age = seconds_since(note.stored.mark.mtime_ns, house.now())
        outside = not house.journal.accounts_for(note.stored.fingerprint)
        if outside and age < max(SETTLED, float(house.policy().quiet_seconds)):
            return None
    except NotFound:
        before, text = None, _OPENING
    fresh = mapnote.with_block(text, reviewnote.block(gather(house, review, text, without=without)))
    if before is not None and fresh == text:
        return False
    try:
        with house.locked(PATIENCE):
            edit = Put(path=REVIEW_NOTE, before=before, data=fresh.encode("utf-8"))
            house.perform("index", [edit], why="review")
    except (NoteChanged, Exists, LockTimeout):
        return None
    return True


def gather(
    house: House, review: Review, text: str = "", *, without: Callable[[Entry], bool] | None = None
) -> reviewnote.Facts:
    """What the note shows; ticks in *text* that wait stay ticked."""
    ticked: dict[str, set[str]] = {}
    resolver = house.shelf.resolver()
    for tick in reviewnote.ticks(text):
        path = resolver.resolve(tick.path, REVIEW_NOTE) if tick.path else None
        if path is not None and tick.word:
            ticked.setdefault(path, set()).add(tick.word)
    listing = _Listing(house, review, ticked)
    today = house.today()
    ahead = max(int(house.policy().horizon_days), 0)
    last = date.fromordinal(min(today.toordinal() + ahead, date.max.toordinal()))
    seen = house.shelf.ask(lambda cache: cache.waiting(last, reviewnote.MOST))
    paths, proposed = house.shelf.ask(lambda cache: cache.proposed(reviewnote.MOST))
    decaying = mapping.leaving(house, seen, last)
    why = mapping.reasons(house)
    shown = {*paths}
    return reviewnote.Facts(
        sections=(
            Section("Proposed by agents", [*map(listing.proposed, paths)], proposed),
            Section(
                "About to be archived",
                [listing.fading(one, why) for one in decaying[: reviewnote.MOST] if one.path not in shown],
                max(seen.decaying.count, len(decaying)) - sum(one.path in shown for one in decaying),
            ),
            Section("Conflict copies", [*map(listing.copied, seen.conflicts.first)], seen.conflicts.count),
            Section("Near-duplicates", *listing.duplicates(seen.newest[:COMPARED])),
            Section("Ticked before", *listing.waiting()),
        ),
        answers=tuple(dict.fromkeys(review.answers.values()))[-DONE:],
        done=_done(house, without),
    )


class _Listing:
    """Makes the entries of the note."""

    def __init__(self, house: House, review: Review, ticked: Mapping[str, set[str]]) -> None:
        self.house = house
        self.review = review
        self.ticked = ticked
        self.shown: set[str] = set()

    def link(self, path: str) -> str:
        text = links.link_to(path, self.house.shelf.resolver(), REVIEW_NOTE)
        stem = places.stem_and_extension(path.rpartition("/")[2])[0]
        if not names.linkable(text):
            return f"`{stem.replace('`', ' ')}`"
        return f"[[{text}]]"

    def item(self, path: str, said: str, choices: Collection[Choice]) -> Item:
        ticked = self.ticked.get(path, set())
        self.shown.add(path)
        waits = self.review.waits.get(path, "") if ticked else ""
        link = self.link(path)
        if not link.startswith("[["):  # no task could say which memory it means
            said, choices = f"{said}; no link can name it, so say it in its property `review`", ()
        return Item(
            link=link,
            said=said,
            choices=tuple(choices),
            waits=waits,
            ticked=frozenset(ticked),
        )

    def waiting(self) -> tuple[list[Item], int]:
        """What was ticked, is not done yet, and would not be listed any more."""
        left = sorted(path for path in self.ticked if path not in self.shown)
        items = [
            self.item(path, "was ticked", reviewnote.choices(places.layer_of(path), DEEPER)) for path in left
        ]
        return items, len(items)

    def proposed(self, path: str) -> Item:
        layer = places.layer_of(path)
        who, when = "an agent", ""
        try:
            note = self.house.look(path)
            session = note.header.values.get("source_session")
            who = f"`{_plainly(str(session))}`" if session else who
            when = f" on {note.memory.created:%Y-%m-%d}" if note.memory is not None else ""
        except VaultError:
            pass
        return self.item(path, f"was proposed by {who}{when}", reviewnote.choices(layer, DEEPER))

    def fading(self, memory: Memory, why: Callable[[Memory, date | None, str | None], str]) -> Item:
        day = memory.decays_on
        reason = why(memory, day, "_Archive")
        said = f"goes to the archive on {day}" + (f": {reason}" if reason else "")
        return self.item(memory.path, said, reviewnote.choices(memory.layer, DEEPER))

    def copied(self, path: str) -> Item:
        choices = [Choice(MERGE, "into its note"), Choice(BOTH, "as two memories"), Choice(DROP)]
        return self.item(path, "is a sync tool's conflict copy", choices)

    def duplicates(self, newest: Collection[Memory]) -> tuple[list[Item], int]:
        apart = _apart(self.house)
        found: list[Item] = []
        pairs: set[frozenset[str]] = set()
        for memory in newest:
            for other, why in self.review.alike(memory):
                pair = frozenset((memory.path, other))
                if pair in pairs or not self.house.vault.exists(other) or self._ids(pair) in apart:
                    continue
                pairs.add(pair)
                beside = self.link(other)
                choices = [
                    Choice(reviewnote.APART, f"and {beside}"),
                    Choice(ARCHIVE, f"now, and keep {beside}"),
                ]
                found.append(self.item(memory.path, f"says the same as {beside}: {why}", choices))
        return found[: reviewnote.MOST], len(found)

    def _ids(self, pair: Collection[str]) -> str:
        ids = []
        for path in pair:
            row = self.house.shelf.ask(lambda cache, path=path: cache.get(path))  # type: ignore[misc]
            ids.append(row.id if row is not None else "")
        return " and ".join(sorted(ids))


def _apart(house: House) -> set[str]:
    """The pairs of ids that a person keeps apart, as the journal has them."""
    return {
        entry.why.partition(" are kept apart, ")[0]
        for entry in house.journal.recent()
        if entry.verb == VERB and " are kept apart, " in entry.why
    }


def _done(house: House, without: Callable[[Entry], bool] | None) -> tuple[str, ...]:
    """What the review did lately, the newest first, with how to take it back."""
    found: list[str] = []
    entries = house.journal.recent()
    undone = undoing.cancelled(entries)
    for entry in reversed(entries):
        if entry.state != "done" or not entry.why.endswith((IN_NOTE, IN_PROPERTY)) or entry.op in undone:
            continue
        if without is not None and without(entry):
            continue
        found.append(_deed(house, entry))
        if len(found) == DONE:
            break
    return tuple(found)


def _deed(house: House, entry: Entry) -> str:
    said = _plainly(entry.why.rpartition(", ")[0])
    name = ""
    if entry.notes:
        stem = places.stem_and_extension(entry.notes[0].path.rpartition("/")[2])[0]
        name = f" “{_plainly(stem)}”"
    day = house.policy().wall(entry.at)
    return f"{day:%Y-%m-%d %H:%M}{name}: {said}; `vault-palace undo {entry.op}` takes it back"


def _plainly(text: str) -> str:
    """*text* on one line without what would be a link, code or a task in the note."""
    flat = " ".join(text.replace("[[", "“").replace("]]", "”").replace("`", "'").split())
    return flat if len(flat) <= 120 else f"{flat[:119]}…"
