"""Links kept true when notes move: which ones would break or lead elsewhere, and the smallest edit for each.

A link that still leads where it led is never touched. One that is keeps its form: bare stays bare, a path
stays a path, relative stays relative, Markdown stays Markdown in its way of writing blanks; anchor, alias
and quotes stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from vault_palace.core.linkscan import Scan, scan
from vault_palace.core.linktext import Link, decode, encode, split_wikilink
from vault_palace.core.names import EXTENSION, key
from vault_palace.core.propertylinks import Unquoted
from vault_palace.core.resolve import Resolver

# What YAML would read as something else inside unquoted brackets.
_UNSAFE_UNQUOTED = re.compile(r"[{}\[\]\"#]|: |^[&*!|>%@`'?\-]")


class Rewritten(NamedTuple):
    """A note's text after moves, how many links were rewritten, and the lines of those that were left.

    A link is left when no text could keep it true; `cut` says that the note was not read to its end.
    """

    text: str
    changed: int = 0
    left: tuple[int, ...] = ()
    cut: bool = False


class _Edit(NamedTuple):
    start: int
    end: int
    text: str
    link: int  # which link of the scan it changes, counted on through the unquoted properties
    leads: str


def rewrite(
    text: str,
    *,
    old_source: str,
    new_source: str,
    before: Resolver,
    after: Resolver,
    moved: Mapping[str, str],
) -> tuple[str, int]:
    """The note's text with every link leading where it led before, and how many links were rewritten."""
    done = rewritten(
        text, old_source=old_source, new_source=new_source, before=before, after=after, moved=moved
    )
    return done.text, done.changed


def rewritten(
    text: str,
    *,
    old_source: str,
    new_source: str,
    before: Resolver,
    after: Resolver,
    moved: Mapping[str, str],
) -> Rewritten:
    """The note's text with every link leading where it led before.

    The note itself goes from *old_source* to *new_source* (the same when it stays); *moved* maps old paths
    to new ones. A link that led nowhere stays as it is. `parent: [[Name]]` is no link, but the person means
    one: it is kept true like the others.
    """
    if "[" not in text:
        return Rewritten(text)
    seen = scan(text)
    edits: list[_Edit] = []
    astray: dict[int, int] = {}  # the lines of links that would lead elsewhere, by number

    def leads(path: str) -> tuple[str, str] | None:
        """Where a link led and shall lead, when it would lead elsewhere."""
        led = before.resolve(path, old_source) if path else None
        if led is None or after.resolve(path, new_source) == moved.get(led, led):
            return None
        return led, moved.get(led, led)

    for number, link in enumerate(seen.links):
        if ends := leads(link.path):
            astray[number] = link.line
            edits += _edit(text, number, link, *ends, new_source, after)
    for number, item in enumerate(seen.unquoted, len(seen.links)):
        if ends := leads(item.name):
            astray[number] = item.line
            edits += _unquoted_edit(number, item, *ends, new_source, after)
    if edits:
        text, edits = _settled(text, seen, edits, new_source, after)
    for edit in edits:
        del astray[edit.link]
    return Rewritten(text, len(edits), tuple(sorted(set(astray.values()))), seen.cut)


def _settled(
    text: str, seen: Scan, edits: list[_Edit], new_source: str, after: Resolver
) -> tuple[str, list[_Edit]]:
    """The text after those of *edits* that leave every other link as it is, and which these are."""
    changed = _apply(text, edits)
    if not seen.cut and not _holds(changed, seen, edits, new_source, after):
        # A new name may open code or math with a mark elsewhere in its paragraph: keep the edits that do not.
        kept: list[_Edit] = []
        for edit in edits:
            if _holds(_apply(text, [*kept, edit]), seen, [*kept, edit], new_source, after):
                kept.append(edit)
        edits, changed = kept, _apply(text, kept)
    return changed, edits


def _apply(text: str, edits: list[_Edit]) -> str:
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _holds(changed: str, seen: Scan, edits: list[_Edit], source: str, after: Resolver) -> bool:
    """Whether the changed text has the same links and each leads where it shall."""
    wanted = {edit.link: edit.leads for edit in edits}
    found = scan(changed)
    now = found.links
    return (
        len(now) == len(seen.links)
        and len(found.unquoted) == len(seen.unquoted)
        and all(
            new.kind == old.kind
            and new.anchor == old.anchor
            and new.alias == old.alias
            and (
                after.resolve(new.path, source) == wanted[number]
                if number in wanted
                else new.path == old.path
            )
            for number, (old, new) in enumerate(zip(seen.links, now, strict=True))
        )
    )


def _edit(
    text: str, number: int, link: Link, led: str, leads: str, source: str, after: Resolver
) -> Iterator[_Edit]:
    wiki = text.startswith(("[[", "![["), link.start) or link.kind == "property"
    start, end = link.spot
    for path in _forms(link.path, led, leads, source):
        if after.resolve(path, source) != leads:
            continue
        if not wiki:
            written = encode(path, text[start:end], angled=link.angled)
            if decode(written) == path:
                yield _Edit(start, end, written, number, leads)
                return
        elif split_wikilink(path) == (path, "", None, 0, len(path)) and not set(path) & set("[]\r\n"):
            written = _in_quotes(text[link.start - 1], path) if link.kind == "property" else path
            yield _Edit(start, end, written, number, leads)
            return


def _forms(old: str, led: str, leads: str, source: str) -> Iterator[str]:
    """Texts that may name the new path, the one in the form of the old text first."""
    is_note = leads.lower().endswith(EXTENSION)
    bare = leads[: -len(EXTENSION)] if is_note else leads
    named = leads if key(old).endswith(EXTENSION) else bare
    parts = named.split("/")
    if old.startswith(("./", "../")):
        yield _relative(named, source)
    elif "/" not in old:
        yield parts[-1]
    elif old.startswith("/"):
        yield f"/{named}"
    elif key(old) not in (key(led), key(led).removesuffix(EXTENSION)):
        yield "/".join(parts[-len(old.split("/")) :])
    for path in (named, bare, leads):
        yield path
        yield f"/{path}"


def _relative(path: str, source: str) -> str:
    here, there = source.split("/")[:-1], path.split("/")
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    up = [".."] * (len(here) - same)
    return "/".join([*(up or ["."]), *there[same:]])


def _in_quotes(quote: str, path: str) -> str:
    """The path as the text of a property between two such quotes; a block scalar has none."""
    if quote == '"':
        return path.replace("\\", "\\\\").replace('"', '\\"')
    return path.replace("'", "''") if quote == "'" else path


def _unquoted_edit(
    number: int, item: Unquoted, led: str, leads: str, source: str, after: Resolver
) -> Iterator[_Edit]:
    for path in _forms(item.name, led, leads, source):
        if after.resolve(path, source) == leads and not _UNSAFE_UNQUOTED.search(path):
            yield _Edit(*item.spot, path, number, leads)
            return
