"""The lines that several dashboards share: what leaves a note out, days that are none, and bars.

Each is said for Dataview and for Bases. Why they are so roundabout stands in `core.dashboards`.
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


# What a property may be in Bases that is neither text nor a date.
OTHER_TYPES = ("number", "boolean", "list", "object", "link")


@dataclass(frozen=True, slots=True)
class Both:
    """The same, for each of the two."""

    dataview: str
    bases: str


UNPINNED = Both('list("", "false", "no", "off", "0")', '["false", "no", "off", "0"]')

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

    @property
    def bases(self) -> tuple[tuple[str, str], ...]:
        return self.formulas


def day_in_dataview(name: str) -> tuple[str, ...]:
    """Leaves the notes whose property *name* is a day, with `day` as text and `days_left` from today.

    Inline fields, lists, words like tomorrow, and days that no calendar has, leave the note out. Seconds of
    the epoch are compared, for a duration in days is one short where a clock skips midnight.
    """
    raw = f"file.frontmatter.{name}"
    return (
        f'WHERE typeof({raw}) != "array"',
        f'WHERE regextest("^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$", string(default({raw}, "")))',
        f"FLATTEN string({raw}) AS day",
        "FLATTEN date(day) AS due",
        'WHERE typeof(due) = "date"',
        'WHERE dateformat(due, "yyyy-MM-dd") = day',
        (
            'FLATTEN round((number(dateformat(due, "X")) - number(dateformat(date(today), "X"))) / 86400)'
            " AS days_left"
        ),
    )


def day_in_bases(name: str) -> Steps:
    """The same for Bases: filters, and the formulas `due` and `days_left`."""
    others = " && ".join(f'!{name}.isType("{kind}")' for kind in OTHER_TYPES)
    return Steps(
        filters=(
            f"!{name}.isEmpty()",
            others,
            f'if({name}.isType("string"), date({name}).format("YYYY-MM-DD") == {name}, true)',
        ),
        formulas=(
            ("due", f'if({name}.isType("string"), date({name}), {name})'),
            ("days_left", "((formula.due.date() - today()) / 86400000).round()"),
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
