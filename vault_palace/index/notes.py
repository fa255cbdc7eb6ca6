"""One note as the cache holds it, and how it becomes columns and comes back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from hashlib import blake2b
from itertools import islice
from typing import Any

from vault_palace.core.changes import Mark
from vault_palace.core.model import Layer, Memory, Problem, Status
from vault_palace.core.text import each_word, words

TEXT_LIMIT = 5_000_000  # characters of one note that are searched; beyond, the note is reported
WORD_LIMIT = 2_000_000  # words of one note, stems and pairs of signs included

SEARCHED_KINDS = ("memory", "archived")  # the only kinds whose text is in the search index


class DamagedRowError(ValueError):
    """What stands in the cache is not what was put there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedNote:
    """What is known of one Markdown file, of whatever kind.

    `text` is the body; it is searched, not kept: a note that comes out of the cache has none. `links` are
    (link path, `core.links.link_key` of it), in order; `unquoted` are likewise the properties that a person
    means as links, which lead nowhere and count nowhere. `older` and `newer` are those of `links` that
    `supersedes` and `superseded_by` hold. `known_body` and `known_streak` are the state of the
    program's last write, by which a person's edit is told; None where nothing is known of one.
    """

    path: str
    kind: str
    mark: Mark
    fingerprint: str = ""
    body_hash: str = ""
    layer: Layer | None = None
    room: str = ""
    id: str = ""
    title: str = ""
    memory: Memory | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    unquoted: tuple[tuple[str, str], ...] = ()
    older: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    text: str = ""
    known_body: str | None = None
    known_streak: int | None = None

    @property
    def folder(self) -> str:
        """The folder that holds the note, vault-relative; empty for the vault itself."""
        return self.path.rpartition("/")[0]

    @property
    def stem(self) -> str:
        """The file name without its extension."""
        name = self.path.rpartition("/")[2]
        return name.rpartition(".")[0] or name


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a note by the column that holds them, joined by blanks."""

    title: str
    tags: str
    place: str
    body: str

    @classmethod
    def of(cls, note: IndexedNote) -> Words:
        """All words *note* is found by; its file name and aliases stand with the title."""
        titles = dict.fromkeys((note.title, note.stem, *note.aliases))
        body = islice(each_word(note.text[:TEXT_LIMIT]), WORD_LIMIT)
        return cls(
            title=_joined(words(" ; ".join(titles))),
            tags=_joined(words(" ; ".join(note.tags))),
            place=_joined(words(note.folder)),
            body=_joined(body),
        )

    def pack(self) -> bytes:
        """As few bytes, with a checksum: the engine wants these very words back when it forgets the note."""
        return zlib.compress("\n".join((self.title, self.tags, self.place, self.body)).encode("utf-8"), 1)

    @classmethod
    def unpack(cls, packed: bytes) -> Words:
        """What `pack` made; raises DamagedRowError when the bytes are others."""
        try:
            title, tags, place, body = zlib.decompress(packed).decode("utf-8").split("\n")
        except (zlib.error, TypeError, ValueError) as error:
            raise DamagedRowError("the words of a note") from error
        return cls(title, tags, place, body)

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """In the order of the search table."""
        return (self.title, self.tags, self.place, self.body)


def _joined(found: Iterable[str]) -> str:
    return " ".join(found)


def searched_digest(note: IndexedNote) -> bytes:
    """Equal for two versions of a note that are found by the same words: then the old words stay."""
    if note.kind not in SEARCHED_KINDS:
        return b""
    digest = blake2b(digest_size=16)
    for part in (note.path, note.title, *note.aliases, "\0tags", *note.tags, "\0body", note.text):
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.digest()


def with_cut_reported(note: IndexedNote) -> IndexedNote:
    """*note* with a problem when it is too long to be searched whole."""
    if len(note.text) <= TEXT_LIMIT or note.kind not in SEARCHED_KINDS:
        return note
    cut = Problem(
        path=note.path,
        line=0,
        code="note_cut",
        message=f"The note is very long; only its first {TEXT_LIMIT:,} characters can be searched.",
    )
    return replace(note, problems=(*note.problems, cut))


# --- columns ---------------------------------------------------------------------------------------------


def text_column(text: str) -> str | bytes:
    """*text* as SQLite can hold it: names on disk and escapes in headers may hold lone surrogates."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def text_of_column(column: str | bytes) -> str:
    """What `text_column` was given."""
    return column if isinstance(column, str) else column.decode("utf-8", "surrogatepass")


def number_column(number: int) -> int | str:
    """Inodes of some file systems and times of broken ones do not fit SQLite's 64 bits: these are text."""
    return number if -(2**63) <= number < 2**63 else str(number)


def mark_columns(mark: Mark) -> tuple[int | str, ...]:
    return tuple(map(number_column, (mark.size, mark.mtime_ns, mark.inode, mark.changed_ns)))


def mark_of_columns(size: int | str, mtime_ns: int | str, inode: int | str, changed_ns: int | str) -> Mark:
    return Mark(int(size), int(mtime_ns), int(inode), int(changed_ns))


def ranked_columns(note: IndexedNote) -> tuple[Any, ...]:
    """Room, density, streak, birth, the days when it leaves or rises, whether it has none, and is proposed.

    What the index note's lists are ordered by. A note that no rule moves (pinned, Bedrock, archived, a value
    that cannot be read) has no such day whatever its properties say, and lacks none.
    """
    room, memory = text_column(note.room), note.memory
    if memory is None:
        return room, None, None, None, None, None, False, False
    moves = (
        note.layer in (Layer.SHALLOW, Layer.SEDIMENT)
        and not memory.pinned
        and memory.density is not None
        and memory.streak is not None
    )
    decays_on, rises_on = (memory.decays_on, memory.rises_on) if moves else (None, None)
    return (
        room,
        memory.density,
        None if memory.streak is None else number_column(memory.streak),
        memory.created.isoformat(timespec="seconds"),
        None if decays_on is None else decays_on.isoformat(),
        None if rises_on is None else rises_on.isoformat(),
        moves and decays_on is None and rises_on is None,
        note.kind == "memory" and memory.status is Status.PROPOSED,
    )


# The columns that `note_of_columns` wants, in its order.
NOTE_COLUMNS = (
    "note.path, note.kind, note.layer, note.memory_id, note.title, note.memory, note.properties, note.data,"
    " note.size, note.mtime_ns, note.inode, note.changed_ns"
)


def json_column(value: object) -> str:
    """*value* as JSON; what JSON cannot hold becomes text, and what nothing can hold becomes null."""
    try:
        return json.dumps(value, default=str, skipkeys=True, separators=(",", ":"))
    except (ValueError, RecursionError):  # a header's anchors can make a list that holds itself
        return "null"


def memory_column(memory: Memory | None) -> str | None:
    """*memory* as a JSON list; its path is the note's."""
    if memory is None:
        return None
    return json_column(
        [
            memory.layer,
            memory.recorded_layer,
            memory.created.isoformat(),
            memory.last_touched.isoformat(),
            memory.layer_since and memory.layer_since.isoformat(),
            memory.density,
            memory.streak,
            memory.backlinks,
            memory.missed,
            memory.decay_days,
            memory.pinned,
            memory.status,
            memory.decays_on and memory.decays_on.isoformat(),
            memory.rises_on and memory.rises_on.isoformat(),
            memory.rises_to,
            memory.edited_on and memory.edited_on.isoformat(),
        ]
    )


def memory_of_column(path: str, column: str | None) -> Memory | None:
    """What `memory_column` was given; raises DamagedRowError when the text is another."""
    if column is None:
        return None
    try:
        layer, recorded, created, touched, since, density, streak, backlinks, missed, *days = json.loads(
            column
        )
        decay_days, pinned, status, decays_on, rises_on, rises_to, edited_on = days
        return Memory(
            path=path,
            layer=Layer(layer),
            recorded_layer=recorded and Layer(recorded),
            created=datetime.fromisoformat(created),
            last_touched=datetime.fromisoformat(touched),
            layer_since=since and datetime.fromisoformat(since),
            density=density,
            streak=streak,
            backlinks=backlinks,
            missed=missed,
            decay_days=decay_days,
            pinned=pinned,
            status=status and Status(status),
            decays_on=decays_on and date.fromisoformat(decays_on),
            rises_on=rises_on and date.fromisoformat(rises_on),
            rises_to=rises_to and Layer(rises_to),
            edited_on=edited_on and date.fromisoformat(edited_on),
        )
    except (TypeError, ValueError) as error:
        raise DamagedRowError(f"the properties of {path}") from error


def data_column(note: IndexedNote) -> str:
    """What no statement asks for and no person can make unfit for JSON."""
    problems = [[problem.path, problem.line, problem.code, problem.message] for problem in note.problems]
    return json_column(
        [
            note.fingerprint,
            note.body_hash,
            note.room,
            note.tags,
            note.aliases,
            note.links,
            note.unquoted,
            [note.older, note.newer],
            problems,
            note.known_body,
            note.known_streak,
        ]
    )


def note_of_columns(row: Sequence[Any]) -> IndexedNote:
    """A note from its row (`NOTE_COLUMNS`); raises DamagedRowError when the row is another."""
    path, kind, layer, memory_id, title, memory, properties, data, *mark = row
    try:
        fingerprint, body_hash, room, tags, aliases, links, unquoted, replaced, problems, *known = json.loads(
            data
        )
        older, newer = replaced
        known_body, known_streak = known
        return IndexedNote(
            path=text_of_column(path),
            kind=kind,
            mark=mark_of_columns(*mark),
            fingerprint=fingerprint,
            body_hash=body_hash,
            layer=layer and Layer(layer),
            room=room,
            id=text_of_column(memory_id),
            title=text_of_column(title),
            memory=memory_of_column(text_of_column(path), memory),
            properties=json.loads(properties) or {},
            tags=tuple(tags),
            aliases=tuple(aliases),
            links=tuple((link, key) for link, key in links),
            unquoted=tuple((name, key) for name, key in unquoted),
            older=tuple(older),
            newer=tuple(newer),
            problems=tuple(Problem(path=p, line=n, code=c, message=m) for p, n, c, m in problems),
            known_body=known_body,
            known_streak=known_streak,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise DamagedRowError(f"the row of {path!r}") from error
