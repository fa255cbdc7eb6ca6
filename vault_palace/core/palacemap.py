"""The generated block of the index note: what is in the palace, as Markdown that reads well in Obsidian.

Pure and bounded: the same facts give the same text, and however many notes there are, the block stays a page
that opens at once. Only dates are shown, never the time of day, so that an idle vault causes no writes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice

from vault_palace.core.content import inline_fields
from vault_palace.core.dates import show_day
from vault_palace.core.links import find


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One memory in a list. `link` is ready to stand in the note; `why` is in words and may be empty."""

    link: str
    layer: str = ""
    room: str = ""
    density: float | None = None
    streak: int | None = None
    day: date | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRow:
    """One room of a layer; `room` is empty for the layer's own folder, `density` the mean of its notes."""

    layer: str
    room: str
    count: int
    density: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing a person should look at; `link` leads to the note, and is empty where there is none."""

    link: str
    line: int
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the block shows. Each list comes cut, with how many there are in all."""

    layers: Mapping[str, int]
    archived: int = 0
    horizon_days: int = 7
    picture: str = ""  # the file to embed on top; empty for none
    decaying: tuple[Row, ...] = ()
    decaying_count: int = 0
    rising: tuple[Row, ...] = ()
    rising_count: int = 0
    strongest: tuple[Row, ...] = ()
    newest: tuple[Row, ...] = ()
    changed: tuple[Row, ...] = ()
    changed_count: int = 0
    rooms: tuple[RoomRow, ...] = ()
    room_count: int = 0
    orphans: tuple[Row, ...] = ()
    orphan_count: int = 0
    unresolved: tuple[Trouble, ...] = ()
    unresolved_count: int = 0
    conflicts: tuple[Row, ...] = ()  # `link` the copy's, `why` what it is a copy of, with its link
    conflict_count: int = 0
    problems: tuple[Trouble, ...] = ()
    problem_count: int = 0
    waiting: tuple[Row, ...] = ()  # archives that the brakes hold back
    waiting_count: int = 0
    brake: str = ""  # why they wait, in words
    tomorrow: tuple[Row, ...] = ()  # what the next automatic run will let go
    tomorrow_count: int = 0
    hold: str = ""  # why even these would wait, if nothing happens until then, in words
    notes: tuple[str, ...] = field(default=())  # sentences for the top, such as a missing disk


@dataclass(frozen=True, slots=True)
class _Table:
    """How one list is shown: its heading, its columns, how much of it, and where the rest is."""

    title: str
    columns: tuple[str, ...]
    most: int
    rest: str
    above: str = ""
    bytes: int = 3_600


_LAYER_NAMES = {"shallow": "Shallow", "sediment": "Sediment", "bedrock": "Bedrock", "archive": "Archive"}
_NUMBERS = frozenset({"Density", "Streak", "Line", "Memories"})  # columns that stand to the right
_LONGEST_NAME = 60  # characters shown; the link itself is never cut
_LONGEST_LINK = 400  # bytes; a longer one is shown as text
_LONGEST_TEXT = 160
_MOST_SENTENCES = 8
_BIGGEST = 999_999_999

_DECAY = "[[About to decay]]"
_RISE = "[[About to rise]]"
_CHECK = "`vault-palace check` lists them all"


def block(facts: Facts) -> str:
    """What stands between the markers, without them: no line of a note can break out of it."""
    parts = [_picture(facts), _counts(facts), *_callouts(facts)]
    quiet = _quiet(facts)
    if quiet:
        parts.append(quiet)
    days = _days(facts.horizon_days)
    parts += _section(
        _Table(
            "Let go by the next run",
            ("Memory", "Where", "Density", "Streak", "Why"),
            15,
            _DECAY,
            above="To keep one, open it and work with it, raise its `density`, or tick `pinned`."
            + (
                f" As things are they would be held back: {_sentence(_text(facts.hold, 300))}"
                if facts.hold
                else ""
            ),
        ),
        (_row(row, "where", "density", "streak", "why") for row in facts.tomorrow),
        max(facts.tomorrow_count, len(facts.tomorrow)),
    )
    parts += _section(
        _Table(
            f"Decays within {days}",
            ("Memory", "Where", "Density", "Streak", "Decays on", "Why"),
            25,
            _DECAY,
            bytes=6_000,
        ),
        (_row(row, "where", "density", "streak", "day", "why") for row in facts.decaying),
        max(facts.decaying_count, len(facts.decaying)),
    )
    parts += _section(
        _Table(
            "Rises",
            ("Memory", "Where", "Density", "Streak", "Rises on", "Why"),
            15,
            _RISE,
            bytes=4_500,
        ),
        (_row(row, "where", "density", "streak", "day", "why") for row in facts.rising),
        max(facts.rising_count, len(facts.rising)),
    )
    parts += _section(
        _Table(
            "Held back",
            ("Memory", "Where", "Density", "Streak", "Why"),
            15,
            _DECAY,
            above="`vault-palace metabolize --force` lets these go. Until then they stay where they are.",
        ),
        (_row(row, "where", "density", "streak", "why") for row in facts.waiting),
        max(facts.waiting_count, len(facts.waiting)),
    )
    parts += _section(
        _Table("Strongest", ("Memory", "Where", "Density", "Streak"), 12, ""),
        (_row(row, "where", "density", "streak") for row in facts.strongest),
        len(facts.strongest),
    )
    parts += _section(
        _Table("Newest", ("Memory", "Where", "Density", "Created"), 12, ""),
        (_row(row, "where", "density", "day") for row in facts.newest),
        len(facts.newest),
    )
    parts += _section(
        _Table("Rooms", ("Layer", "Room", "Memories", "Density"), 30, "the folders of the layers"),
        (_room(room) for room in facts.rooms),
        max(facts.room_count, len(facts.rooms)),
    )
    parts += _section(
        _Table("What people changed", ("Note", "Day", "What"), 15, "`_System/Journal.md`"),
        (_row(row, "day", "why") for row in facts.changed),
        max(facts.changed_count, len(facts.changed)),
    )
    parts += _section(
        _Table(
            "Orphans",
            ("Memory", "Where", "Density", "Streak"),
            15,
            "the graph view",
            above="No other memory links here. A link keeps a memory longer.",
        ),
        (_row(row, "where", "density", "streak") for row in facts.orphans),
        max(facts.orphan_count, len(facts.orphans)),
    )
    parts += _section(
        _Table("Unresolved links", ("In", "Link"), 15, _CHECK),
        ((_link(row.link), _unresolved(row.message)) for row in facts.unresolved),
        max(facts.unresolved_count, len(facts.unresolved)),
    )
    parts += _section(
        _Table(
            "Conflict copies",
            ("Copy", "Of"),
            10,
            _CHECK,
            above="Two devices changed a note at once. `vault-palace resolve NOTE` merges one.",
        ),
        ((_link(row.link), _original(row.why)) for row in facts.conflicts),
        max(facts.conflict_count, len(facts.conflicts)),
    )
    parts += _section(
        _Table("Problems", ("Note", "Line", "What"), 20, _CHECK, bytes=4_500),
        ((_link(row.link), _line(row.line), _said(row)) for row in facts.problems),
        max(facts.problem_count, len(facts.problems)),
    )
    return "\n\n".join(part for part in parts if part)


# ── The top ──────────────────────────────────────────────────────────────────────────────────────────────


def _picture(facts: Facts) -> str:
    known = re.fullmatch(r"[\w\-]{1,60}(?: [\w\-]{1,60})*\.svg", facts.picture)
    return f"![[{facts.picture}]]" if known else ""


def _counts(facts: Facts) -> str:
    counts = [(name, facts.layers.get(key, 0)) for key, name in _LAYER_NAMES.items() if key != "archive"]
    every = sum(max(count, 0) for _, count in counts)
    rest = f" {_number(facts.archived)} more rest in the archive." if facts.archived > 0 else ""
    if facts.archived == 1:
        rest = " One more rests in the archive."
    if not every:
        return (
            "No memories yet. The first one that an agent writes, or that you put into `01_Shallow`, will "
            f"settle here.{rest}"
        )
    places = [f"{_number(count)} in {name}" for name, count in counts]
    return f"**{_counted(every, 'memory', 'memories')}**: {', '.join(places)}.{rest}"


def _callouts(facts: Facts) -> list[str]:
    """What somebody should look at, most urgent first."""
    made: list[str] = []
    sentences = [sentence for sentence in facts.notes if sentence.strip()]
    if sentences:
        shown = [_text(sentence, 300) for sentence in sentences[:_MOST_SENTENCES]]
        if len(sentences) > len(shown):
            shown.append(f"{_number(len(sentences) - len(shown))} more: `vault-palace status`.")
        made.append("> [!warning] Please look\n" + "\n>\n".join(f"> {sentence}" for sentence in shown))
    held = max(facts.waiting_count, len(facts.waiting))
    if held:
        why = _sentence(_text(facts.brake, 300)) or "More of them are due than usual."
        waits = "memory waits" if held == 1 else "memories wait"
        below = "See [[#Held back]]." if facts.waiting else f"See {_DECAY}."
        made.append(f"> [!warning] {_number(held)} {waits} to be let go\n> {why} {below}")
    troubles = [
        f"[[#{heading}]]: {_number(count)}"
        for heading, count in (
            ("Conflict copies", max(facts.conflict_count, len(facts.conflicts)) * bool(facts.conflicts)),
            ("Problems", max(facts.problem_count, len(facts.problems)) * bool(facts.problems)),
        )
        if count
    ]
    if troubles:
        made.append("> [!todo] To look at\n> " + ", ".join(troubles))
    return made


def _quiet(facts: Facts) -> str:
    """One line for what is not happening; nothing of it in an empty palace."""
    if not any(count > 0 for count in facts.layers.values()):
        return ""
    days = _days(facts.horizon_days)
    decays = facts.decaying or facts.decaying_count > 0
    rises = facts.rising or facts.rising_count > 0
    if decays and rises:
        return ""
    if decays:
        return "Nothing is about to rise."
    return f"Nothing decays within {days}." if rises else f"Nothing decays within {days}, and nothing rises."


# ── Lists ────────────────────────────────────────────────────────────────────────────────────────────────


def _section(table: _Table, rows: Iterable[Sequence[str]], total: int) -> list[str]:
    """Heading, table and what is left out; nothing at all for an empty list."""
    if not total:
        return []
    head = [
        f"| {' | '.join(table.columns)} |",
        f"| {' | '.join('--:' if column in _NUMBERS else '---' for column in table.columns)} |",
    ]
    lines: list[str] = []
    left = table.bytes
    for row in islice(rows, table.most):
        line = f"| {' | '.join(row)} |"
        left -= len(line.encode()) + 1
        if left < 0:
            break
        lines.append(line)
    parts = [f"## {table.title}"]
    if table.above:
        parts.append(table.above)
    if lines:
        parts.append("\n".join([*head, *lines]))
    more = total - len(lines)
    if more and table.rest:
        parts.append(f"{_number(more)} more: {table.rest}.")
    return parts


def _row(row: Row, *columns: str) -> tuple[str, ...]:
    cells = {
        "where": _where(row.layer, row.room),
        "density": _density(row.density),
        "streak": _number(row.streak) if row.streak is not None else "",
        "day": show_day(row.day) if row.day is not None else "",
        "why": _text(row.why),
    }
    return (_link(row.link), *(cells[column] for column in columns))


def _room(room: RoomRow) -> tuple[str, ...]:
    name = _text(room.room, _LONGEST_NAME) or "(in no room)"
    return (_where(room.layer, ""), name, _number(room.count), _density(room.density))


def _where(layer: str, room: str) -> str:
    names = (_LAYER_NAMES.get(layer) or _text(layer, _LONGEST_NAME), _text(room, _LONGEST_NAME))
    return " / ".join(name for name in names if name)


def _said(row: Trouble) -> str:
    code = _code(row.code, 40) if re.fullmatch(r"[\w.\-]+", row.code) else ""
    return " ".join(part for part in (code, _text(row.message, 200)) if part)


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────────────────


def _number(number: int) -> str:
    return f"{max(-_BIGGEST, min(number, _BIGGEST)):,}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{_number(number)} {one if number == 1 else many}"


def _days(number: int) -> str:
    return _counted(max(number, 0), "day", "days")


def _density(density: float | None) -> str:
    if density is None or not math.isfinite(density):
        return ""
    return f"{max(-99.0, min(density, 99.0)):.2f}"


def _line(number: int) -> str:
    return _number(number) if number > 0 else ""


# ── Text of notes, made harmless ─────────────────────────────────────────────────────────────────────────

_WIKILINK = re.compile(r"\[\[(?P<target>[^\[\]|\n\r]+)(?:\|(?P<alias>[^\[\]\n\r]*))?\]\]")
# No link of ours, whatever it means: it could open code, math, a comment or HTML in the block.
_ODD = re.compile(r"[`$<>\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|%%|://")
_MARKS = re.compile(
    r"[\\`*\[\]<>|#~$&^{}]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # between letters it is no emphasis, and paths stay readable
    r"|(?<=:)[:/]|(?<==)=|(?<=!)\[|!(?=\[)"
)


def _plain(text: str, most: int) -> str:
    """*text* as one line of at most *most* characters, without what is invisible or steers the reading."""
    text = text[: most * 4]
    kept = "".join(
        "\ufffd" if "\ud800" <= char <= "\udfff" else " " if _is_blank(char) else char
        for char in text
        if unicodedata.category(char) != "Cf" or char in "\u200c\u200d"
    )
    # Two percent signs would begin or end a comment, as they do around the block; Templater looks everywhere.
    line = re.sub(r"[%<](?=%)", r"\g<0> ", " ".join(kept.split()))
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _is_blank(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _escaped(line: str) -> str:
    return _MARKS.sub(lambda mark: "\\" + mark[0], line)


def _text(text: str, most: int = _LONGEST_TEXT) -> str:
    """*text* as it reads, for a cell or a sentence: links in it are shown as code and lead nowhere."""
    line = _plain(text, most)
    parts: list[str] = []
    at = 0
    for link in _WIKILINK.finditer(line):
        parts += [_escaped(line[at : link.start()]), _code(link[0], most)]
        at = link.end()
    return "".join([*parts, _escaped(line[at:])])


def _code(text: str, most: int) -> str:
    """*text* as inline code; what would end the code or be run in spite of it is replaced."""
    line = _plain(text, most).replace("`", "'").replace("<", "‹").replace("|", "\\|")
    if inline_fields(line) or inline_fields(line.strip("[] ")):
        line = line.replace("::", ": :")  # Dataview looks into code
    return f"`{line}`" if line else ""


def _link(link: str) -> str:
    """A link that is ready for a table, or what it names as plain text where it would be none."""
    link = link.strip().replace("\\|", "|")
    match = _WIKILINK.fullmatch(link)
    if match is None or not _works(link):
        inner = (match["alias"] or match["target"]) if match else re.sub(r"\A\[\[|\]\]\Z", "", link)
        return _escaped(_plain(inner, _LONGEST_NAME))
    target, alias = match["target"], match["alias"]
    shown = alias or target
    if len(shown) > _LONGEST_NAME:
        alias = _plain(shown, _LONGEST_NAME)
    return f"[[{target}\\|{alias}]]" if alias else f"[[{target}]]"


def _works(link: str) -> bool:
    if _ODD.search(link) or len(link.encode()) > _LONGEST_LINK or inline_fields(link):
        return False
    found = find(f"- {link}")
    return len(found) == 1 and found[0].kind == "wikilink" and bool(found[0].path)


def _original(why: str) -> str:
    """What a copy is a copy of: the first link in the words, with the words around it."""
    match = _WIKILINK.search(why)
    if match is None:
        return _text(why)
    around = (_text(why[: match.start()]), _link(match[0]), _text(why[match.end() :]))
    return " ".join(part for part in around if part)


def _unresolved(message: str) -> str:
    """The link as code: as a link, the map itself would hold one that leads nowhere."""
    if _WIKILINK.search(message):
        return _text(message)
    return _code(f"[[{message}]]", _LONGEST_TEXT) if message.strip() else ""


def _sentence(text: str) -> str:
    """*text* with a full stop, begun with a capital."""
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")


def cell_text(text: str, most: int = _LONGEST_TEXT) -> str:
    """*text* for a table cell of any generated note: nothing in it breaks out, runs or links."""
    return _text(text, most)


def cell_link(link: str) -> str:
    """A ready `[[link]]` for a table cell of any generated note; as plain text what would be no link."""
    return _link(link)
