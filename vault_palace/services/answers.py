"""What each verb of the palace answers. The keys are SPEC §9's; both surfaces render these."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Related(TypedDict):
    """A note that says the same already, or one worth linking; `link` is ready to paste."""

    path: str
    title: str
    link: str
    kind: str  # near-duplicate, or link
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
    superseded_by: NotRequired[str]  # the path of what holds now instead
    section: NotRequired[str]  # the one that was asked for, by the name that means it alone
    start: NotRequired[int]  # of the content: a character of the note, or of that section
    more: NotRequired[str]  # what was left out and how to ask for it
    next: NotRequired[str]  # the `section` that goes on behind the content
    outline: NotRequired[list[str]]  # headings as `section` takes them, each with its tokens
    warnings: list[str]


class BriefSection(TypedDict):
    """One list of a briefing: its lines as they stand in the text, and what of each the next call takes."""

    name: str
    title: str
    lines: list[str]
    paths: list[str]
    count: int  # all there are, shown or not


class BriefAnswer(TypedDict):
    brief: str
    since: NotRequired[str]  # the day since which people's changes are told
    left_out: NotRequired[dict[str, int]]  # by section
    sections: NotRequired[list[BriefSection]]


class Match(TypedDict):
    path: str
    snippet: str
    id: str
    # An agent is not told again what the path says, nor that there is nothing to tell.
    title: NotRequired[str]
    layer: NotRequired[str]
    density: NotRequired[float | None]
    age_days: NotRequired[int | None]
    decays_on: NotRequired[str | None]
    why: str
    superseded_by: NotRequired[str]  # the path of what holds now instead; absent for a current note


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


class ResolveAnswer(TypedDict):
    main: str  # the note, where it is now
    copy: str  # the conflict copy that was resolved
    outcome: str  # merged, main, copy, both (which text the note has), page (a person has to decide)
    dry_run: bool
    page: str  # where both texts stand for a person; empty when there is no need
    saved_as: str  # where the copy is a memory of its own now; else empty
    told: list[str]  # what one of the two said and the merged note does not
    left: list[str]  # other conflict copies of the same note


class MapAnswer(TypedDict):
    map: str
    truncated: bool


class PageAnswer(TypedDict):
    """A note's whole file, for whoever looks at it without a call of a tool."""

    path: str
    text: str
    rev: str
    truncated: bool
    next: NotRequired[str]  # what `section` of a read brings the text behind
    headings: NotRequired[list[str]]  # where the text was cut: other sections that can be asked for


class FadingNote(TypedDict):
    path: str
    decays_on: str
    density: float | None
    streak: int | None
    why: str  # in words; may be empty


class FadingAnswer(TypedDict):
    room: str
    horizon_days: int
    notes: list[FadingNote]  # the soonest first, cut
    count: int  # in all


class BeforePurge(TypedDict):
    """What a purge would do."""

    path: str
    rev: str
    archived_to: str
    backlinks: list[str]  # the first few
    backlink_count: int


class SessionNote(TypedDict):
    path: str
    verbs: list[str]  # of the journal, in their order


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
    status: str  # ok, or failing: then the first `fault_count` problems say why
    service: str
    version: str
    vault: str
    mode: str  # palace, sediment-palace (no Policy.md), read-only
    # state (ready, rebuilt, filling, behind, unusable), notes, rows, bytes, path, reason, compared, schema
    index: dict[str, object]
    # mode (events, polling, away, off), keeper, holder, steps, trouble, asked, lag, unkept
    watch: dict[str, object]
    layers: dict[str, int]  # memories by layer, and those in the archive; empty while not known
    fault_count: int  # what keeps the palace from working
    problems: list[ProblemAnswer]  # at most 50: faults, then what is odd in notes
    problem_count: int
    waiting: list[DecisionAnswer]  # archives that the brakes hold back, at most 50
    tomorrow: list[DecisionAnswer]  # what tomorrow's run will archive, at most 50
    note: str  # what is not known yet, in words; empty mostly


class ServerAnswer(TypedDict):
    """A server of this vault, as it last said of itself."""

    pid: int
    at: str  # when it said so
    started: str
    version: str
    transport: str  # stdio, or where it listens
    read_only: bool
    agents: dict[str, int]  # calls by the name that a client gives itself
    calls: dict[str, dict[str, object]]  # as get_metrics answers
    index: dict[str, object]
    watch: dict[str, object]


class StatusAnswer(TypedDict):
    vault: str
    version: str
    mode: str
    timezone: str
    layers: dict[str, int]
    archived: int
    proposed: int  # memories that wait for a person's yes
    decaying_soon: list[DecisionAnswer]
    rising_soon: list[DecisionAnswer]
    index: dict[str, object]
    watch: dict[str, object]
    open_operations: int
    problem_count: int
    lock: str  # empty, or who holds it
    faults: list[ProblemAnswer]  # what keeps the palace from working
    servers: list[ServerAnswer]


class ReindexAnswer(TypedDict):
    notes: int
    seconds: float
    index: str
    problem_count: int


class CanvasAnswer(TypedDict):
    path: str
    done: str  # created, drawn anew, unchanged
    memories: int  # on the canvas
    left_out: int
    rooms: int
    links: int
    op: str  # for `undo`; empty where nothing was written


class OperationAnswer(TypedDict):
    op: str
    when: str  # in the vault's zone
    verb: str
    why: str
    who: str  # `a person`, or the session and its machine
    session: str  # empty for what a person did
    machine: str  # likewise
    path: str  # where the note was afterwards
    state: str  # done, undone, superseded, open, or `undone later`
    before_version: str  # the version it found, empty when there was nothing; `undo --version` takes it
    after_version: str
    before_kept: bool | None  # None: there was nothing
    after_kept: bool | None
    summary: str  # what changed, in lines; may be empty


class VersionAnswer(TypedDict):
    """A kept version that no operation shown names, such as one that a person saved."""

    version: str
    kept_on: str  # in the vault's zone
    lines_added: int  # that it has and the note as it is now has not
    lines_removed: int  # the other way round


class VersionText(TypedDict):
    path: str  # where the note is, or was last
    id: str
    version: str
    kept_on: str
    text: str


class HistoryAnswer(TypedDict):
    path: str  # where the note is, or was last
    id: str
    exists: bool
    operations: list[OperationAnswer]  # newest first
    total: int
    silent: int  # operations of the program for itself, not shown
    versions: list[VersionAnswer]  # newest first
    versions_total: int
    versions_alike: int  # more, that say the same as one shown or as the note


class UndoneNote(TypedDict):
    path: str
    to: str  # where it is then; `path` when it stays
    what: str  # changed back, moved back (with a fresh start), links rewritten, removed, brought back
    diff: list[str]  # the lines that change, as a unified diff
    newer: str  # what was changed since and is left, in words; may be empty


class UndoRefusal(TypedDict):
    path: str
    reason: str  # and what to do


class UndoneAnswer(TypedDict):
    op: str
    verb: str
    why: str
    undo_op: str  # the operation that undid it; empty in a preview, or when nothing was changed
    notes: list[UndoneNote]
    refused: list[UndoRefusal]
    left: list[str]  # links that could not be rewritten, with why


class UndoAnswer(TypedDict):
    preview: bool
    undone: list[UndoneAnswer]  # in the order in which it is done
    changed: int  # notes
    refused: int


class ForgetAnswer(TypedDict):
    path: str
    id: str
    versions: int  # kept versions erased
    journal_lines: int
    links: list[str]  # notes that still link to it
    left: list[str]  # what holds its words or name and could not be erased, with why


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
