"""What HTML, CSS and addresses inside a note would do when it is shown: run, command, or phone home.

Reads markup as leniently as a browser does (case, entities, control characters, quotes left out), because
what a strict reader would not take for a tag may still be one. Offsets are into the text that was given.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote

# Elements that run, embed or redirect whatever their attributes say; the last row rewrites others' ones.
_ACTIVE = frozenset(
    {
        *(
            "script",
            "iframe",
            "frame",
            "frameset",
            "object",
            "embed",
            "applet",
            "link",
            "meta",
            "base",
            "form",
        ),
        *("portal", "webview", "foreignobject", "animate", "animatemotion", "animatetransform", "set"),
    }
)
# Attributes whose address is loaded when the element is shown, or called when it is used.
_LOADS = frozenset(
    {
        *("src", "srcset", "imagesrcset", "poster", "background", "data", "dynsrc", "lowsrc", "icon", "ping"),
        *("formaction", "action"),
    }
)
_TAG = re.compile(r"<[/!?]?([a-zA-Z][^\s/>\"'=<]*)")
_ATTRIBUTE = re.compile(r"[\s/\"']*([^\s/>=\"'][^\s/>=]*)(\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s>\"'][^\s>]*)?)?")

_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]*):", re.IGNORECASE)
# Schemes that run code or open something on this machine. Other programs' links (zotero:, mailto:) are fine.
_COMMANDS = frozenset(
    {
        *(
            "javascript",
            "vbscript",
            "livescript",
            "mocha",
            "file",
            "filesystem",
            "shell",
            "jar",
            "view-source",
        ),
        *("app", "blob", "capacitor", "shortcuts", "workflow", "search-ms", "intent", "smb", "applescript"),
        *("chrome", "chrome-extension", "devtools", "terminal", "iterm2"),
    }
)
# `obsidian:` may only show something; every other action writes, installs or runs a command.
_SHOWING = frozenset(("open", "search"))
_SHOWING_KEYS = frozenset(("vault", "file", "path", "query", "panetype"))
_PICTURE = re.compile(r"image/(?:png|jpe?g|gif|webp|avif|bmp)[;,]", re.IGNORECASE)

_CSS_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?|\\(.)", re.DOTALL)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_CSS_LOADS = re.compile(
    r"@import|expression\s*\(|behavior\s*:|-moz-binding"
    r"|(?:url|image|image-set|src)\s*\(\s*[\"']?\s*(?!data:image/(?:png|jpe?g|gif|webp))(?:[a-z][a-z0-9+.\-]*:|[\\/]{2})"
    r"|image-set\s*\([^)]{0,500}//",
    re.IGNORECASE,
)


def clean_uri(uri: str) -> str:
    """*uri* as a browser takes it: entities decoded, control characters and the blanks around it gone."""
    decoded = html.unescape(html.unescape(uri))
    return re.sub(r"[\x00-\x1f\x7f\u00ad\u200b-\u200f\u2028\u2029\ufeff]", "", decoded).strip()


def uri_problem(uri: str, *, loads: bool = False) -> str | None:
    """What is wrong with an address, in words, or None. *loads*: it is fetched when the note is shown."""
    for form in (clean_uri(uri), clean_uri(unquote(clean_uri(uri)))):
        problem = _scheme_problem(form) or (_fetched(form) if loads else None)
        if problem:
            return problem
        if form.startswith("\\\\"):
            return "an address of a network share"
    return None


def _scheme_problem(uri: str) -> str | None:
    match = _SCHEME.match(re.sub(r"\s", "", uri[:200]))
    scheme = match[1].lower() if match else ""
    if scheme in _COMMANDS or scheme.startswith("ms-"):
        return f"a `{scheme}:` address"
    if scheme == "data" and not _PICTURE.match(uri.partition(":")[2].strip()):
        return "a `data:` address that is not a picture"
    if scheme == "obsidian" and not _only_shows(uri):
        return "an `obsidian:` address that is a command"
    return None


def _only_shows(uri: str) -> bool:
    action, _, query = uri.partition(":")[2].strip("/").partition("?")
    keys = {key.lower() for key, _ in parse_qsl(query.partition("#")[0], keep_blank_values=True)}
    return action.strip("/").lower() in _SHOWING and keys <= _SHOWING_KEYS


def _fetched(uri: str) -> str | None:
    """Whether showing this address asks another machine for it. Relative paths lie in the vault."""
    if re.match(r"[\\/]{2}", uri):
        return "a remote image or file"
    scheme = _SCHEME.match(uri)
    # One letter is a Windows drive, not a scheme.
    return "a remote image or file" if scheme and len(scheme[1]) > 1 and scheme[1].lower() != "data" else None


def css_problem(css: str) -> str | None:
    """Whether style text loads or runs something; escapes and comments do not hide it."""

    def plain(match: re.Match[str]) -> str:
        code = int(match[1], 16) if match[1] else 0
        return match[2] or (chr(code) if 0 < code <= 0x10FFFF else "")

    forms = (css, _CSS_ESCAPE.sub(plain, _CSS_COMMENT.sub("", css)))
    return "style that loads something" if any(_CSS_LOADS.search(form) for form in forms) else None


def markup_problems(text: str) -> Iterator[tuple[int, str]]:
    """Each tag that would run or load something, as offset and words, in one pass over the text."""
    styled = False
    tag = _TAG.search(text)
    while tag is not None:
        name = tag[1].lower().rpartition(":")[2]
        if name in _ACTIVE and not tag[0].startswith("</"):
            yield tag.start(), f"a `<{name}>` element"
        at = tag.end()
        while at < len(text) and text[at] != ">":
            match = _ATTRIBUTE.match(text, at)
            if match is None:
                at += 1
                continue
            if match[1].startswith("<"):
                break  # the tag before it was none, or is broken: this may be the real one
            value = html.unescape(match[3].strip("\"'")) if match[3] else ""
            problem = _attribute_problem(name, match[1].lower(), value) if match[2] else None
            if problem:
                yield tag.start(), problem
            at = match.end()
        if name == "style" and not styled:
            styled = True
            problem = css_problem(text[at:])
            if problem:
                yield tag.start(), problem
        tag = _TAG.search(text, at)


def _attribute_problem(element: str, name: str, value: str) -> str | None:
    """What one attribute would do. The value is decoded; names are lower case."""
    if re.fullmatch(r"on[a-z]+", name):
        return f"an event handler `{name}`"
    if name == "srcdoc":
        return "a document in an attribute"
    if name == "style":
        return css_problem(value)
    local = name.rpartition(":")[2]
    # An anchor's href waits for a click; everybody else's is fetched.
    loads = name in _LOADS or (local in {"href", "base"} and element not in {"a", "area"})
    if name.endswith("srcset"):
        entries = (entry.strip().partition(" ")[0] for entry in value.split(","))
        return next((problem for entry in entries if (problem := uri_problem(entry, loads=True))), None)
    return uri_problem(value, loads=loads) if loads or local == "href" else None
