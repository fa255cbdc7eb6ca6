"""What no caller should send is refused by name, or taken as the one thing it can mean, and harms nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import OpenPalace
from vault_palace.core import frontmatter
from vault_palace.core.errors import (
    BudgetExceeded,
    Conflict,
    InvalidArguments,
    NotFound,
    PathViolation,
    RateLimited,
    UnsafeContent,
)
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def header(vault: Path, path: str) -> frontmatter.Header:
    return frontmatter.read((vault / path).read_text(encoding="utf-8"))


def bytes_of(vault: Path) -> dict[str, bytes]:
    """Every note's bytes: what a refused call must leave as it is."""
    return {str(path): path.read_bytes() for path in vault.rglob("*.md")}


# -- arguments out of all measure --------------------------------------------------------------------------

BIG = "y" * 2_000_000


@pytest.mark.parametrize(
    "call",
    [
        lambda palace, big: palace.write("x", path=big),
        lambda palace, big: palace.write("x", title=big),
        lambda palace, big: palace.write("x", source_session=big),
        lambda palace, big: palace.write("x", path="a", mode="replace", if_rev=big),
        lambda palace, big: palace.write("x", supersedes=big),
        lambda palace, big: palace.write("x", tags=[big]),
        lambda palace, big: palace.write("x", tags=[f"t{number}" for number in range(5_000)]),
        lambda palace, big: palace.write("x", supersedes=["a"] * 5_000),
        lambda palace, big: palace.read(path=big),
        lambda palace, big: palace.read(id=big),
        lambda palace, big: palace.read(title=big),
        lambda palace, big: palace.read(path="01_Shallow/a.md", section=big),
        lambda palace, big: palace.search("x", room=big),
        lambda palace, big: palace.search("x", cursor=big),
        lambda palace, big: palace.search("x", tags=[f"t{number}" for number in range(5_000)]),
        lambda palace, big: palace.search("x", tags=[big]),
        lambda palace, big: palace.rate(path=big, density=1),
        lambda palace, big: palace.rate(id=big, density=1),
        lambda palace, big: palace.purge(big, confirm=True),
        lambda palace, big: palace.restore(big),
        lambda palace, big: palace.move(big, "bedrock"),
        lambda palace, big: palace.move("01_Shallow/a.md", "bedrock", new_path=big),
        lambda palace, big: palace.update_map("add_link", big),
    ],
)
def test_an_argument_out_of_all_measure_is_refused_in_few_words(
    palace: Palace, note: Note, vault: Path, call: Callable[[Palace, str], Any]
) -> None:
    note("01_Shallow/a.md", "a\n")
    before = bytes_of(vault)

    with pytest.raises(BudgetExceeded) as refused:
        call(palace, BIG)

    assert len(str(refused.value)) < 300
    assert bytes_of(vault) == before


@pytest.mark.parametrize("path", ["x/" * 100 + "y", f"{'r' * 90}/{'s' * 95}/y", f"02_Sediment/{'d/' * 95}z"])
def test_a_path_that_windows_could_not_hold_is_refused(palace: Palace, vault: Path, path: str) -> None:
    with pytest.raises(PathViolation):
        palace.write("x", path=path)

    assert [*(vault / "01_Shallow").iterdir()] == []


def test_a_note_is_not_moved_to_a_path_that_windows_could_not_hold(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", "a\n")

    with pytest.raises(PathViolation):
        palace.move("01_Shallow/a.md", "bedrock", new_path=f"{'room/' * 40}a")


# -- where a write goes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("02_Sediment", "02_Sediment/Plan.md"),
        ("02_Sediment/", "02_Sediment/Plan.md"),
        ("02_sediment/ideas/x", "02_Sediment/ideas/x.md"),
        ("/", "01_Shallow/Plan.md"),
        ("ideas/", "01_Shallow/ideas/Plan.md"),
    ],
)
def test_a_layer_or_a_room_is_no_file_name(palace: Palace, path: str, place: str) -> None:
    assert palace.write("x", path=path, title="Plan")["saved_path"] == place


@pytest.mark.parametrize(
    "path", ["_Archive/x", "_archive/01_Shallow/x", "_System/Policy", "_System/", "_Archive"]
)
@pytest.mark.parametrize("mode", ["create", "append", "replace"])
def test_nothing_is_written_into_the_archive_or_the_palaces_own_folder(
    palace: Palace, vault: Path, note: Note, path: str, mode: str
) -> None:
    note("_Archive/01_Shallow/x.md", "---\nid: mem_x\n---\nold\n")
    before = bytes_of(vault)

    with pytest.raises((PathViolation, InvalidArguments)):
        palace.write("x", path=path, mode=mode, if_rev="0" * 12 if mode == "replace" else None)

    assert bytes_of(vault) == before


@pytest.mark.parametrize(
    "path",
    ["PALACE_MAP.md", "_System/Policy.md", "_System/Templates/T.md", "Projects/mine.md", "_Archive/old.md"],
)
@pytest.mark.parametrize("by", ["path", "title"])
def test_only_a_memory_in_a_layer_is_appended_to(
    palace: Palace, vault: Path, note: Note, path: str, by: str
) -> None:
    for name in ("PALACE_MAP.md", "_System/Templates/T.md", "Projects/mine.md", "_Archive/old.md"):
        note(name, "theirs\n")
    before = bytes_of(vault)

    named: dict[str, Any] = {by: path if by == "path" else Path(path).stem}

    with pytest.raises(PathViolation):
        palace.write("mine", mode="append", tags=["x"], density=0.5, **named)

    assert bytes_of(vault) == before


def test_appending_to_a_room_without_a_title_names_what_is_missing(palace: Palace) -> None:
    with pytest.raises(InvalidArguments):
        palace.write("x", path="ideas/", mode="append")


@pytest.mark.parametrize("name", ["PALACE_MAP", "palace_map", "Policy", "POLICY"])
def test_no_memory_takes_the_name_of_a_note_of_the_palace(palace: Palace, name: str) -> None:
    """`[[PALACE_MAP]]` must not come to mean a memory before the map is first made."""
    assert palace.write("x", title=name)["saved_path"] == f"01_Shallow/{name} 2.md"


def test_an_append_for_another_version_is_a_conflict(palace: Palace, vault: Path) -> None:
    saved = palace.write("one", title="Plan")
    before = bytes_of(vault)

    with pytest.raises(Conflict):
        palace.write("two", path="Plan", mode="append", if_rev="0" * 12)

    assert bytes_of(vault) == before
    assert palace.write("two", path="Plan", mode="append", if_rev=saved["rev"])["rev"] != saved["rev"]


def test_what_is_superseded_may_be_named_by_its_id(palace: Palace, vault: Path) -> None:
    old = palace.write("one", title="Old")

    new = palace.write("two", title="New", supersedes=old["id"])

    assert header(vault, new["saved_path"]).values["supersedes"] == ["[[Old]]"]
    assert header(vault, old["saved_path"]).values["superseded_by"] == "[[New]]"


# -- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [0.00004, 0, -1, 100_001, float("nan"), float("inf"), True])
def test_a_lifetime_of_which_nothing_would_be_left_is_refused(
    palace: Palace, note: Note, vault: Path, days: float
) -> None:
    note("01_Shallow/a.md", "a\n")
    before = bytes_of(vault)

    with pytest.raises(InvalidArguments):
        palace.rate(path="01_Shallow/a.md", decay_days=days)

    assert bytes_of(vault) == before


@pytest.mark.parametrize(
    "tag",
    [
        "a\u202eb",
        "\u200b",
        "a\u2060b",
        "a\x07b",
        "\ufeffx",
        "“q”",
        "it’s",
        "a—b",
        "†",
        "a\ufffd",
        "1",
        "/",
        "a.b",
        "a:b",
    ],
)
def test_a_tag_that_obsidian_would_cut_or_nobody_could_see_is_refused(palace: Palace, tag: str) -> None:
    with pytest.raises(InvalidArguments):
        palace.write("x", tags=[tag])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("/a//b/", "a/b"),
        ("e\u0301tude", "\xe9tude"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("a b", "a-b"),
        ("#no", "no"),
        ("2024w", "2024w"),
    ],
)
def test_a_tag_is_kept_in_the_form_that_links_to_its_equals(
    palace: Palace, vault: Path, given: str, kept: str
) -> None:
    saved = palace.write("x", tags=[given])["saved_path"]

    assert frontmatter.tags(header(vault, saved)) == [kept]


# -- what stands in the way --------------------------------------------------------------------------------


def test_a_folder_with_the_name_of_a_note_is_said_to_be_one(palace: Palace, vault: Path) -> None:
    (vault / "01_Shallow/dir.md").mkdir()

    with pytest.raises(PathViolation, match="folder"):
        palace.write("x", path="dir")

    assert palace.write("x", title="dir")["saved_path"] == "01_Shallow/dir 2.md"


def test_a_file_is_no_room(palace: Palace, vault: Path) -> None:
    (vault / "01_Shallow/list").write_text("no note\n", encoding="utf-8")

    with pytest.raises(PathViolation, match="file"):
        palace.write("x", path="list/y")


def test_a_folder_in_the_archive_does_not_keep_a_note_from_it(palace: Palace, vault: Path) -> None:
    (vault / "_Archive/01_Shallow/a.md").mkdir(parents=True)
    palace.write("x", path="a")

    assert palace.purge("01_Shallow/a.md", confirm=True)["archived_to"] == "_Archive/01_Shallow/a 2.md"


@pytest.mark.parametrize("spelled", ["IDEAS", "ideas", "Ideas"])
def test_a_room_is_spelled_as_it_is(palace: Palace, note: Note, vault: Path, spelled: str) -> None:
    """Two rooms that differ in case only would be one on Windows and macOS."""
    note("01_Shallow/Ideas/Übung/old.md", "x\n")
    note("02_Sediment/iDEAS/old 2.md", "x\n")

    saved = palace.write("x", path=f"{spelled}/u\u0308bung/new")["saved_path"]
    moved = palace.move(saved, "sediment")["destination"]

    assert (saved, moved) == ("01_Shallow/Ideas/Übung/new.md", "02_Sediment/iDEAS/Übung/new.md")


@pytest.mark.parametrize("new_path", [None, "r/a", "./r//a", "r/a.md", "01_Shallow/r/a", "R/a"])
def test_a_move_to_where_the_note_is_changes_nothing(
    palace: Palace, note: Note, vault: Path, new_path: str | None
) -> None:
    note("01_Shallow/r/a.md", "a\n")
    before = bytes_of(vault)

    moved = palace.move("01_Shallow/r/a.md", "shallow", new_path=new_path)

    assert moved["destination"] == moved["source"]
    assert bytes_of(vault) == before


# -- superseding -------------------------------------------------------------------------------------------


def test_notes_do_not_supersede_each_other_in_a_circle(palace: Palace, vault: Path) -> None:
    palace.write("one", title="One")
    palace.write("two", title="Two", supersedes="One")
    palace.write("three", title="Three", supersedes="Two")
    before = bytes_of(vault)

    for newest in ("Two", "Three"):
        with pytest.raises(InvalidArguments):
            palace.write("x", path="One", mode="append", supersedes=newest)

    assert bytes_of(vault) == before


def test_archived_notes_are_found_where_they_are_asked_for(palace: Palace) -> None:
    """`restore_memory` needs a path, and search is where paths come from."""
    palace.write("granite", path="ideas/Stone")
    palace.purge("01_Shallow/ideas/Stone.md", confirm=True)

    [found] = palace.search("granite", room="_Archive")["matches"]

    assert (found["path"], found["layer"]) == ("_Archive/01_Shallow/ideas/Stone.md", "")
    assert palace.search("granite")["matches"] == []


# -- content that would run --------------------------------------------------------------------------------

RUNS = [
    "<script>x</script>",
    "![](https://evil.example/x.png)",
    "`$= dv.pages()`",
    "<% tp.file.cursor() %>",
    "<%",
]


@pytest.mark.parametrize("words", RUNS)
def test_no_argument_carries_what_a_dashboard_would_run(
    palace: Palace, vault: Path, note: Note, words: str
) -> None:
    """Dataview shows the texts of properties as Markdown, and Templater reads a new file from its start."""
    note("01_Shallow/a.md", "---\nid: mem_a\n---\na\n")
    before = bytes_of(vault)

    for call in (
        lambda: palace.write("x", title=f"On {words}"),
        lambda: palace.write("x", source_session=words),
        lambda: palace.purge("01_Shallow/a.md", reason=words, confirm=True),
        lambda: palace.update_map("add_link", words),
    ):
        with pytest.raises(UnsafeContent):
            call()

    assert bytes_of(vault) == before


def test_a_title_may_speak_of_markup_in_code(palace: Palace) -> None:
    saved = palace.write("x", title="How `<script>` works")["saved_path"]

    assert saved == "01_Shallow/How ' script ' works.md"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("```", "```\n<script>alert(1)</script>\n```"),
        ("~~~~\ncode", "~~~~\n![](http://evil.example/x.png)\n~~~~"),
        ("first <% tp.", "second %> last"),
    ],
)
def test_two_harmless_appends_do_not_make_a_harmful_note(
    palace: Palace, vault: Path, first: str, second: str
) -> None:
    saved = palace.write(first, title="Plan")["saved_path"]
    before = bytes_of(vault)

    with pytest.raises(UnsafeContent):
        palace.write(second, path=saved, mode="append")

    assert bytes_of(vault) == before


def test_what_a_person_runs_in_their_note_does_not_keep_an_agent_from_adding_to_it(
    palace: Palace, note: Note, vault: Path
) -> None:
    theirs = "```dataviewjs\ndv.pages()\n```\n\n![](https://example.org/x.png)\n"
    note("01_Shallow/a.md", theirs)

    palace.write("plain words", path="a", mode="append")

    assert theirs in (vault / "01_Shallow/a.md").read_text(encoding="utf-8")


def test_in_a_huge_note_what_is_added_is_judged_without_its_code_marks(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", "```\n" + "filler\n" * 40_000)

    with pytest.raises(UnsafeContent):
        palace.write("```\n<script>x</script>\n```", path="a", mode="append")

    palace.write("plain `code` words", path="a", mode="append")


# -- policy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [("---\nread_only: true\n", 1), ("read_only: true\n", 1), ("# Policy\n\nread_only: true\n", 3), ("", 0)],
)
def test_a_policy_without_a_header_does_not_undo_the_last_good_one(
    open_palace: OpenPalace, vault: Path, note: Note, text: str, line: int
) -> None:
    note("_System/Policy.md", "---\ntimezone: UTC\nsediment_density: 0.7\n---\n")
    open_palace().metabolize(confirm=True)

    note("_System/Policy.md", text)
    palace = open_palace()

    assert palace.house.policy().sediment_density == 0.7
    assert ("_System/Policy.md", line, "bad_policy") in {
        (found.path, found.line, found.code) for found in palace.check()
    }


def test_a_policy_that_is_all_prose_means_the_defaults(palace: Palace, note: Note) -> None:
    note("_System/Policy.md", "# Policy\n\nAll as usual.\n")

    assert palace.check() == []


def test_a_policy_that_allows_nothing_destructive_does_not_ask_to_wait(palace: Palace, note: Note) -> None:
    note("_System/Policy.md", "---\ntimezone: UTC\nmax_destructive_per_minute: 0\n---\n")
    note("01_Shallow/a.md", "a\n")

    with pytest.raises(RateLimited) as refused:
        palace.purge("01_Shallow/a.md", confirm=True)

    assert "ait" not in str(refused.value)


# -- the map -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "link", ["```", "- ```js", "<!--", "$$", "%%", "[[a]]\u2028- b", "[[a]]\x85b", "a\x0bb", "\ufeff[[a]]"]
)
def test_no_link_swallows_what_stands_below_it_in_the_map(
    palace: Palace, vault: Path, note: Note, link: str
) -> None:
    note("PALACE_MAP.md", "## Links\n\n- [[a]]\n\ntheirs\n")
    before = bytes_of(vault)

    with pytest.raises((InvalidArguments, UnsafeContent)):
        palace.update_map("add_link", link)

    assert bytes_of(vault) == before


def test_a_map_that_begins_with_a_byte_order_mark_keeps_one_list(
    palace: Palace, vault: Path, note: Note
) -> None:
    note("PALACE_MAP.md", "\ufeff## Links\n- [[b]]\n")

    palace.update_map("add_link", "[[c]]")

    assert (vault / "PALACE_MAP.md").read_text(encoding="utf-8") == "\ufeff## Links\n- [[b]]\n- [[c]]\n"


def test_a_map_that_is_no_utf_8_is_not_said_to_be_empty(palace: Palace, note: Note) -> None:
    note("PALACE_MAP.md", b"# caf\xe9\n")

    assert palace.read_map()["map"] == "# caf\ufffd\n"


@pytest.mark.parametrize(
    "text",
    [
        "a\n%% palace:begin %%\nx\n%% palace:begin %%\ny\n%% palace:end %%\nz\n",
        "%% palace:end %%\nx\n%% palace:begin %%\n",
        "```\n%% palace:begin %%\n```\n%% palace:begin %%\ngenerated\n%% palace:end %%\n",
        "# M\n%% palace:begin %%\n## Links\n\n- [[generated]]\n",
        "  %% palace:begin %%  \nq\n  %% palace:end %%\n",
        "---\na: [1\n---\n## Links\n",
        "<!--\n## Links\n-->\n",
        "text %% palace:begin %% x\r\n",
    ],
)
def test_every_line_of_a_broken_map_outlives_its_links(
    palace: Palace, vault: Path, note: Note, text: str
) -> None:
    place = note("PALACE_MAP.md", text)

    palace.update_map("add_link", "[[zz]]")
    added = place.read_bytes().decode().split("\n")
    palace.update_map("remove_link", "[[zz]]")

    assert sum("[[zz]]" in line for line in added) == 1
    assert "[[zz]]" not in place.read_text(encoding="utf-8")
    rest = iter(added)
    assert all(line in rest for line in text.rstrip("\n").split("\n"))  # all of them, in their order


# -- reading what is out of measure ------------------------------------------------------------------------


def test_a_title_of_a_pages_length_does_not_crowd_out_the_answer(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", f"---\ntitle: {'T' * 50_000}\n---\ngranite\n")

    assert len(palace.read(path="01_Shallow/a.md")["title"]) == 300
    assert len(palace.search("granite")["matches"][0]["title"]) == 300


def test_a_heading_is_found_in_either_unicode_form(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", "# U\u0308bung\nx\n# Other\ny\n")

    assert palace.read(path="01_Shallow/a.md", section="\xdcbung")["content"] == "# U\u0308bung\nx\n"


def test_endless_headings_are_shortened_and_found_by_what_is_shown(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", "".join(f"# {letter * 3_000}\n{letter}\n" for letter in "abcdefgh"))

    with pytest.raises(NotFound) as refused:
        palace.read(path="01_Shallow/a.md", section="nothing")

    assert len(str(refused.value)) < 2_000
    shown = refused.value.facts["outline"]
    assert isinstance(shown, list)
    assert palace.read(path="01_Shallow/a.md", section=shown[1], max_tokens=9_000)["content"].endswith("b\n")


def test_a_new_note_takes_no_link_from_a_note_with_two_extensions(
    palace: Palace, note: Note, vault: Path
) -> None:
    note("01_Shallow/x.md.md", "x\n")
    note("01_Shallow/a.md", "[[x.md]]\n")

    saved = palace.write("y", title="x")["saved_path"]

    assert saved == "01_Shallow/x 2.md"


# -- notes out of all measure ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f'---\n? "{"k" * 300_000}"\n: 1\n? "{"k" * 300_000}"\n: 2\n---\nx\n',
        f"---\na: *{'z' * 300_000}\n---\nx\n",
        f"---\nlayer: {'l' * 300_000}\n---\nx\n",
    ],
)
def test_a_problem_is_told_in_few_words(palace: Palace, note: Note, text: str) -> None:
    note("01_Shallow/a.md", text)

    told = [problem.message for problem in palace.check()]

    assert told
    assert max(map(len, told)) < 400


def test_a_name_with_a_line_end_is_told_to_be_unlinkable(palace: Palace, note: Note) -> None:
    note("01_Shallow/two\nlines.md", "x\n")

    assert {problem.code for problem in palace.check()} == {"unlinkable_name"}


# -- journals that other machines or editors damaged -------------------------------------------------------


@pytest.mark.parametrize("state", ["[]", "{}", '["begin"]', "null", "5", '""', '"nonsense"'])
@pytest.mark.parametrize("op", ['"a1"', "[]", "null"])
def test_a_journal_line_of_any_shape_stops_nothing(
    open_palace: OpenPalace, note: Note, state: str, op: str
) -> None:
    """The journals of other machines come by sync; one odd line kept the whole palace from opening."""
    note("_System/journal/other.jsonl", f'{{"v": 1, "op": {op}, "state": {state}}}\n')
    note("01_Shallow/a.md", "granite\n")

    palace = open_palace()

    assert palace.read(path="01_Shallow/a.md")["content"] == "granite\n"
    assert {problem.code for problem in palace.check()} == {"journal_torn"}


@pytest.mark.parametrize(
    "text", ["null", "[]", "5", "[" * 100_000, '{"shallow_days": "x", "timezone": ["a"]}']
)
def test_a_damaged_memory_of_the_policy_is_as_good_as_none(
    open_palace: OpenPalace, note: Note, text: str
) -> None:
    note(".palace/policy.json", text)
    note("01_Shallow/a.md", "granite\n")

    assert open_palace().read(path="01_Shallow/a.md")["content"] == "granite\n"


@pytest.mark.parametrize("name", ["../../x", "a/b", "a\nb", ".", "x" * 100_000, ""])
def test_a_damaged_name_of_this_machine_is_replaced(
    open_palace: OpenPalace, vault: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/machine-id").write_text(name, encoding="utf-8")

    open_palace().write("x", title="a")

    machine = (tmp_path / "state/machine-id").read_text(encoding="utf-8")
    assert machine != name
    assert [path.name for path in tmp_path.rglob("*.jsonl")] == [f"{machine}.jsonl"]
