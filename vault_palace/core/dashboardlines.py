"""The lines that several dashboards share: what leaves a note out, days that are none, and bars.

Each is said for Dataview and for Bases. Why they are so roundabout stands in `core.dashboardtable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vault_palace.core.model import ARCHIVE, SYSTEM, Layer

# Names of conflict copies, as `core.places` knows them. DQL's `file.name` has no extension, Bases' has.
_COPIES = (
    r"[ ][(]([^()]*['’]s )?conflicted copy( [^()]*)?[)]( [(][0-9]+[)])?",
    r"[ ][(](case|unicode encoding|selective sync|white ?space) conflict( [0-9]+)?[)]( [(][0-9]+[)])?",
    r"[.]sync-conflict-[0-9]{8}-[0-9]{6}(-[0-9a-z]{7})?",
    r"[.]conflict([.][0-9]+)?",
    r"_[a-z]{3}-[0-9]{1,2}-[0-9]{4}-[0-9]{4}_conflict([(][0-9]+[)])?",
    r"^conflict-files-obsidian-git",
)


def _pattern(ending: str) -> str:
    return "|".join(f"{part}{ending}" for part in _COPIES)


COPY_IN_DATAVIEW = f'regextest("{_pattern("$")}", lower(file.name))'
COPY_IN_BASES = f"/{_pattern('[.]md$')}/.matches(file.name.lower())"


@dataclass(frozen=True, slots=True)
class Both:
    """The same, for each of the two."""

    dataview: str
    bases: str


UNPINNED = Both('list("", "false", "no", "off", "0")', '["", "false", "no", "off", "0"]')

NOT_PINNED = Both(
    f'econtains({UNPINNED.dataview}, lower(string(default(file.frontmatter.pinned, ""))))',
    f"if(pinned, {UNPINNED.bases}.contains(pinned.toString().lower()), true)",
)

# What Obsidian opens besides notes. A link to one may lead somewhere although no query can tell.
_KINDS = (
    "png|jpg|jpeg|gif|bmp|svg|webp|avif|mp3|wav|m4a|ogg|oga|opus|3gp|flac|webm|mp4|ogv|mov|mkv|pdf|canvas|base"
    "|txt|csv|json|html|zip|docx|xlsx|pptx|odt|ods|odp|epub|excalidraw"
)
ATTACHMENT = Both(f'"[.]({_KINDS})$"', rf"/[.]({_KINDS})([|].*|\]\])?$/")


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of DQL; filters and formulas of a Base."""

    dataview: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    formulas: tuple[tuple[str, str], ...] = ()


# A day, alone or with a time behind it. Whether the month has that day is asked of a date made from it.
_DATE = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ][0-9].*)?$"
_MADE_OF_IT = 'dateformat(date(substring({text}, 0, 10)), "yyyy-MM-dd") = substring({text}, 0, 10)'


def text_in_dataview(value: str) -> str:
    """DQL for *value* as text, empty where it is none."""
    return f'string(default({value}, ""))'


def day_text(value: str) -> str:
    """DQL for the calendar day of *value*, a date with or without a time, as text; empty where it is none.

    Inline fields and lists, words like tomorrow, and days that no calendar has, are none.
    """
    text = text_in_dataview(value)
    real = _MADE_OF_IT.format(text=text)
    return (
        f'choice(typeof({value}) != "array" AND regextest("{_DATE}", {text}) AND {real},'
        f' substring({text}, 0, 10), "")'
    )


def day_formula(name: str) -> str:
    """The same for Bases, where a date is text or a date, as the type of the property says.

    Types are asked for first: not every type knows whether it is empty.
    """
    others = " || ".join(
        f'{name}.isType("{kind}")' for kind in ("number", "boolean", "link", "list", "object")
    )
    day = f"{name}.slice(0, 10)"
    made_of_it = f'/{_DATE}/.matches({name}) && date({day}).format("YYYY-MM-DD") == {day}'
    return (
        f'if({others}, "", if({name}.isEmpty(), "", if({name}.isType("string"),'
        f' if({made_of_it}, {day}, ""), {name}.format("YYYY-MM-DD"))))'
    )


def present(name: str) -> Both:
    """Whether the property *name* says anything: an empty text or list says nothing."""
    some = " || ".join(f'{name}.isType("{kind}")' for kind in ("number", "boolean", "link"))
    return Both(
        f'{text_in_dataview(f"file.frontmatter.{name}")} != ""',
        f"if({some}, true, !{name}.isEmpty())",
    )


def counted_days(name: str) -> Steps:
    """Leaves the notes whose property *name* is a day, with `day` as text and `days_left` from today.

    Dataview compares seconds of the epoch, for a duration in days is one short where a clock skips midnight.
    """
    return Steps(
        dataview=(
            f"FLATTEN {day_text(f'file.frontmatter.{name}')} AS day",
            'WHERE day != ""',
            (
                'FLATTEN round((number(dateformat(date(day), "X")) - number(dateformat(date(today), "X")))'
                " / 86400) AS days_left"
            ),
        ),
        filters=('formula.day != ""',),
        formulas=(
            ("day", day_formula(name)),
            (
                "days_left",
                'if(formula.day != "", ((date(formula.day) - today()) / 86400000).round(), "")',
            ),
        ),
    )


# Ten signs to cut five from: as many full ones as the density has fifths.
BARS = Steps(
    dataview=(
        "FLATTEN round(min(max(worth, 0), 1) * 5) AS fifths",
        'FLATTEN substring("▰▰▰▰▰▱▱▱▱▱", 5 - fifths, 10 - fifths) AS bar',
    ),
    formulas=(
        ("bar", '"▰▰▰▰▰▱▱▱▱▱".slice(5 - formula.fifths, 10 - formula.fifths)'),
        ("fifths", "(min(max(formula.worth, 0), 1) * 5).round()"),
    ),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, what DQL shows there, and the property or formula that Bases shows."""

    heading: str
    query: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """One dashboard. `query` are the steps of DQL behind TABLE; a Base's filters are all to hold."""

    name: str
    opening: str
    view: str
    columns: Sequence[Column]
    query: Sequence[str]
    filters: Sequence[str]
    formulas: Sequence[tuple[str, str]] = ()
    sort: Sequence[tuple[str, str]] = (("file.path", "ASC"),)
    group: str = ""
    limit: int = 0
    summaries: Sequence[tuple[str, str]] = ()
    rows: Sequence[Column] = field(default=())  # what the Base lists where DQL groups; else the columns
    twin: str = ""  # how the two differ in what they look at, in words
    more: str = ""  # what only Dataview can tell, as Markdown


class Words:
    """What the texts of one vault say of its folders. *folder* is where the palace lies in a larger vault."""

    def __init__(self, folder: str) -> None:
        self.prefix = f"{folder}/" if folder else ""
        self.depth = len(folder.split("/")) if folder else 0
        layers = [f"{self.prefix}{layer.folder}" for layer in Layer]
        self.shallow, self.sediment, self.bedrock = layers
        self.archive = f"{self.prefix}{ARCHIVE}"
        self.policy = f"{self.prefix}{SYSTEM}/Policy"
        self.layer = f'split(split(file.folder, "/")[{self.depth}], "_")[1]'
        self.room = f'join(slice(split(file.folder, "/"), {self.depth + 1}), "/")'
        # Shorter than three `if`s, and right in every room: the folder's name behind its number.
        self.layer_formula = f'file.folder.split("/")[{self.depth}].split("_")[1]'
        self.room_formula = f'file.folder.split("/").slice({self.depth + 1}).join("/")'

    @property
    def layer_column(self) -> Column:
        return Column("Layer", self.layer, "formula.layer")

    @property
    def layer_formulas(self) -> tuple[str, str]:
        return "layer", self.layer_formula

    def source(self, *folders: str) -> str:
        return "FROM " + " OR ".join(f'"{folder}"' for folder in folders)

    def inside(self, *folders: str) -> str:
        return " || ".join(f'file.inFolder("{folder}")' for folder in folders)

    def memories(self, *folders: str) -> list[str]:
        """DQL for the memories of these folders, conflict copies and foreign packages left out."""
        return [self.source(*folders), f"WHERE !{COPY_IN_DATAVIEW}", NOT_FOREIGN]

    def files(self, *folders: str) -> list[str]:
        """The same for Bases, where attachments are rows as well."""
        return [
            'file.ext.lower() == "md"',
            self.inside(*folders),
            '!file.path.contains("/node_modules/")',
            f"!{COPY_IN_BASES}",
        ]

    @property
    def living(self) -> tuple[str, str, str]:
        return self.shallow, self.sediment, self.bedrock


NOT_FOREIGN = 'WHERE !contains(file.path, "/node_modules/")'


MEMORY = Column("Memory", "file.link", "file.name")
DENSITY = Column("Density", "file.frontmatter.density", "note.density")
STREAK = Column("Streak", "file.frontmatter.streak", "note.streak")
BACKLINKS = Column("Backlinks", "file.frontmatter.backlinks", "note.backlinks")
STATUS = Column("Status", "file.frontmatter.status", "note.status")
DAYS_LEFT = Column("Days left", "days_left", "formula.days_left")

WORTH = 'choice(typeof(file.frontmatter.density) = "number", file.frontmatter.density, 0)'
USED = 'choice(typeof(file.frontmatter.streak) = "number", file.frontmatter.streak, 0)'
WORTH_FORMULA = ("worth", 'if(density.isType("number"), density, 0)')
USED_FORMULA = ("used", 'if(streak.isType("number"), streak, 0)')

WRITTEN = Column("Written on", "written", "formula.written")
WRITTEN_STEP = f"FLATTEN {day_text('file.frontmatter.created')} AS written"
WRITTEN_FORMULA = ("written", day_formula("created"))
HAS_ID = present("id")
