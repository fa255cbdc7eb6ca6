"""A simulated Obsidian: what the real one was measured to do with files that others write too.

One buffer a note. A save comes 2 s after the first keystroke since the last one, in place and in two steps
(the file is emptied, then written), without a look at the disk. An outside change replaces a clean buffer and
is merged into a dirty one by diff-match-patch; one that is told while a save runs is not noticed. A file that
is gone closes its tab, with what was not saved. Its own renames rewrite links, its property editor writes the
whole block anew, its trash is flat, and the workspace file says what is open.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from diff_match_patch import diff_match_patch
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor

from tests.coediting.ledger import Dropped, Ledger, marks, words
from tests.coediting.stage import Clock, Due

SAVE_AFTER = 2.0  # seconds from the first keystroke; later ones do not put it off
EVENT_SECONDS = 0.01  # until a change is told
GONE_SECONDS = 0.1  # until a file that is gone is looked for once more
LINGER_SECONDS = 0.015  # how long after its bytes a save still counts as running
LEAVES = 3  # tabs that the person keeps open at most

Edit = Callable[[str], str]
Seen = tuple[int, int]  # the rounded milliseconds of the mtime, and the size: all that Obsidian compares


@dataclass
class View:
    """One note in a tab."""

    path: str
    buffer: str
    saved: str  # as last saved or loaded: the base of a merge
    seen: Seen | None
    inode: int
    typing_since: float | None = None
    save: Due | None = None
    saving: bool = False
    gone: bool = False  # the app knows that the file is deleted
    checking: bool = False  # whether an event is on its way
    taken_out: set[str] = field(default_factory=set)  # words that the person deleted in the buffer

    @property
    def dirty(self) -> bool:
        return self.buffer != self.saved

    @property
    def unsaved(self) -> set[str]:
        return words(self.buffer) - words(self.saved)


class Obsidian:
    """The app on one vault. `look` has to be called when anybody may have changed a file."""

    def __init__(self, root: Path, clock: Clock, ledger: Ledger, rng: Random | None = None) -> None:
        self.root = root
        self.clock = clock
        self.ledger = ledger
        self.rng = rng or Random(0)
        self.views: dict[str, View] = {}
        self.recent: list[str] = []
        self.running = 0  # saves that are not finished, of closed tabs too
        clock.lookers.append(self.look)

    def place(self, path: str) -> Path:
        return self.root / path

    def text(self, path: str) -> str:
        return self.place(path).read_bytes().decode("utf-8")

    # -- tabs ------------------------------------------------------------------------------------------------

    def open(self, path: str) -> View:
        """Show the note in a tab; with too many tabs the oldest closes."""
        if path in self.views:
            return self.views[path]
        while len(self.views) >= LEAVES:
            self.close(next(iter(self.views)))
        text = self.text(path)
        view = View(path, text, text, self._seen(path), self.place(path).stat().st_ino)
        self.views[path] = view
        self.ledger.tell(self.clock.at, f"obsidian opened {path}")
        self.recent = [path, *(one for one in self.recent if one != path)][:10]
        self._write_workspace()
        return view

    def close(self, path: str) -> None:
        """Close the tab; what is not saved is saved, without waiting for the end of it."""
        view = self.views.pop(path)
        self._save(view)
        self._write_workspace()

    def quit(self) -> None:
        for path in list(self.views):
            self.close(path)

    def _write_workspace(self) -> None:
        leaves = [
            {
                "id": f"leaf{number}",
                "type": "leaf",
                "state": {"type": "markdown", "state": {"file": path, "mode": "source", "source": False}},
            }
            for number, path in enumerate(self.views)
        ]
        document = {
            "main": {
                "id": "m",
                "type": "split",
                "children": [{"id": "t", "type": "tabs", "children": leaves}],
            },
            "left": {"id": "l", "type": "split", "children": [], "collapsed": True},
            "active": f"leaf{len(leaves) - 1}" if leaves else "",
            "lastOpenFiles": self.recent,
        }
        folder = self.root / ".obsidian"
        folder.mkdir(exist_ok=True)
        place = folder / "workspace.json"
        place.write_text(json.dumps(document, indent=2), encoding="utf-8")
        self.clock.stamp(place)

    # -- typing and saving -----------------------------------------------------------------------------------

    def type(self, path: str, edit: Edit) -> None:
        """Change the buffer as a person does; the save follows by itself."""
        view = self.views[path]
        before = view.buffer
        view.buffer = edit(before)
        if view.buffer == before:
            return
        out = words(before) - words(view.buffer)
        view.taken_out = (view.taken_out | out) - words(view.buffer)
        self.ledger.unsaved |= out - words(view.saved)
        if view.typing_since is None:
            view.typing_since = self.clock.at
        self._request_save(view)

    def _request_save(self, view: View) -> None:
        if view.save is None:
            view.save = self.clock.after(SAVE_AFTER, lambda: self._save(view))

    def _save(self, view: View) -> None:
        """Begin to write the buffer to the path that the view knows; the end comes a moment later."""
        if view.save is not None:
            view.save.cancel()
            view.save = None
        if view.gone or not view.dirty or view.saving:
            if view.saving and view.dirty:
                self._request_save(view)
            return
        try:
            before = self.text(view.path)
        except FileNotFoundError:
            before = ""
            self.ledger.person_made_anew(view.path, view.buffer)
        try:
            fd = os.open(self.place(view.path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        except FileNotFoundError:  # the folder is gone as well
            if self.views.get(view.path) is not view:
                self._dropped(view, view.unsaved, "closed", False)
            return
        self.clock.stamp(fd)
        view.saving = True
        self.running += 1
        view.inode = os.fstat(fd).st_ino
        data, taken_out = view.buffer, set(view.taken_out)
        view.typing_since = None
        self.clock.after(self._duration(), lambda: self._finish(view, fd, before, data, taken_out))

    def _duration(self) -> float:
        return self.rng.choice((0.001, 0.002, 0.005, 0.02, 0.06))

    def _finish(self, view: View, fd: int, before: str, data: str, taken_out: set[str]) -> None:
        os.write(fd, data.encode("utf-8"))
        self.clock.stamp(fd)
        inode = os.fstat(fd).st_ino
        os.close(fd)
        self.running -= 1
        self.ledger.person_wrote(before, data, self.clock.at, taken_out)
        self.ledger.tell(self.clock.at, f"obsidian saved {view.path}")
        with contextlib.suppress(FileNotFoundError):
            text = self.text(view.path)
            if self.place(view.path).stat().st_ino != inode and text in self.ledger.by_people:
                # The person's other editor put its file over this one while it was written.
                self.ledger.person_wrote(data, text, self.clock.at, set())
        view.saved = data
        view.taken_out -= taken_out
        if self.views.get(view.path) is view:
            try:
                if self.place(view.path).stat().st_ino == view.inode:
                    view.seen = self._seen(view.path)
            except FileNotFoundError:
                pass
        if view.dirty:
            self._request_save(view)
        self.clock.after(LINGER_SECONDS, lambda: setattr(view, "saving", False))

    # -- what others do --------------------------------------------------------------------------------------

    def _seen(self, path: str) -> Seen | None:
        try:
            found = self.place(path).stat()
        except FileNotFoundError:
            return None
        return round(found.st_mtime_ns / 1e6), found.st_size

    def look(self) -> None:
        """Have each open note whose file looks otherwise than last time told of in a moment."""
        for view in list(self.views.values()):
            seen = self._seen(view.path)
            if seen == view.seen or view.checking:
                continue
            if seen is None:
                view.checking = True
                self.clock.after(GONE_SECONDS, lambda view=view: self._told(view))  # type: ignore[misc]
            elif view.saving and self.place(view.path).stat().st_ino == view.inode:
                view.seen = seen  # its own
            else:
                view.checking = True
                self.clock.after(EVENT_SECONDS, lambda view=view: self._told(view))  # type: ignore[misc]

    def _told(self, view: View) -> None:
        view.checking = False
        if self.views.get(view.path) is not view:
            return
        view.seen = self._seen(view.path)
        if view.seen is None:
            self._vanished(view)
            return
        if view.saving:
            self.ledger.counts["outside changes that a running save hid"] += 1
            return
        text = self.text(view.path)
        if text == view.saved:
            return
        if not view.dirty:
            view.buffer = view.saved = text
            return
        self._merge(view, text)

    def _merge(self, view: View, theirs: str) -> None:
        base, mine = view.saved, view.buffer
        engine = diff_match_patch()
        merged, _ = engine.patch_apply(engine.patch_make(base, mine), theirs)
        self.ledger.counts["merges"] += 1
        lost = {word for word in words(mine) - words(base) - words(merged) if word.startswith("p")}
        self._dropped(view, lost, "merged", theirs in self.ledger.by_people)
        view.saved, view.buffer = theirs, merged
        view.taken_out -= words(merged)
        if view.dirty:
            self._request_save(view)
        else:
            view.typing_since = None

    def _vanished(self, view: View) -> None:
        """The file is gone: the tab closes, and what was not saved goes with it."""
        self.ledger.tell(self.clock.at, f"obsidian saw {view.path} gone")
        view.gone = True
        del self.views[view.path]
        if view.save is not None:
            view.save.cancel()
        if not view.saving:
            lost = {word for word in view.unsaved if word.startswith("p")}
            self._dropped(view, lost, "closed", self.ledger.person_took_away(view.path, self.clock.at))
        self._write_workspace()

    def _dropped(self, view: View, lost: set[str], why: str, by_person: bool) -> None:
        since = self.clock.at if view.typing_since is None else view.typing_since
        saves = [self.ledger.saved_at.get(mark, float("-inf")) for mark in marks(view.saved)]
        quiet = self.clock.at - max(saves, default=float("-inf"))
        self.ledger.drop(Dropped(frozenset(lost), view.path, why, since, self.clock.at, quiet, by_person))

    # -- files -----------------------------------------------------------------------------------------------

    def create(self, path: str, text: str) -> None:
        """A new note, written in one go."""
        self.place(path).parent.mkdir(parents=True, exist_ok=True)
        self._write(path, text)

    def _write(self, path: str, text: str, taken_out: set[str] | None = None) -> None:
        try:
            before = self.text(path)
        except FileNotFoundError:
            before = ""
        self.place(path).write_bytes(text.encode("utf-8"))
        self.clock.stamp(self.place(path))
        self.ledger.person_wrote(before, text, self.clock.at, taken_out or set())

    def _settle(self, path: str) -> None:
        """Let go of the editor: what is not saved is saved, to the end."""
        view = self.views.get(path)
        if view is not None and view.dirty and not view.saving and not view.gone:
            if view.save is not None:
                view.save.cancel()
                view.save = None
            self._write(path, view.buffer, set(view.taken_out))
            view.saved, view.seen, view.typing_since = view.buffer, self._seen(path), None
            view.inode = self.place(path).stat().st_ino
            view.taken_out.clear()

    def rename(self, path: str, to: str) -> None:
        """Rename or drag in the app, which rewrites the links to a note whose name changed."""
        self._settle(path)
        self.place(to).parent.mkdir(parents=True, exist_ok=True)
        os.rename(self.place(path), self.place(to))
        self.ledger.person_moved(path, self.clock.at)
        view = self.views.pop(path, None)
        if view is not None:
            view.path = to
            self.views[to] = view
        self.recent = [to if one == path else one for one in self.recent]
        self._write_workspace()
        old, new = Path(path).stem, Path(to).stem
        if old == new:
            return
        for place in sorted(self.root.rglob("*.md")):
            other = place.relative_to(self.root).as_posix()
            if other.startswith("."):
                continue
            self._settle(other)
            text = place.read_bytes().decode("utf-8")
            done = text.replace(f"[[{old}|", f"[[{new}|").replace(f"[[{old}]]", f"[[{new}]]")
            if done != text:
                self._write(other, done)

    def delete(self, path: str) -> str:
        """Delete a note to the vault's own trash; returns its place there."""
        view = self.views.pop(path, None)
        if view is not None:
            view.gone = True
            if view.save is not None:
                view.save.cancel()
        text = self.text(path)
        trash = self.root / ".trash"
        trash.mkdir(exist_ok=True)
        stem, number = Path(path).stem, 1
        target = trash / f"{stem}.md"
        while target.exists():
            number += 1
            target = trash / f"{stem} {number}.md"
        os.rename(self.place(path), target)
        self.ledger.person_deleted(text if view is None else f"{text}\n{view.buffer}", path, self.clock.at)
        self._write_workspace()
        return target.relative_to(self.root).as_posix()

    def set_property(self, path: str, key: str, value: object) -> None:
        """Change a property in the open note's property editor: the whole block is written anew."""

        def edit(text: str) -> str:
            return with_property(text, key, value)

        self.type(path, edit)


def with_property(text: str, key: str, value: object) -> str:
    """*text* with its header as the property editor leaves it: comments gone, lists as blocks."""
    header, body = "", text
    if text.startswith("---\n") and "\n---\n" in text[3:]:
        header, _, body = text[4:].partition("\n---\n")
    values = _reader().load(header.removesuffix("---")) or {}
    values[key] = value
    writer = YAML()
    writer.default_flow_style = False
    writer.width = 10_000
    writer.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    writer.dump(values, stream)
    dumped = _QUOTED_DATE.sub(r"\1\2", stream.getvalue())  # text of the core schema needs no quotes for it
    return f"---\n{dumped}---\n{body}"


_QUOTED_DATE = re.compile(r"^([^\s:]+: )'(\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d)?)'$", re.MULTILINE)


class _Constructor(SafeConstructor):
    """Dates stay text, as in the app."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def _reader() -> YAML:
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = _Constructor
    return yaml
