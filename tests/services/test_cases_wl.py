"""The link cases (WL) on a real vault: whatever is written or moved, links lead where they led.

Which links a text has and how one is rewritten is proved in `tests/cases/test_wl_links.py`. Here whole vaults
are moved about, and what counts is what a person sees afterwards: the same note behind every link, other
notes untouched, counts and reports that are true, the note found under its new name.

`L1` and `L2` of the cases are two layers; notes beside the layers are a person's own, and links in them are
kept true like any other.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.services.conftest import Clock
from vault_palace.core import frontmatter, links, names
from vault_palace.core.errors import Exists, InvalidArguments, PathViolation, VaultError
from vault_palace.core.links import Resolver
from vault_palace.core.model import OWNED
from vault_palace.services.palace import Palace, PalaceSettings

Note = Callable[..., Path]

L1, L2, ARC = "01_Shallow", "02_Sediment", "_Archive/01_Shallow"


def text(root: Path, path: str) -> str:
    return (root / path).read_bytes().decode("utf-8")


def said(text: str) -> str:
    """What a person says in a note: its text without the properties that are ours.

    A plain note that links gets them when its links are rewritten, for its file's time then says no more
    how old it is (SPEC §2); everything else of it must be as it was.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    fence = re.match(r"---(\r?\n)", text.removeprefix(mark))
    if fence is None or frontmatter.read(text).problem is not None:
        return text
    inner, close, body = text.removeprefix(mark)[fence.end() :].partition(f"---{fence[1]}")
    lines = inner.splitlines(keepends=True)
    kept = "".join(line for line in lines if line.partition(":")[0] not in OWNED)
    return mark + (fence[0] + kept + close if kept else "") + body


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read(text(root, path)).values)


def backlinks(palace: Palace, path: str) -> list[str]:
    palace.house.refresh(if_older=0)
    return palace.read(path=path, touch=False)["backlinks"]


def codes(palace: Palace, code: str) -> list[tuple[str, int]]:
    return [(problem.path, problem.line) for problem in palace.check() if problem.code == code]


def on_disk(root: Path) -> Resolver:
    """Obsidian's resolution over the files that are there, whatever any index thinks."""
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return Resolver(path for path in files if not path.startswith("."))


def leads(root: Path, path: str) -> list[str | None]:
    """Where the links of the note at *path* lead."""
    resolver = on_disk(root)
    return [resolver.resolve(link.path, path) for link in links.find(text(root, path)) if link.path]


# ── Renames and moves, and what they leave behind ────────────────────────────────────────────────────────


class Moving(NamedTuple):
    case: str
    files: dict[str, str]
    source: str
    layer: str
    new: str | None
    after: dict[str, str]  # the texts of notes afterwards; notes not named here are as they were
    rewritten: int


TABLE = (
    "| place | use |\n|---|---|\n| [[Pump Room\\|pump]] | heat |\n| [[Pump Room#Valves\\|valves]] | heat |\n"
)
CODE = (
    "Real [[Alpha]].\nInline `[[Alpha]]` and ``[[Alpha|x]]``.\n```\n[[Alpha]]\n~~~\n[[Alpha]]\n```\n\n"
    "    [[Alpha]]   (indented code after a blank line)\n"
)
DAILY = {f"{L1}/Daily.md": "one\n", f"{L2}/Daily.md": "two\n"}

MOVES = (
    Moving(
        "WL-01 escaped pipe inside a table",
        {f"{L1}/Pump Room.md": "x\n", f"{L1}/rooms.md": TABLE},
        f"{L1}/Pump Room.md",
        "shallow",
        "Boiler Room",
        {f"{L1}/rooms.md": TABLE.replace("Pump Room", "Boiler Room")},
        2,
    ),
    Moving(
        "WL-03 links inside code",
        {f"{L1}/Alpha.md": "x\n", f"{L1}/a.md": CODE},
        f"{L1}/Alpha.md",
        "shallow",
        "Beta",
        {f"{L1}/a.md": CODE.replace("Real [[Alpha]]", "Real [[Beta]]")},
        1,
    ),
    Moving(
        "WL-04 brackets split over two code spans",
        {
            f"{L1}/Manual.md": "x\n",
            f"{L1}/a.md": "Type `[[` to open and `]]` to close a link to [[Manual]].\n",
        },
        f"{L1}/Manual.md",
        "shallow",
        "Guide",
        {f"{L1}/a.md": "Type `[[` to open and `]]` to close a link to [[Guide]].\n"},
        1,
    ),
    Moving(
        "WL-06 one name is the tail of another",
        {
            f"{L1}/log.md": "x\n",
            f"{L1}/backlog.md": "y\n",
            f"{L2}/old-log.md": "z\n",
            f"{L2}/a.md": "[[log]]\n",
        },
        f"{L1}/log.md",
        "shallow",
        "diary",
        {f"{L2}/a.md": "[[diary]]\n"},
        1,
    ),
    Moving(
        "WL-09 two notes with one name",
        {
            **DAILY,
            f"{L1}/x.md": f"[[Daily]] and [[{L2}/Daily]]\n",
            f"{L2}/y.md": "[[Daily]]\n",
            f"{L1}/z.md": "---\nday: [[Daily]]\n---\n",
            f"{L2}/z 2.md": "---\nday: [[Daily]]\n---\n",
        },
        f"{L2}/Daily.md",
        "sediment",
        "Weekly",
        {
            f"{L1}/x.md": f"[[Daily]] and [[{L2}/Weekly]]\n",
            f"{L2}/y.md": "[[Weekly]]\n",
            f"{L2}/z 2.md": "---\nday: [[Weekly]]\n---\n",
        },
        3,
    ),
    Moving(
        "WL-10 layer changed under path links, wherever they stand",
        {
            f"{L1}/pump.md": "x\n",
            f"{L1}/a.md": f"[[{L1}/pump]], [p]({L1}/pump.md), ![[{L1}/pump#Fig]] and [[pump]]\n",
            "root.md": f"[[{L1}/pump]], [p]({L1}/pump.md), ![[{L1}/pump#Fig]]\n",
            "PALACE_MAP.md": f"# Map\n\n- [[{L1}/pump|the pump]]\n",
            "_System/Dashboards/mine.md": f"![[{L1}/pump]] [p](../../{L1}/pump.md)\n",
            "_System/Templates/t.md": f'---\nup: "[[{L1}/pump]]"\n---\n[[{L1}/pump]]\n',
            f"{ARC}/old.md": f"[[{L1}/pump]]\n",
        },
        f"{L1}/pump.md",
        "sediment",
        None,
        {
            f"{L1}/a.md": f"[[{L2}/pump]], [p]({L2}/pump.md), ![[{L2}/pump#Fig]] and [[pump]]\n",
            "root.md": f"[[{L2}/pump]], [p]({L2}/pump.md), ![[{L2}/pump#Fig]]\n",
            "PALACE_MAP.md": f"# Map\n\n- [[{L2}/pump|the pump]]\n",
            "_System/Dashboards/mine.md": f"![[{L2}/pump]] [p](../../{L2}/pump.md)\n",
            "_System/Templates/t.md": f'---\nup: "[[{L2}/pump]]"\n---\n[[{L2}/pump]]\n',
            f"{ARC}/old.md": f"[[{L2}/pump]]\n",
        },
        12,
    ),
    Moving(
        "WL-13 a file whose name holds a hash stays where it is linked",
        {
            f"{L1}/Lot #9.md": "nine\n",
            f"{L1}/Lot.md": "# 9\n",
            f"{L1}/a.md": "[[Lot #9]] [x](Lot%20%239.md) [[Lot]]\n",
        },
        f"{L1}/Lot.md",
        "shallow",
        "Plot",
        {f"{L1}/a.md": "[[Plot #9]] [x](Lot%20%239.md) [[Plot]]\n"},
        2,
    ),
    Moving(
        "WL-13 a file whose name holds a hash is moved itself",
        {f"{L1}/Lot #9.md": "nine\n", f"{L1}/a.md": f"[x]({L1}/Lot%20%239.md) [y](Lot%20%239.md)\n"},
        f"{L1}/Lot #9.md",
        "sediment",
        None,
        {f"{L1}/a.md": f"[x]({L2}/Lot%20%239.md) [y](Lot%20%239.md)\n"},
        1,
    ),
    Moving(
        "WL-15 chained and doubled heading marks",
        {
            f"{L1}/Ops.md": "# Deploy\n[[#Only here]]\n",
            f"{L1}/a.md": "[[Ops#Deploy#Rollback]], [[Ops##Rollback]], [[Ops#]], [[#Only here]], "
            "[[Ops#Näme mit Ü & zeichen]], [[Ops#^block]]\n",
        },
        f"{L1}/Ops.md",
        "shallow",
        "Work",
        {
            f"{L1}/a.md": "[[Work#Deploy#Rollback]], [[Work##Rollback]], [[Work#]], [[#Only here]], "
            "[[Work#Näme mit Ü & zeichen]], [[Work#^block]]\n"
        },
        5,
    ),
    Moving(
        "WL-16 Markdown links with encoded blanks",
        {
            f"{L1}/My Note.md": "x\n",
            f"{L1}/ref.md": "[a](My%20Note.md), [b](<My Note.md>), [c](My%20Note.md#H%201), "
            "[d](https://x.example/My%20Note.md), ![e](My%20Note.md)\n",
        },
        f"{L1}/My Note.md",
        "shallow",
        "Our Note (v2)",
        {
            f"{L1}/ref.md": "[a](Our%20Note%20%28v2%29.md), [b](<Our Note (v2).md>), "
            "[c](Our%20Note%20%28v2%29.md#H%201), [d](https://x.example/My%20Note.md), "
            "![e](Our%20Note%20%28v2%29.md)\n"
        },
        4,
    ),
    Moving(
        "WL-18 each form is kept",
        {f"{L1}/sub/Old.md": "x\n", f"{L1}/a.md": "[[Old|o]], [[sub/Old]], [[old]]\n"},
        f"{L1}/sub/Old.md",
        "shallow",
        "sub/New",
        {f"{L1}/a.md": "[[New|o]], [[sub/New]], [[New]]\n"},
        3,
    ),
    Moving(
        "WL-19 an alias is no name",
        {
            f"{L1}/Kim.md": "---\naliases: [KP, Pat]\n---\nx\n",
            f"{L1}/Pat.md": "real\n",
            f"{L1}/Lee.md": "---\naliases: KP\n---\ny\n",
            f"{L1}/a.md": "[[KP]], [[Pat]], [[Kim|KP]]\n",
        },
        f"{L1}/Kim.md",
        "shallow",
        "Kimberly",
        {f"{L1}/a.md": "[[KP]], [[Pat]], [[Kimberly|KP]]\n"},
        1,
    ),
    Moving(
        "FM-28 links without quotes",
        {
            f"{L1}/Blue Whale.md": "x\n",
            f"{L1}/Smith.md": "y\n",
            f"{L1}/a.md": "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n",
            f"{L1}/b.md": f"---\nups:\n  - [[Blue Whale|w]] # mine\n  - [[{L1}/Blue Whale#Fin]]\n---\n",
            "root.md": "---\nup: [[ blue whale ]]\n---\n",
        },
        f"{L1}/Blue Whale.md",
        "shallow",
        "Fin Whale",
        {
            f"{L1}/a.md": "---\nparent: [[Fin Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n",
            f"{L1}/b.md": f"---\nups:\n  - [[Fin Whale|w]] # mine\n  - [[{L1}/Fin Whale#Fin]]\n---\n",
            "root.md": "---\nup: [[ Fin Whale ]]\n---\n",
        },
        4,
    ),
    Moving(
        "FM-28 links without quotes follow into another layer",
        {f"{L1}/r/Old.md": "x\n", f"{L1}/a.md": f"---\nup: [[{L1}/r/Old|o]]\nups:\n  - [[Old]]\n---\n"},
        f"{L1}/r/Old.md",
        "sediment",
        None,
        {f"{L1}/a.md": f"---\nup: [[{L2}/r/Old|o]]\nups:\n  - [[Old]]\n---\n"},
        1,
    ),
    Moving(
        "FM-28 what cannot stand without quotes gets a path",
        {f"{L1}/Old.md": "x\n", f"{L1}/a.md": "---\nup: [[Old]]\n---\n"},
        f"{L1}/Old.md",
        "shallow",
        "@maria",
        {f"{L1}/a.md": f"---\nup: [[{L1}/@maria]]\n---\n"},
        1,
    ),
    Moving(
        "properties in every way of quoting",
        {
            f"{L1}/Old.md": "x\n",
            f"{L1}/a.md": "---\na: \"[[Old]]\"\nb: '[[Old|x]]' # c\n"
            'c:\n  - "[[old#H]]"\n  - >-\n    [[Old]]\n'
            'd: {e: "[[Old]]"}\ntext: see [[Old]]\n---\n',
        },
        f"{L1}/Old.md",
        "shallow",
        "It's new",
        {
            f"{L1}/a.md": "---\na: \"[[It's new]]\"\nb: '[[It''s new|x]]' # c\n"
            "c:\n  - \"[[It's new#H]]\"\n  - >-\n    [[It's new]]\n"
            'd: {e: "[[It\'s new]]"}\ntext: see [[Old]]\n---\n'
        },
        5,
    ),
    Moving(
        "a moved note's own relative links",
        {
            f"{L1}/r/a.md": "---\nid: a\nlayer: shallow\n---\n[x](../b.md) [y](c.md) [[./c|c]] ![](img.png) "
            "[[../b#H]] ![[img.png]]\n",
            f"{L1}/b.md": "b\n",
            f"{L1}/r/c.md": "c\n",
            f"{L1}/r/img.png": "i",
        },
        f"{L1}/r/a.md",
        "shallow",
        "deep/er/",
        {
            f"{L1}/deep/er/a.md": "---\nid: a\nlayer: shallow\n---\n"
            "[x](../../b.md) [y](c.md) [[../../r/c|c]] ![](img.png) [[../../b#H]] ![[img.png]]\n"
        },
        3,
    ),
    Moving(
        "a note's links to itself",
        {f"{L1}/Old.md": f'---\nid: a\nup: "[[Old]]"\n---\n[[Old#h]] [[#h]] [[{L1}/Old]] [o](Old.md)\n'},
        f"{L1}/Old.md",
        "shallow",
        "New",
        {f"{L1}/New.md": f'---\nid: a\nup: "[[New]]"\n---\n[[New#h]] [[#h]] [[{L1}/New]] [o](New.md)\n'},
        4,
    ),
    Moving(
        "attachments of the same name",
        {
            f"{L1}/Old.md": "x\n",
            f"{L1}/Old.png": "i",
            f"{L1}/a.md": "![[Old.png]] [[Old]] ![](Old.png) [[Old.md]]\n",
        },
        f"{L1}/Old.md",
        "shallow",
        "New",
        {f"{L1}/a.md": "![[Old.png]] [[New]] ![](Old.png) [[New.md]]\n"},
        2,
    ),
    Moving(
        "a namesake in the archive takes the bare link from nobody",
        {f"{L1}/N.md": "1\n", "_Archive/N.md": "2\n", f"{L1}/x.md": "[[N]]\n", "r.md": "[[N]]\n"},
        f"{L1}/N.md",
        "shallow",
        "M",
        {f"{L1}/x.md": "[[M]]\n"},  # seen from the root, the shorter path of the archive is what N means
        1,
    ),
    Moving(
        "a name with an extension twice",
        {f"{L1}/a.md.md": "x\n", f"{L1}/b.md": f"[[a.md]] [[a.md.md]] [[{L1}/a.md.md]]\n"},
        f"{L1}/a.md.md",
        "shallow",
        "c",
        {f"{L1}/b.md": f"[[c.md]] [[c.md]] [[{L1}/c.md]]\n"},
        3,
    ),
    Moving(
        "a referrer whose header cannot be read keeps the header",
        {f"{L1}/Old.md": "x\n", f"{L1}/m.md": "---\na: b: c\n---\n[[Old]]\n"},
        f"{L1}/Old.md",
        "shallow",
        "New",
        {f"{L1}/m.md": "---\na: b: c\n---\n[[New]]\n"},
        1,
    ),
    Moving(
        "line ends and byte order mark of a referrer",
        {f"{L1}/Old.md": "x\n", f"{L1}/m.md": '\ufeff---\r\nup: "[[Old]]"\r\n---\r\n[[Old]]\r\n'},
        f"{L1}/Old.md",
        "shallow",
        "New",
        {f"{L1}/m.md": '\ufeff---\r\nup: "[[New]]"\r\n---\r\n[[New]]\r\n'},
        2,
    ),
    Moving(
        "another Unicode form and a no-break space",
        {f"{L1}/Cafe\u0301\u00a0au.md": "x\n", f"{L1}/m.md": "[[Café au]] [[cafe\u0301\u00a0AU]]\n"},
        f"{L1}/Cafe\u0301\u00a0au.md",
        "shallow",
        "Tea",
        {f"{L1}/m.md": "[[Tea]] [[Tea]]\n"},
        2,
    ),
)
moves = pytest.mark.parametrize("row", MOVES, ids=lambda row: row.case)


@moves
def test_a_move_rewrites_exactly_the_links_that_need_it(
    palace: Palace, vault: Path, note: Note, row: Moving
) -> None:
    for path, body in row.files.items():
        note(path, body)

    answer = palace.move(row.source, row.layer, new_path=row.new)

    others = {path: body for path, body in row.files.items() if path != row.source}
    wanted = {path: said(body) for path, body in (others | row.after).items()}
    assert {path: said(text(vault, path)) for path in wanted} == wanted
    assert (answer["links_rewritten"], answer["links_left"]) == (row.rewritten, [])
    assert not (vault / row.source).exists()
    assert (vault / answer["destination"]).is_file()


@moves
def test_links_lead_to_the_same_notes_after_a_move(
    palace: Palace, vault: Path, note: Note, row: Moving
) -> None:
    for path, body in row.files.items():
        note(path, body)
    before = {path: leads(vault, path) for path in row.files if path.endswith(".md")}
    counted = {
        path: backlinks(palace, path) for path in row.files if path.startswith("0") and path.endswith(".md")
    }

    to = palace.move(row.source, row.layer, new_path=row.new)["destination"]

    def moved(path: str | None) -> str | None:
        return to if path == row.source else path

    assert {moved(path): leads(vault, moved(path) or "") for path in before} == {
        moved(path): [moved(target) for target in targets] for path, targets in before.items()
    }
    assert {moved(path): backlinks(palace, moved(path) or "") for path in counted} == {
        moved(path): sorted(str(moved(source)) for source in sources) for path, sources in counted.items()
    }


@moves
def test_purging_and_restoring_brings_every_link_back(
    palace: Palace, vault: Path, note: Note, row: Moving
) -> None:
    for path, body in row.files.items():
        note(path, body)
    before = {path: leads(vault, path) for path in row.files if path.endswith(".md")}

    archived = palace.purge(row.source, confirm=True)["archived_to"]

    def gone(path: str | None) -> str | None:
        return archived if path == row.source else path

    assert {gone(path): leads(vault, gone(path) or "") for path in before} == {
        gone(path): [gone(target) for target in targets] for path, targets in before.items()
    }

    back = palace.restore(archived)["restored_to"]

    def again(path: str | None) -> str | None:
        return back if path == row.source else path

    assert {again(path): leads(vault, again(path) or "") for path in before} == {
        again(path): [again(target) for target in targets] for path, targets in before.items()
    }


@moves
def test_ten_moves_there_and_back_change_nothing(
    palace: Palace, vault: Path, note: Note, row: Moving
) -> None:
    """Each rewrite is undone by the next; nothing piles up in the notes that link."""
    for path, body in row.files.items():
        note(path, body)
    layer, rest = row.source.split("/", 1)
    home = {"01_Shallow": "shallow", "02_Sediment": "sediment"}[layer]
    again = rest if names.file_name(Path(rest).stem) == Path(rest).stem else None
    there = palace.move(row.source, row.layer, new_path=row.new)["destination"]
    back = palace.move(there, home, new_path=again)
    others = [path for path in row.files if path != row.source]
    settled = {path: text(vault, path) for path in others}

    for _ in range(10):
        there = palace.move(back["destination"], row.layer, new_path=row.new)["destination"]
        back = palace.move(there, home, new_path=again)

    assert {path: text(vault, path) for path in others} == settled


# ── What counts as a link, what is reported ──────────────────────────────────────────────────────────────

COUNTED = [
    ("WL-01", TABLE, "Pump Room"),
    ("WL-03", CODE, "Alpha"),
    ("WL-04", "Type `[[` to open and `]]` to close a link to [[Manual]].\n", "Manual"),
    ("WL-06", "[[log]]\n", "log"),
    ("WL-07 blank and dot", "[[v1.2 plan]]\n", "v1.2 plan"),
    ("WL-07 with extension", "[[v1.2 plan.md]]\n", "v1.2 plan"),
    ("WL-07 like an extension", "[[node.js]]\n", "node.js"),
    ("WL-07 date", "[[2024.06.01]]\n", "2024.06.01"),
    ("WL-15 chained", "[[Ops#Deploy#Rollback]]\n", "Ops"),
    ("WL-15 doubled", "[[Ops##Rollback]]\n", "Ops"),
    ("WL-15 empty", "[[Ops#]]\n", "Ops"),
    ("WL-15 no such heading", "[[Ops#Näme mit Ü & zeichen]]\n", "Ops"),
    (
        "WL-16",
        "[a](My%20Note.md), [b](<My Note.md>), [c](My%20Note.md#H%201), [d](https://x.example/My%20Note.md)\n",
        "My Note",
    ),
    ("in a comment", "%% [[Hidden]] %%\n", "Hidden"),
    ("in a property", '---\nup: "[[Above]]"\n---\n', "Above"),
    ("in a callout", "> [!note] [[Called]]\n", "Called"),
    ("embedded", "![[Embedded]]\n", "Embedded"),
]
NAMES = sorted({name for _, _, name in COUNTED})


@pytest.mark.parametrize(("case", "body", "name"), COUNTED, ids=[row[0] for row in COUNTED])
def test_a_note_counts_once_for_the_note_it_links_to(
    palace: Palace, note: Note, case: str, body: str, name: str
) -> None:
    """Three links from one note are one backlink, and no ghost is reported beside it."""
    for other in (*NAMES, "backlog", "Pump", "Deploy"):
        note(f"{L1}/{other}.md", "x\n")
    note(f"{L2}/old-log.md", "x\n")
    note(f"{L2}/ref.md", body)

    assert {other: backlinks(palace, f"{L1}/{other}.md") for other in NAMES} == {
        other: [f"{L2}/ref.md"] if other == name else [] for other in NAMES
    }
    assert codes(palace, "unresolved_link") == []


def test_a_link_that_only_looks_like_one_is_neither_counted_nor_missed_wl_22(
    palace: Palace, note: Note
) -> None:
    prose = "\n\n".join("twenty paragraphs of prose" for _ in range(20))
    note(
        f"{L1}/long.md",
        f"para one has [ an open bracket\n\n{prose}\n\nand here ](not/a/link) closes; also [[ unclosed\n\n"
        "more ]] text\n",
    )
    note(f"{L1}/link.md", "x\n")

    assert palace.check() == []
    assert backlinks(palace, f"{L1}/link.md") == []
    assert sum(len(str(value)) for value in palace.search("prose")["matches"][0].values()) < 600


def test_the_note_itself_and_notes_beside_the_layers_do_not_count_wl_15(palace: Palace, note: Note) -> None:
    note(f"{L1}/Ops.md", "[[#Only here]] [[Ops]] [[Ops#Deploy]]\n")
    for path in (
        "root.md",
        "PALACE_MAP.md",
        "_System/Dashboards/d.md",
        "_System/Templates/t.md",
        f"{ARC}/o.md",
    ):
        note(path, "[[Ops]]\n")

    assert backlinks(palace, f"{L1}/Ops.md") == []


def test_an_unquoted_link_is_reported_with_its_line_and_counts_for_nobody_fm_28(
    palace: Palace, note: Note
) -> None:
    """Of the case's two outcomes the flag is ours: for Obsidian it is no link, so the graph has none."""
    for name in ("Blue Whale", "Smith", "Smith, John"):
        note(f"{L1}/{name}.md", "x\n")
    note(f"{L1}/a.md", "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n")

    assert codes(palace, "unquoted_link") == [(f"{L1}/a.md", 2), (f"{L1}/a.md", 3)]
    assert codes(palace, "unresolved_link") == []
    assert [backlinks(palace, f"{L1}/{name}.md") for name in ("Blue Whale", "Smith", "Smith, John")] == [
        [],
        [],
        [],
    ]


def test_a_path_need_not_begin_at_a_folder_wl_06(palace: Palace, note: Note) -> None:
    """The case's reason is wrong for us: Obsidian takes any tail of a path, and the person sees Obsidian.

    A bare name is never the tail of another (the table above); a path may begin inside a folder's name.
    """
    note(f"{L1}/back/N.md", "x\n")
    note(f"{L2}/ref.md", "[[ack/N]]\n")

    assert backlinks(palace, f"{L1}/back/N.md") == [f"{L2}/ref.md"]
    assert codes(palace, "unresolved_link") == []


def test_a_title_that_is_taken_gets_a_number_and_the_old_note_stays_wl_07(
    palace: Palace, vault: Path, note: Note
) -> None:
    """The case wants a refusal; here a title never refuses nor overwrites, only a path does (SPEC §2)."""
    note(f"{L1}/v1.2 plan.md", "the only copy\n")

    answer = palace.write("x", title="v1.2 plan")

    assert answer["saved_path"] == f"{L1}/v1.2 plan 2.md"
    assert any("v1.2 plan 2" in warning for warning in answer["warnings"])
    assert text(vault, f"{L1}/v1.2 plan.md") == "the only copy\n"


def test_attachments_are_no_missing_notes_wl_07(palace: Palace, note: Note) -> None:
    note(f"{L1}/a.md", "[[diagram.png]] ![[diagram.png]] [[gone.png]] ![x](diagram.png)\n")
    note("attachments/diagram.png", b"\x89PNG\r\n\x1a\n\x00")

    assert codes(palace, "unresolved_link") == [(f"{L1}/a.md", 1)]
    assert [problem.message for problem in palace.check()] == ["No note is called 'gone.png'."]


@pytest.mark.parametrize("path", ["v1.2 plan", "v1.2 plan.md", "V1.2 Plan", "./v1.2 plan.MD"])
def test_a_name_with_a_dot_is_not_written_twice_wl_07(
    palace: Palace, vault: Path, note: Note, path: str
) -> None:
    note(f"{L1}/v1.2 plan.md", "the only copy\n")

    with pytest.raises(Exists):
        palace.write("x", path=path)

    assert text(vault, f"{L1}/v1.2 plan.md") == "the only copy\n"
    assert len(list((vault / L1).iterdir())) == 1


def test_a_title_like_an_attachment_gets_a_name_of_its_own_wl_07(
    palace: Palace, note: Note, vault: Path
) -> None:
    """`[[diagram.png]]` is the picture; a memory of that title must be linkable as well."""
    note("attachments/diagram.png", b"\x89PNG")
    palace.check()

    saved = palace.write("x", title="diagram.png")["saved_path"]

    stem = Path(saved).name.removesuffix(".md")
    assert on_disk(vault).resolve(stem, f"{L1}/a.md") == saved
    assert palace.read(title="diagram.png")["path"] == saved


def test_a_hard_name_is_listed_found_and_flagged_wl_13(palace: Palace, note: Note) -> None:
    """`[[Lot #9]]` is the heading `9` of Lot, as in Obsidian; a Markdown link names the file."""
    note(f"{L1}/Lot #9.md", "nine sparrows\n")
    note(f"{L1}/Lot.md", "# 9\n")
    note(f"{L1}/a.md", "[[Lot #9]]\n")
    note(f"{L1}/b.md", "[x](Lot%20%239.md)\n")

    assert [match["path"] for match in palace.search("sparrows")["matches"]] == [f"{L1}/Lot #9.md"]
    assert palace.read(path=f"{L1}/Lot #9.md", touch=False)["content"] == "nine sparrows\n"
    assert palace.read(title="Lot #9", touch=False)["path"] == f"{L1}/Lot #9.md"
    assert codes(palace, "unlinkable_name") == [(f"{L1}/Lot #9.md", 0)]
    assert backlinks(palace, f"{L1}/Lot.md") == [f"{L1}/a.md"]
    assert backlinks(palace, f"{L1}/Lot #9.md") == [f"{L1}/b.md"]


def test_aliases_name_notes_for_people_but_no_links_wl_19(palace: Palace, note: Note) -> None:
    note(f"{L1}/Kim.md", "---\naliases: [KP, Pat, Kimmie]\n---\nx\n")
    note(f"{L1}/Pat.md", "real\n")
    note(f"{L1}/Lee.md", "---\naliases: KP\n---\ny\n")
    note(f"{L1}/a.md", "[[KP]], [[Pat]], [[Kim|KP]]\n")

    assert codes(palace, "unresolved_link") == [(f"{L1}/a.md", 1)]
    assert {name: backlinks(palace, f"{L1}/{name}.md") for name in ("Kim", "Pat", "Lee")} == {
        "Kim": [f"{L1}/a.md"],
        "Pat": [f"{L1}/a.md"],
        "Lee": [],
    }
    assert palace.read(title="Pat", touch=False)["path"] == f"{L1}/Pat.md"
    assert palace.read(title="Kimmie", touch=False)["path"] == f"{L1}/Kim.md"
    with pytest.raises(VaultError, match=r"Kim\.md.*Lee\.md"):
        palace.read(title="KP")


# ── Names that a caller gives ────────────────────────────────────────────────────────────────────────────

SYNTAX = ["A | B", "C# basics", "Arr[0]]", "up^down", "%%x%%"]


@pytest.mark.parametrize("new", SYNTAX)
def test_a_name_that_links_cannot_hold_is_refused_with_one_they_can_wl_12(
    palace: Palace, vault: Path, note: Note, new: str
) -> None:
    note(f"{L1}/Plan.md", "x\n")
    note(f"{L1}/a.md", "[[Plan]] [[Plan#H|p]]\n")

    with pytest.raises(PathViolation) as refused:
        palace.move(f"{L1}/Plan.md", "shallow", new_path=new)

    assert text(vault, f"{L1}/a.md") == "[[Plan]] [[Plan#H|p]]\n"
    safe = str(refused.value.facts["safe_name"])
    palace.move(f"{L1}/Plan.md", "shallow", new_path=safe)
    assert leads(vault, f"{L1}/a.md") == [f"{L1}/{safe}.md"] * 2


@pytest.mark.parametrize("title", SYNTAX)
def test_a_title_with_link_syntax_is_linkable_and_found_wl_12(
    palace: Palace, vault: Path, title: str
) -> None:
    palace.write("x", title="A")
    palace.write("x", title="C")

    saved = palace.write("ref", title=title)["saved_path"]
    stem = Path(saved).name.removesuffix(".md")
    linking = palace.write(f"[[{stem}]]", title="Ref")["saved_path"]

    assert leads(vault, linking) == [saved]
    assert palace.read(title=title)["path"] == saved
    assert palace.check() == []


@pytest.mark.parametrize(
    ("new", "place"),
    [
        ("final", "final.md"),
        ("final.md", "final.md"),
        ("final.MD", "final.md"),
        ("v2.0", "v2.0.md"),
        ("v2.0.md", "v2.0.md"),
        ("diagram.png", "diagram.png.md"),
    ],
)
def test_a_renamed_note_stays_a_note_wl_21(
    palace: Palace, vault: Path, note: Note, new: str, place: str
) -> None:
    saved = palace.write("sparrows", title="draft")
    note(f"{L1}/a.md", "[[draft]] [x](draft.md)\n")

    palace.move(f"{L1}/draft.md", "shallow", new_path=new)

    assert sorted(path.name for path in (vault / L1).iterdir()) == ["a.md", place]
    assert [match["path"] for match in palace.search("sparrows")["matches"]] == [f"{L1}/{place}"]
    assert palace.read(id=saved["id"], touch=False)["path"] == f"{L1}/{place}"
    assert leads(vault, f"{L1}/a.md") == [f"{L1}/{place}"] * 2
    assert backlinks(palace, f"{L1}/{place}") == [f"{L1}/a.md"]


@pytest.mark.parametrize("verb", ["move", "metabolize", "archive"])
def test_a_note_with_a_loud_extension_keeps_its_name_wl_21(
    palace: Palace, vault: Path, clock: Clock, note: Note, verb: str
) -> None:
    """`Old.MD` becomes `Old.md` when it moves, never `Old.MD.md`."""
    note(f"{L1}/Old.MD", "---\ndensity: 0.6\ncreated: 2031-01-01\n---\nx\n")
    note(f"{L1}/a.md", f"[[Old]] [[{L1}/Old]] [x](Old.MD)\n")

    place = {
        "move": lambda: palace.move(f"{L1}/Old.MD", "sediment")["destination"],
        "metabolize": lambda: palace.metabolize(confirm=True)["promoted"][0],
        "archive": lambda: palace.purge(f"{L1}/Old.MD", confirm=True)["archived_to"],
    }[verb]()

    assert place.endswith("/Old.md")
    assert leads(vault, f"{L1}/a.md") == [place] * 3


# ── Moves that nobody asked us for ───────────────────────────────────────────────────────────────────────


def test_a_folder_that_a_person_renames_is_followed_wl_10(palace: Palace, vault: Path, note: Note) -> None:
    """Nothing is repaired behind a person's back: bare links go on leading there, the others are listed.

    Listed are those of memories and of the map; in their own notes beside the layers Obsidian shows them.
    """
    saved = palace.write("heat", path="rooms/pump")
    note(f"{L1}/a.md", f"[[pump]]\n\n[[{L1}/rooms/pump]], [p]({L1}/rooms/pump.md)\n\n![[rooms/pump#Fig]]\n")
    note("PALACE_MAP.md", f"- [[{L1}/rooms/pump]]\n")
    palace.check()

    (vault / L1 / "rooms").rename(vault / L1 / "halls")

    assert set(codes(palace, "unresolved_link")) == {
        (f"{L1}/a.md", 3),
        (f"{L1}/a.md", 5),
        ("PALACE_MAP.md", 1),
    }
    assert palace.read(id=saved["id"], touch=False)["path"] == f"{L1}/halls/pump.md"
    assert backlinks(palace, f"{L1}/halls/pump.md") == [f"{L1}/a.md"]
    assert palace.status()["layers"]["shallow"] == 2
    assert [match["path"] for match in palace.search("heat")["matches"]] == [f"{L1}/halls/pump.md"]


def test_promotion_keeps_path_links_of_every_note_wl_10(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    palace.write(f"[x]({L1}/b.md)", path="r/pump", density=0.9)
    palace.write("x", title="b")
    note("root.md", f"[[{L1}/r/pump]], [p]({L1}/r/pump.md), ![[{L1}/r/pump#Fig]]\n")
    note(f"{L1}/q.md", f"---\nup: [[{L1}/r/pump]]\nsee: '[[r/pump]]'\n---\n[[pump]] [[../{L1}/r/pump]]\n")
    before = {path: leads(vault, path) for path in ("root.md", f"{L1}/q.md")}
    clock.turn(days=8)

    answer = palace.metabolize(confirm=True)

    there = f"{L2}/r/pump.md"
    assert answer["promoted"] == [there]
    assert {path: leads(vault, path) for path in before} == {
        path: [there if target == f"{L1}/r/pump.md" else target for target in targets]
        for path, targets in before.items()
    }
    assert leads(vault, there) == [f"{L1}/b.md"]
    assert f"up: [[{L2}/r/pump]]\n" in text(vault, f"{L1}/q.md")
    assert codes(palace, "unresolved_link") == []


def test_what_decays_keeps_its_links_and_restores_with_them_wl_10(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    palace.write("x", path="r/pump")
    note("root.md", f"[[{L1}/r/pump]], [p]({L1}/r/pump.md), [[pump]]\n")
    clock.turn(days=9)

    archived = palace.metabolize(confirm=True, force=True)["archived"]

    assert archived == [f"{ARC}/r/pump.md"]
    assert leads(vault, "root.md") == archived * 3
    palace.restore(archived[0])
    assert leads(vault, "root.md") == [f"{L1}/r/pump.md"] * 3


# ── Links that a move has to leave ───────────────────────────────────────────────────────────────────────

LEFT = [
    ("not UTF-8", b"caf\xe9 [[Old]]\n", "UTF-8"),
    ("in conflict", b"<<<<<<< HEAD\n[[Old]]\n=======\n[[Old|x]]\n>>>>>>> other\n", "merge markers"),
    (
        "in conflict in the header",
        b"---\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n---\n[[Old]]\n",
        "merge markers",
    ),
    ("too large", b"[[Old]]\n" + b"> text\n" * 30_000 + b"<b>\n[[Old]]\n", "read to its end"),
]


@pytest.mark.parametrize(("case", "data", "why"), LEFT, ids=[row[0] for row in LEFT])
def test_a_referrer_that_cannot_be_rewritten_is_named(
    palace: Palace, vault: Path, note: Note, case: str, data: bytes, why: str
) -> None:
    """WL-01's reason: a silent miss is found only by looking through the whole vault."""
    note(f"{L1}/Old.md", "x\n")
    note(f"{L1}/odd.md", data)
    note(f"{L1}/fine.md", "[[Old]]\n")

    answer = palace.move(f"{L1}/Old.md", "shallow", new_path="New")

    assert [f"{L1}/odd.md" in left and why in left for left in answer["links_left"]] == [True]
    assert said(text(vault, f"{L1}/fine.md")) == "[[New]]\n"
    if case != "too large":
        assert (vault / f"{L1}/odd.md").read_bytes() == data
        assert f"{L1}/odd.md" in {path for path, _ in codes(palace, "unresolved_link")} or case == "not UTF-8"


def test_every_verb_that_moves_names_the_links_it_had_to_leave(
    palace: Palace, clock: Clock, note: Note
) -> None:
    for name in ("Old", "Aged"):
        palace.write("x", title=name, density=0.1)
    palace.write("x", title="Good", density=0.9)
    note(f"{L1}/odd.md", f"caf\u00e9 [[{L1}/Old]] [[{L1}/Good.md]] [a]({L1}/Aged.md#h)\n".encode("latin-1"))

    purged = palace.purge(f"{L1}/Old.md", confirm=True)
    clock.turn(days=17)
    aged = palace.metabolize(confirm=True, force=True)

    assert "links_left" not in purged  # `01_Shallow/Old` is the tail of the archive's path as well
    assert aged["archived"] == [f"{ARC}/Aged.md"]
    assert aged["promoted"] == [f"{L2}/Good.md"]
    assert f"{L1}/odd.md: not UTF-8" in aged["note"]
    restored = palace.restore(purged["archived_to"], to_layer="bedrock")
    assert [f"{L1}/odd.md: not UTF-8" in left for left in restored["links_left"]] == [True]
    bedrock = palace.purge(restored["restored_to"], confirm=True)
    assert "links_left" not in bedrock


def test_a_dry_run_foresees_the_very_names_of_the_run(palace: Palace, clock: Clock, note: Note) -> None:
    """WL-21, WL-09: an extension in capitals, and a name that another note has as well."""
    when = "---\ndensity: 0.6\ncreated: 2031-01-01\nlast_touched: 2031-02-28T12:00:00\n---\n"
    note(f"{L1}/Old.MD", when)
    note(f"{L1}/Daily.md", when)
    note("_Archive/02_Sediment/Daily.md", "x\n")

    foreseen = palace.metabolize(dry_run=True)

    assert palace.metabolize(confirm=True)["promoted"] == foreseen["promoted"]


def test_a_note_too_large_to_be_read_for_links_is_flagged(palace: Palace, note: Note) -> None:
    note(f"{L1}/large.md", "> text\n" * 30_000 + "<b>\n[[Gone]]\n")

    assert codes(palace, "links_cut") == [(f"{L1}/large.md", 0)]


def test_a_referrer_whose_links_stay_true_is_not_named(palace: Palace, vault: Path, note: Note) -> None:
    note(f"{L1}/Old.md", "x\n")
    note(f"{L2}/Old.md", "y\n")
    note(f"{L2}/odd.md", b"caf\xe9 [[Old]]\n")

    assert palace.move(f"{L1}/Old.md", "shallow", new_path="New")["links_left"] == []


# ── Links that the product writes ────────────────────────────────────────────────────────────────────────


def test_what_supersedes_what_is_linked_both_ways(palace: Palace, vault: Path, note: Note) -> None:
    note(f"{L1}/Plan.md", "old\n")

    saved = palace.write("new", title="Plan", supersedes="[[Plan]]")["saved_path"]

    assert header(vault, saved)["supersedes"] == ["[[Plan]]"]
    assert header(vault, f"{L1}/Plan.md")["superseded_by"] == "[[Plan 2]]"
    assert leads(vault, saved) == [f"{L1}/Plan.md"]
    assert leads(vault, f"{L1}/Plan.md") == [saved]


def test_a_superseded_namesake_is_linked_by_its_path_wl_09(palace: Palace, vault: Path, note: Note) -> None:
    note(f"{L1}/Daily.md", "one\n")
    note(f"{L2}/Daily.md", "two\n")

    saved = palace.write("x", title="Weekly", supersedes=f"{L2}/Daily.md")["saved_path"]

    assert leads(vault, saved) == [f"{L2}/Daily.md"]
    assert text(vault, f"{L1}/Daily.md") == "one\n"


def test_what_no_link_can_name_is_not_superseded_wl_13(palace: Palace, vault: Path, note: Note) -> None:
    note(f"{L1}/Lot #9.md", "nine\n")
    note(f"{L1}/Lot.md", "x\n")

    with pytest.raises(PathViolation, match="Rename it"):
        palace.write("x", title="N", supersedes=f"{L1}/Lot #9.md")

    assert sorted(path.name for path in (vault / L1).iterdir()) == ["Lot #9.md", "Lot.md"]
    assert text(vault, f"{L1}/Lot #9.md") == "nine\n"


@pytest.mark.parametrize(
    "name",
    [
        "[[r/pump]]",
        "[[pump#Fig|p]]",
        "pump",
        f"{L1}/r/pump",
        f"{L1}/r/pump.md",
        "[[pump.md]]",
        f"[[/{L1}/r/pump]]",
    ],
)
def test_what_is_superseded_may_be_named_in_any_way(
    palace: Palace, vault: Path, note: Note, name: str
) -> None:
    note(f"{L1}/r/pump.md", "x\n")
    note(f"{L2}/pump station.md", "x\n")

    saved = palace.write("x", title="N", supersedes=name)["saved_path"]

    assert leads(vault, saved) == [f"{L1}/r/pump.md"]


def test_naming_a_superseded_note_twice_is_naming_it_once(palace: Palace, vault: Path, note: Note) -> None:
    note(f"{L1}/Plan.md", "old\n")

    saved = palace.write("x", title="N", supersedes=["Plan", f"{L1}/Plan.md", "[[Plan|p]]"])["saved_path"]

    assert header(vault, saved)["supersedes"] == ["[[Plan]]"]


@pytest.mark.parametrize("name", ["Plan", "_System/Templates/T.md", "PALACE_MAP.md"])
def test_only_another_memory_is_superseded(palace: Palace, vault: Path, note: Note, name: str) -> None:
    for path in (f"{L1}/Plan.md", "_System/Templates/T.md", "PALACE_MAP.md"):
        note(path, "x\n")

    with pytest.raises(InvalidArguments):
        palace.write("more", path="Plan", mode="append", supersedes=name)

    for path in (f"{L1}/Plan.md", "_System/Templates/T.md", "PALACE_MAP.md"):
        assert text(vault, path) == "x\n"


def test_appending_adds_to_the_lists_of_a_person(palace: Palace, vault: Path, note: Note) -> None:
    """FM-11's operation, FM-16's reason: what a person listed stays, with its comment."""
    note(f"{L1}/Zero.md", "z\n")
    note(f"{L1}/Plan.md", "p\n")
    note(
        f"{L1}/A.md",
        '---\nsupersedes:\n  - "[[Zero]]" # mine\ntags: # ours\n  - no # country\n  - off\n---\nx\n',
    )

    palace.write("y", path="A", mode="append", supersedes=["Plan", "Zero"], tags=["NO", "new"])

    lines = text(vault, f"{L1}/A.md").split("\n")
    assert lines[1:8] == [
        "supersedes:",
        '  - "[[Zero]]" # mine',
        '  - "[[Plan]]"',
        "tags: # ours",
        "  - no # country",
        "  - off",
        "  - new",
    ]


def test_replacing_sets_the_tags(palace: Palace, vault: Path) -> None:
    saved = palace.write("x", title="A", tags=["one", "two"])

    palace.write("y", path="A", mode="replace", if_rev=saved["rev"], tags=["three"])

    assert header(vault, saved["saved_path"])["tags"] == ["three"]


def test_suggested_links_mean_the_notes_they_stand_for(palace: Palace, vault: Path, note: Note) -> None:
    """WL-09, WL-13: pasted as they are, they lead to the note that was suggested."""
    note(f"{L1}/Daily.md", "sparrows and swallows\n")
    note(f"{L2}/Daily.md", "sparrows and swallows\n")
    note(f"{L1}/Lot #9.md", "sparrows and swallows\n")
    note(f"{L1}/Barn (old).md", "sparrows and swallows\n")

    answer = palace.write("sparrows and swallows", title="Birds")
    related = answer["related"]
    palace.write(" ".join(hit["link"] for hit in related), path="Birds", mode="append")

    assert len(related) == 4
    assert leads(vault, answer["saved_path"]) == [hit["path"] for hit in related]


# ── Any vault, any moves ─────────────────────────────────────────────────────────────────────────────────

ODD = (
    "Plan", "plan b", "v1.2", "Lot #9", "Lot", "Daily", "Café", "Cafe\u0301 au", "node.js", "A&B", "100%",
    "it's", "x,y", "@me", "N (v2)", "a.md", "B]x", "dollar$", "tick`s", "Über^1", "C\u00a0D", "log",
    "backlog", "日本",
)  # fmt: skip
PLACES = (
    L1, f"{L1}/r", f"{L1}/a b", L2, f"{L2}/r", "03_Bedrock", ARC, f"{ARC}/r", "_System/Dashboards",
    "_System/Templates", "",
)  # fmt: skip


@st.composite
def vaults(draw: st.DrawFn) -> dict[str, str]:
    """Notes with odd names in odd places, each of which links to some of the others in some way."""
    paths: list[str] = []
    for folder, name, loud in draw(
        st.lists(
            st.tuples(st.sampled_from(PLACES), st.sampled_from(ODD), st.booleans()), min_size=2, max_size=7
        )
    ):
        path = f"{folder}/{name}".lstrip("/") + (".MD" if loud and name == "Plan" else ".md")
        if names.key(path) not in map(names.key, paths):
            paths.append(path)
    return {
        path: draw(_headers(paths))
        + f"marker-{number}.\n\n"
        + "".join(draw(st.lists(_links(paths, path), max_size=5)))
        for number, path in enumerate(paths)
    }


def _headers(paths: list[str]) -> st.SearchStrategy[str]:
    def lines(target: str) -> list[str]:
        name = Path(target).name[:-3]
        return [
            "",
            f'---\nup: "[[{name}]]"\n---\n',
            f"---\nup: '[[{name.replace(chr(39), chr(39) * 2)}|x]]' # c\n---\n",
            f"---\nup: [[{name}]]\n---\n",
            f'---\nups:\n  - "[[{target}#H]]"\n  - [[{target[:-3]}|x]]\n---\n',
        ]

    return st.sampled_from(paths).flatmap(lambda target: st.sampled_from(lines(target)))


def _links(paths: list[str], source: str) -> st.SearchStrategy[str]:
    def forms(target: str) -> list[str]:
        plain, name = target[:-3], Path(target).name
        bare = name[:-3]
        up = "../" * source.count("/")
        return [
            f"[[{bare}]]\n",
            f"[[{plain}|al]] ",
            f"![[{bare}#H|x]]\n\n",
            f"[m]({quote(target)}) ",
            f"[m](<{up}{target}#h h>)\n",
            f"[[{'/'.join(plain.split('/')[-2:])}]] $",
            f"[[{up or './'}{plain}]]\n",
            f"[[{bare.upper()}]] `[[{bare}]]` ",
            f"[m]({quote(name)} 'title')\n",
            f"\n\n| [[{bare}\\|x]] |\n|---|\n| [[{plain}\\|$y]] |\n\n",
            f"[[/{plain}]] ",
            f"[[{target}]] `",
        ]

    return st.sampled_from(paths).flatmap(lambda target: st.sampled_from(forms(target)))


class Act(NamedTuple):
    verb: str
    which: int
    layer: str
    to: str | None


ACTS = st.builds(
    Act,
    st.sampled_from(["move", "move", "purge", "restore"]),
    st.integers(0, 9),
    st.sampled_from(["shallow", "sediment", "bedrock"]),
    st.sampled_from([None, "r/", "n/m/", *ODD]),
)


def seen(root: Path) -> dict[str, tuple[str, list[tuple[str, str | None]]]]:
    """Each note by the marker in it: its path, and for each link its path and the marker it leads to."""
    resolver = on_disk(root)
    texts = {path: text(root, path) for path in _notes(root)}
    marks = {path: found[0] for path, body in texts.items() if (found := re.findall(r"marker-\d+\.", body))}
    told = {}
    for path, mark in marks.items():
        scan = links.scan(texts[path])
        paths = [link.path for link in scan.links if link.path] + [item.name for item in scan.unquoted]
        told[mark] = (path, [(link, marks.get(resolver.resolve(link, path) or "")) for link in paths])
    return told


def _notes(root: Path) -> list[str]:
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(path for path in found if path.lower().endswith(".md") and not path.startswith("."))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=40)
@given(files=vaults(), acts=st.lists(ACTS, min_size=1, max_size=4))
def test_no_sequence_of_moves_changes_where_a_link_leads(files: dict[str, str], acts: list[Act]) -> None:
    """WL-09: rename must preserve meaning. A link that led somewhere leads to the same note ever after."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "vault"
        for layer in ("01_Shallow", "02_Sediment", "03_Bedrock"):
            (root / layer).mkdir(parents=True)
        for path, body in {"_System/Policy.md": "---\ntimezone: UTC\n---\n", **files}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(body.encode("utf-8"))
        settings_ = PalaceSettings(
            cache_dir=Path(folder) / "cache",
            state_dir=Path(folder) / "state",
            clock=lambda: datetime(2031, 3, 1, 12, tzinfo=UTC),
            sleep=lambda _: None,
        )
        with Palace.open(root, settings=settings_) as palace:
            for act in acts:
                before = seen(root)

                left = _carry_out(palace, act, before)

                after = seen(root)
                assert after.keys() == before.keys()
                for mark, (path, links_before) in before.items():
                    now, links_after = after[mark]
                    if any(line.startswith((path, now)) for line in left):
                        continue
                    for (_, led), (written, leads_now) in zip(links_before, links_after, strict=True):
                        assert led in (None, leads_now), f"{act}: {written} in {now} led to {led}"


def _carry_out(
    palace: Palace, act: Act, before: dict[str, tuple[str, list[tuple[str, str | None]]]]
) -> list[str]:
    """Do it, if there is a note to do it to and it is not refused; the links that were left."""
    paths = sorted(path for path, _ in before.values())
    inside = [path for path in paths if path.startswith("0")]
    archived = [path for path in paths if path.startswith("_Archive/")]
    pool = archived if act.verb == "restore" else inside
    if not pool:
        return []
    path = pool[act.which % len(pool)]
    try:
        if act.verb == "move":
            return palace.move(path, act.layer, new_path=act.to)["links_left"]
        if act.verb == "purge":
            palace.purge(path, confirm=True)
        else:
            palace.restore(path)
    except VaultError:
        assert seen(palace.house.vault.root) == before, "a refusal changed something"
    return []
