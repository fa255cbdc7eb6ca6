"""Edits two places of the index note, and nothing else in it: the list `## Links` and the generated block.

The block between `%% palace:begin %%` and `%% palace:end %%` belongs to the generator: `with_block` replaces
it whole, the others never look into it. Headings, bullets and markers inside code do not count. Line ends and
all other text stay byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from vault_palace.core.errors import InvalidArguments, MalformedNote
from vault_palace.core.links import header_span, headings

BEGIN = "%% palace:begin %%"
END = "%% palace:end %%"
HEADING = "## Links"

# Ends the line, or begins what would swallow the person's lines below: a comment, code, a formula.
_NO_LINE = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\ufeff]|%%|<!--|\$\$|^\W*(?:`{3}|~{3})")
_LINE = re.compile(r"[^\n\r]*(?:\r\n|\n|\r|\Z)")
_FENCE = re.compile(r"(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<title>.*?))?(?:[ \t]+#+)?[ \t]*")
_BULLET = re.compile(r" {0,3}[-*+][ \t]+(?P<text>.*?)[ \t]*")
_MARKER = re.compile(rf" {{0,3}}(?P<mark>{re.escape(BEGIN)}|{re.escape(END)})\s*")  # further in, it is code
# A line of a plain paragraph, which cannot hide or swallow what is put behind it.
_PROSE = re.compile(r"(?!\d+[.)])(?!.*(?:%%|<!--|\$\$|`{3}|~{3}|\|))(?:\w|[*\"'(\[]+\w).*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*")


def add_link(text: str, link: str) -> tuple[str, bool]:
    """*text* with the bullet `- link` at the end of its list of links, and whether it was missing.

    The heading `## Links` is added at the end of the note where there is none.
    """
    link = _one_line(link)
    lines = _lines(text)
    shown = _shown(lines)
    start = _links_heading(lines, shown)
    end_of_line = _line_end(text)
    # Behind a fence or block that is never closed nothing would be seen.
    limit = _open_region(lines, shown)
    if start is None:
        before, after = "".join(lines[:limit]), "".join(lines[limit:])
        gap = "" if not before else end_of_line if before.endswith(("\n", "\r")) else end_of_line * 2
        rest = end_of_line + after if after else ""
        return f"{before}{gap}{HEADING}{end_of_line}{end_of_line}- {link}{end_of_line}{rest}", True
    section = range(start + 1, min(_section_end(lines, shown, start), limit))
    if any(_bullet(lines[at]) == link for at in section if shown[at]):
        return text, False
    filled = [at for at in section if lines[at].strip()]
    at = filled[-1] if filled else start
    lines[at] = _ended(lines[at], end_of_line)
    bullet = f"- {link}{end_of_line}"
    if not filled:
        # A blank line below the heading: the one that is there, or a new one.
        if at + 1 < section.stop:
            at += 1
            lines[at] = _ended(lines[at], end_of_line)
        else:
            bullet = end_of_line + bullet
    elif _bullet(lines[at]) is None:
        bullet = end_of_line + bullet  # a list begins after a paragraph of the person's
    if at + 1 < len(lines) and lines[at + 1].strip():
        bullet += end_of_line
    return "".join([*lines[: at + 1], bullet, *lines[at + 1 :]]), True


def remove_link(text: str, link: str) -> tuple[str, bool]:
    """*text* without the bullet `- link` in its list of links, and whether it was there.

    Sediment Palace adds its bullets at the end of the note, whatever stands there: below the heading, but not
    in its section, they are found as well.
    """
    link = _one_line(link)
    lines = _lines(text)
    shown = _shown(lines)
    start = _links_heading(lines, shown)
    if start is None:
        return text, False
    end = _section_end(lines, shown, start)
    for places in (range(start + 1, end), range(end, len(lines))):
        gone = {at for at in places if shown[at] and _bullet(lines[at]) == link}
        if gone:
            return "".join(line for at, line in enumerate(lines) if at not in gone), True
    return text, False


def with_block(text: str, block: str) -> str:
    """*text* with *block* between the markers, which are added below the note's opening where missing.

    The opening is the first heading and the paragraph under it, if there are such. Raises MalformedNote, with
    the line, where the markers are no pair: then nobody can tell which lines are the person's.
    """
    if any(_MARKER.fullmatch(line) for line in re.split(r"[\r\n]", block)):
        raise ValueError("the generated block holds a marker of its own")
    lines = _lines(text)
    pair = _markers(lines, _body_line(text))
    if pair is not None:
        begin, end = pair
        marker = lines[begin]
        end_of_line = marker[len(marker.rstrip("\r\n")) :]
        return "".join([*lines[: begin + 1], _laid_out(block, end_of_line), *lines[end:]])
    end_of_line = _line_end(text)
    made = f"{BEGIN}{end_of_line}{_laid_out(block, end_of_line)}{END}{end_of_line}"
    at = _opening_end(text)
    before, after = text[:at], text[at:]
    above = _lines(before.removeprefix("\ufeff"))
    if above and above[-1].strip():  # a blank line above, and one below
        made = end_of_line * (1 if above[-1].endswith(("\n", "\r")) else 2) + made
    if after and not after.startswith(("\n", "\r")):
        made += end_of_line
    return before + made + after


def block_lines(text: str) -> range:
    """The numbers of the lines between the markers; empty where there is no pair of them."""
    try:
        pair = _markers(_lines(text), _body_line(text))
    except MalformedNote:
        pair = None
    return range(0) if pair is None else range(pair[0] + 2, pair[1] + 1)


def _laid_out(block: str, end_of_line: str) -> str:
    """The block with the note's line ends and blank lines around it: a table would take in the marker."""
    inner = re.sub(r"\r\n|\n|\r", end_of_line, block.strip("\r\n"))
    return f"{end_of_line}{inner}{end_of_line}{end_of_line}" if inner else end_of_line


def _body_line(text: str) -> int:
    """The number of the first line below the header: what stands in a property is no marker."""
    body = header_span(text)[2]
    return 0 if body <= 1 else len(_lines(text[:body]))


def _markers(lines: list[str], first: int) -> tuple[int, int] | None:
    """The lines of the two markers; None when there is none. What stands between them may be anything."""
    found: list[tuple[str, int]] = []
    close: Callable[[str], bool] | None = None
    for number in range(first, len(lines)):
        line = lines[number].removeprefix("\ufeff") if number == 0 else lines[number]
        bare = line.strip()
        mark = _MARKER.fullmatch(line)
        if close is not None:
            close = None if close(bare) else close
        elif mark is not None:
            found.append((mark["mark"], number))
        elif bare != BEGIN and [which for which, _ in found] != [BEGIN]:
            close = _opens(bare)  # between the markers nobody writes, and code hides no marker
    if not found:
        return None
    if [which for which, _ in found] != [BEGIN, END]:
        odd = found[min(len(found), 3) - 1][1] + 1
        raise MalformedNote(
            f"the markers of the generated block are no pair (line {odd}).",
            hint=f"Leave one line {BEGIN} and, below it, one line {END}, or take all of them out.",
            line=odd,
        )
    return found[0][1], found[1][1]


def _opening_end(text: str) -> int:
    """The offset behind the first heading and its plain paragraph; the body's start without a heading."""
    body = header_span(text)[2]
    heading = next(iter(headings(text)), None)
    # A comment of Obsidian's that is open there would hide whatever is put below.
    if heading is None or text.count("%%", body, heading.start) % 2:
        return body
    at = _next_line(text, heading.start)
    if not _HEADING.fullmatch(text[heading.start : at].rstrip("\r\n")):
        while at < len(text):  # its words may take several lines, then comes the underline
            line, at = text[at : _next_line(text, at)], _next_line(text, at)
            if _UNDERLINE.fullmatch(line.rstrip("\r\n")):
                break
    start = at
    while start < len(text) and not text[start : _next_line(text, start)].strip():
        start = _next_line(text, start)
    end = start
    while end < len(text) and (line := text[end : _next_line(text, end)]).strip():
        if not _PROSE.fullmatch(line.rstrip("\r\n")):
            return at
        end = _next_line(text, end)
    return end if end > start else at


def _next_line(text: str, at: int) -> int:
    found = re.compile(r"\r\n|\n|\r").search(text, at)
    return found.end() if found else len(text)


def _one_line(link: str) -> str:
    link = link.strip()
    if not link or _NO_LINE.search(link):
        raise InvalidArguments(
            "The link is not one line of text.", hint="Send a link such as [[Name]].", argument="link"
        )
    return link


def _lines(text: str) -> list[str]:
    """The lines with their ends; joined, they are *text* again."""
    return [match for match in _LINE.findall(text) if match]


def _line_end(text: str) -> str:
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


def _ended(line: str, end_of_line: str) -> str:
    return line if line.endswith(("\n", "\r")) else line + end_of_line


def _shown(lines: Iterable[str]) -> list[bool]:
    """For each line, whether it is the person's text: not code, and not in the generated block."""
    shown: list[bool] = []
    close: Callable[[str], bool] | None = None
    for line in lines:
        bare = line.strip()
        if close is not None:
            shown.append(False)
            close = None if close(bare) else close
            continue
        close = _opens(bare)
        shown.append(close is None)
    return shown


def _opens(bare: str) -> Callable[[str], bool] | None:
    """What ends the region that a line begins: code or the generated block; None when it begins none."""
    if bare == BEGIN:
        return lambda line: line == END
    fence = _FENCE.fullmatch(bare)
    if fence is None or (fence["mark"][0] == "`" and "`" in fence["info"]):
        return None
    mark = fence["mark"]
    return lambda line: len(line) >= len(mark) and not line.strip(mark[0])


def _open_region(lines: list[str], shown: list[bool]) -> int:
    """The line where a region begins that the note never closes; the number of lines when there is none."""
    at = len(lines)
    while at and not shown[at - 1]:
        at -= 1
    while at < len(lines):
        close = _opens(lines[at].strip())
        end = next((line for line in range(at + 1, len(lines)) if close and close(lines[line].strip())), None)
        if end is None:
            return at
        at = end + 1
    return at


def _links_heading(lines: list[str], shown: list[bool]) -> int | None:
    """The line of the heading `## Links`: the first with its very words, of whatever level."""
    for at, line in enumerate(lines):
        heading = _HEADING.fullmatch(line.rstrip("\r\n").removeprefix("\ufeff"))
        if shown[at] and heading and (heading["title"] or "").casefold() == "links":
            return at
    return None


def _section_end(lines: list[str], shown: list[bool], start: int) -> int:
    """Where the section that begins at *start* ends: the next heading, the generated block, the end."""
    for at in range(start + 1, len(lines)):
        if lines[at].strip() == BEGIN or (shown[at] and _HEADING.fullmatch(lines[at].rstrip("\r\n"))):
            return at
    return len(lines)


def _bullet(line: str) -> str | None:
    match = _BULLET.fullmatch(line.rstrip("\r\n"))
    return match["text"] if match else None
