"""Resources: the index note, the list of what fades, and every note by its path.

Notes are listed by a template, not one by one: a vault has thousands. Reading one here is no use of it
(SPEC §4): a host reads resources to show and to preload them, and a window that is left open would keep every
memory alive. Whoever works with a note reads it with `read_memory`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, unquote

from mcp_types import (
    Annotations,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from vault_palace.core.errors import InvalidArguments, NotFound, VaultError
from vault_palace.surfaces.mcp import render
from vault_palace.surfaces.mcp.answering import Ask, Context, refused
from vault_palace.surfaces.mcp.texts import MOST_TOKENS

if TYPE_CHECKING:
    from vault_palace.services.answers import FadingAnswer
    from vault_palace.services.palace import Palace

MARKDOWN = "text/markdown"
SCHEME = "palace://"
MAP, FADING, MEMORY = f"{SCHEME}map", f"{SCHEME}decaying", f"{SCHEME}memory/"
TEMPLATE = f"{MEMORY}{{+path}}"
LONGEST_URI = 4_096
MAP_TOKENS = 6_000
NOTE_TOKENS = MOST_TOKENS - 500  # the rest is for the words around it
REV = "vault-palace/rev"

Kind = Literal["map", "fading", "memory"]

_RESOURCES = (
    Resource(
        uri=MAP,
        name="map",
        title="Palace map",
        description="PALACE_MAP.md, the vault's index note: layers, rooms, what fades and what rises.",
        mime_type=MARKDOWN,
        annotations=Annotations(audience=["user", "assistant"], priority=0.8),
    ),
    Resource(
        uri=FADING,
        name="decaying",
        title="What fades soon",
        description="The memories that go to the archive within the horizon unless somebody uses them.",
        mime_type=MARKDOWN,
        annotations=Annotations(audience=["user", "assistant"], priority=0.6),
    ),
)
_TEMPLATE = ResourceTemplate(
    uri_template=TEMPLATE,
    name="memory",
    title="A note of the vault",
    description="A whole note by its path, e.g. 01_Shallow/ideas/kafka.md. That keeps nothing alive.",
    mime_type=MARKDOWN,
    annotations=Annotations(audience=["user", "assistant"], priority=0.5),
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a URI means. `path` is the vault's spelling of a note's path, empty for the other two."""

    kind: Kind
    path: str = ""


def uri_of(path: str) -> str:
    """The URI of the note at *path*, as every client can send it back."""
    return f"{MEMORY}{quote(path, safe='/')}"


def spellings(uri: str) -> list[Place]:
    """What *uri* may mean, the likeliest first: a client may have left a `%` of a file name as it is."""
    if uri == MAP:
        return [Place("map")]
    if uri == FADING:
        return [Place("fading")]
    raw = uri.removeprefix(MEMORY)
    if raw == uri or not raw:
        raise NotFound("There is no such resource.", hint=f"There are {MAP}, {FADING} and {TEMPLATE}.")
    if len(uri) > LONGEST_URI:
        raise InvalidArguments(f"The URI is longer than {LONGEST_URI} characters.", argument="uri")
    try:
        decoded = unquote(raw, errors="strict")
    except UnicodeDecodeError:
        decoded = raw
    return [Place("memory", path) for path in dict.fromkeys((decoded, raw))]


def place_of(palace: Palace, uri: str) -> Place:
    """What *uri* means, which need not be there; refused when it can never be."""
    first, *others = spellings(uri)
    if first.kind != "memory":
        return first
    readable = palace.readable(first.path)
    for other in others:
        if not palace.glimpse(readable).rev and palace.glimpse(palace.readable(other.path)).rev:
            return Place("memory", palace.readable(other.path))
    return Place("memory", readable)


class Resources:
    """The handlers of everything under `resources/` but subscriptions."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, _: Context, __: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[*_RESOURCES])

    async def list_templates(
        self, _: Context, __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[_TEMPLATE])

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = params.uri
        try:
            text, rev = await self._ask(context, lambda palace: contents(palace, uri))
        except VaultError as error:
            raise refused(error, uri=uri[:LONGEST_URI]) from error
        meta = {REV: rev} if rev else None
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=MARKDOWN, text=render.plain(text), _meta=meta)]
        )


def contents(palace: Palace, uri: str) -> tuple[str, str]:
    """The text of a resource within its budget, marked as data, and its rev where it has one."""
    place = place_of(palace, uri)
    if place.kind == "map":
        return map_text(palace), ""
    if place.kind == "fading":
        return fading_text(palace.fading()), ""
    page = palace.page(place.path, max_tokens=NOTE_TOKENS)
    text = marked(page["text"], f"rev {page['rev']}")
    if page["truncated"]:
        headings = "; ".join(render.line(heading, 80) for heading in page["headings"])
        others = f" or one of: {headings}" if headings else ""
        path = "of this path" if "--" in page["path"] else f"path {render.path(page['path'])}"
        text += comment(f"cut here; read_memory {path} with section '{page['next']}' goes on{others}")
    return text, page["rev"]


def map_text(palace: Palace) -> str:
    answer = palace.read_map(MAP_TOKENS)
    if not answer["map"].strip():
        return comment("PALACE_MAP.md is empty or not there")
    cut = comment("cut here; a person sees the whole of it in Obsidian") if answer["truncated"] else ""
    return marked(answer["map"], "PALACE_MAP.md") + cut


def fading_text(answer: FadingAnswer) -> str:
    """The list of what fades, one memory a line; each path is ready for the next call."""
    where = f" in {render.line(answer['room'], 80)}" if answer["room"] else ""
    days = f"within {answer['horizon_days']} days"
    if not answer["notes"]:
        return f"# What fades soon\n\nNothing{where} goes to the archive {days}.\n"
    head = f"# What fades soon\n\n{answer['count']} memories{where} go to the archive {days} unless used.\n"
    rows = [_row(note) for note in answer["notes"]]
    left = answer["count"] - len(rows)
    text = marked("\n".join((head, *rows, "")), "paths and reasons")
    return text + (comment(f"{left} more, later ones") if left > 0 else "")


def _row(note: render.Answer) -> str:
    facts = [f"density {note['density']:g}" if note["density"] is not None else "not rated"]
    if note["streak"] is not None:
        facts.append(f"streak {note['streak']}")
    if note["why"]:
        facts.append(render.line(note["why"], 120))
    return f"- {note['decays_on']} {render.path(note['path'])} ({', '.join(facts)})"


def marked(text: str, what: str) -> str:
    """*text* of a note with the mark that it is data, where Markdown and YAML readers pass over it."""
    text = text.removeprefix("\ufeff")
    first, line_end, rest = text.partition("\n")
    if line_end and first.rstrip("\r") == "---":
        return f"{first}\n# {render.DATA}; {what}\n{rest}"
    return f"<!-- {render.DATA}; {what} -->\n{text}"


def comment(words: str) -> str:
    """*words* of ours behind a text, as a comment that they cannot end themselves."""
    return f"\n<!-- vault-palace: {re.sub('-(?=-)', '- ', words)} -->\n"
