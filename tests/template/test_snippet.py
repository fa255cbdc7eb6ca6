"""The snippet: its selectors and values are valid, its words can be read, nothing that counts is left out."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cssselect2
import pytest
import tinycss2

from tests import chromium
from vault_palace.core.model import OWNED, STYLES, Layer
from vault_palace.services.init import template_root

SNIPPET = (template_root() / ".obsidian/snippets/palace.css").read_text(encoding="utf-8")
INKS = ("shallow", "sediment", "bedrock", "archive")
READABLE = 4.5  # WCAG 2, AA, text
VISIBLE = 3.0  # the same for what is no text

# The backgrounds of Obsidian's own theme: page, side bar, and the row under the pointer there.
LIGHT = ((255, 255, 255), (246, 246, 246), (235, 235, 235))
DARK = ((30, 30, 30), (38, 38, 38), (54, 54, 54))
PLAIN: dict[str, Any] = {"skip_whitespace": True, "skip_comments": True}

# What a variable may stand for, so that a browser can judge the values that are made of it.
STAND_INS = (
    (r"var\(--palace-(bar|edge)\)", "3px"),
    (r"var\(--palace-fill, 0%\)", "10%"),
    (r"var\(--palace-order, 50\)", "1"),
    (r"var\(--palace-tab, transparent\)|var\(--text-muted\)", "red"),
    (r"var\(--palace-[\w-]+(, 110, 110, 110)?\)", "1, 2, 3"),
)

Rule = tuple[Any, list[Any]]
Colour = tuple[float, float, float]


def _rules(nodes: list[Any]) -> Iterator[Rule]:
    for node in nodes:
        assert node.type in ("qualified-rule", "at-rule"), tinycss2.serialize([node])
        if node.type == "at-rule":
            assert node.lower_at_keyword == "media"
            yield from _rules(
                tinycss2.parse_rule_list(node.content, skip_whitespace=True, skip_comments=True)
            )
        else:
            yield node.prelude, tinycss2.parse_declaration_list(node.content, **PLAIN)


RULES = list(_rules(tinycss2.parse_stylesheet(SNIPPET, **PLAIN)))
SELECTORS = [tinycss2.serialize(prelude).strip() for prelude, _ in RULES]
DECLARATIONS = [declaration for _, found in RULES for declaration in found]


@pytest.mark.parametrize(("prelude", "_"), RULES, ids=SELECTORS)
def test_every_selector_is_valid(prelude: Any, _: object) -> None:
    assert cssselect2.compile_selector_list(prelude)


def test_every_declaration_is_well_formed() -> None:
    assert [one for one in DECLARATIONS if one.type != "declaration"] == []


@pytest.mark.skipif(chromium.browser() is None, reason="no Chromium on this machine")
def test_a_browser_takes_every_rule_and_value(tmp_path: Path) -> None:
    pairs = [(one.name, _filled(tinycss2.serialize(one.value).strip())) for one in DECLARATIONS]
    page = f"""<!doctype html><meta charset="utf-8"><style>{SNIPPET}</style><p id="said"></p><script>
        const count = rules => [...rules].reduce((n, one) => n + (one.media ? count(one.cssRules) : 1), 0);
        const refused = {json.dumps(pairs)}.filter(([name, value]) => !CSS.supports(name, value));
        const broken = {json.dumps(SELECTORS)}.filter(one => !CSS.supports("selector(" + one + ")")
            && one.split(",").length == 1);
        said.textContent = JSON.stringify([count(document.styleSheets[0].cssRules), refused, broken]);
        </script>"""

    said = chromium.said(tmp_path, page)

    assert json.loads(said) == [len(RULES), [], []]


def _filled(value: str) -> str:
    for pattern, stand_in in STAND_INS:
        value = re.sub(pattern, stand_in, value)
    return value


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert re.findall(r"url\(|@import|@font-face|expression\(", SNIPPET) == []


# -- what the program names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("item", sorted(STYLES))
def test_every_class_that_the_program_keeps_is_styled(item: str) -> None:
    assert re.search(rf"\.{item}(?![\w-])", SNIPPET)


def test_every_property_of_a_memory_has_its_place() -> None:
    placed = set(re.findall(r'\[data-property-key="(\w+)"\] \{\n  --palace-order', SNIPPET))

    assert placed == OWNED | {"cssclasses"}


def test_what_is_read_comes_before_bookkeeping() -> None:
    order = {
        name: int(place) for name, place in re.findall(r'key="(\w+)"\] \{\n  --palace-order: (\d+)', SNIPPET)
    }

    first = ["status", "pinned", "density", "streak", "decays_on", "rises_on", "tags"]
    last = ["layer", "created", "last_touched", "backlinks", "missed", "id"]
    assert sorted(order, key=lambda name: order[name] if name in first else 99)[: len(first)] == first
    assert max(order[name] for name in first) < 50 < min(order[name] for name in last)
    assert len(set(order.values())) == len(order)


@pytest.mark.parametrize("folder", [*(layer.folder for layer in Layer), "_Archive"])
@pytest.mark.parametrize("above", ["", "Work/"])
@pytest.mark.parametrize("below", ["", "/room", "/room/note.md"])
def test_every_folder_of_the_palace_has_its_colour_in_the_file_list(
    folder: str, above: str, below: str
) -> None:
    path = above + folder + below
    kind = "nav-file-title" if path.endswith(".md") else "nav-folder-title"

    found = _matching(f'<div class="{kind}" data-path="{path}"></div>')

    name = {layer.folder: layer.value for layer in Layer}.get(folder, "archive")
    layers = [value for key, value in found if key == "--palace-layer"]
    assert layers[-1] == f"var(--palace-{name})"
    assert any(key == "box-shadow" for key, _ in found)


def test_an_archived_note_has_the_archives_colour_and_not_its_layers() -> None:
    found = _matching('<div class="nav-file-title" data-path="_Archive/01_Shallow/note.md"></div>')

    assert [value for key, value in found if key == "--palace-layer"][-1] == "var(--palace-archive)"


def test_a_note_outside_the_palace_has_no_colour() -> None:
    found = _matching('<div class="nav-file-title" data-path="Work/My 01_Shallow notes.md"></div>')

    assert found == []


def _matching(element: str) -> list[tuple[str, str]]:
    """The declarations for the one *element* in the order of the text: of equal weight, the last counts."""
    wrapper = cssselect2.ElementWrapper.from_html_root(ElementTree.fromstring(f"<html>{element}</html>"))
    target = next(one for one in wrapper.iter_subtree() if one.local_name == "div")
    return [
        (one.name, tinycss2.serialize(one.value).strip())
        for prelude, found in RULES
        if any(
            selector.pseudo_element is None and selector.test(target)
            for selector in cssselect2.compile_selector_list(prelude)
        )
        for one in found
    ]


# -- colours that can be read --------------------------------------------------------------------------------


def _variables(selector: str) -> dict[str, Colour]:
    body = re.search(rf"^{re.escape(selector)} \{{(.*?)\}}", SNIPPET, re.DOTALL | re.MULTILINE)
    assert body is not None
    return {
        name: (float(red), float(green), float(blue))
        for name, red, green, blue in re.findall(r"--palace-([\w-]+): (\d+), (\d+), (\d+);", body[1])
    }


THEMES = {"light": (_variables("body"), LIGHT), "dark": (_variables("body.theme-dark"), DARK)}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ink", INKS)
def test_every_ink_can_be_read(theme: str, ink: str) -> None:
    inks, backgrounds = THEMES[theme]
    colour = inks[f"{ink}-ink"]

    # A callout's title stands on a tenth of its own colour.
    tinted = [_mixed(colour, background, 0.1) for background in backgrounds[:1]]
    worst = min(_contrast(colour, background) for background in (*backgrounds, *tinted))
    assert worst >= READABLE


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("ink", INKS)
def test_every_bar_can_be_told_from_what_is_not_filled(theme: str, ink: str) -> None:
    inks, backgrounds = THEMES[theme]
    colour = inks[f"{ink}-ink"]

    assert _contrast(colour, _mixed(colour, backgrounds[0], 0.2)) >= VISIBLE


def _mixed(over: Colour, under: Colour, share: float) -> Colour:
    red, green, blue = (share * one + (1 - share) * other for one, other in zip(over, under, strict=True))
    return red, green, blue


def _contrast(one: Colour, other: Colour) -> float:
    dark, bright = sorted((_luminance(one), _luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: Colour) -> float:
    parts = (value / 255 for value in colour)
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
