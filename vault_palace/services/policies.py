"""The policy of a vault: its `Policy.md`, else Sediment Palace's `policy.yaml`, else the defaults.

And the one that every note was last judged by, in this machine's state: by it a default lifetime in a note is
told from a personal one after the policy has changed.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from vault_palace.core import frontmatter
from vault_palace.core.changes import Mark
from vault_palace.core.errors import MalformedNote, NotFound, VaultError
from vault_palace.core.model import OLD_POLICY, POLICY_NOTE, STATE, Layer, Problem, Value
from vault_palace.core.policy import KINDS, Policy, from_json, read_old_policy, read_policy, to_json
from vault_palace.core.yaml12 import Unreadable, load_value
from vault_palace.services.zones import machine_zone, zone_of
from vault_palace.storage import files
from vault_palace.storage.vault import Vault
from vault_palace.storage.versions import prepare_state

APPLIED = f"{STATE}/policy.json"
SINCE = "since"  # its key for the lifetimes that notes were written by since


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


# -- the policy that every note was last judged by ----------------------------------------------------------


class Applied:
    """The policy that the last whole run went by, and by which lifetimes and styles notes were written since.

    A person who types 10 over 7 saves a 1 in between, which some notes may hold by then. It is derived data:
    damaged, it is as good as none.
    """

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._read: tuple[Mark | None, Policy | None, tuple[Policy, ...]] = (None, None, ())

    def policy(self) -> Policy | None:
        """The policy of the last whole run, which is the last good one; None before any."""
        return self._now()[1]

    def all(self) -> tuple[Policy, ...]:
        """Every policy whose default lifetimes may stand in notes as defaults, the oldest first."""
        _, policy, since = self._now()
        return () if policy is None else (policy, *since)

    def complete(self, policy: Policy, *, styled: bool) -> None:
        """Every note was judged by *policy*; and brought in step with its `style_classes`, where *styled*."""
        owing = not styled and not policy.style_classes and any(known.style_classes for known in self.all())
        self._write(policy, (replace(policy, style_classes=True),) if owing else ())

    def written_by(self, policy: Policy) -> None:
        """A note is about to be written by *policy*."""
        _, applied, since = self._now()
        if applied is None or any(_traces(policy) == _traces(known) for known in (applied, *since)):
            return
        with suppress(VaultError):  # whoever cannot write this can hardly write the note
            self._write(applied, (*since, policy))

    def _write(self, policy: Policy, since: tuple[Policy, ...]) -> None:
        document = to_json(policy)
        if since:
            document[SINCE] = [list(_traces(known)) for known in since]
        data = json.dumps(document, sort_keys=True).encode("utf-8")
        with suppress(VaultError):
            if files.read_bytes(self.vault.locate(APPLIED)) == data:
                return
        prepare_state(self.vault)
        files.write_state(self.vault.locate(APPLIED), data)

    def _now(self) -> tuple[Mark | None, Policy | None, tuple[Policy, ...]]:
        """What the state says now; another process may have made a run."""
        try:
            mark = self.vault.mark(APPLIED)
        except VaultError:
            mark = None
        if mark is None:
            return None, None, ()
        if mark != self._read[0]:
            self._read = (mark, *self._load())
        return self._read

    def _load(self) -> tuple[Policy | None, tuple[Policy, ...]]:
        try:
            document = json.loads(files.read_bytes(self.vault.locate(APPLIED)))
        except (VaultError, ValueError, RecursionError):
            return None, ()
        if not isinstance(document, dict):
            return None, ()
        policy = from_json(document, zone_of=zone_of)
        listed = document.get(SINCE)
        since = listed if isinstance(listed, list) else []
        return policy, tuple(from_json({**document, **_named(item)}, zone_of=zone_of) for item in since)


def _traces(policy: Policy) -> tuple[float, ...]:
    """What a policy leaves in the notes that are written by it: default lifetimes, and style classes."""
    return (*(policy.lifetime(layer) for layer in Layer), policy.style_classes)


def _named(item: object) -> dict[str, Value]:
    """What `_traces` gave, by the names of the properties; older versions kept the lifetimes alone."""
    if not isinstance(item, list):
        return {}
    names = (*(f"{layer.value}_days" for layer in Layer), "style_classes")
    return dict(zip(names, item, strict=False))
