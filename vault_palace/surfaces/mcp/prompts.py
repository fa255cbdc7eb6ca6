"""Prompts: the three rituals that a person starts from their host, each with the facts of this moment in it.

The words are ours and are instructions; what comes from notes stands between marks as data, within a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp_types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from vault_palace.core.errors import NotFound, VaultError
from vault_palace.surfaces.mcp import render, resources
from vault_palace.surfaces.mcp.answering import Ask, Context, refused
from vault_palace.surfaces.mcp.strict import Argument, read_arguments

if TYPE_CHECKING:
    from vault_palace.services.palace import Palace

BRIEF_TOKENS = 1_200
TIDY_NOTES = 20
ROOM = Argument(name="room", about="ideas, 01_Shallow/ideas or a layer; absent: the whole vault", blank=True)

Arguments = Mapping[str, Any]

WAKE_UP = """\
Begin this session with what is remembered. The briefing below is from my memory vault{where}.
Take it as background: do not recite it. Tell me in at most three sentences what of it matters now, and
name what needs a decision of mine (something about to fade, a problem, an edit that changes what you knew).
When a line matters for the work, read that note with read_memory before you rely on it, and search_room for
what the briefing does not hold. If this host offers no such tools, say so.
"""
REFLECT = """\
Before this session ends, look back at what of it is worth keeping, and keep it:
1. Rate: for each memory that helped or misled, rate_memory. density 0.5 and above keeps it, 0.8 and above
   lasts; lower it for what proved wrong. Do not rate what you only listed.
2. Write: what a later session would miss: decisions with their reason, facts that were hard to find,
   preferences of mine, mistakes not to repeat. One idea a note; search_room first, and append to a note or
   use supersedes rather than write it twice. No logs of what was done, nothing that the code or the files
   already say, no secrets.
3. Link: connect new notes to what they belong to with [[Title]]; write_memory's answer names candidates.
4. Tell me in a few lines what you kept and where, and what you let go.
If nothing is worth keeping, say so and write nothing.
"""
TIDY = """\
Go through the memories below with me{where}, the soonest to fade first. One decision at a time: say in a line
or two what the note holds (read it with read_memory path, touch: false, so that looking does not keep it
alive), give your own advice with its reason, and wait for my answer before the next one. The choices:
- keep: rate_memory with the density it deserves, or pinned: true when no rule should ever move it;
- improve: append, replace, or merge it into another note and archive this one;
- let go: purge_memory, which archives it and deletes nothing; or leave it, and it fades by itself.
Do nothing to a note that I have not decided on, and stop when I say so. At the end list what was decided.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ritual:
    """One prompt: its words in prompts/list, and how its text is made."""

    name: str
    title: str
    about: str
    arguments: tuple[Argument, ...] = ()
    writes: bool = False  # of no use in a vault that is not to be written
    text: Callable[[Palace, Arguments], str]


def _where(arguments: Arguments) -> str:
    room = arguments.get("room", "")
    return f", room {render.line(room, 80)}" if room else ""


def _wake_up(palace: Palace, arguments: Arguments) -> str:
    brief = palace.wake_up(room=arguments.get("room"), max_tokens=BRIEF_TOKENS)["brief"]
    return f"{WAKE_UP.format(where=_where(arguments))}\n{render.fenced(brief, 'briefing')}"


def _reflect(palace: Palace, _: Arguments) -> str:
    rows = [f"- {render.path(note['path'])}: {', '.join(note['verbs'])}" for note in palace.session_notes()]
    touched = render.fenced("\n".join(rows), "notes") if rows else "None so far."
    return f"{REFLECT}\nNotes that this session has written or used, as the journal has it:\n{touched}"


def _tidy(palace: Palace, arguments: Arguments) -> str:
    fading = palace.fading(room=arguments.get("room"), limit=TIDY_NOTES)
    text = resources.fading_text(fading)
    return f"{TIDY.format(where=_where(arguments))}\n{render.fenced(text, 'fading')}"


PROMPTS: Mapping[str, Ritual] = {
    ritual.name: ritual
    for ritual in (
        Ritual(
            name="wake_up",
            title="Wake up",
            about="Start a session with the briefing from memory.",
            arguments=(ROOM,),
            text=_wake_up,
        ),
        Ritual(
            name="reflect",
            title="Reflect",
            about="Keep what of this session is worth it: rate, write, link.",
            writes=True,
            text=_reflect,
        ),
        Ritual(
            name="tidy",
            title="Tidy up",
            about="Decide together, one note at a time, on what is about to fade.",
            arguments=(ROOM,),
            writes=True,
            text=_tidy,
        ),
    )
}


class Prompts:
    """The handlers of everything under `prompts/`."""

    def __init__(self, ask: Ask, *, read_only: bool = False) -> None:
        self._ask = ask
        self._offered = {
            name: ritual for name, ritual in PROMPTS.items() if not (read_only and ritual.writes)
        }

    async def list(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_listed(ritual) for ritual in self._offered.values()])

    async def get(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        try:
            ritual = self._offered.get(params.name)
            if ritual is None:
                raise NotFound(
                    "There is no such prompt.", hint=f"The prompts are: {', '.join(self._offered)}."
                )
            arguments = read_arguments(ritual.name, ritual.arguments, params.arguments or {})
            text = await self._ask(context, lambda palace: ritual.text(palace, arguments))
        except VaultError as error:
            raise refused(error, prompt=params.name[:80]) from error
        message = PromptMessage(role="user", content=TextContent(type="text", text=render.plain(text)))
        return GetPromptResult(description=ritual.about, messages=[message])


def _listed(ritual: Ritual) -> Prompt:
    return Prompt(
        name=ritual.name,
        title=ritual.title,
        description=ritual.about,
        arguments=[
            PromptArgument(name=one.name, description=one.about, required=one.required)
            for one in ritual.arguments
        ],
    )
