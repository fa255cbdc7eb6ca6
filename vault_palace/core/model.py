"""The values of the domain: layers, statuses, what the rules know of a memory, what was decided.

Everything here is frozen. Times inside a `Memory` are zone-less wall times in the vault's zone, as the
notes hold them (SPEC §2); the clock that rules and services are given is always aware.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

ARCHIVE = "_Archive"
SYSTEM = "_System"
STATE = ".palace"
MAP_NOTE = "PALACE_MAP.md"
CANVAS = "Palace.canvas"
POLICY_NOTE = "_System/Policy.md"
OLD_POLICY = "_System/policy.yaml"  # Sediment Palace's

# A property's value as Python holds it: text, whole or decimal number, checkbox, nothing, or a list.
Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | None


class Layer(StrEnum):
    """A layer of sediment, from fresh to crystallised. Compare with `rank`."""

    SHALLOW = "shallow"
    SEDIMENT = "sediment"
    BEDROCK = "bedrock"

    @property
    def folder(self) -> str:
        return _FOLDERS[self]

    @property
    def rank(self) -> int:
        return _ORDER.index(self)

    @classmethod
    def of_folder(cls, name: str) -> Layer | None:
        """The layer whose folder is called *name* exactly, or None."""
        return _LAYERS.get(name)


_FOLDERS = {Layer.SHALLOW: "01_Shallow", Layer.SEDIMENT: "02_Sediment", Layer.BEDROCK: "03_Bedrock"}
_LAYERS = {folder: layer for layer, folder in _FOLDERS.items()}
_ORDER = (Layer.SHALLOW, Layer.SEDIMENT, Layer.BEDROCK)


class Status(StrEnum):
    ACTIVE = "active"
    DECAYING = "decaying"
    CRYSTALLIZED = "crystallized"
    ARCHIVED = "archived"
    PROPOSED = "proposed"  # an agent wrote it, and waits for a person to say yes


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that a person should look at. `line` is 1-based, 0 when the whole file is meant."""

    path: str
    line: int
    code: str  # a stable word: bad_header, bad_value, duplicate_id, unresolved_link, conflict_copy, …
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the rules need to know about one note, and what they set (SPEC §2, §4).

    `layer` is the folder's; `recorded_layer` the property's (None: absent or unreadable). `density` and
    `streak` are None when unreadable: then no rule moves the note; absent ones hold their defaults.
    `decay_days` is None when absent or unreadable: the default of the recorded layer counts.
    """

    path: str
    layer: Layer
    recorded_layer: Layer | None = None
    created: datetime
    last_touched: datetime
    layer_since: datetime | None = None
    density: float | None = 0.2
    streak: int | None = 0
    backlinks: int = 0
    missed: int = 0
    decay_days: float | None = None
    pinned: bool = False
    status: Status | None = Status.ACTIVE
    decays_on: date | None = None
    rises_on: date | None = None
    rises_to: Layer | None = None
    edited_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one note is due for. `to` is None to stay; ARCHIVE or a layer's value to move.

    `after` holds every value as it shall be afterwards (for an archive: as the archived note keeps
    them). `rule` is the row of SPEC §5 that matched, `reason` the words a person is shown.
    """

    path: str
    before: Memory
    after: Memory
    to: str | None
    rule: str
    reason: str

    @property
    def changed(self) -> bool:
        return self.to is not None or self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Decisions for a whole vault, sorted by path; `waiting` are archives that something holds back."""

    decisions: tuple[Decision, ...]
    waiting: tuple[Decision, ...] = ()
    brake: str = ""  # why all of them wait, in words; empty where it is for being held that some do
    problems: tuple[Problem, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Property:
    """A property that the program owns: its name and its type in Obsidian's `types.json`."""

    name: str
    type: str
    derived: bool = False  # the program fills it in, so it never counts in a note's `rev`


# SPEC §2, in the order in which a new note holds them. `created` to `status` come first.
PROPERTIES = (
    Property("id", "text", derived=True),
    Property("layer", "text", derived=True),
    Property("created", "datetime", derived=True),
    Property("last_touched", "datetime", derived=True),
    Property("layer_since", "datetime", derived=True),
    Property("density", "number"),
    Property("rated_on", "date"),
    Property("edited_on", "date", derived=True),
    Property("streak", "number", derived=True),
    Property("decay_days", "number"),
    Property("decays_on", "date", derived=True),
    Property("rises_on", "date", derived=True),
    Property("rises_to", "text", derived=True),
    Property("backlinks", "number", derived=True),
    Property("missed", "number", derived=True),
    Property("pinned", "checkbox"),
    Property("status", "text", derived=True),
    Property("review", "multitext"),
    Property("supersedes", "multitext"),
    Property("superseded_by", "text"),
    Property("tags", "tags"),
    Property("aliases", "aliases"),
    Property("source_session", "text"),
    Property("archived_on", "date"),
    Property("archived_reason", "text"),
    Property("archived_from", "text"),
)
OWNED = frozenset(p.name for p in PROPERTIES)
DERIVED = frozenset(p.name for p in PROPERTIES if p.derived)

# The program's own items in a note's `cssclasses`, all of them: every other item is a person's.
CSS_CLASSES = "cssclasses"
STYLES = frozenset(
    f"palace-{word}"
    for word in (
        *(str(layer) for layer in Layer),
        "archive",
        *(f"density-{level}" for level in range(11)),
        "decaying",
        "pinned",
        "superseded",
        "proposed",
    )
)
