"""The policy of a vault: its `Policy.md`, else Sediment Palace's `policy.yaml`, else the defaults."""

from __future__ import annotations

from dataclasses import replace

from vault_palace.core import frontmatter
from vault_palace.core.errors import MalformedNote, NotFound, VaultError
from vault_palace.core.model import OLD_POLICY, POLICY_NOTE, Problem
from vault_palace.core.policy import KINDS, Policy, read_old_policy, read_policy
from vault_palace.core.yaml12 import Unreadable, load_value
from vault_palace.services.zones import machine_zone, zone_of
from vault_palace.storage.vault import Vault


def read(vault: Vault, last_good: Policy | None) -> tuple[Policy, tuple[Problem, ...]]:
    """The policy in force and what is wrong with its text. A bad value never stops anything.

    *last_good* (None before there was one) stands in for values that cannot be read.
    """
    problems: list[Problem] = []
    zone, doubt = machine_zone()
    if last_good is None:
        last_good = Policy(zone=zone)
    elif not last_good.timezone:
        last_good = replace(last_good, zone=zone)
    try:
        text = _text(vault, POLICY_NOTE)
    except NotFound:
        policy, found = _read_old(vault, Policy(zone=zone))
    except VaultError as error:
        problems.append(
            _problem(POLICY_NOTE, "bad_policy", f"It cannot be read: {error} The last good one counts.")
        )
        policy, found = last_good, ()
    else:
        header = frontmatter.read(text)
        lost = _lost(text) if not header.present and header.problem is None else None
        if (
            lost is None
            and not text.strip()
            and last_good != Policy(zone=last_good.zone, timezone=last_good.timezone)
        ):
            lost = 0  # as a sync tool or a crash leaves it; `read_only` must not be undone by that
        if lost is not None:
            message = "It holds no properties between lines of ---. The last good ones count."
            problems.append(Problem(path=POLICY_NOTE, line=lost, code="bad_policy", message=message))
            policy, found = last_good, ()
        elif header.problem is not None:
            message = f"The header does not parse: {header.problem.message} The last good one counts."
            problems.append(
                Problem(path=POLICY_NOTE, line=header.problem.line, code="bad_policy", message=message)
            )
            policy, found = last_good, ()
        else:
            policy, found = read_policy(header.values, header.lines, last_good=last_good, zone_of=zone_of)
    if not policy.timezone:
        policy = replace(policy, zone=zone)
        if doubt:
            problems.append(_problem(POLICY_NOTE, "no_zone", doubt))
    return policy, (*problems, *found)


def _text(vault: Vault, path: str) -> str:
    try:
        return vault.read(path).data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedNote("it is not UTF-8 text.", path=path) from None


def _lost(text: str) -> int | None:
    """The line of a property that stands in no header, or of a header that is never closed; else None."""
    for number, line in enumerate(text.removeprefix(frontmatter.BOM).split("\n"), 1):
        if (number == 1 and line.rstrip() == "---") or line.partition(":")[0] in KINDS:
            return number
    return None


def _read_old(vault: Vault, default: Policy) -> tuple[Policy, tuple[Problem, ...]]:
    try:
        text = _text(vault, OLD_POLICY)
    except NotFound:
        return default, ()
    except VaultError as error:
        return default, (_problem(OLD_POLICY, "bad_policy", f"It cannot be read: {error}"),)
    try:
        document = load_value(text)
    except Unreadable as error:
        return default, (
            Problem(path=OLD_POLICY, line=error.line + 1, code="bad_policy", message=error.message),
        )
    return read_old_policy(document, last_good=default)


def _problem(path: str, code: str, message: str) -> Problem:
    return Problem(path=path, line=0, code=code, message=message)
