"""Connects a host to a vault: decides the entry and the block, and merges them into the host's files.

A dry run is the same work without the writing. An entry of the same name that is not for this vault is never
replaced unasked; of one that is, only the values that are ours change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from glob import escape, glob
from pathlib import Path
from typing import Any

from vault_palace.core.errors import Exists, InvalidArguments, PolicyViolation, VaultError
from vault_palace.surfaces.hosts import block, entry, filing, jsonc, toml
from vault_palace.surfaces.hosts.catalogue import HOSTS, Host, Machine, Places, Scope
from vault_palace.surfaces.hosts.entry import Launcher
from vault_palace.surfaces.hosts.lines import alike, differing

NAME = "vault-palace"
LONGEST_LINE = 200  # of a diff; a file on one line is cut to what differs
_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asked for. `vault` is None when something is to be removed."""

    host: str
    scope: Scope = "user"
    name: str = NAME
    vault: Path | None = None
    arguments: tuple[str, ...] = ()  # of `serve`, beyond the vault
    tools: frozenset[str] = frozenset()  # what those arguments leave to the agent
    instructions: bool = False
    replace: bool = False
    remove: bool = False
    write: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: the entry, each file, and what the person does next."""

    entry: Mapping[str, Any] | None
    changes: tuple[filing.Change, ...]
    next: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def connect(wish: Wish, machine: Machine, launcher: Launcher) -> Outcome:
    """Do what *wish* says, or with `write` false find out what would be done."""
    host = HOSTS.get(wish.host)
    if host is None:
        raise InvalidArguments(
            f"There is no host {wish.host!r}.", hint=f"One of: {', '.join(HOSTS)}.", argument="host"
        )
    if not _NAMES.fullmatch(wish.name):
        raise InvalidArguments(
            f"{wish.name!r} cannot name a server.",
            hint="Letters, digits, - and _, at most 64.",
            argument="name",
        )
    places = host.places.get(wish.scope)
    if places is None:
        raise InvalidArguments(
            f"{host.title} reads no configuration of a {wish.scope}.",
            hint=f"Give --scope {' or '.join(host.places)}.",
            argument="scope",
        )
    file = choose(places, machine)
    if wish.remove:
        return _removed(wish, host, file, machine)
    return _connected(wish, host, file, machine, launcher)


def choose(places: Places, machine: Machine) -> str:
    """The one of a host's files that counts on this machine."""
    candidates = places(machine)
    for candidate in candidates:
        folder, name = os.path.split(candidate)
        if "*" in folder:
            # Only the part with the star is a pattern: a home folder may have brackets in its name.
            head, _, tail = folder.partition("*")
            found = sorted(glob(f"{escape(head)}*{escape(tail) if '*' not in tail else tail}"))
            with_file = [one for one in found if os.path.lexists(os.path.join(one, name))]
            for one in with_file or found:
                return os.path.join(one, name)
        elif os.path.lexists(candidate):
            return candidate
    return candidates[-1]


# -- connecting ---------------------------------------------------------------------------------------------


def _connected(wish: Wish, host: Host, file: str, machine: Machine, launcher: Launcher) -> Outcome:
    assert wish.vault is not None
    said = entry.made(host.form, launcher, ("serve", "--vault", str(wish.vault), *wish.arguments))
    _refuse_what_changes(host, [*launcher.words, *launcher.env.values(), str(wish.vault)])
    mode = filing.PRIVATE if wish.scope == "user" else filing.SHARED
    steps: list[tuple[str, filing.Edit]] = [
        (file, partial(_merged, host=host, wish=wish, said=said, file=file))
    ]
    if wish.instructions:
        words = block.words(wish.name, wish.tools)
        steps.append((_instructions(host, wish, machine), lambda text: block.put(text, wish.name, words)))
    # All that could be refused is refused before the first file is written.
    changes = [filing.change(path, edit, mode=mode, write=False) for path, edit in steps]
    if wish.write:
        changes = [filing.change(path, edit, mode=mode, write=True) for path, edit in steps]
    notes: list[str] = []
    if all(change.done == "kept" for change in changes):
        return Outcome(said, tuple(changes))
    if launcher.passing:
        notes.append(
            "This copy of the program lies in a cache that may be cleared: install it "
            "(uv tool install vault-palace, or pipx install vault-palace) and connect again."
        )
    if host.rewrites and wish.scope == "user":
        notes.append(f"{host.title} writes this file itself: quit it before it is changed.")
    if wish.scope == "project":
        notes.append("The paths in it are this machine's: do not share the file as it is.")
    return Outcome(said, tuple(changes), (host.next[wish.scope],), tuple(notes))


def _refuse_what_changes(host: Host, words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidArguments(
                f"The path {word!a} is not UTF-8, and no configuration file can hold it.",
                hint="Rename the folder, or reach it by a symbolic link.",
                argument="vault",
            ) from None
        if host.replaces(word):
            raise InvalidArguments(
                f"{host.title} would take a part of {word!r} for a variable.",
                hint="Rename the folder, or reach it by a symbolic link.",
                argument="vault",
            )


def _merged(text: str, *, host: Host, wish: Wish, said: dict[str, Any], file: str) -> str:
    """*text* of the host's file with the entry *said*."""
    edit: Any = toml if host.toml else jsonc
    path = (*_keys(host, text), wish.name)
    there = _value(host, text, path)
    if there is None:
        if host.fresh and not text.strip():
            text = jsonc.put(text, (next(iter(host.fresh)),), next(iter(host.fresh.values())))
        return _fitting(edit.put, text, path, said, file)
    if isinstance(there, Mapping) and all(there.get(key) == value for key, value in said.items()):
        return text
    vault = entry.vault_of(there)
    if isinstance(there, Mapping) and vault is not None and _same(vault, str(wish.vault)):
        for key, value in said.items():
            if there.get(key) != value:
                text = _fitting(edit.put, text, (*path, key), value, file)
        return text
    if not wish.replace:
        raise Exists(
            f"{file} has an entry {wish.name!r} already, and it is for {_serves(there, vault)}.",
            hint="Give --replace to replace it, or --name for another one beside it.",
            path=file,
            entry=entry.words_of(there),
        )
    if host.toml:
        return _fitting(edit.put, _fitting(edit.take, text, path, None, file), path, said, file)
    return _fitting(edit.put, text, path, said, file)


def _fitting(act: Any, text: str, path: Sequence[str], value: Any, file: str) -> str:
    try:
        return str(act(text, path) if value is None else act(text, path, value))
    except toml.Unfit as error:
        shown = "" if value is None else f" of {_shown(value)}"
        raise PolicyViolation(
            f"{file} is written in a form in which {'.'.join(path)} cannot be changed alone: {error}.",
            hint=f"Make the change{shown} by hand.",
            path=file,
        ) from None


def _shown(value: Any) -> str:
    return (
        ", ".join(f"{key} = {one}" for key, one in value.items()) if isinstance(value, dict) else str(value)
    )


def _serves(there: Any, vault: str | None) -> str:
    if vault is not None:
        return f"the vault {vault}"
    return f"something else: {' '.join(entry.words_of(there)) or 'no command'}"


def _same(one: str, other: str) -> bool:
    return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))


def _keys(host: Host, text: str) -> tuple[str, ...]:
    """Where the host's servers stand.

    opencode 2 has a form of its own beside the old one, which both versions read: it is used where the file
    has it.
    """
    if host.form == "opencode":
        newer = (*host.keys, "servers")
        servers = _value(host, text, newer)
        if isinstance(servers, Mapping) and not {"type", "command", "url"} & set(servers):
            return newer
    return host.keys


def _value(host: Host, text: str, path: Sequence[str]) -> Any:
    if not host.toml:
        node = jsonc.find(jsonc.read(text), path)
        return None if node is None else node.value
    value: Any = toml.read(text)
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


# -- removing -----------------------------------------------------------------------------------------------


def _removed(wish: Wish, host: Host, file: str, machine: Machine) -> Outcome:
    def without(text: str) -> str:
        path = (*_keys(host, text), wish.name)
        there = _value(host, text, path)
        if there is not None and not entry.is_ours(there) and not wish.replace:
            raise Exists(
                f"The entry {wish.name!r} in {file} is for {_serves(there, None)}.",
                hint="Give --replace to remove it all the same.",
                path=file,
                entry=entry.words_of(there),
            )
        return _fitting((toml if host.toml else jsonc).take, text, path, None, file)

    steps: list[tuple[str, filing.Edit]] = []
    notes: list[str] = []
    if os.path.lexists(file):
        steps.append((file, without))
    place = host.instructions.get(wish.scope)
    if place is not None and os.path.lexists(choose(place, machine)):
        path = choose(place, machine)
        others = _others(wish, host, path, machine)
        if others:
            notes.append(f"The block in {path} stays: {', '.join(others)} reads it too.")
        else:
            steps.append((path, lambda text: block.take(text, wish.name)))
    changes = [filing.change(path, edit, mode=filing.PRIVATE, write=False) for path, edit in steps]
    if wish.write:
        changes = [filing.change(path, edit, mode=filing.PRIVATE, write=True) for path, edit in steps]
    if not any(change.done != "kept" for change in changes):
        notes.append(f"{host.title} has no entry {wish.name!r} in {file}.")
        return Outcome(None, tuple(changes), (), tuple(notes))
    return Outcome(None, tuple(changes), (f"Restart {host.title}.",), tuple(notes))


def _others(wish: Wish, host: Host, path: str, machine: Machine) -> list[str]:
    """The other hosts that read the same instructions and have an entry of the same name."""
    found = []
    for other in HOSTS.values():
        places, instructions = other.places.get(wish.scope), other.instructions.get(wish.scope)
        if other is host or places is None or instructions is None or choose(instructions, machine) != path:
            continue
        names: list[Any] = []

        def look(text: str, other: Host = other, names: list[Any] = names) -> str:
            names.append(_value(other, text, (*_keys(other, text), wish.name)))
            return text

        try:
            filing.change(choose(places, machine), look, mode=filing.PRIVATE, write=False)
        except VaultError:  # it cannot be told; a block too many does no harm
            names.append(wish.name)
        if names and names[-1] is not None:
            found.append(other.title)
    return found


def _instructions(host: Host, wish: Wish, machine: Machine) -> str:
    places = host.instructions.get(wish.scope)
    if places is None:
        others = " or ".join(f"--scope {scope}" for scope in host.instructions)
        raise InvalidArguments(
            f"{host.title} reads no file of instructions of a {wish.scope}.",
            hint=f"Give {others}."
            if others
            else "Leave --instructions out: the server tells the habit itself.",
            argument="instructions",
        )
    return choose(places, machine)


# -- showing ------------------------------------------------------------------------------------------------


def diff(change: filing.Change) -> list[str]:
    """The lines that differ, and no others: what stands beside them may be somebody's key.

    A long line, as in a file without line ends, is cut to what differs in it.
    """
    before, after = change.before.splitlines(), change.after.splitlines()
    lines: list[str] = []
    for gone, come in differing(before, after):
        lines.append(f"@@ line {come.start + 1} @@")
        old, new = before[gone.start : gone.stop], after[come.start : come.stop]
        if len(old) == len(new) == 1 and max(map(len, (*old, *new))) > LONGEST_LINE:
            old, new = _differing(old[0], new[0])
        lines += [f"-{line}" for line in old] + [f"+{line}" for line in new]
    return lines


def _differing(old: str, new: str) -> tuple[list[str], list[str]]:
    head = alike(old, new)
    tail = alike(old[head:][::-1], new[head:][::-1])
    cut = [line[head : len(line) - tail] for line in (old, new)]
    return [f"…{cut[0]}…"] if cut[0] else [], [f"…{cut[1]}…"]
