"""Carries out operations so that each is all done or all undone, whatever happens in between.

Before its first change everything an operation needs is on the disk, and the journal says so: the versions it
replaces, the new bytes as temporary files beside their targets, and the fingerprints of both. Whoever comes
after a kill compares the disk with these and either finishes or undoes. A file that has neither fingerprint
was changed by a person since; it is never written. All functions here want the vault's write lock held.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from vault_palace.core.errors import Exists, NoteChanged, VaultError
from vault_palace.core.model import Problem
from vault_palace.storage import files
from vault_palace.storage.journal import Journal
from vault_palace.storage.records import Entry, NoteFact, State, StepKind, Trace
from vault_palace.storage.steps import UNDONE_LATER, Standing, Steps
from vault_palace.storage.vault import Stored, Vault
from vault_palace.storage.versions import Versions

Status = Literal["finished", "undone", "superseded", "open"]

_TRIES = 3

# What such operations write is generated. Of all other verbs the new bytes are kept as well as the old, so
# that what was written outlasts a person's stale save.
UPKEEP = frozenset({"map", "index"})

_CLOSED: dict[Status, State] = {
    "finished": "done",
    "undone": "undone",
    "superseded": "superseded",
    "open": "open",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change that an operation wants, with the very bytes.

    `put`: *after* is written to *path*; *before* None means that the name must be free. `move`: the file with
    the bytes *before* goes to the free name *to*, and holds *after* there (None: unchanged). `remove`: the
    file with the bytes *before* goes; a version of it is kept.
    """

    kind: StepKind
    path: str
    to: str = ""
    before: bytes | None = None
    after: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What shall happen together, by whom and why; `notes` go into the journal as they are."""

    id: str
    verb: str
    at: datetime
    session: str = ""
    why: str = ""
    steps: tuple[Step, ...] = ()
    notes: tuple[NoteFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What became of one unfinished operation. `path` is the first note it was about."""

    op: str
    verb: str
    status: Status
    path: str
    detail: str = ""


def carry_out(vault: Vault, journal: Journal, versions: Versions, op: Operation) -> dict[str, Stored]:
    """Do all steps in order, and return what each path that they leave behind holds.

    `NoteChanged` when a file is not the bytes its step was made from, `Exists` when a name is taken,
    `StorageFailed` when the system refuses; then the steps already done are undone, and nothing is left.
    """
    try:
        return _carry_out(vault, journal, versions, op)
    except VaultError as error:
        place = error.facts.get("path")
        if isinstance(place, str) and Path(place).is_relative_to(vault.root):
            error.facts["path"] = vault.rel(Path(place))
        raise


def _carry_out(vault: Vault, journal: Journal, versions: Versions, op: Operation) -> dict[str, Stored]:
    steps = [step for step in op.steps if not (step.kind == "put" and step.before == step.after)]
    if not steps:
        return {}
    for step in steps:
        _refuse_early(vault, step)
    for step in steps:
        if step.before is not None:
            versions.keep(step.before, durable=True)
    acts = Steps(vault, versions)
    traces: list[Trace] = []
    try:
        traces.extend(_staged(vault, step) for step in steps)
        for step in steps:
            if step.after is not None and op.verb not in UPKEEP:
                versions.keep(step.after)
        entry = Entry(
            op=op.id,
            verb=op.verb,
            at=op.at,
            session=op.session,
            why=op.why,
            steps=tuple(traces),
            notes=op.notes,
            machine=journal.machine,
        )
        journal.begin(entry)
    except VaultError:
        acts.drop(traces, keep=False)
        raise
    held: dict[str, Stored] = {}
    try:
        for trace, step in zip(traces, steps, strict=True):
            stored = acts.forward(trace, step.after)
            if stored is not None:
                held[trace.to or trace.path] = stored
    except VaultError:
        # What cannot be undone now stays open in the journal, and recovery takes it up.
        with contextlib.suppress(VaultError):
            status, detail = _decide(acts, entry, back=True)
            journal.close(op.id, _CLOSED[status], detail)
        raise
    # What is left is a convenience: without it recovery finds every step done and says so.
    with contextlib.suppress(VaultError):
        acts.drop(traces, keep=False)
        journal.close(op.id, "done")
    return held


def recover(
    vault: Vault,
    journal: Journal,
    versions: Versions,
    *,
    sweep: bool = True,
    between: Callable[[int, int, str], None] = lambda _done, _total, _what: None,
) -> list[Recovered]:
    """Finish or undo every operation that this machine began and did not close, oldest first.

    Running it again changes nothing. With *sweep* the temporary files that no open operation names, of
    this machine or another, go too, their bytes kept as versions. *between* hears how far it is before each
    operation, and may raise to stop there.
    """
    acts = Steps(vault, versions)
    unfinished = journal.unfinished()
    older = bool(unfinished) and journal.is_older()
    found: list[Recovered] = []
    for number, entry in enumerate(unfinished):
        between(number, len(unfinished), entry.verb)
        status, detail = _recover_one(acts, entry, older=older)
        if status != "open" or entry.state != "open":
            journal.close(entry.op, _CLOSED[status], detail)
        path = (entry.steps[0].to or entry.steps[0].path) if entry.steps else ""
        found.append(Recovered(op=entry.op, verb=entry.verb, status=status, path=path, detail=detail))
    if sweep:
        named: set[Path] = set()
        for entry in (*journal.unfinished(), *journal.elsewhere()):
            for trace in entry.steps:
                with contextlib.suppress(VaultError):  # another machine's record may name anything
                    named.update(acts.temporaries(trace))
        with contextlib.suppress(VaultError):
            files.sweep(vault.root, spare=frozenset(named), keep=versions.keep)
    return found


def _recover_one(acts: Steps, entry: Entry, *, older: bool) -> tuple[Status, str]:
    try:
        if older:
            acts.drop(entry.steps, keep=True)
            return "superseded", "The journal is an older copy, so nothing of it was repeated."
        for _ in range(_TRIES - 1):
            with contextlib.suppress(NoteChanged):  # a person saves at this very moment: look again
                return _decide(acts, entry, back=False)
        return _decide(acts, entry, back=False)
    except VaultError as error:
        return "open", error.message


def _decide(acts: Steps, entry: Entry, *, back: bool) -> tuple[Status, str]:
    """Bring the operation to an end by what the disk holds, and say which.

    Forward when everything it still has to do is as it was and its new bytes are there, unless *back* asks
    to undo. Otherwise back, step by step, where nobody changed anything since. When a person already works
    on a moved note there is no way back, and what can be done forward is done, so that links follow it.
    """
    for trace in entry.steps:
        acts.rescue(trace)
    stand = _standings(acts, entry)
    taken_back = [trace.path for trace, standing in stand if acts.way_back_is_taken(trace, standing)]
    left = [trace.path for trace, standing in stand if standing in {"edited", "taken"}] + taken_back
    no_way_back = bool(taken_back) or any(
        trace.kind == "move" and standing == "edited" for trace, standing in stand
    )
    waiting = [(trace, standing) for trace, standing in stand if standing in UNDONE_LATER]
    goes_on = all(acts.can_go_on(trace, standing) for trace, standing in waiting) and not any(
        standing == "taken" for _, standing in stand
    )
    forward = no_way_back or (goes_on and not back)
    if forward:
        for trace, standing in waiting:
            if acts.can_go_on(trace, standing):
                acts.forward(trace)
    else:
        for trace, standing in reversed(stand):
            acts.backward(trace, standing)
    acts.drop(entry.steps, keep=not back)
    if left:
        kept = ", ".join(left)
        return (
            "superseded",
            f"Left as a person changed it: {kept}. The rest was {'done' if forward else 'undone'}.",
        )
    return ("finished", "") if forward else ("undone", "")


def _standings(acts: Steps, entry: Entry) -> list[tuple[Trace, Standing]]:
    """Where each step stands, in the light of the others.

    What an operation removes is set aside, and let go only when all its steps are done. So a file that is
    gone altogether while another step is not done was deleted by a person.
    """
    found = [(trace, acts.standing(trace)) for trace in entry.steps]
    done = all(standing in {"after", "edited", "gone"} for _, standing in found)
    gone: Standing = "after" if done else "taken"
    return [(trace, gone if standing == "gone" else standing) for trace, standing in found]


def open_operations(journal: Journal) -> list[Problem]:
    """This machine's operations that recovery could not decide, as problems a person should look at."""
    return [
        Problem(
            path=entry.steps[0].path if entry.steps else "",
            line=0,
            code="open_operation",
            message=f"{entry.verb} {entry.op} is neither finished nor undone. {entry.detail}".strip(),
        )
        for entry in journal.unfinished()
    ]


def _refuse_early(vault: Vault, step: Step) -> None:
    """Find out before anything is journalled what can be found out then."""
    place = vault.locate(step.path)
    expected = None if step.before is None else files.fingerprint(step.before)
    if step.kind == "put" and step.before is None:
        if os.path.lexists(place):
            raise Exists(f"{step.path} exists already.", path=step.path)
    elif (found := files.fingerprint_at(place)) != expected:
        raise NoteChanged(
            f"{step.path} {'was changed' if found else 'was moved or deleted'} since it was read.",
            hint="Read it again and repeat the change on the new text.",
            path=step.path,
            expected=expected,
            found=found,
        )
    if step.kind == "move":
        if step.to == step.path:
            raise Exists(f"{step.path} is there already.", path=step.path)
        target = vault.locate(step.to)
        taken = os.path.lexists(target)
        if taken and not (step.path.casefold() == step.to.casefold() and os.path.samefile(place, target)):
            raise Exists(f"{step.to} exists already.", path=step.to)


def _staged(vault: Vault, step: Step) -> Trace:
    """The step as the journal keeps it, its new bytes on the disk beside their target."""
    before = None if step.before is None else files.fingerprint(step.before)
    after = None if step.after is None else files.fingerprint(step.after)
    if step.kind == "move" and after is None:
        after = before
    staged = None
    if step.kind == "remove":
        place = vault.locate(step.path)
        staged = vault.rel(place.with_name(files.temp_name(place.name)))
    elif step.after is not None and after != before:
        target = vault.locate(step.to or step.path)
        mode = _mode(vault.locate(step.path)) if step.kind == "move" else None
        staged = vault.rel(files.stage(target, step.after, mode))
    return Trace(kind=step.kind, path=step.path, to=step.to, before=before, after=after, staged=staged)


def _mode(place: Path) -> int | None:
    with files.told(place):
        return os.lstat(place).st_mode & 0o777
