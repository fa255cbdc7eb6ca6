"""The WL cases that text alone decides: which links a note has, where they lead, what a rename does to them.

Where the vault's layers matter, `L1`, `L2` and `ARC` stand for their folders. The same cases over files, the
index and the tools are the services' tests.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from vault_palace.core import frontmatter, links, names
from vault_palace.core.links import Resolver

L1, L2 = "01_Shallow", "02_Sediment"


class Rename(NamedTuple):
    case: str
    files: tuple[str, ...]
    note: str  # the path of the note that holds the links
    old: str
    new: str
    before: str
    after: str
    changed: int


ROOMS = """| place | use |
|---|---|
| [[Pump Room\\|pump]] | heat |
| [[Pump Room#Valves\\|valves]] | heat |
"""

CODE = """Real [[Alpha]].
Inline `[[Alpha]]` and ``[[Alpha|x]]``.
```
[[Alpha]]
~~~
[[Alpha]]
```

    [[Alpha]]   (indented code after a blank line)
"""

RENAMES = (
    Rename(
        "WL-01 escaped pipe inside a table",
        (f"{L1}/Pump Room.md",),
        f"{L1}/rooms.md",
        f"{L1}/Pump Room.md",
        f"{L1}/Boiler Room.md",
        ROOMS,
        ROOMS.replace("Pump Room", "Boiler Room"),
        2,
    ),
    Rename(
        "WL-03 links inside code",
        ("Alpha.md",),
        "a.md",
        "Alpha.md",
        "Beta.md",
        CODE,
        CODE.replace("Real [[Alpha]]", "Real [[Beta]]"),
        1,
    ),
    Rename(
        "WL-09 two notes with one name: the far one has a path",
        (f"{L1}/Daily.md", f"{L2}/Daily.md"),
        f"{L1}/x.md",
        f"{L2}/Daily.md",
        f"{L2}/Weekly.md",
        f"[[Daily]] and [[{L2}/Daily]]",
        f"[[Daily]] and [[{L2}/Weekly]]",
        1,
    ),
    Rename(
        "WL-09 two notes with one name: the near one is bare",
        (f"{L1}/Daily.md", f"{L2}/Daily.md"),
        f"{L2}/y.md",
        f"{L2}/Daily.md",
        f"{L2}/Weekly.md",
        "[[Daily]]",
        "[[Weekly]]",
        1,
    ),
    Rename(
        "WL-09 a move onto a taken name",
        (f"{L1}/Daily.md", f"{L1}/Weekly.md"),
        f"{L1}/x.md",
        f"{L1}/Weekly.md",
        f"{L2}/Daily.md",
        "[[Daily]] and [[Weekly]]",
        f"[[Daily]] and [[{L2}/Daily]]",
        1,
    ),
    Rename(
        "WL-10 layer changed under path links",
        (f"{L1}/pump.md",),
        "root.md",
        f"{L1}/pump.md",
        f"{L2}/pump.md",
        f"[[{L1}/pump]], [p]({L1}/pump.md), ![[{L1}/pump#Fig]] and [[pump]]",
        f"[[{L2}/pump]], [p]({L2}/pump.md), ![[{L2}/pump#Fig]] and [[pump]]",
        3,
    ),
    Rename(
        "WL-13 a name that holds a hash",
        ("Lot #9.md", "Lot.md"),
        "a.md",
        "Lot.md",
        "Plot.md",
        "[[Lot #9]] [x](Lot%20%239.md)",
        "[[Plot #9]] [x](Lot%20%239.md)",
        1,
    ),
    Rename(
        "WL-15 chained and doubled heading marks",
        ("Ops.md",),
        "a.md",
        "Ops.md",
        "Work.md",
        "[[Ops#Deploy#Rollback]], [[Ops##Rollback]], [[Ops#]], [[#Only here]], [[Ops#Näme mit Ü & zeichen]]",
        "[[Work#Deploy#Rollback]], [[Work##Rollback]], [[Work#]], [[#Only here]], "
        "[[Work#Näme mit Ü & zeichen]]",
        4,
    ),
    Rename(
        "WL-16 Markdown links with encoded blanks",
        ("My Note.md",),
        "ref.md",
        "My Note.md",
        "Our Note (v2).md",
        "[a](My%20Note.md), [b](<My Note.md>), [c](My%20Note.md#H%201), [d](https://x.example/My%20Note.md)",
        "[a](Our%20Note%20%28v2%29.md), [b](<Our Note (v2).md>), [c](Our%20Note%20%28v2%29.md#H%201), "
        "[d](https://x.example/My%20Note.md)",
        3,
    ),
    Rename(
        "WL-18 a bare link stays bare",
        ("sub/Old.md",),
        "a.md",
        "sub/Old.md",
        "sub/New.md",
        "[[Old|o]], [[sub/Old]], [[old]]",
        "[[New|o]], [[sub/New]], [[New]]",
        3,
    ),
    Rename(
        "WL-18 a path is added only where the bare name means another note",
        ("sub/Old.md", "New.md"),
        "a.md",
        "sub/Old.md",
        "sub/New.md",
        "[[Old|o]] [[New]]",
        "[[sub/New|o]] [[New]]",
        1,
    ),
    Rename(
        "WL-19 aliases are not names",
        ("Kim.md", "Pat.md", "Lee.md"),
        "a.md",
        "Kim.md",
        "Kimberly.md",
        "[[KP]], [[Pat]], [[Kim|KP]]",
        "[[KP]], [[Pat]], [[Kimberly|KP]]",
        1,
    ),
    Rename(
        "WL-21 a name with a dot keeps its extension",
        ("draft.md",),
        "a.md",
        "draft.md",
        names.note_path("v2.0"),
        "[[draft]] [x](draft.md)",
        "[[v2.0]] [x](v2.0.md)",
        2,
    ),
)


@pytest.mark.parametrize("row", RENAMES, ids=lambda row: row.case)
def test_rename_rewrites_exactly_the_links_that_need_it(row: Rename) -> None:
    before = Resolver([*row.files, row.note])

    result = links.rewrite(
        row.before,
        old_source=row.note,
        new_source=row.note,
        before=before,
        after=before.after({row.old: row.new}),
        moved={row.old: row.new},
    )

    assert result == (row.after, row.changed)


@pytest.mark.parametrize("row", RENAMES, ids=lambda row: row.case)
def test_every_link_leads_to_the_same_note_afterwards(row: Rename) -> None:
    before = Resolver([*row.files, row.note])
    after = before.after({row.old: row.new})

    led = [before.resolve(link.path, row.note) for link in links.find(row.before)]
    leads = [after.resolve(link.path, row.note) for link in links.find(row.after)]

    assert leads == [row.new if path == row.old else path for path in led]


class Lead(NamedTuple):
    case: str
    files: tuple[str, ...]
    text: str
    leads: tuple[str | None, ...]


LEADS = (
    Lead("WL-01", ("Pump Room.md",), ROOMS, ("Pump Room.md", "Pump Room.md")),
    Lead("WL-03", ("Alpha.md",), CODE, ("Alpha.md",)),
    Lead(
        "WL-04 brackets split over two code spans",
        ("Manual.md",),
        "Type `[[` to open and `]]` to close a link to [[Manual]].",
        ("Manual.md",),
    ),
    Lead(
        "WL-06 one name is the tail of another",
        (f"{L1}/log.md", f"{L1}/backlog.md", f"{L2}/old-log.md"),
        "[[log]]",
        (f"{L1}/log.md",),
    ),
    Lead(
        "WL-07 dots in names",
        ("v1.2 plan.md", "node.js.md", "2024.06.01.md", "img/diagram.png"),
        "[[v1.2 plan]], [[node.js]], [[2024.06.01]], [[v1.2 plan.md]], [[diagram.png]]",
        ("v1.2 plan.md", "node.js.md", "2024.06.01.md", "v1.2 plan.md", "img/diagram.png"),
    ),
    Lead("WL-13", ("Lot #9.md", "Lot.md"), "[[Lot #9]] [x](Lot%20%239.md)", ("Lot.md", "Lot #9.md")),
    Lead(
        "WL-15",
        ("Ops.md",),
        "[[Ops#Deploy#Rollback]], [[Ops##Rollback]], [[Ops#]], [[#Only here]], [[Ops#Näme mit Ü & zeichen]]",
        ("Ops.md", "Ops.md", "Ops.md", "a.md", "Ops.md"),
    ),
    Lead(
        "WL-16",
        ("My Note.md",),
        "[a](My%20Note.md), [b](<My Note.md>), [c](My%20Note.md#H%201), [d](https://x.example/My%20Note.md)",
        ("My Note.md", "My Note.md", "My Note.md"),
    ),
    Lead("WL-19", ("Kim.md", "Pat.md", "Lee.md"), "[[KP]], [[Pat]], [[Kim|KP]]", (None, "Pat.md", "Kim.md")),
    Lead(
        "WL-22 link text running over paragraphs",
        ("link.md",),
        "para one has [ an open bracket\n\ntwenty paragraphs of prose\n\n"
        "and here ](not/a/link) closes; also [[ unclosed\n\nmore ]] text",
        (),
    ),
    Lead("FS-02 case of the file", ("b.md", f"{L1}/howto.md"), "[[HowTo]]", (f"{L1}/howto.md",)),
    Lead(
        "FM-28 unquoted link in a property",
        ("Smith.md", "Blue Whale.md"),
        "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n",
        (),
    ),
    Lead(
        "DB-05 wildcard characters",
        ("a_b.md", "axb.md", "100%.md", "1000.md", "plan.md", "plan-complete.md"),
        "[[a_b]] [[100%]] [[plan]] [x](100%.md)",
        ("a_b.md", "100%.md", "plan.md", "100%.md"),
    ),
)


@pytest.mark.parametrize("row", LEADS, ids=lambda row: row.case)
def test_links_lead_where_obsidian_goes(row: Lead) -> None:
    resolver = Resolver([*row.files, "a.md"])

    leads = tuple(resolver.resolve(link.path, "a.md") for link in links.find(row.text))

    assert leads == row.leads


@pytest.mark.parametrize("title", ["A | B", "C# basics", "Arr[0]]", "up^down", "%%x%%"])
def test_title_with_link_syntax_gives_a_name_that_links_mean_wl_12(title: str) -> None:
    new = f"{L1}/{names.file_name(title)}.md"
    before = Resolver([f"{L1}/Plan.md", "a.md"])
    after = before.after({f"{L1}/Plan.md": new})

    text, count = links.rewrite(
        "[[Plan]] [[Plan#H|p]]",
        old_source="a.md",
        new_source="a.md",
        before=before,
        after=after,
        moved={f"{L1}/Plan.md": new},
    )

    assert count == 2
    assert {after.resolve(link.path, "a.md") for link in links.find(text)} == {new}


@pytest.mark.parametrize(
    ("given", "path"),
    [("final", "final.md"), ("final.md", "final.md"), ("final.MD", "final.md"), ("v2.0", "v2.0.md")],
)
def test_extension_belongs_to_the_product_wl_21(given: str, path: str) -> None:
    assert names.note_path(given) == path


@pytest.mark.parametrize("aliases", ["aliases: KP", "aliases: [KP, Pat]", "aliases:\n  - KP"])
def test_alias_is_text_that_names_no_note_wl_19(aliases: str) -> None:
    header = frontmatter.read(f"---\n{aliases}\n---\n")

    assert "KP" in frontmatter.aliases(header)
    assert Resolver(["Kim.md", "a.md"]).resolve("KP", "a.md") is None


def test_file_that_is_hard_to_link_is_known_wl_13() -> None:
    assert not names.linkable("Lot #9")


def test_unquoted_property_link_is_flagged_and_follows_a_rename_fm_28() -> None:
    note = "---\nparent: [[Blue Whale]]\nalso: [[Smith, John]]\nn: 1\n---\n"
    before = Resolver(["Blue Whale.md", "Smith.md", "a.md"])
    moved = {"Blue Whale.md": "Fin Whale.md"}

    text, _ = links.rewrite(
        note, old_source="a.md", new_source="a.md", before=before, after=before.after(moved), moved=moved
    )

    assert [item.name for item in links.unquoted_links(note)] == ["Blue Whale", "Smith, John"]
    assert text == note.replace("Blue Whale", "Fin Whale")
