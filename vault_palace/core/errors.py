"""The errors a caller can meet: one narrow class a kind, each with a stable code and an exit status.

An error carries its facts (`path`, and whatever else the kind knows) and the next step; the surfaces
compose the sentence. Codes are public (SPEC §9) and never change once released.
"""

from __future__ import annotations

from typing import ClassVar


class VaultError(Exception):
    """Base class of every expected failure.

    `message` is one sentence without the code, `hint` the next step in words (may be empty), `facts`
    hold JSON values only: they travel in the `_meta` of a tool error and in the CLI's `--json`.
    """

    code: ClassVar[str] = "vault_error"
    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts

    def __str__(self) -> str:
        """The sentence and the next step, without the code."""
        return f"{self.message} {self.hint}".strip() if self.hint else self.message


class InvalidArguments(VaultError):
    """An argument is missing, of the wrong type or out of range."""

    code, exit_status = "invalid_arguments", 2


class NotFound(VaultError):
    """No such note, room or vault."""

    code, exit_status = "not_found", 10


class Exists(VaultError):
    """The place is taken; nothing was overwritten."""

    code, exit_status = "exists", 11


class Conflict(VaultError):
    """The note is not the version the caller last read, or an id or title fits several notes."""

    code, exit_status = "conflict", 12


class Busy(VaultError):
    """A person is editing the note now."""

    code, exit_status = "busy", 13


class PathViolation(VaultError):
    """A path leaves the vault, or names a place that is not for memories."""

    code, exit_status = "path_violation", 14


class PolicyViolation(VaultError):
    """Policy asks for `confirm: true`, or forbids the act."""

    code, exit_status = "policy_violation", 15


class RateLimited(VaultError):
    """Too many destructive calls within a minute."""

    code, exit_status = "rate_limited", 16


class BudgetExceeded(VaultError):
    """An argument is longer than its limit."""

    code, exit_status = "budget_exceeded", 17


class LockTimeout(VaultError):
    """Another process held the vault's write lock for too long."""

    code, exit_status = "lock_timeout", 18


class MalformedNote(VaultError):
    """The note cannot be changed safely: not UTF-8, a header that does not parse, merge markers."""

    code, exit_status = "malformed_note", 19


class UnsafeContent(VaultError):
    """The text would execute or phone home in a person's Obsidian."""

    code, exit_status = "unsafe_content", 20


class TimedOut(VaultError):
    """The call was given up; what it had done is said in the facts."""

    code, exit_status = "timeout", 21


class NoteChanged(Conflict):
    """The file on disk is not the bytes the change was made from; redo the edit on the new text."""


class StorageFailed(VaultError):
    """The operating system refused: no space, no permission, a read-only file system."""

    code, exit_status = "storage_failed", 22
