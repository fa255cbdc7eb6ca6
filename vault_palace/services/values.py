"""The values that every verb speaks in: settings, one note as read, and the edits to carry out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from vault_palace.core import memory as memories
from vault_palace.core import places
from vault_palace.core.errors import MalformedNote
from vault_palace.core.frontmatter import Header
from vault_palace.core.memory import Reading
from vault_palace.core.model import Layer, Memory
from vault_palace.storage.vault import Stored


def system_clock() -> datetime:
    """The present moment, aware."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many characters an argument may hold (SPEC §9)."""

    content: int = 50_000
    query: int = 512
    room: int = 1_024
    reason: int = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class PalaceSettings:
    """What the surfaces decide for a palace: places for derived data, who acts, clock and limits."""

    cache_dir: Path | None = None
    state_dir: Path | None = None
    session: str = ""
    clock: Callable[[], datetime] = system_clock
    sleep: Callable[[float], None] = time.sleep
    limits: Limits = field(default_factory=Limits)
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One note as read from disk. `text` is None when the bytes are not UTF-8."""

    path: str
    kind: str
    layer: Layer | None
    stored: Stored
    text: str | None
    header: Header
    reading: Reading | None  # None unless the note is a memory (in a layer or the archive)
    memory: Memory | None  # the reading with what a person did since the program's last write

    @property
    def id(self) -> str:
        """Its identity; a conflict copy names the note that it is a copy of."""
        if self.kind == "conflict":
            return memories.identity(self.header) or ""
        return self.reading.id or "" if self.reading else ""

    @property
    def untouched(self) -> bool:
        """Whether no person did anything to it since the program's last write, and nothing is missing."""
        return self.reading is not None and self.reading.memory == self.memory and not self.reading.fills

    @property
    def body_hash(self) -> str:
        return body_hash(self.header.body)

    @property
    def stem(self) -> str:
        return places.stem_and_extension(self.path.rpartition("/")[2])[0]

    @property
    def shown(self) -> str:
        """The text as a reader sees it, with `�` for bytes that are not UTF-8."""
        return self.stored.data.decode("utf-8", "replace") if self.text is None else self.text

    @property
    def editable(self) -> str:
        """The text, for an edit of it; refused when the bytes are not UTF-8."""
        if self.text is None:
            raise MalformedNote(
                f"{self.path} is not UTF-8 text.",
                hint="Save it as UTF-8 in an editor, then repeat the call.",
                path=self.path,
            )
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """Write *data* at *path*: a new note where `before` is None, else in place of exactly that version."""

    path: str
    before: Stored | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Take the note from *path* to *to* and leave *data* there."""

    path: str
    to: str
    before: Stored
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Take exactly that version of the note away; it stays kept."""

    path: str
    before: Stored


Edit = Put | Move | Remove


def body_hash(body: str) -> str:
    """The hash by which a changed body is told, whatever its line ends and final newline."""
    plain = body.replace("\r\n", "\n").strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
