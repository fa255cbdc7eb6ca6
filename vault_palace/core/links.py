"""Links of notes: found as Obsidian counts them, resolved as it resolves them, kept true when notes move.

The one entry for other floors; `linkscan` finds, `resolve` decides where a link leads, `relink` rewrites.
"""

from __future__ import annotations

from vault_palace.core.linkscan import (
    Heading,
    Scan,
    Tag,
    find,
    header_span,
    headings,
    scan,
    tags,
    unquoted_links,
)
from vault_palace.core.linktext import Kind, Link, split_wikilink
from vault_palace.core.propertylinks import Unquoted
from vault_palace.core.relink import Rewritten, rewrite, rewritten
from vault_palace.core.resolve import Resolver, link_key, link_to

__all__ = [
    "Heading",
    "Kind",
    "Link",
    "Resolver",
    "Rewritten",
    "Scan",
    "Tag",
    "Unquoted",
    "find",
    "header_span",
    "headings",
    "link_key",
    "link_to",
    "rewrite",
    "rewritten",
    "scan",
    "split_wikilink",
    "tags",
    "unquoted_links",
]
