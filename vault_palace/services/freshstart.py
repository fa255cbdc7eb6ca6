"""The fresh start of a note that an undo takes out of the archive: the same as `restore` gives (SPEC §5).

Its former values alone would send it back the next night: by them a rule had let it go, or the days in the
archive would count as idle ones.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from vault_palace.core import rules
from vault_palace.services.house import House, Note
from vault_palace.storage import files
from vault_palace.storage.records import Entry
from vault_palace.storage.vault import Stored

VERBS = frozenset({"archive", "purge"})


def given(house: House, entry: Entry, archived: Note, to: str, text: str) -> str:
    """*text*, which undoing *entry* makes of the *archived* note at *to*, with a fresh start where needed.

    A note that no rule would let go needs none, nor one that was purged this very day and is not due
    tomorrow: it comes back as it was.
    """
    if entry.verb not in VERBS or archived.kind != "archived" or archived.header.problem is not None:
        return text
    data = text.encode("utf-8")
    stored = Stored(data, files.fingerprint(data), archived.stored.mark)
    fresh = house.understand(to, stored, lambda memory, *_: memory)
    memory = fresh.memory
    if fresh.kind != "memory" or memory is None or fresh.header.problem is not None:
        return text
    now, policy = house.now(), house.policy()
    today = policy.today(now)
    leaves = rules.forecast(memory, memory.backlinks, now, policy).decays_on
    if leaves is None or (policy.today(entry.at) == today and leaves > today + timedelta(days=1)):
        return text
    lifted = rules.move_to(house.memory_of(archived), memory.layer, now, policy)
    after = replace(
        memory,
        streak=lifted.streak,
        backlinks=lifted.backlinks,
        layer_since=lifted.layer_since,
        missed=lifted.missed,
        status=lifted.status,
    )
    rated = fresh.header.values.get("rated_on")
    return house.with_memory(fresh, text, after, {} if rated is None else {"rated_on": rated})
