"""Completions: rooms for the arguments of prompts, paths for the template of notes.

What begins with the typed text comes first, then what has a name that begins so, then what holds it, then
what holds its signs in their order. Case and Unicode form do not matter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mcp_types import CompleteRequestParams, CompleteResult, Completion, PromptReference

from vault_palace.core.errors import InvalidArguments, NotFound, VaultError
from vault_palace.core.model import ARCHIVE
from vault_palace.surfaces.mcp import render
from vault_palace.surfaces.mcp.answering import Ask, Context, refused
from vault_palace.surfaces.mcp.prompts import PROMPTS
from vault_palace.surfaces.mcp.resources import TEMPLATE

MOST = 100  # the protocol's limit
LONGEST = 512


class Completions:
    """The handler of `completion/complete`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def complete(self, context: Context, params: CompleteRequestParams) -> CompleteResult:
        ref, argument = params.ref, params.argument
        typed = argument.value
        found: Sequence[str] = []
        try:
            if len(typed) > LONGEST:
                raise InvalidArguments(f"More than {LONGEST} characters cannot be completed.")
            if isinstance(ref, PromptReference):
                known = _arguments_of(ref.name)
                if "room" in known and argument.name == "room":
                    found = await self._ask(context, lambda palace: palace.rooms())
            elif ref.uri != TEMPLATE:
                raise NotFound("There is no such template.", hint=f"There is {TEMPLATE}.")
            elif argument.name == "path":
                archived = typed.startswith(ARCHIVE[:1])
                found = await self._ask(context, lambda palace: palace.paths(archived=archived))
        except VaultError as error:
            raise refused(error) from error
        values, total = best(found, typed)
        return CompleteResult(
            completion=Completion(
                values=[render.plain(value) for value in values], total=total, has_more=total > len(values)
            )
        )


def _arguments_of(name: str) -> frozenset[str]:
    prompt = PROMPTS.get(name)
    if prompt is None:
        raise NotFound("There is no such prompt.", hint=f"The prompts are: {', '.join(PROMPTS)}.")
    return frozenset(argument.name for argument in prompt.arguments)


def best(values: Sequence[str], typed: str, most: int = MOST) -> tuple[list[str], int]:
    """The *most* best of *values* for what was *typed*, and how many fit in all."""
    wanted = _folded(typed.strip())
    if not wanted:
        return list(values[:most]), len(values)
    ranks: tuple[list[str], ...] = ([], [], [], [])
    for value in values:
        rank = _rank(_folded(value), wanted)
        if rank is not None:
            ranks[rank].append(value)
    found = [value for rank in ranks for value in rank]
    return found[:most], len(found)


def _rank(value: str, wanted: str) -> int | None:
    at = value.find(wanted)
    if at == 0:
        return 0
    if at > 0:
        return 1 if f"/{wanted}" in value else 2
    signs = iter(value)
    return 3 if all(sign in signs for sign in wanted) else None


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()
