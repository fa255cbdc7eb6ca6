"""Links, tags and headings against dumps of Obsidian's metadata cache, where they lie beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vault_palace.core import frontmatter, links

DUMPS = Path(__file__).parents[3] / "shared" / "oracle" / "obsidian-cache"
FILES = sorted(DUMPS.glob("*.json")) if DUMPS.is_dir() else []

# Files whose answer differs from Obsidian's, each with the reason. None do.
DIFFERENT: dict[str, str] = {}

needs_dumps = pytest.mark.skipif(
    not FILES,
    reason="the Obsidian cache dumps (../shared/oracle/obsidian-cache) are not beside this checkout",
)


def _units(text: str) -> list[int]:
    """For each offset in UTF-16 units, as JavaScript counts, the offset in characters."""
    offsets: list[int] = []
    for at, char in enumerate(text):
        offsets += [at] * (2 if char > "\uffff" else 1)
    return [*offsets, len(text)]


def _shown(link: links.Link) -> str:
    """What Obsidian shows for a link without an alias."""
    return " > ".join(part for part in (link.path, *link.anchor.split("#")) if part)


def _obsidian(text: str, cache: dict[str, Any]) -> dict[str, object]:
    at = _units(text)

    def span(item: dict[str, Any]) -> tuple[int, int, int]:
        start, end = item["position"]["start"], item["position"]["end"]
        return at[start["offset"]], at[end["offset"]], start["line"] + 1

    return {
        "links": [(*span(x), x["link"], x["displayText"], x["original"]) for x in cache.get("links", ())],
        "embeds": [(*span(x), x["link"], x["displayText"], x["original"]) for x in cache.get("embeds", ())],
        "frontmatterLinks": [
            (x["key"], x["link"], x["displayText"], x["original"]) for x in cache.get("frontmatterLinks", ())
        ],
        "tags": [(*span(x), x["tag"]) for x in cache.get("tags", ())],
        "headings": [(x["level"], x["heading"], span(x)[0], span(x)[2]) for x in cache.get("headings", ())],
    }


def _ours(text: str) -> dict[str, object]:
    scan = links.scan(text)

    def row(link: links.Link) -> tuple[object, ...]:
        shown = _shown(link) if link.alias is None else link.alias
        return link.start, link.end, link.line, link.path + link.anchor, shown, text[link.start : link.end]

    return {
        "links": [row(link) for link in scan.links if link.kind in ("wikilink", "markdown")],
        "embeds": [row(link) for link in scan.links if link.kind == "embed"],
        "frontmatterLinks": [(link.key, *row(link)[3:]) for link in scan.links if link.kind == "property"],
        "tags": [(tag.start, tag.end, tag.line, f"#{tag.name}") for tag in scan.tags],
        "headings": [tuple(heading) for heading in links.headings(text)],
    }


@needs_dumps
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_note_holds_what_obsidian_found_in_it(file: Path) -> None:
    dump = json.loads(file.read_text(encoding="utf-8"))

    ours = _ours(dump["fileContents"])

    obsidian = _obsidian(dump["fileContents"], dump["cachedMetadata"])
    if file.name in DIFFERENT:
        assert ours != obsidian, "equal by now: take it off the list"
    else:
        assert ours == obsidian


@needs_dumps
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_links_lead_where_obsidian_says(file: Path) -> None:
    dump = json.loads(file.read_text(encoding="utf-8"))
    known = {
        found for each in FILES for found in json.loads(each.read_text("utf-8"))["resolveLinkToPath"].values()
    }
    paths = {json.loads(each.read_text("utf-8"))["filePath"] for each in FILES} | known
    resolver = links.Resolver(sorted(path for path in paths if path))
    scanned = links.find(dump["fileContents"])

    led = {link.path + link.anchor: resolver.resolve(link.path, dump["filePath"]) for link in scanned}

    assert led == dump["resolveLinkToPath"]


@needs_dumps
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_header_and_links_agree_where_the_body_begins(file: Path) -> None:
    text = json.loads(file.read_text(encoding="utf-8"))["fileContents"]

    _, _, body = links.header_span(text)

    assert text[body:] == frontmatter.read(text).body
