"""Keeps what an agent writes from running in a person's Obsidian: text by itself, and where it is put.

Harmless pieces may not be harmless together: a fence left open by one append turns the code of the next into
the real thing. And properties are shown as Markdown by dashboards, so short arguments are judged as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from vault_palace.core import content as contents
from vault_palace.core.content import Finding
from vault_palace.core.errors import UnsafeContent
from vault_palace.services.house import House

JUDGED = 200_000  # characters of a note that are judged as a whole
_OPENERS = re.compile(r"[`~$]|<!--|-->|%%")  # what hides text from being live, or ends that


def check_text(house: House, content: str) -> None:
    """Refuse *content* that would run, or load something, when a person opens the note (SPEC §9)."""
    if _allowed(house):
        return
    found = contents.unsafe(content)
    if found:
        raise _refusal("content", "when a person opens the note", found)


def check_words(house: House, **arguments: str | None) -> None:
    """Refuse an argument that would run, or load something, where a dashboard shows it."""
    if _allowed(house):
        return
    for name, value in arguments.items():
        # A lone mark of Templater's may find its other half further down the note.
        found = contents.unsafe(value) if value else []
        if value and not found and "<%" in value:
            found = [Finding(1, "a Templater command `<% … %>`")]
        if found:
            raise _refusal(name, "where a note or dashboard shows it", found)


def check_joined(house: House, before: str, after: str, added: str) -> None:
    """Refuse *added*, harmless by itself, when it makes of the text *before* an *after* that is not."""
    if _allowed(house):
        return
    if len(after) > JUDGED:
        # Dear to judge whole, so what is added may hold nothing that is only harmless inside of something.
        found = contents.unsafe(_OPENERS.sub("·", added))
        if not found and "%>" in added and "<%" in before:
            found = [Finding(1, "the end of a Templater command")]
        if found:
            raise _refusal("content", "in a note of this size, where it may not be read as code", found)
        return
    now = contents.unsafe(after)
    if not now:
        return
    known = Counter(finding.what for finding in contents.unsafe(before))
    found = [finding for finding in now if finding.what in Counter(one.what for one in now) - known]
    if found:
        raise _refusal("content", "together with what stands in the note before it", found)


def _allowed(house: House) -> bool:
    return house.policy().active_content == "allow"


def _refusal(argument: str, where: str, found: Sequence[Finding]) -> UnsafeContent:
    listed = "; ".join(f"line {item.line}: {item.what}" for item in found[:5])
    return UnsafeContent(
        f"{argument} would run or phone home {where} ({listed}).",
        hint="Leave that out, or quote it as inline code or in a plain code fence.",
        argument=argument,
        lines=[item.line for item in found[:20]],
    )
