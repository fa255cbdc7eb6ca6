"""Sediment Palace's journal: what it began and never completed is read and shown, never closed or changed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from vault_palace.core.errors import NotFound
from vault_palace.core.model import SYSTEM, Problem
from vault_palace.storage.vault import Vault

OLD_JOURNAL = f"{SYSTEM}/journal.log"


@dataclass(frozen=True, slots=True)
class OldOperation:
    """What Sediment Palace's journal says it began: its id, verb, note (empty: none is named), line."""

    op: str
    verb: str
    path: str
    line: int

    @property
    def problem(self) -> Problem:
        what = f"{self.verb} of {self.path}" if self.path else self.verb
        message = f"Sediment Palace began {what} and did not complete it."
        return Problem(path=OLD_JOURNAL, line=self.line, code="old_operation_open", message=message)


def old_operations(vault: Vault) -> list[OldOperation]:
    """Operations that Sediment Palace began and never completed: shown, never closed or changed."""
    try:
        lines = vault.read(OLD_JOURNAL).data.split(b"\n")
    except NotFound:
        return []
    begun: dict[str, OldOperation] = {}
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            op, state = str(event["operation_id"]), event["state"]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if state == "started":
            given = event.get("payload")
            payload = given if isinstance(given, dict) else {}
            path = payload.get("path") or payload.get("source")
            verb = str(event.get("operation") or "an operation")
            begun[op] = OldOperation(op, verb, path if isinstance(path, str) else "", number)
        elif state == "completed":
            begun.pop(op, None)
    return list(begun.values())
