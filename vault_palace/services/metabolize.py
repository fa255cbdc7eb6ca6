"""The daily ageing: read what is due from the index, let the rules decide, carry each decision out.

A dry run is the same plan, printed. A real run reads and decides each note again at the moment it acts,
holds the lock for one note at a time, and skips and reports what a person is editing (SPEC §5, §6.3).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from vault_palace.core import memory as memories
from vault_palace.core import rules
from vault_palace.core.errors import (
    InvalidArguments,
    LockTimeout,
    NoteChanged,
    NotFound,
    StorageFailed,
    VaultError,
)
from vault_palace.core.model import ARCHIVE, Decision, Layer, Plan, Status
from vault_palace.services import announcing, deeds, finding, pace, quiet, relocate
from vault_palace.services.answers import DecisionAnswer, MetabolizeAnswer, SkippedAnswer
from vault_palace.services.house import House, Put

LEFT_SHOWN = 5  # of the links that a run had to leave
ANNOUNCED_FIRST = "announced today, let go tomorrow"
NEXT = "Metabolize again when healthcheck reports none missing."

Progress = Callable[[int, int, str], None]


@dataclass(slots=True)
class _Run:
    """What a run has done so far."""

    promoted: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    decaying: list[str] = field(default_factory=list)
    skipped: list[SkippedAnswer] = field(default_factory=list)
    links_left: list[str] = field(default_factory=list)
    cancelled: bool = False


def metabolize(
    house: House,
    *,
    dry_run: bool = False,
    confirm: bool = False,
    days_threshold: int | None = None,
    force: bool = False,
    automatic: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> MetabolizeAnswer:
    """Age the vault by one look at the calendar, and answer what moved and why.

    *dry_run* writes nothing: no byte, no time stamp, no journal line. A real run needs *confirm*.
    *days_threshold* replaces both 7s of row 1 for this run; *force* lets go what the brakes hold back.
    *automatic* is the keeper's daily run: its brakes are tighter, it lets go only what was announced on an
    earlier day, and no limit on calls counts for it.
    *cancelled* is asked between notes. Nothing moves while notes are missing that nobody can have deleted.
    """
    if days_threshold is not None and (isinstance(days_threshold, bool) or days_threshold < 0):
        raise InvalidArguments(
            f"days_threshold {days_threshold!r} is not a number of days.",
            hint="Use 0 or more.",
            argument="days_threshold",
        )
    if not dry_run:
        house.writable()
        if not automatic:
            house.destructive("metabolize", confirm)
        quiet.flush_touches(house)
    house.refresh(if_older=0)
    doubts = house.shelf.doubts
    if doubts and not dry_run:
        raise NotFound(f"Nothing was aged: {doubts[0].message}", hint=NEXT, path=doubts[0].path)
    seen = house.shelf.memories()
    sources = house.shelf.sources()
    plan = rules.plan(
        tuple(seen.values()),
        sources,
        house.now(),
        house.policy(),
        days_threshold=days_threshold,
        force=force,
        automatic=automatic,
        held=announcing.unannounced(house, seen) if automatic else (),
    )
    plan, left = _within_limit(house, plan)
    if dry_run:
        answer = _answer(_foreseen(house, plan), plan, len(seen), left, dry_run=True)
        if doubts:
            answer["note"] = f"A real run is refused: {doubts[0].message} {NEXT} {answer['note']}".strip()
        return answer
    run = _carry_out(house, plan, sources, days_threshold, progress, cancelled)
    if not run.cancelled:
        # What the run did stands and is told, also where a full disk lets nothing be written for the next.
        with contextlib.suppress(StorageFailed, LockTimeout, NotFound):
            if not left and not run.skipped:
                house.policy_applied()
            house.prune_versions()
    return _answer(run, plan, len(seen), left, dry_run=False)


def _within_limit(house: House, plan: Plan) -> tuple[Plan, int]:
    """*plan* as far as Sediment Palace's `max_metabolize_scan` lets one run go, and how many notes wait.

    Notes that need nothing are not counted, so that the next run gets to those that wait.
    """
    most = house.policy().max_metabolize_scan
    if most is None or len(plan.decisions) <= most:
        return plan, 0
    unwritten = house.shelf.unwritten()
    due = [one.path for one in plan.decisions if one.changed or one.path in unwritten]
    later = set(due[most:])
    kept = tuple(decision for decision in plan.decisions if decision.path not in later)
    return replace(plan, decisions=kept), len(later)


def _foreseen(house: House, plan: Plan) -> _Run:
    run = _Run()
    for decision in plan.decisions:
        if decision.to == ARCHIVE:
            run.archived.append(relocate.archive_place(house, decision.path))
        elif decision.to is not None:
            to = finding.free_place(house, _promoted_path(decision), besides=decision.path)
            run.promoted.append(to)
        elif decision.after.status is Status.DECAYING:
            run.decaying.append(decision.path)
    return run


def _promoted_path(decision: Decision) -> str:
    _, _, rest = decision.path.partition("/")
    return f"{Layer(decision.to or '').folder}/{rest}"


def _carry_out(
    house: House,
    plan: Plan,
    sources: Mapping[str, Collection[str]],
    days_threshold: int | None,
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> _Run:
    run = _Run()
    gone = {decision.path for decision in plan.decisions if decision.to == ARCHIVE}
    total = len(plan.decisions)
    held = {decision.path for decision in plan.waiting}
    unwritten = house.shelf.unwritten()
    for number, decision in enumerate(plan.decisions, 1):
        if cancelled is not None and cancelled():
            run.cancelled = True
            break
        if decision.changed or decision.path in unwritten:
            backlinks = len(set(sources.get(decision.path, ())) - gone - {decision.path})
            try:
                with pace.unheard():  # what is told is how many notes are done, not how many links
                    _act(house, decision, backlinks, days_threshold, run, held=decision.path in held)
            except LockTimeout:
                raise
            except VaultError as error:
                run.skipped.append(SkippedAnswer(path=decision.path, reason=str(error)))
        elif decision.after.status is Status.DECAYING:
            run.decaying.append(decision.path)
        if progress is not None:
            progress(number, total, decision.path)
    return run


def _act(
    house: House, planned: Decision, backlinks: int, days_threshold: int | None, run: _Run, *, held: bool
) -> None:
    """Decide the note again as it is now, and do it; what changed since the plan waits for the next run."""
    note = house.look(planned.path)
    busy = quiet.attended(house, note, body=planned.to is not None)
    if busy:
        run.skipped.append(SkippedAnswer(path=note.path, reason=busy))
        return
    if planned.to is not None and (other := house.twin_of(note)):
        run.skipped.append(SkippedAnswer(path=note.path, reason=f"its id is that of {other}"))
        return
    memory = house.memory_of(note)
    policy, now = house.policy(), house.now()
    fresh = rules.decide(memory, backlinks, now, policy, days_threshold=days_threshold, hold=held)
    if fresh.to != planned.to:
        run.skipped.append(
            SkippedAnswer(path=note.path, reason="it changed while the run went on; judged next time")
        )
        return
    try:
        with house.locked():
            if fresh.to == ARCHIVE:
                text = house.archived_text(note, memories.DECAYED, after=fresh.after)
                done = relocate.carry(
                    house,
                    note,
                    relocate.archive_place(house, note.path),
                    text,
                    verb="archive",
                    why=fresh.reason,
                )
                run.archived.append(done.path)
                run.links_left += done.left
            elif fresh.to is not None:
                text = house.with_memory(note, note.editable, fresh.after, {})
                to = finding.free_place(house, _promoted_path(fresh), besides=note.path)
                done = relocate.carry(house, note, to, text, verb="promote", why=fresh.reason)
                run.promoted.append(done.path)
                run.links_left += done.left
            else:
                text = house.with_memory(note, note.editable, fresh.after, {})
                if text != note.text:
                    edit = Put(path=note.path, before=note.stored, data=text.encode("utf-8"))
                    house.perform("settle", [edit], why=fresh.reason)
                else:
                    deeds.see(house, note)
                if fresh.after.status is Status.DECAYING:
                    run.decaying.append(note.path)
    except NoteChanged:
        run.skipped.append(SkippedAnswer(path=note.path, reason="it is being edited; judged next time"))


def shown(decision: Decision) -> DecisionAnswer:
    """A decision as an answer holds it."""
    return DecisionAnswer(path=decision.path, to=decision.to, rule=decision.rule, reason=decision.reason)


def _waiting(decision: Decision, plan: Plan) -> DecisionAnswer:
    """An archive that waits, with why; what all wait for is told once, in the answer's note."""
    answer = shown(decision)
    if not plan.brake:
        answer["reason"] = f"{decision.reason}; {ANNOUNCED_FIRST}"
    return answer


def _answer(run: _Run, plan: Plan, scanned: int, left: int, *, dry_run: bool) -> MetabolizeAnswer:
    notes = [f"{plan.brake}: their archiving waits; force: true lets them go."] if plan.brake else []
    if left:
        notes.append(f"max_metabolize_scan in policy.yaml leaves {left} notes for the next run.")
    if run.links_left:
        more = len(run.links_left) - LEFT_SHOWN
        others = f"; {more} more" if more > 0 else ""
        notes.append(f"Links left as they were: {'; '.join(run.links_left[:LEFT_SHOWN])}{others}.")
    told = [
        shown(decision)
        for decision in plan.decisions
        if decision.to is not None or decision.after.status is Status.DECAYING
    ]
    return MetabolizeAnswer(
        dry_run=dry_run,
        scanned=scanned,
        promoted_count=len(run.promoted),
        archived_count=len(run.archived),
        decaying_count=len(run.decaying),
        promoted=run.promoted,
        archived=run.archived,
        decaying=run.decaying,
        decisions=told,
        waiting=[_waiting(decision, plan) for decision in plan.waiting],
        skipped=run.skipped,
        note=" ".join(notes),
        cancelled=run.cancelled,
    )
