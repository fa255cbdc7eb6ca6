"""What a stale save took away, put back: an editor that did not see an agent's write saved over it.

Obsidian saves without looking at the disk, and does not hear of changes that arrive while it saves; a plain
editor may save a text that it read an hour ago. What was made without knowing of a change lacks what that
brought: property lines and texts are put back, beside the person's own words, which win (SPEC §6.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from vault_palace.core import frontmatter, merge
from vault_palace.core.errors import MalformedNote, VaultError
from vault_palace.core.frontmatter import DELETE, Delete
from vault_palace.core.model import DERIVED, OWNED, Value
from vault_palace.services import conflicts, quiet
from vault_palace.services.house import House, Note, Put
from vault_palace.storage.records import Entry, Trace

STALE = timedelta(seconds=3)  # a save so soon after a change was begun before it
SOON = timedelta(minutes=1)  # so soon nobody takes all of a change back and writes on
LATELY = timedelta(days=30)  # older changes were looked after, or are what people wanted
PATIENCE = 0.5
# What was written with people looking, or is made anew anyway.
ASIDE = frozenset({"map", "index", "undo", "resolve", "forget"})
RATED = ("density", "pinned", "decay_days", "rated_on")
MANY = 2_000  # handled operations that are remembered


# An operation, its step, the bytes that followed it, and when those were written.
_Change = tuple[Entry, Trace, str, datetime]


class Overwritten:
    """Finds what stale saves took away. Used by one thread."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._handled: dict[tuple[str, str], None] = {}  # operations with the text that followed, in order

    def suspects(self) -> set[str]:
        """The notes that hold, or held in between, other bytes than the program's last change there left."""
        now, last, found = self.house.now(), dict[str, tuple[str, str | None]](), set[str]()
        for entry in self.house.journal.recent():
            if not timedelta(0) <= now - entry.at < LATELY or entry.verb in ASIDE:
                continue
            for step in entry.steps:
                before = last.get(step.path)
                if (
                    before is not None
                    and before[1] != step.before
                    and (before[0], step.before or "") not in self._handled
                ):
                    found.add(step.to or step.path)
                last[step.to or step.path] = (entry.op, step.after)
        return found

    def put_back(self, note: Note) -> Note:
        """*note*, with what a save took away from it lately put back; as it is on disk afterwards."""
        if note.kind != "memory" or note.text is None or note.header.problem is not None:
            return note
        return self._looked_after(note, self._lately(note))

    def _looked_after(self, note: Note, lately: Sequence[_Change]) -> Note:
        run: list[tuple[Entry, Trace]] = []  # changes that followed each other undisturbed
        for number, (entry, trace, following, at) in enumerate(lately, 1):
            run.append((entry, trace))
            if following == trace.after:
                continue
            if (entry.op, following) not in self._handled:
                note = self._made_good(note, run, following, at, lately[:number])
            self._handled[entry.op, following] = None
            run = []
        while len(self._handled) > MANY:
            del self._handled[next(iter(self._handled))]
        return note

    def take_back(self, home: str, path: str, origin: str) -> bool:
        """Whether the note at *path* is a late save of what had moved to *home*, and was dealt with.

        It is merged into the moved note, or stands beside it as a conflict copy where it cannot be. *origin*
        is where it was saved, in case a person has moved it since.
        """
        base, late, moved = self._before_move(origin, home), self.house.look(path), self.house.look(home)
        if base is None or late.stored.data == moved.stored.data:
            return False  # the very same bytes are a copy that somebody made
        own = self._changes(late, self._since_move(path))
        first = self._header(own[0][1].before) if own else None  # as it was saved, before agents wrote there
        if own and late.text is not None and late.header.problem is None:
            late = self._looked_after(late, own)
        # It may have been read long before the move: what came in between was not deleted by it.
        read = self._nearest(first or late.header, late.stored.fingerprint, self._lately(moved))
        base = self._version(read) or base
        if not conflicts.merge_back(self.house, home, path, base or None):
            conflicts.set_aside(self.house, home, path)
        self._rate_home(home, own)
        return True

    def _since_move(self, path: str) -> list[tuple[Entry, Trace]]:
        """What the program changed at *path* since the note that was there had moved away."""
        found: list[tuple[Entry, Trace]] = []
        for entry in self.house.journal.recent():
            left = any(fact.was == path for fact in entry.notes)
            left = left or any(step.kind == "move" and step.path == path for step in entry.steps)
            if left:
                found.clear()
            elif entry.state in ("done", "begin"):
                found += [(entry, step) for step in entry.steps if step.path == path and not step.to]
        return found

    def _rate_home(self, home: str, own: Sequence[_Change]) -> None:
        """What agents rated while a late save stood at the old place counts for the note at *home*."""
        rated = [
            entry.at
            for entry in self.house.journal.recent()
            if entry.verb == "rate" and any((step.to or step.path) == home for step in entry.steps)
        ]
        for entry, trace, *_ in own:
            before, after = self._header(trace.before), self._header(trace.after)
            if entry.verb != "rate" or before is None or after is None or max([*rated, entry.at]) > entry.at:
                continue
            note = self.house.look(home)
            changes: dict[str, Value | Delete] = {
                key: after.values.get(key, DELETE)
                for key in RATED
                if before.values.get(key) != after.values.get(key)
                and note.header.values.get(key) != after.values.get(key)
            }
            if note.text is not None:
                self._write(note, note.text, changes, f"rated where a late save stood: {entry.op}")

    def _write(self, note: Note, text: str, changes: Mapping[str, Value | Delete], why: str) -> Note:
        """*note* with this *text* and these properties, as it is on disk afterwards."""
        try:
            text = self.house.patched(note, text, changes)
        except MalformedNote:
            return note
        if text == note.text:
            return note
        with self.house.locked(PATIENCE):
            edit = Put(path=note.path, before=note.stored, data=text.encode("utf-8"))
            self.house.perform("put back", [edit], why=why)
        return self.house.look(note.path)

    def _before_move(self, path: str, home: str) -> bytes | None:
        """What the note was before it was moved from *path*; empty when that is not kept, None for no move.

        Moves on from there are followed to *home*.
        """
        now, at, found = self.house.now(), path, None
        for entry in self.house.journal.recent():
            if not timedelta(0) <= now - entry.at < LATELY or entry.state == "undone":
                continue
            for step in entry.steps:
                if step.kind == "move" and step.path == at:
                    found = found or self._version(step.before) or b""
                    at = step.to
            for fact in entry.notes:
                if fact.was and fact.was == at:
                    found, at = found or b"", fact.path
        return found if at == home else None

    def _lately(self, note: Note) -> list[_Change]:
        """The newest changes of the note, each with the bytes that followed and when those were written."""
        steps: list[tuple[Entry, Trace]] = []
        for entry in self.house.journal.recent_of(note.path, note.id):
            if entry.state not in ("done", "begin"):
                continue
            places = _places(entry, note.id)
            if entry.verb == "deleted" and places:
                steps.clear()  # a person wanted nothing of it any more
            steps += [(entry, step) for step in entry.steps if (step.to or step.path) in {note.path, *places}]
        return self._changes(note, steps)

    def _changes(self, note: Note, steps: Sequence[tuple[Entry, Trace]]) -> list[_Change]:
        now = self.house.now()
        lately = [(entry, step) for entry, step in steps if timedelta(0) <= now - entry.at < LATELY]
        found = []
        for number, (entry, step) in enumerate(lately):
            if number + 1 < len(lately):
                later, its = lately[number + 1]
                following, at = its.before or "", later.at
            else:
                following = note.stored.fingerprint
                at = datetime.fromtimestamp(note.stored.mark.mtime_ns / 1e9, now.tzinfo)
            if entry.verb not in ASIDE and step.before is not None:
                found.append((entry, step, following, at))
        return found

    def _was_unseen(self, entry: Entry, trace: Trace, following: str, at: datetime) -> bool:
        """Whether the text that followed, written at *at*, was made without knowing of this change.

        It was when it came at once. Later it shows by the program's own lines: a text from before the change
        has their old values, an older `last_touched` above all, which never goes back; and words that no
        version had. One without such words was brought back on purpose; one with the new values was edited by
        somebody who saw the change.
        """
        if -STALE < at - entry.at <= STALE:
            return True
        before, after, then = (self._header(one) for one in (trace.before, trace.after, following))
        if before is None or after is None or then is None or self._is_old(following):
            return False
        if _touched(then) < _touched(after):
            return True
        if timedelta(0) <= at - entry.at <= SOON and then.values == before.values != after.values:
            return True
        # Lines that no person writes: who takes a rating back by hand leaves the forecast that came with it.
        seen = {
            (then.values.get(key) == before.values.get(key), then.values.get(key) == after.values.get(key))
            for key in (DERIVED - {"edited_on"}) & (before.values.keys() | after.values.keys())
            if before.values.get(key) != after.values.get(key)
        }
        return any(old for old, _ in seen) and not any(new for _, new in seen)

    def _is_old(self, fingerprint: str) -> bool:
        """Whether the program itself once wrote these bytes: then somebody brought them back."""
        return self.house.journal.wrote_lately(fingerprint)

    def _made_good(
        self,
        note: Note,
        run: Sequence[tuple[Entry, Trace]],
        following: str,
        at: datetime,
        lately: Sequence[_Change],
    ) -> Note:
        """*note*, with what the text *following*, saved after the changes in *run*, took away of them."""
        newest = run[-1][1].after
        base = self._read_as(following, newest, lately)
        if base is not None:
            return self._restored(note, base, newest, "what came since it was read", all_of_it=True)
        # Whoever did not see one change saw none that came after it.
        unseen = next((n for n, one in enumerate(run) if self._was_unseen(*one, following, at)), len(run))
        missed = run[unseen:]
        if not missed:
            return note
        words = any(one.verb == "append" for one, _ in missed)
        what = f"{missed[0][0].verb} {missed[0][0].op}"
        return self._restored(note, missed[0][1].before, newest, what, all_of_it=words)

    def _read_as(self, following: str, newest: str | None, lately: Sequence[_Change]) -> str | None:
        """The version that the text *following* was made from, when it is older than *newest*; else None.

        When it was read shows by its `last_touched`; of the versions with that one it is nearest to one.
        Where that is the same, a save that changes words and has every property as an older version had it
        was made from that one: who takes a rating back by hand does only that, or can do it once more.
        """
        then, after = self._header(following), self._header(newest)
        if then is None or after is None or self._is_old(following):
            return None
        if _touched(then) < _touched(after):
            return self._nearest(then, following, lately)
        if then.values == after.values or then.body == after.body:
            return None
        return self._nearest(then, following, lately, to_the_letter=True)

    def _nearest(
        self,
        then: frontmatter.Header,
        besides: str,
        lately: Sequence[_Change],
        *,
        to_the_letter: bool = False,
    ) -> str | None:
        """The version in *lately* that *then* was most likely made from, by `last_touched` and text.

        *to_the_letter*: only one with all the same properties.
        """
        began: list[tuple[int, str]] = []
        for one in {mark for _, trace, *_ in lately for mark in (trace.before, trace.after) if mark}:
            header = self._header(one)
            if one == besides or header is None or _touched(header) != _touched(then):
                continue
            if not to_the_letter or header.values == then.values:
                began.append((merge.distance(header.body, then.body), one))
        return min(began)[1] if began else None

    def _restored(
        self, note: Note, old: str | None, new: str | None, what: str, *, all_of_it: bool = False
    ) -> Note:
        """*note*, with what the version *new* has and *old* had not; *what* says it in words."""
        before, after = self._header(old), self._header(new)
        if before is None or after is None or note.text is None:
            return note
        typing = bool(quiet.attended(self.house, note, body=True))
        text = self._body_back(
            note.text, note.header.body, before.body, after.body, all_of_it, at_the_end=typing
        )
        changes: dict[str, Value | Delete] = {
            key: after.values.get(key, DELETE)
            for key in OWNED & (before.values.keys() | after.values.keys())
            if before.values.get(key) != after.values.get(key)
            and note.header.values.get(key) == before.values.get(key)
        }
        return self._write(note, text, changes, f"a save had overwritten {what}")

    @staticmethod
    def _body_back(text: str, now: str, before: str, after: str, all_of_it: bool, *, at_the_end: bool) -> str:
        """*text*, whose body is *now*, with what *after* has and *before* had not; the person's words win.

        What cannot be merged is added at the end where *all_of_it* is wanted, else left to its version; and
        all is added *at_the_end* while a person types, who would lose words to any other change.
        """
        known, there = _lines(before), _lines(now)
        lost = [line for line in after.splitlines() if line.strip() and line.strip() not in known | there]
        if before == after or not lost:
            return text
        if after.startswith(before.rstrip()):
            added = after[len(before.rstrip()) :].strip("\r\n")
            whole = not (_lines(added) & there)
            return frontmatter.append_body(text, added if whole else "\n".join(lost))
        merged = merge.merge_bodies(before, now, after)
        if merged.clean and not at_the_end:
            return frontmatter.replace_body(text, merged.text)
        return frontmatter.append_body(text, "\n".join(lost)) if all_of_it else text

    def _header(self, fingerprint: str | None) -> frontmatter.Header | None:
        data = self._version(fingerprint)
        if data is None:
            return None
        try:
            header = frontmatter.read(data.decode("utf-8"))
        except UnicodeDecodeError:
            return None
        return header if header.problem is None else None

    def _version(self, fingerprint: str | None) -> bytes | None:
        if not fingerprint:
            return None
        try:
            return self.house.versions.get(fingerprint)
        except VaultError:
            return None


def _touched(header: frontmatter.Header) -> str:
    """The day and time of the last use as the program writes it; later than all where another wrote it."""
    value = header.values.get("last_touched")
    return value if isinstance(value, str) and len(value) == len("2026-11-30T12:00:00") else "~"


def _places(entry: Entry, id: str) -> list[str]:
    """Where the note with this id was left by *entry*: a person may have moved it since."""
    return [fact.path for fact in entry.notes if id and fact.id == id]


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}
