"""The link scanner against its authority: a markdown-it-py inline parser with Obsidian's rules as plugins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.token import Token

from vault_palace.core import inline, linkscan
from vault_palace.core.linktext import split_destination, split_wikilink

Rule = Callable[[StateInline, bool], bool]
Seen = tuple[str, bool, int, int]  # kind, embed, start, end within the inline text

# What notes are made of, in small pieces, so that generated notes break every construct at every place.
PIECES = (
    *(
        "[[a]]",
        "[[b|c]]",
        "![[p.png]]",
        "[[a#b]]",
        "[[",
        "]]",
        "[",
        "]",
        "](",
        "(",
        ")",
        "!",
        "![",
        "|",
        "\\|",
    ),
    *(
        "[t](n.md)",
        "[t](<n x.md>)",
        "![t](p.png)",
        "[t](n.md 'u')",
        "<",
        ">",
        "<b>",
        "</b>",
        "<!--",
        "-->",
        "<!-- c -->",
    ),
    *(
        "<x:y>",
        "<a@b.c>",
        "<a b='[[q]]'>",
        "<?",
        "?>",
        "`",
        "``",
        "```",
        "$",
        "$$",
        "$5",
        "\\",
        "'",
        '"',
        "&amp;",
        "%%",
    ),
    *(
        "#t",
        "#1",
        "#",
        "# ",
        "## ",
        "> ",
        "- ",
        "1. ",
        "* ",
        "    ",
        "\t",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "\n> ",
        "\n- ",
    ),
    *(
        "~~~\n",
        "```\n",
        "|-|-|\n",
        "| a | b |\n",
        "---\n",
        "===\n",
        "[x]: ",
        "[^1]: ",
        "a",
        "word",
        "é",
        "🧭",
        "\u00a0",
        "\0",
    ),
    *("<div>\n", "</div>\n", "$$\n", ":", "*", "_", "**", "\u2028", "\r"),
)
notes = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)

# Pieces of simple lines, so that the short way is really taken, and what only nearly keeps to its line.
SIMPLE_PIECES = (
    *(
        "[[a]]",
        "[[b|c]]",
        "![[p.png]]",
        "[[",
        "]]",
        "[",
        "]",
        "(",
        ")",
        "!",
        "![",
        "|",
        "#t",
        "#",
        "# ",
        " ##",
        "word",
    ),
    *(
        "> ",
        "- ",
        "1. ",
        "- [ ] ",
        "  ",
        "   ",
        " ",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\n> ",
        "\n- ",
        "\n|-|-|\n",
        "\n-|-\n",
    ),
    *(
        "\n---\n",
        "\n===\n",
        "\u00a0",
        "\u2028",
        "`",
        "`x`",
        "`[[q]]`",
        "\\",
        "$",
        "\n```\n",
        "\n```py\n",
        "\n~~~\n",
    ),
    *("[t](n.md)", "[t](<n x.md>)", "![t](p.png)", "[t](n.md 'u')", "](", "](x)", " < ", "'", "%%", "*"),
)
simple_notes = st.lists(st.sampled_from(SIMPLE_PIECES), max_size=40).map("".join)


def _wikilink(state: StateInline, silent: bool) -> bool:
    bang = state.src[state.pos] == "!"
    if not state.src.startswith("[[", state.pos + bang):
        return False
    match = inline.WIKILINK.match(state.src, state.pos + bang)
    if match is None:
        return False
    if not silent:
        state.push("found", "", 0).meta = {"seen": ("wiki", bang, state.pos, match.end())}
    state.pos = match.end()
    return True


def _math(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "$":
        return False
    end = inline.math_end(state.src, state.pos)
    if end < 0:
        return False
    state.pos = end
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    before = state.src[state.pos - 1] if state.pos else " "
    match = inline.TAG.match(state.src, state.pos)
    if match is None or not before.isspace():
        return False
    if not silent:
        state.push("found", "", 0).meta = {"seen": ("tag", False, state.pos, match.end())}
    state.pos = match.end()
    return True


def _noted(rule: Rule, kind: str) -> Rule:
    """A rule of markdown-it's own that also says where its token stands."""

    def noted(state: StateInline, silent: bool) -> bool:
        start, count = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent:
            token = next(token for token in state.tokens[count:] if token.type == kind)
            token.meta = {"seen": ("markdown", kind == "image", start, state.pos)}
        return True

    return noted


def _forget_definitions(state: StateCore) -> None:
    state.env.pop("references", None)  # Obsidian lists reference links apart; we count none of them


def _authority() -> MarkdownIt:
    parser = linkscan.block_parser()
    parser.core.ruler.enable("inline")
    parser.core.ruler.before("inline", "forget_definitions", _forget_definitions)
    parser.inline.ruler.before("escape", "math", _math)
    parser.inline.ruler.before("escape", "wikilink", _wikilink)
    parser.inline.ruler.before("escape", "tag", _tag)
    parser.inline.ruler.at("link", _noted(link, "link_open"))
    parser.inline.ruler.at("image", _noted(image, "image"))
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parser


AUTHORITY = _authority()


def _seen(token: Token) -> list[Seen]:
    return [child.meta["seen"] for child in token.children or () if "seen" in child.meta]


def _scanned(text: str) -> list[Seen]:
    return [(found.kind, found.embed, found.start, found.end) for found in inline.scan(text).found]


@given(notes)
@example("[a [[x]] b](y.md) ![a [[x]] b](c.png) [![i](p.png)](n.md)")
@example("[a ![b [c](d) e](f) g](h)")
@example("`a [[x]] ``b` [[y]] \\`[[z]]` <!-- [[q]] --> <!--> [[r]] -->")
@example("x $a [[y]]$ b $5 and $6 [[z]] $$ [[w]] $$")
def test_scanner_finds_what_markdown_it_finds(note: str) -> None:
    tokens = [token for token in AUTHORITY.parse(note) if token.type == "inline" and token.content]

    scanned = [_scanned(token.content) for token in tokens]

    assert scanned == [_seen(token) for token in tokens]


@given(notes)
@example("> - a [[x]]\n>   \tb [[y]]\n[[z]]\n\n|a|[[b\\|c]]|\n|-|-|\n|`[[q\\|r]]`|[[s\\|t]] [[u]]|")
@example("> | [[a\\|b]] | c |\n> |---|---|\n> | - | [[d\\|e]] |\n")
@example("\u00a0\n[[a]]\u00a0\n\n- # [[b]] ##\n")
def test_offsets_in_the_note_hold_what_was_found(note: str) -> None:
    seen = 0
    for piece, _ in linkscan.pieces(note, 0):
        for found in inline.scan(piece.text).found:
            start, row = piece.place(found.start)
            end = piece.place(found.end - 1)[0] + 1
            written = note[start:end]

            assert row == len(re.findall(r"\r\n?|\n", note[:start]))
            if "\n" not in piece.text[found.start : found.end]:
                assert _plain(written) == _plain(piece.text[found.start : found.end])
            seen += 1
    counted = [token for token in AUTHORITY.parse(note) if token.type == "inline" and token.content]
    assert seen == sum(len(_seen(token)) for token in counted)


def _plain(text: str) -> str:
    return text.replace("\\|", "|").replace("\0", "\ufffd")


@given(st.one_of(notes, simple_notes))
@example("| a |\n---\n[[b|c]]")
@example("a |\n---\n[[b|c]]")
@example("[[a|b]]\n---\n# x #t\n- [[c]]\n>> [[d]] [[[e]]] ![[f]] #g/h")
@example("a | [[b|c]]\n- | -\n")
@example("```|[[a]]\n-|-\n[[b]]")
@example("[\n](x) [[[a\n](b)")
@example("```\na\r```\n[[b]]\n```")
@example("- ```\n[[a]]\n\n```\n[[b]]\n ```\n[[c]]\n~~~ x\n[[d]]")
def test_notes_that_skip_the_parser_give_the_same_answer(note: str) -> None:
    quick = linkscan.scan(note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkscan, "simple_links", lambda body: None)
        full = linkscan.scan(note)

    assert quick == full


@given(notes)
def test_every_link_of_a_note_is_read_back_from_its_own_text(note: str) -> None:
    for found in linkscan.find(note):
        written = note[found.start : found.end]
        spot = note[slice(*found.spot)]

        if written.startswith(("[[", "![[")):
            target = split_wikilink(written[written.index("[[") + 2 : -2])
            assert (target.path, target.anchor) == (
                found.path.replace("\ufffd", "\0"),
                found.anchor.replace("\ufffd", "\0"),
            )
            assert spot == target.path
        else:
            where = split_destination(spot)
            assert (where.path if where else "") == found.path.replace("\ufffd", "\0")
        assert written.endswith(("]]", ")"))
        assert found.line == 1 + len(re.findall(r"\r\n?|\n", note[: found.start]))


def test_most_notes_skip_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    note = "# Title\n\nSee [[Kafka topics]] and [[Outbox|the outbox]] #arch.\n\n- one ![[a.png]]\n- two\n"

    def refuse(*_: object) -> Iterator[object]:
        raise AssertionError("the parser was called")

    monkeypatch.setattr(linkscan, "pieces", refuse)

    assert [link.path for link in linkscan.find(note)] == ["Kafka topics", "Outbox", "a.png"]
