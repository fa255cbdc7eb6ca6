"""What each verb of the palace answers. The keys are SPEC §9's; both surfaces render these."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Related(TypedDict):
    """A note worth linking, or a near-duplicate; `link` is ready to paste."""

    path: str
    title: str
    link: str
    why: str


class WriteAnswer(TypedDict):
    saved_path: str
    id: str
    rev: str
    mode: str
    related: list[Related]
    warnings: list[str]


class Metadata(TypedDict, total=False):
    """The note's properties as text, numbers, checkboxes and lists; any key may appear."""


class ReadAnswer(TypedDict):
    path: str
    title: str
    metadata: dict[str, object]
    content: str
    rev: str
    backlinks: list[str]  # paths of the memories that link here; counted ones only, at most 50
    truncated: bool
    more: NotRequired[str]  # what was left out and how to ask for it
    warnings: list[str]


class Match(TypedDict):
    path: str
    snippet: str
    id: str
    title: str
    layer: str
    density: float | None
    age_days: int | None
    decays_on: str | None
    why: str


class SearchAnswer(TypedDict):
    room: str
    query: str
    matches: list[Match]
    total: int
    cursor: str | None
    note: str  # a hint in words: nothing found and why, what was cut; may be empty


class FindAnswer(TypedDict):
    """`read_memory` by query, as Sediment Palace has it."""

    query: str
    layer: str | None
    matches: list[Match]
    cursor: str | None
    note: str


class RateAnswer(TypedDict):
    path: str
    id: str
    before: dict[str, object]  # density, pinned, decay_days
    after: dict[str, object]
    decays_on: str | None
    rev: str


class DecisionAnswer(TypedDict):
    path: str
    to: str | None
    rule: str
    reason: str


class SkippedAnswer(TypedDict):
    path: str
    reason: str


class MetabolizeAnswer(TypedDict):
    dry_run: bool
    scanned: int
    promoted_count: int
    archived_count: int
    decaying_count: int
    promoted: list[str]  # the new paths, as in Sediment Palace
    archived: list[str]
    decaying: list[str]
    decisions: list[DecisionAnswer]  # notes that move or decay, with the reason in words
    waiting: list[DecisionAnswer]  # archives that the brakes hold back
    skipped: list[SkippedAnswer]
    note: str
    cancelled: bool


class PurgeAnswer(TypedDict):
    path: str
    archived_to: str
    reason: str
    links_left: NotRequired[list[str]]  # as in MoveAnswer


class RestoreAnswer(TypedDict):
    path: str
    restored_to: str
    layer: str
    links_left: NotRequired[list[str]]  # as in MoveAnswer


class MoveAnswer(TypedDict):
    source: str
    destination: str
    links_rewritten: int
    links_left: list[str]  # notes whose link could not be rewritten, with why


class MapAnswer(TypedDict):
    map: str
    truncated: bool


class MapEditAnswer(TypedDict):
    action: str
    link: str
    changed: bool


class RecoveredAnswer(TypedDict):
    operation_id: str
    operation: str
    status: str  # finished, undone, superseded, open
    path: str
    detail: str


class RecoverAnswer(TypedDict):
    unresolved_count: int
    recovered_count: int
    recovered: list[RecoveredAnswer]


class ProblemAnswer(TypedDict):
    path: str
    line: int
    code: str
    message: str


class HealthAnswer(TypedDict):
    status: str  # ok, degraded, failing
    service: str
    version: str
    vault: str
    mode: str  # palace, sediment-palace (no Policy.md), read-only
    index: dict[str, object]  # state, notes, path
    problems: list[ProblemAnswer]  # at most 50
    problem_count: int
    waiting: list[DecisionAnswer]  # archives that the brakes hold back, at most 50
    tomorrow: list[DecisionAnswer]  # what tomorrow's run will archive, at most 50


class StatusAnswer(TypedDict):
    vault: str
    version: str
    mode: str
    timezone: str
    watch: dict[str, object]  # mode (events, polling, away, off), keeper, holder, steps, trouble
    layers: dict[str, int]
    archived: int
    decaying_soon: list[DecisionAnswer]
    rising_soon: list[DecisionAnswer]
    index: dict[str, object]
    open_operations: int
    problem_count: int
    lock: str  # empty, or who holds it


class ReindexAnswer(TypedDict):
    notes: int
    seconds: float
    index: str
    problem_count: int

    watch: dict[str, object]

class InitFile(TypedDict):
    path: str
    done: str  # created, kept, merged (settings gained something), skipped (left alone, with why)
    detail: str  # in words; may be empty


class InitAnswer(TypedDict):
    vault: str
    dry_run: bool
    timezone: str
    files: list[InitFile]  # every file of the template, by path
    notes: list[str]  # what the person should know besides
