"""Judges an agent's text before it becomes a note: would it run or phone home in a person's Obsidian?

`unsafe` names what would execute (DataviewJS, Templater, scripts, handlers, commands behind links) or load
something from the network as soon as the note is shown. Plain web links are fine, and so is anything in
fenced or inline code; indented text is judged like any other. `inline_fields` names the properties of ours
that a text would change in Dataview. Nothing is mended and nothing refused here: the caller does that.

The parser is markdown-it, and Obsidian's is another. Where they may disagree about what is code (a backtick
inside math, a comment or a wikilink), the text is judged both ways, and either verdict counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.rules_inline import StateInline, backtick, html_inline, image
from markdown_it.token import Token

from vault_palace.core.markup import css_problem, markup_problems, uri_problem
from vault_palace.core.model import OWNED


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing in a text: the 1-based line, and in words what stands there."""

    line: int
    what: str


# Code blocks whose text a plugin runs as a program, or which put a button that does. A family ends in a dash
# or colon. Languages of ordinary samples (python, js, jsx, html) are not among them.
_RUNS = frozenset(
    {
        *(
            "dataviewjs",
            "datacorejs",
            "datacorejsx",
            "datacorets",
            "datacoretsx",
            "js-engine",
            "runjs",
            "qatt",
        ),
        *(
            "customjs",
            "emera",
            "meta-bind",
            "meta-bind-button",
            "meta-bind-js-view",
            "button",
            "shellcommands",
        ),
    }
)
_RUNS_FAMILY = ("run-", "jsx:", "jsx-", "emera:", "meta-bind-js")
# Code blocks whose text is Markdown again, shown as if it stood in the note. `ad-` is Admonition's family.
_SHOWS = frozenset({"col", "col-md", "multi-column", "columns", "tabs", "tab", "timeline", "cards"})
# Code blocks that show strings of theirs as Markdown or HTML, and blocks that load what they name.
_QUERIES = frozenset({"dataview", "datacore", "base"})
_LOADERS = frozenset({"cardlink", "leaflet", "embed", "gallery", "image-layout", "img-gallery"})
_MOST_NESTING = 8

# A fence that markdown-it takes for something else (indented, behind an odd list marker) may be one there.
_FENCE = re.compile(
    r"^[ \t>*+\-\d.)]*(?:\[\^[^\]\n]{1,200}\]:[ \t]*)?(?:`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)$", re.MULTILINE
)
# A tag that only a more lenient parser than markdown-it takes for one: it has a plain name and an end.
_LOOSE_TAG = re.compile(r"<[a-zA-Z][\w:-]*(?=[\s/>])[^<>]{0,2000}>")
_STYLE = re.compile(r"<style(?=[\s/>])", re.IGNORECASE)
_LOOSE_CODE = re.compile(r"`[ \t]*\$=")
_REMOTE_IMAGE = re.compile(
    r"!\[[^\]\n]{0,999}\]\(\s{0,99}<?\s{0,99}(?:[a-z][a-z0-9+.\-]{0,20}:)?[\\/]{2}", re.IGNORECASE
)
_LINK_TARGET = re.compile(r"\]\(\s{0,99}<?(?=([^)\n]{0,300}))")
_BARE_URI = re.compile(r"\b(?:obsidian|file|app|shell|ms-[a-z-]{1,30})://[^\s<>\])]*", re.IGNORECASE)
_MATH_STYLE = re.compile(r"\\style\s{0,99}\{(?=([^}\n]{0,300}))", re.IGNORECASE)
_MATH_LINK = re.compile(r"\\(?:href|url)\s{0,99}\{\s{0,99}(?=([^}\n]{0,300}))", re.IGNORECASE)
# Strings put together from pieces are found by the seam: `"<im" + "g …"`.
_QUERY_LOADS = re.compile(
    r"://|!\[|\belink\s*\(|\bhtml\s*\(|\bimage\s*\(\s*[\"']|[\"']\s*\+\s*[\"']"
    r"|<(?:img|image|video|audio|source|svg|style|input)\b",
    re.IGNORECASE,
)
_LOADER_LINE = re.compile(
    r"^(?!\s*(?:url|link|title|description)\s*:)[^\n]*://", re.IGNORECASE | re.MULTILINE
)
_TASK_FUNCTION = re.compile(r"\bby\s+function\b", re.IGNORECASE)
_DIAGRAM_LINK = re.compile(r"\b(?:javascript|vbscript|data|file)\s*:[^\s\"'\])}]{1,200}", re.IGNORECASE)
_DIAGRAM_IMAGE = re.compile(r"\bimg\s*:\s*[\"']?\s*(?:https?:)?//", re.IGNORECASE)

# The text of a footnote would be the address of a link to CommonMark, and so be shown nowhere.
# Whichever region starts first wins. Code and escapes hide the rest from both parsers; the last row is what
# hides a backtick from Obsidian alone.
_FOOTNOTE = re.compile(r"^([ \t>]*)\[\^[^\]\n]{1,200}\]:", re.MULTILINE)
_REGIONS = re.compile(
    r"(?P<fence>^[ \t>*+\-\d.)]*(?P<mark>`{3,}|~{3,})[^\n]*"
    r"(?:\n.*?(?:^[ \t>]*(?P=mark)[`~]*[ \t]*$|\Z)|\Z))"
    r"|(?P<escape>\\[^\n])"
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<other>%%.*?%%|\$\$.*?\$\$|\$(?![\s$])[^$\n]*?(?<!\s)\$(?!\d)|\[\[[^\]\n]{0,500}\]\]"
    r"|\^\[[^\]\n]{0,500}\]|\bhttps?://[^\s<]{0,2000})",
    re.DOTALL | re.MULTILINE,
)


def _counting(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """*rule*, noting on its token how many line breaks it took in: the token itself does not keep them."""

    def counted(state: StateInline, silent: bool) -> bool:
        start, known = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and len(state.tokens) > known:
            state.tokens[-1].meta["breaks"] = state.src.count("\n", start, state.pos)
        return matched

    return counted


def _parser() -> MarkdownIt:
    md = MarkdownIt("commonmark", {"html": True}).enable("table")
    # Escaped characters stay tokens of their own: `\<script>` is text and must not look like a tag.
    md.disable("text_join")
    # The stock rules hide what they find dangerous as plain text; here every target must be seen as it is.
    md.validateLink = bool  # type: ignore[method-assign,assignment]
    for name, rule in (("backticks", backtick), ("image", image), ("html_inline", html_inline)):
        md.inline.ruler.at(name, _counting(rule))
    md.normalizeLink = str  # type: ignore[method-assign,assignment]
    return md


_MD = _parser()


def unsafe(text: str) -> list[Finding]:
    """What in *text* would run or load from the network, by line; empty when it is harmless.

    Templater's commands are found in code too: it fills in a new file without looking at Markdown.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    found = {Finding(_line(text, at), "a Templater command `<% … %>`") for at in _templater(text)}
    for version in {text, _unhidden(text)}:
        found.update(_judge(version, 0))
    return sorted(found)


def _templater(text: str) -> Iterator[int]:
    """Where commands start. Looked for by hand: a pattern would search again and again for a missing end."""
    start = text.find("<%")
    while start >= 0 and (end := text.find("%>", start)) >= 0:
        yield start
        start = text.find("<%", end)


def _judge(text: str, depth: int) -> Iterator[Finding]:
    env: dict[str, dict[str, dict[str, object]]] = {}
    tokens = _MD.parse(text, env)
    fenced: set[int] = set()
    for token in tokens:
        start = token.map[0] if token.map else 0
        if token.type == "fence":
            fenced.update(range(*(token.map or (0, 0))))
            for finding in _block(token.info, token.content, depth):
                yield Finding(start + 1 + finding.line, finding.what)
        elif token.type == "html_block":
            # Markdown in there is none for markdown-it, up to the end of the text where a tag is not closed.
            yield from _placed(token.content, start, markup_problems)
            yield from _placed(token.content, start, _loose_problems)
        elif token.type == "code_block" and depth < _MOST_NESTING:
            # Indented text is code or not by what stands above it, and parsers differ most about that.
            yield from (Finding(start + f.line, f.what) for f in _judge(_dedented(token.content), depth + 1))
        elif token.type == "inline":
            yield from _inline(token, start)
    for match in _FENCE.finditer(text):
        line = _line(text, match.start())
        running = _running(match["info"])
        if running and line - 1 not in fenced:
            yield Finding(line, running)
    for target in env.get("references", {}).values():
        problem = uri_problem(str(target.get("href", "")))
        if problem:
            place = target.get("map")
            yield Finding(int(place[0]) + 1 if isinstance(place, list) else 1, problem)


def _dedented(code: str) -> str:
    """The lines without the blanks before them, so that they are not taken for code once more."""
    return re.sub(r"^[ \t]+", "", code, flags=re.MULTILINE)


def _language(info: str) -> str:
    """The name of a code block's language as plugins see it: `dataviewjs` of `DataviewJS {x}`."""
    words = unescapeAll(info).split()
    return re.split(r"[{,]", words[0].lower(), maxsplit=1)[0] if words else ""


def _running(info: str) -> str | None:
    language = _language(info)
    if language in _RUNS or language.startswith(_RUNS_FAMILY):
        return f"a `{language}` block, which a plugin runs"
    return None


def _block(info: str, content: str, depth: int) -> Iterator[Finding]:
    """Findings of one fenced block; their line 0 is the fence, 1 the first line inside."""
    language = _language(info)
    running = _running(info)
    if running:
        yield Finding(0, running)
    elif language in _QUERIES:
        yield from (Finding(f.line, f"{f.what} in a query") for f in _query(content))
    elif language in _LOADERS:
        yield from _matches(content, _LOADER_LINE, f"an address that a `{language}` block loads")
    elif language == "tasks":
        yield from _matches(content, _TASK_FUNCTION, "a Tasks query by function, which is a program")
    elif language == "mermaid":
        yield from _diagram(content)
    elif language.startswith("ad-") or language in _SHOWS:
        if depth < _MOST_NESTING:
            yield from _judge(content, depth + 1)
        else:
            yield Finding(0, "blocks nested too deeply to be judged")


def _query(content: str) -> Iterator[Finding]:
    """A Dataview query shows its strings as Markdown, so an address in one is loaded like an image."""
    yield from _matches(content, _QUERY_LOADS, "an address or image")
    yield from _placed(content, 0, markup_problems)


def _diagram(content: str) -> Iterator[Finding]:
    yield from _placed(content, 0, markup_problems)
    yield from _matches(content, _DIAGRAM_IMAGE, "a remote image in a diagram")
    for match in _DIAGRAM_LINK.finditer(content):
        problem = uri_problem(match[0])
        if problem:
            yield Finding(_line(content, match.start()), f"{problem} in a diagram")
    problem = css_problem(content)
    if problem:
        yield Finding(1, f"{problem} in a diagram")


def _inline(token: Token, start: int) -> Iterator[Finding]:
    """Findings of a paragraph, heading or table cell. Text between the recognised parts is judged as well,
    as it stands: a parser more lenient than markdown-it may see a tag or an image there."""
    line = start + 1
    loose: list[str] = []
    children = token.children or []
    styles = (
        at for at, one in enumerate(children) if one.type == "html_inline" and _STYLE.match(one.content)
    )
    style = next(styles, None)
    if style is not None:
        problem = css_problem("".join(child.content for child in children[style + 1 :]))
        if problem:
            yield Finding(line, problem)
    for child in children:
        what, shown = _part(child)
        loose.append(shown)
        yield from (Finding(line, problem) for problem in what)
        line += shown.count("\n")
    yield from _placed("".join(loose), start, _loose_problems)


def _part(child: Token) -> tuple[list[str], str]:
    """What is wrong with one part of a paragraph, and the text that it leaves to be judged with the rest.

    That text has as many line breaks as the part took up.
    """
    problems: list[str | None] = []
    shown = "\n" * int(child.meta.get("breaks", 0))
    if child.type in {"softbreak", "hardbreak"}:
        shown = "\n"
    elif child.type == "text":
        shown = child.content
    elif child.type == "text_special":
        # An escaped or encoded character stands for itself; a lone backslash is told by equal markup.
        shown = child.content if child.content == child.markup else "·"
    elif child.type == "code_inline":
        problems = _code_span(child.content)
        shown = shown or " "
    elif child.type == "html_inline":
        problems = [problem for _, problem in markup_problems(child.content)]
    elif child.type == "link_open":
        problems = [uri_problem(str(child.attrGet("href") or ""))]
    elif child.type == "image":
        problems = [uri_problem(str(child.attrGet("src") or ""), loads=True)]
        problems += [problem for inner in child.children or [] for problem in _part(inner)[0]]
    return [problem for problem in problems if problem], shown


def _code_span(content: str) -> list[str | None]:
    code = content.strip()
    if code.startswith("$="):
        return ["inline DataviewJS `$= …`"]
    if code.startswith(("emera:", "jse:", "js-engine:")):
        return ["inline code that a plugin runs"]
    if code.startswith("="):
        return [f"{finding.what} in an inline query" for finding in _query(code)]
    return []


def _loose_problems(text: str) -> Iterator[tuple[int, str]]:
    """Problems of text outside recognised parts, with their offsets."""
    for tag in _LOOSE_TAG.finditer(text):
        yield from ((tag.start(), problem) for _, problem in markup_problems(tag[0]))
    for match in _REMOTE_IMAGE.finditer(text):
        yield match.start(), "a remote image"
    for pattern in (_LINK_TARGET, _MATH_LINK):
        for match in pattern.finditer(text):
            problem = uri_problem(match[1])
            if problem:
                yield match.start(), problem
    for match in _MATH_STYLE.finditer(text):
        problem = css_problem(match[1])
        if problem:
            yield match.start(), f"{problem} in a formula"
    for match in _LOOSE_CODE.finditer(text):
        yield match.start(), "inline DataviewJS `$= …`"
    for match in _BARE_URI.finditer(text):
        problem = uri_problem(match[0])
        if problem:
            yield match.start(), f"{problem}, to be written as `code`"


def _unhidden(text: str) -> str:
    """*text* without what Obsidian may take for math, a comment or a wikilink where it holds code marks,
    and with the text of footnotes in the open.

    A backtick in there would open code for markdown-it, and what follows would be live in the app alone.
    Line breaks stay, so that lines keep their numbers; blanks in its place might look like indented code.
    """

    def blank(match: re.Match[str]) -> str:
        if match["other"] is None or not re.search(r"[`~]", match["other"]):
            return match[0]
        return re.sub(r"[^\n]", "·", match[0])

    return _FOOTNOTE.sub(r"\1·: ", _REGIONS.sub(blank, text))


def _placed(text: str, start: int, problems: Callable[[str], Iterable[tuple[int, str]]]) -> Iterator[Finding]:
    """The problems of a piece of text whose first line is line *start* + 1."""
    for offset, what in problems(text):
        yield Finding(start + _line(text, offset), what)


def _matches(text: str, pattern: re.Pattern[str], what: str) -> Iterator[Finding]:
    for match in pattern.finditer(text):
        yield Finding(_line(text, match.start()), what)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


# Dataview: `key:: value` alone on its line (after a list marker, quote or emphasis), or in [] or () anywhere.
_FIELD_LINE = re.compile(
    r"^[^\w\n]*(?:\d+[.)][ \t]+)?(?:\[.\][ \t]+)?[^\w\n]*(?P<key>[\w \t/-]+?)[*_~`]*[ \t]*::"
)
_FIELD_PART = re.compile(r"[\[(][ \t]*(?P<key>[^\[\]()\n:]+?)[ \t]*::")


def inline_fields(text: str) -> list[str]:
    """The properties of ours that lines of *text* would change in Dataview, each once, as they appear.

    Code does not protect from it (SPEC §2). Dataview folds the case of names.
    """
    found: dict[str, None] = {}
    for line in text.splitlines():
        if "::" not in line:
            continue
        keys = [match["key"] for match in _FIELD_PART.finditer(line)]
        whole = _FIELD_LINE.match(line)
        keys += [whole["key"]] if whole else []
        found.update((name, None) for key in keys if (name := key.strip(" \t*_~`").lower()) in OWNED)
    return list(found)
