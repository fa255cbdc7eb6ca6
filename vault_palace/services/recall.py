"""Reading and finding: one note whole or by section, and the notes that a question is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vault_palace.core import budget, frontmatter, sections
from vault_palace.core import text as texts
from vault_palace.core.dates import show_day
from vault_palace.core.errors import InvalidArguments, VaultError
from vault_palace.core.model import ARCHIVE, Status
from vault_palace.index import search as searching
from vault_palace.services import arguments, finding, quiet
from vault_palace.services.answers import FindAnswer, Match, ReadAnswer, SearchAnswer
from vault_palace.services.house import House, Note

MOST_TOKENS = 20_000
READ_TOKENS = 6_000  # what a read answers when the caller names no budget
SEARCH_TOKENS = 2_000
OUTLINE_SHARE = 10  # the headings of a note that is cut take no more than this part of the budget
BACKLINKS_SHOWN = 50
SNIPPET, SHORT_SNIPPET = 160, 88  # characters; of many hits the shorter, so that a page of ten stays cheap
MANY_HITS = 5
LIMIT_MAX = 100
LONGEST_TITLE = 300


def read(
    house: House,
    *,
    path: str | None = None,
    id: str | None = None,
    title: str | None = None,
    max_tokens: int | None = None,
    section: str | None = None,
    touch: bool = True,
) -> ReadAnswer:
    """One note: its properties, its text and its rev. Reading by path needs no cache.

    Reading a memory is a use (SPEC §4) unless *touch* is false; the note is never waited for. A text
    over *max_tokens* is cut: `outline` names its headings with their sizes, `next` what *section* brings the
    text behind (see `core.sections`), so that any note is read to its end.
    """
    arguments.plain(path=path, id=id, title=title, section=section)
    note = finding.one(house, path=path, id=id, title=title)
    shown = content_of(note)
    warnings: list[str] = []
    if note.text is None:
        warnings.append("The file is not UTF-8 text; what cannot be read is shown as �.")
    elif note.header.problem is not None:
        warnings.append(
            f"The header does not parse (line {note.header.problem.line}): {note.header.problem.message}"
        )
    part = sections.part(shown, section) if section and section.strip() else sections.Part("", 0, shown)
    most = READ_TOKENS if max_tokens is None else arguments.positive("max_tokens", max_tokens)
    whole = budget.tokens(part.text)
    outline = _outline(shown, part, most // OUTLINE_SHARE) if whole > most else []
    cut, truncated = budget.cut(part.text, most - budget.tokens("\n".join(outline)))
    rev = house.rev(note)
    house.shown.keep(note, rev)
    answer = ReadAnswer(
        path=note.path,
        title=_title(note),
        metadata=frontmatter.shown(note.header),
        content=cut,
        rev=rev,
        backlinks=house.shelf.backlinks(note.path)[:BACKLINKS_SHOWN],
        truncated=truncated,
        warnings=warnings,
    )
    if part.name:
        answer["section"] = part.name
    if part.start:
        answer["start"] = part.start
    if truncated:
        answer["more"] = (
            f"About {whole} tokens, {budget.tokens(cut)} shown. Ask for the rest with section, or for more at"
            f" once with max_tokens (up to {MOST_TOKENS})."
        )
        if outline:
            answer["outline"] = outline
            if len(outline) < (headings := sections.count(shown, below=part.name)):
                answer["more"] += f" {len(outline)} of {headings} headings:"
        go_on(answer)
    if replacement := house.shelf.superseded_by(note.path):
        answer["superseded_by"] = replacement
    elif note.header.values.get("superseded_by"):
        warnings.append("superseded_by leads to no note that replaced this one.")
    if touch:
        quiet.touch(house, note)
    return answer


def content_of(note: Note) -> str:
    """What a read shows of *note* and counts the characters of: its text without the properties."""
    if note.text is None:
        return note.shown
    return re.sub(r"\A\r?\n", "", note.header.body) if note.header.present else note.header.body


def _title(note: Note) -> str:
    """The note's title; a `title` of a page's length is no title, and would crowd out the answer."""
    title = frontmatter.display_title(note.header, note.stem)
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _outline(text: str, part: sections.Part, most: int) -> list[str]:
    """The headings inside of *part*, as many as *most* tokens hold; none behind its beginning."""
    if part.start:
        return []
    lines = [str(entry) for entry in sections.outline(text, below=part.name)]
    while lines and (spent := sum(budget.tokens(line) + 1 for line in lines)) > most:
        fewer = min(len(lines) - 1, len(lines) * most // spent + 1)
        lines = [str(entry) for entry in sections.outline(text, fewer, below=part.name)] if fewer else []
    return lines


def go_on(answer: ReadAnswer | dict[str, Any]) -> None:
    """Say in *answer*, of a read, what `section` brings the text behind its content; `truncated` is set."""
    shown = answer.get("start", 0) + len(answer["content"])
    answer["next"] = sections.onward(answer.get("section", ""), shown)
    answer["truncated"] = True


def find(house: House, query: str, *, layer: str | None = None, max_tokens: int | None = None) -> FindAnswer:
    """`read_memory` by query: the memories of *layer* (or of all) that *query* is about."""
    found = search(house, query, layer=layer, max_tokens=max_tokens)
    return FindAnswer(
        query=query, layer=layer, matches=found["matches"], cursor=found["cursor"], note=found["note"]
    )


def search(
    house: House,
    query: str,
    *,
    room: str | None = None,
    layer: str | None = None,
    tags: Sequence[str] | None = None,
    min_density: float | None = None,
    limit: int = 10,
    max_tokens: int | None = None,
    cursor: str | None = None,
    proposed: bool = False,
) -> SearchAnswer:
    """The memories that hold any word of *query*, best first, each with where and why it matched.

    Filters narrow it: *room* (`01_Shallow/ideas`, `ideas` in every layer, a layer's name), *layer*,
    *tags* (all of them, nested ones included), *min_density*. Searching is not a use.
    """
    limits = house.settings.limits
    arguments.within("query", query, limits.query, "Use the few words that matter.")
    arguments.within("room", room or "", limits.room)
    arguments.plain(None, query=query, room=room)
    arguments.plain(layer=layer, cursor=cursor)
    arguments.listed(tags=tags)
    for tag in tags or ():
        arguments.plain(tags=tag)
    tags = [tag for tag in tags or () if tag.strip().strip("#")]
    if min_density is not None:
        min_density = arguments.density(min_density, "min_density")
    if isinstance(limit, bool) or not 1 <= limit <= LIMIT_MAX:
        raise InvalidArguments(
            f"limit {limit!r} is not between 1 and {LIMIT_MAX}.",
            hint="Page with the cursor.",
            argument="limit",
        )
    # Sediment Palace's limit, where it is in force; the cursor brings what is over it.
    limit = min(limit, house.policy().max_search_matches or limit)
    chosen = finding.layer_named(layer) if layer else None
    house.present()
    house.refresh()
    behind = house.shelf.lag  # what the index knows still answers
    place = room or ""
    shelf = house.shelf
    folders = finding.folders_of_room(house, place)
    # Archived notes are found where they are asked for by name: for restore_memory.
    archived = (folders or ("",))[0].partition("/")[0] == ARCHIVE

    def page(size: int) -> searching.Hits:
        return shelf.ask(
            lambda cache: searching.search(
                cache,
                query,
                room=place,
                layer=chosen,
                tags=tuple(tags or ()),
                min_density=min_density,
                limit=size,
                cursor=cursor,
                include_archived=archived,
                include_proposed=proposed,
            )
        )

    hits = page(limit)
    matches: list[Match] = []
    note, following = hits.hint, hits.cursor
    if hits.proposed:
        waiting = (
            "1 proposed memory matches" if hits.proposed == 1 else f"{hits.proposed} proposed memories match"
        )
        note = f"{note} {waiting} and waits for a person's yes; proposed: true shows it.".strip()
    if shelf.filling:
        note = f"The index is being filled ({shelf.filling}); more may be found soon. {note}".strip()
    if behind:
        note = f"The index is behind, newer notes may be missing: {behind} {note}".strip()
    left = SEARCH_TOKENS if max_tokens is None else arguments.positive("max_tokens", max_tokens)
    for number, hit in enumerate(hits.hits):
        match = _match(house, hits.terms, hit, SNIPPET if len(hits.hits) <= MANY_HITS else SHORT_SNIPPET)
        if match is None:
            continue  # gone since the last comparison; the next one forgets it
        left -= budget.tokens(" ".join(str(value) for value in match.values()))
        if matches and left < 0:
            following = page(number).cursor
            cut = f"{len(hits.hits) - number} more did not fit max_tokens; the cursor brings them."
            note = f"{note} {cut}".strip()
            break
        matches.append(match)
    return SearchAnswer(
        room=place, query=query, matches=matches, total=hits.total, cursor=following, note=note
    )


def _match(house: House, terms: tuple[texts.Term, ...], hit: searching.Hit, width: int) -> Match | None:
    try:
        note = house.look(hit.path)
    except VaultError:
        return None
    body = note.header.body if note.text is not None else ""
    memory = note.memory
    match = Match(
        path=note.path,
        snippet=texts.excerpt(body, terms, width),
        id=note.id,
        title=_title(note),
        layer=note.layer.value if note.layer and note.kind == "memory" else "",
        density=memory.density if memory else None,
        age_days=(house.today() - memory.created.date()).days if memory else None,
        decays_on=show_day(memory.decays_on) if memory and memory.decays_on else None,
        why=f"{hit.why}; proposed" if memory and memory.status is Status.PROPOSED else hit.why,
    )
    if hit.superseded_by:
        match["superseded_by"] = hit.superseded_by
    return match
