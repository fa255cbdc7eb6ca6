"""A vault that the product made while a person was careless in it, and what every dashboard shows of it.

It is noon in the vault's zone when something happens; the dashboards are looked at in the first and the last
minutes of a day, on two machines far apart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.queries import Row, Snapshot, base_text, groups, queries, table, viewing_machine
from tests.services.conftest import Clock
from vault_palace.core import dashboards
from vault_palace.core.model import PROPERTIES
from vault_palace.services.init import init, template_root
from vault_palace.services.keeper import Keeper
from vault_palace.services.palace import Palace, PalaceSettings

FOLDER = dashboards.FOLDER
GROUPED = ("Layers and rooms", "Memories by session")
ALIKE = tuple(name for name in dashboards.names() if name not in GROUPED)
DAY = 17
LOOKED_AT = [
    (f"2031-03-{DAY}T00:05:00", "Pacific/Auckland"),
    (f"2031-03-{DAY}T23:55:00", "America/Los_Angeles"),
]


class Days:
    """A vault in one zone, with a hand on its clock."""

    def __init__(self, root: Path, zone: str) -> None:
        self.root = root
        self.zone = zone
        self.clock = Clock(datetime(2031, 3, 1, 12, tzinfo=ZoneInfo(zone)).astimezone(UTC))

    @contextmanager
    def on(self, day: int) -> Iterator[Palace]:
        """The palace on that day of March, opened anew as a session does; 32 is the first of April."""
        local = datetime(2031, 3, 1, 12, tzinfo=ZoneInfo(self.zone)) + timedelta(days=day - 1)
        self.clock.at = local.astimezone(UTC)
        settings = PalaceSettings(
            cache_dir=self.root.parent / "cache",
            state_dir=self.root.parent / "state",
            clock=self.clock,
            sleep=self.clock.sleep,
        )
        with Palace.open(self.root, settings=settings) as palace:
            yield palace

    def scribble(self, path: str, text: str) -> None:
        """Save a note as a person does, at the hour that the clock shows."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        os.utime(target, (self.clock.at.timestamp(),) * 2)


BROKEN = {
    "01_Shallow/Does not parse.md": "---\ndecays_on: 2031-03-09\nrises_on: 2031-03-09\ndensity: [1\n---\nx\n",
    "01_Shallow/Twice.md": "---\ndecays_on: 2032-03-09\ndecays_on: 2032-03-10\n---\nx\n",
    "01_Shallow/Merged.md": "---\n<<<<<<< here\ndecays_on: 2031-03-09\n=======\n>>>>>>> there\n---\nx\n",
    "01_Shallow/High.md": "---\ncreated: 2031-03-01\ndensity: high\nstreak: 1\n---\nx\n",
    "01_Shallow/Impossible.md": "---\ncreated: 2031-02-30\ndecays_on: 2031-02-30\npinned: true\n---\nx\n",
    "01_Shallow/A word.md": "---\ncreated: 2031-03-02\nlast_touched: recently\ndecays_on: tomorrow\n---\n",
    "01_Shallow/Plain.md": "No header. [[Hub]]\n",
    "01_Shallow/Empty.md": "",
    "01_Shallow/List.md": "---\n- decays_on\n- 2031-03-09\n---\nx\n",
}


# What a person typed since the keeper looked: a row of each kind in each layer.
BY_HAND = {
    "01_Shallow/Held long.md": "decays_on: 2031-03-10\npinned: true\nrated_on: 2031-03-01",
    "01_Shallow/Edited.md": "edited_on: 2031-03-16\nrated_on: 2031-03-01",
    "01_Shallow/Edited long ago.md": "edited_on: 2031-03-09\nrated_on: 2031-03-01",
    "01_Shallow/Edited a week ago.md": "edited_on: 2031-03-10\nrated_on: 2031-03-01",
    "02_Sediment/Old.md": "decays_on: 2031-03-16",
    "02_Sediment/Soon.md": "decays_on: 2031-03-22\nrated_on: 2031-03-01",
    "02_Sediment/Up.md": "rises_on: 2031-03-22\nrises_to: bedrock\nrated_on: 2031-03-01",
    "02_Sediment/Odd.md": 'created: 03/01/2031\nrated_on: 2031-03-01\nsource: "[[No such note]]"',
    "02_Sediment/Nothing right.md": (
        "status: gone\npinned: perhaps\ndecay_days: -1\nlayer_since: soon\nrated_on: 2031-13-01\n"
        'edited_on: "2031-02-30"\ndecays_on: tomorrow\nrises_on: [2031-03-18]\n'
        "last_touched: 2031-03-00T10:00:00"
    ),
    "01_Shallow/ideas/Gold.md": "rated_on: 2031-03-01",
    "03_Bedrock/Odd too.md": 'density: high\nedited_on: 2031-03-15\nsource_session: cat\nsee: "[[No note]]"',
}

# Pinned a moment ago, so that what hung over it still stands there.
HELD = (
    "---\nid: held\ncreated: 2031-03-09\nlast_touched: 2031-03-09\ndecays_on: 2031-03-18\n"
    "rises_on: 2031-03-18\nrises_to: sediment\npinned: true\nrated_on: 2031-03-10\n---\n[[Hub]]\n"
)


# In a body, where Dataview takes it for properties too: what we ask for, and what our queries call things.
INLINE = "".join(
    f"{name}:: 2031-03-18\n`[{name}:: true]`\n"
    for name in (
        *(one.name for one in PROPERTIES),
        *("day", "days_left", "said", "horizon", "worth", "used", "fifths", "bar", "written", "touched"),
        *("nowhere", "gone", "wrong", "key", "rank", "rows", "shared", "file"),
    )
)
LONELY = (
    "---\nid: lonely\nrated_on: 2031-03-01\n---\n[[Lonely]] ![[gold.png]] [[Gold.PDF|x]] [[Nowhere at all]]\n"
)
NOT_COUNTED = (
    "_Archive/01_Shallow/Gone.md",
    "_System/Templates/Like it.md",
    "Outside too.md",
    "01_Shallow/node_modules/x/LINKS.md",
    "01_Shallow/Hub (conflicted copy 2031-03-06 101010).md",
)


def settle(keeper: Keeper, clock: Clock) -> None:
    """Have the keeper look after what a person did until it is at rest."""
    for _ in range(10):
        keeper.step()
        clock.at += timedelta(seconds=3)


def build(folder: Path) -> Days:
    """A vault in *folder* as it stands on the evening of the seventeenth."""
    days = Days(folder / "vault", "UTC")
    init(days.root, template=template_root(), zone_name=days.zone)
    policy = days.root / "_System/Policy.md"
    policy.write_text(policy.read_text("utf-8").replace("horizon_days: 7", "horizon_days: 5"), "utf-8")
    with days.on(1) as palace:
        palace.write(
            "Dry. See [[Hub]] and [[Nowhere]], [[v1.2]] too.", path="ideas/Sand", source_session="ann-1"
        )
        palace.write("Shines. See [[Hub]]. ![[gold.png]]", title="Gold", density=0.6, source_session="ann-1")
        palace.write("The middle of it all.", title="Hub", source_session="bob-7")
        palace.write("Alone. [[#top]]", title="Alone", density=0.1)
        palace.write("Kept whatever comes.", title="Pin", density=0.9)
        palace.rate(path="01_Shallow/Pin.md", pinned=True)
        palace.write("Valued.", path="deep/er/Deep", layer="sediment", density=0.9, source_session="bob-7")
        palace.write("A mistake. [[Nowhere]]", title="Wrong")
        palace.write("Bedrock itself.", title="Rock", layer="bedrock", density=1)
    with days.on(3) as palace:
        palace.read(path="01_Shallow/Hub.md")
        palace.purge("01_Shallow/Wrong.md", reason="7 days", confirm=True)
    with days.on(7) as palace:
        palace.write("Late. See [[Hub]].", title="Late")
    with days.on(9) as palace:
        palace.write("To fade. See [[Rock]] and the [[Missing|one]] ![[Gone note]].", title="Fade")
        palace.metabolize(confirm=True)
    with days.on(11) as palace:
        palace.write("It will rise. [[Hub]]", title="Riser", density=0.55)
        keeper = Keeper(palace.house)
        settle(keeper, days.clock)
        text = (days.root / "02_Sediment/Gold.md").read_text("utf-8")
        days.scribble("02_Sediment/Gold.md", text.replace("Shines.", "Shines, I think."))
        settle(keeper, days.clock)
    with days.on(15) as palace:
        palace.write("It goes when nobody looks that far. [[Hub]]", title="Far")
    with days.on(16) as palace:
        palace.write("It too, after the horizon. [[Hub]]", title="Later", density=0.55)
    for path, said in BROKEN.items():
        days.scribble(path, said)
    days.scribble("01_Shallow/Low.md", '---\nid: low\ndensity: "0.4"\nstreak: 1.5\nrises_on: soon\n---\nx\n')
    for path, said in BY_HAND.items():
        days.scribble(path, f"---\nid: {path[3:-3]}\n{said}\n---\nSee [[Hub]].\n\n{INLINE}")
    days.scribble("03_Bedrock/Lone.md", "---\nid: lone\nrated_on: 2031-03-01\n---\n[[Lone]]\n")
    days.scribble("01_Shallow/Held.md", HELD)
    days.scribble("01_Shallow/Known to nobody.md", HELD.replace("id: held\n", "").replace("true", "no"))
    days.scribble("01_Shallow/Moved.md", "---\nid: moved\nlayer: bedrock\ndensity: 7\n---\n[[Gold]]\n")
    copy = (days.root / "01_Shallow/Hub.md").read_text("utf-8")
    days.scribble("01_Shallow/Hub (conflicted copy 2031-03-05 101010).md", copy)
    days.scribble("_System/Templates/Mine.md", copy)
    # Nobody who counts links to it, and its own links lead to no note.
    days.scribble("01_Shallow/Lonely.md", LONELY)
    for path in NOT_COUNTED:
        days.scribble(path, "---\nid: lone\n---\nSee [[Lonely]].\n")
    days.scribble("Outside.md", copy)
    days.scribble("01_Shallow/node_modules/x/README.md", copy)
    days.scribble("attachments/gold.png", "x")
    days.scribble("01_Shallow/ideas/picture.png", "x")
    return days


Table = tuple[list[str], list[Row]]


def asked(vault: Path | Snapshot, name: str, now: str, zone: str, folder: str = "") -> Table:
    """What the Dataview query of that dashboard shows; *folder* is where the palace lies in the vault."""
    root = vault.root if isinstance(vault, Snapshot) else vault
    note = f"{folder}{FOLDER}/{name}.md"
    with viewing_machine(now, zone):
        return table(vault, queries(root / note)[0], note)


def twin(vault: Path | Snapshot, name: str, now: str, zone: str, folder: str = "") -> Table:
    """What its Base shows; where Dataview groups, the groups of the Base, counted as Dataview does."""
    root = vault.root if isinstance(vault, Snapshot) else vault
    text = (root / f"{folder}{FOLDER}/{name}.base").read_text(encoding="utf-8")
    with viewing_machine(now, zone):
        seen = vault if isinstance(vault, Snapshot) else Snapshot(vault)
        columns, rows = base_text(seen, text, now)
        made = groups(seen, text, now) if name in GROUPED else []
    by_path = {str(row[0]): row for row in rows}
    if name == "Layers and rooms":
        return columns, [_room([by_path[path] for path in paths]) for _, paths in made]
    if name == "Memories by session":
        # A Base sorts its groups by what they are headed by.
        sessions = sorted(_session(heading, [by_path[path] for path in paths]) for heading, paths in made)
        return columns, sorted(sessions, key=lambda row: str(row[3]), reverse=True)
    return columns, rows


def _room(members: list[Row]) -> Row:
    _, layer, room, *_ = members[0]
    return layer, room, len(members), *(_average(member[number] for member in members) for number in (3, 4))


def _average(values: Iterable[object]) -> float | None:
    """As both have it: of the numbers alone."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return round(sum(numbers) / len(numbers) + 1e-9, 2) if numbers else None


def _session(heading: str, members: list[Row]) -> tuple[str, list[object], int, str]:
    return (
        heading.partition(": ")[2],
        [member[0] for member in members],
        len(members),
        max(str(member[3]) for member in members),
    )


# What each shows on that day. Grouped rows are those of Dataview; the Base lists what stands in them.
UNKNOWN = "no id: not looked after yet, or its properties do not parse"
EXPECTED: dict[str, list[Row]] = {
    "About to decay": [
        ("01_Shallow/Fade.md", "Shallow", 0.2, 0, 0, "2031-03-17", 0, "active"),
        ("01_Shallow/Known to nobody.md", "Shallow", None, None, None, "2031-03-18", 1, None),
        ("02_Sediment/Soon.md", "Sediment", None, None, None, "2031-03-22", 5, None),
    ],
    "Overdue memories": [
        ("01_Shallow/Late.md", "Shallow", 0.2, 0, 0, "2031-03-15", -2, "active"),
        ("02_Sediment/Old.md", "Sediment", None, None, None, "2031-03-16", -1, None),
    ],
    "About to rise": [
        ("01_Shallow/Known to nobody.md", "Shallow", "sediment", None, None, None, "2031-03-18", 1, None),
        ("01_Shallow/Riser.md", "Shallow", "sediment", 0.55, 0, 0, "2031-03-18", 1, "active"),
        ("02_Sediment/Up.md", "Sediment", "bedrock", None, None, None, "2031-03-22", 5, None),
    ],
    "Layers and rooms": [
        ("Shallow", "", 25, 1.23, 0.61),
        ("Shallow", "ideas", 1, None, None),
        ("Sediment", "", 6, 0.6, 1),
        ("Sediment", "deep/er", 1, 0.9, 0),
        ("Bedrock", "", 3, 1, 1),
    ],
    "Strongest memories": [
        ("03_Bedrock/Rock.md", "Bedrock", "▰▰▰▰▰", 1, 1, 1, "crystallized"),
        ("01_Shallow/Pin.md", "Shallow", "▰▰▰▰▰", 0.9, 0, 0, "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", "▰▰▰▰▰", 0.9, 0, 0, "active"),
        ("02_Sediment/Gold.md", "Sediment", "▰▰▰▱▱", 0.6, 1, 0, "active"),
        ("01_Shallow/Later.md", "Shallow", "▰▰▰▱▱", 0.55, 0, 0, "active"),
        ("01_Shallow/Riser.md", "Shallow", "▰▰▰▱▱", 0.55, 0, 0, "active"),
        ("01_Shallow/Hub.md", "Shallow", "▰▱▱▱▱", 0.2, 3, 3, "decaying"),
        ("01_Shallow/Fade.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
        ("01_Shallow/Far.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
        ("01_Shallow/Late.md", "Shallow", "▰▱▱▱▱", 0.2, 0, 0, "active"),
    ],
    "Never rated": [
        ("01_Shallow/Fade.md", "Shallow", 0, 0, "2031-03-09", "active"),
        ("01_Shallow/Far.md", "Shallow", 0, 0, "2031-03-15", "active"),
        ("01_Shallow/Hub.md", "Shallow", 3, 3, "2031-03-01", "decaying"),
        ("01_Shallow/Late.md", "Shallow", 0, 0, "2031-03-07", "active"),
        ("01_Shallow/Low.md", "Shallow", 1.5, None, "", None),
        ("01_Shallow/Moved.md", "Shallow", None, None, "", None),
        ("02_Sediment/Old.md", "Sediment", None, None, "", None),
        ("03_Bedrock/Odd too.md", "Bedrock", None, None, "", None),
    ],
    "Never read": [
        ("01_Shallow/Pin.md", "Shallow", 0.9, 0, "2031-03-01", "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", 0.9, 0, "2031-03-01", "active"),
        ("03_Bedrock/Rock.md", "Bedrock", 1, 1, "2031-03-01", "crystallized"),
        ("01_Shallow/Late.md", "Shallow", 0.2, 0, "2031-03-07", "active"),
        ("01_Shallow/Fade.md", "Shallow", 0.2, 0, "2031-03-09", "active"),
        ("01_Shallow/Held.md", "Shallow", None, None, "2031-03-09", None),
        ("01_Shallow/Riser.md", "Shallow", 0.55, 0, "2031-03-11", "active"),
        ("01_Shallow/Far.md", "Shallow", 0.2, 0, "2031-03-15", "active"),
        ("01_Shallow/Later.md", "Shallow", 0.55, 0, "2031-03-16", "active"),
    ],
    "Changed by people": [
        ("01_Shallow/Edited.md", "Shallow", "2031-03-16", None, None, None),
        ("03_Bedrock/Odd too.md", "Bedrock", "2031-03-15", "high", None, None),
        ("02_Sediment/Gold.md", "Sediment", "2031-03-11", 0.6, 1, "active"),
        ("01_Shallow/Edited a week ago.md", "Shallow", "2031-03-10", None, None, None),
    ],
    "Orphans": [
        ("01_Shallow/Lonely.md", "Shallow", None, None, "", None),
        ("01_Shallow/Low.md", "Shallow", "0.4", 1.5, "", None),
        ("01_Shallow/Pin.md", "Shallow", 0.9, 0, "2031-03-01", "active"),
        ("02_Sediment/deep/er/Deep.md", "Sediment", 0.9, 0, "2031-03-01", "active"),
        ("03_Bedrock/Lone.md", "Bedrock", None, None, "", None),
    ],
    "Unresolved links": [
        ("01_Shallow/Fade.md", "Shallow", ["Gone note", "Missing"]),
        ("01_Shallow/Lonely.md", "Shallow", ["Nowhere at all"]),
        ("02_Sediment/Odd.md", "Sediment", ["No such note"]),
        ("03_Bedrock/Odd too.md", "Bedrock", ["No note"]),
    ],
    "Archive browser": [
        ("_Archive/01_Shallow/Alone.md", "2031-03-09", "decayed", "01_Shallow/Alone.md", 0.1, -1),
        ("_Archive/01_Shallow/ideas/Sand.md", "2031-03-09", "decayed", "01_Shallow/ideas/Sand.md", 0.2, -1),
        ("_Archive/01_Shallow/Wrong.md", "2031-03-03", "purged: 7 days", "01_Shallow/Wrong.md", 0.2, 0),
        ("_Archive/01_Shallow/Gone.md", "", None, None, None, None),
    ],
    "Vault problems": [
        ("01_Shallow/A word.md", "Shallow", UNKNOWN + "; last_touched is no date; decays_on is no date"),
        ("01_Shallow/Does not parse.md", "Shallow", UNKNOWN),
        ("01_Shallow/Empty.md", "Shallow", UNKNOWN),
        ("01_Shallow/High.md", "Shallow", UNKNOWN + "; density is no number from 0 to 1"),
        ("01_Shallow/Hub (conflicted copy 2031-03-05 101010).md", "Shallow", "a sync tool's conflict copy"),
        ("01_Shallow/Hub (conflicted copy 2031-03-06 101010).md", "Shallow", "a sync tool's conflict copy"),
        (
            "01_Shallow/Impossible.md",
            "Shallow",
            UNKNOWN + "; created is no date; decays_on is no date",
        ),
        ("01_Shallow/Known to nobody.md", "Shallow", UNKNOWN),
        ("01_Shallow/List.md", "Shallow", UNKNOWN),
        (
            "01_Shallow/Low.md",
            "Shallow",
            "density is no number from 0 to 1; streak is no whole number; rises_on is no date",
        ),
        ("01_Shallow/Merged.md", "Shallow", UNKNOWN),
        ("01_Shallow/Moved.md", "Shallow", "density is no number from 0 to 1; layer is not its folder's"),
        ("01_Shallow/Plain.md", "Shallow", UNKNOWN),
        ("01_Shallow/Twice.md", "Shallow", UNKNOWN),
        (
            "02_Sediment/Nothing right.md",
            "Sediment",
            (
                "decay_days is no positive number; pinned is neither true nor false;"
                " status is no word that is known; last_touched is no date; layer_since is no date;"
                " rated_on is no date; edited_on is no date; decays_on is no date; rises_on is no date"
            ),
        ),
        ("02_Sediment/Odd.md", "Sediment", "created is no date"),
        ("03_Bedrock/Odd too.md", "Bedrock", "density is no number from 0 to 1"),
    ],
    "Memories by session": [
        ("ann-1", ["02_Sediment/Gold.md"], 1, "2031-03-01"),
        ("bob-7", ["01_Shallow/Hub.md", "02_Sediment/deep/er/Deep.md"], 2, "2031-03-01"),
        ("cat", ["03_Bedrock/Odd too.md"], 1, ""),
    ],
}


# Ids and names that several notes have: Dataview alone can tell.
SHARED: list[Row] = [
    ("id lone", ["_Archive/01_Shallow/Gone.md", "03_Bedrock/Lone.md"]),
    ("name gold", ["01_Shallow/ideas/Gold.md", "02_Sediment/Gold.md"]),
]
