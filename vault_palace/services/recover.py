"""After a crash: finish or undo what was begun, and say what only a person can decide (SPEC §8)."""

from __future__ import annotations

import contextlib

from vault_palace.core.errors import LockTimeout, StorageFailed
from vault_palace.services import pace
from vault_palace.services.answers import RecoverAnswer, RecoveredAnswer
from vault_palace.services.house import House
from vault_palace.storage import files, operations
from vault_palace.storage.lock import WriteLock
from vault_palace.storage.oldjournal import old_operations

# How long a start waits for another process that writes: whoever writes first recovers, too.
START_SECONDS = 0.5


def recover(house: House) -> RecoverAnswer:
    """Bring every unfinished operation of this machine to its end or its beginning; repeat safely.

    Operations of other machines, and those that Sediment Palace left open, are reported and not touched.
    """
    house.writable()
    with house.locked():
        now = operations.recover(house.vault, house.journal, house.versions, between=pace.step)
    # What this process ended at its start, or before it wrote, is told as well: nobody else could say it.
    found = list({item.op: item for item in (*house.recovered, *now)}.values())
    house.recovered = ()
    if found:
        house.refresh(if_older=0)
    recovered = [
        RecoveredAnswer(
            operation_id=item.op,
            operation=item.verb,
            status=item.status,
            path=item.path,
            detail=item.detail,
        )
        for item in found
    ]
    foreign = [
        RecoveredAnswer(
            operation_id=entry.op,
            operation=entry.verb,
            status="open",
            path=entry.steps[0].path if entry.steps else "",
            detail=f"{entry.machine} began it; it recovers when it runs there.",
        )
        for entry in house.journal.elsewhere()
    ]
    foreign += [
        RecoveredAnswer(
            operation_id=old.op,
            operation=old.verb,
            status="open",
            path=old.path,
            detail=f"{old.problem.path}, line {old.line}: {old.problem.message}",
        )
        for old in old_operations(house.vault)
    ]
    ended = sum(item["status"] != "open" for item in recovered)
    return RecoverAnswer(
        unresolved_count=len(recovered) + len(foreign),
        recovered_count=ended,
        recovered=recovered + foreign,
    )


def at_start(house: House) -> None:
    """Recover what this machine left unfinished; a vault where that is not the case is not written to.

    Who cannot write now, because another process does or the disk is full, starts all the same.
    """
    if not house.journal.unfinished() and not any(files.leftovers(house.vault.root)):
        return
    with contextlib.suppress(LockTimeout, StorageFailed), WriteLock(house.vault, timeout=START_SECONDS):
        house.recovered += tuple(operations.recover(house.vault, house.journal, house.versions))
