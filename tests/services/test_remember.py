"""Writing: what lands on disk, what is refused, and that nothing is ever written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock, OpenPalace
from vault_palace.core import frontmatter
from vault_palace.core.errors import (
    BudgetExceeded,
    Conflict,
    Exists,
    InvalidArguments,
    MalformedNote,
    NotFound,
    PathViolation,
    PolicyViolation,
    UnsafeContent,
)
from vault_palace.services.palace import Limits, Palace

Note = Callable[..., Path]


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def test_a_title_that_is_not_the_file_s_name_comes_with_the_link_that_leads_there(palace: Palace) -> None:
    saved = palace.write("x", title="Project log", path="apollo/log")
    same = palace.write("y", title="Kafka")

    assert saved["warnings"] == ["A link to it is [[log]]: the title is not the file's name, only an alias."]
    assert same["warnings"] == []


def test_a_written_note_is_found_by_the_next_search(palace: Palace) -> None:
    palace.write("The audit trail decided it.", title="Event sourcing")

    found = palace.search("audit")

    assert [match["path"] for match in found["matches"]] == ["01_Shallow/Event sourcing.md"]


@pytest.mark.parametrize(
    "body", ["one line", "two\nlines\n", "\n\nblank first", "unix\u2028odd\x0cends\n", "🧭 漢字\n"]
)
def test_the_text_is_read_back_as_it_was_given(palace: Palace, body: str) -> None:
    """FM-29: the same code points."""
    saved = palace.write(body, title="Exact")["saved_path"]

    assert palace.read(path=saved)["content"] == body


@pytest.mark.parametrize(
    ("path", "layer", "place"),
    [
        ("ideas/x", None, "01_Shallow/ideas/x.md"),
        ("ideas/x.md", "sediment", "02_Sediment/ideas/x.md"),
        ("02_Sediment/ideas/x", None, "02_Sediment/ideas/x.md"),
        ("02_Sediment/ideas/x", "sediment", "02_Sediment/ideas/x.md"),
        ("v2.0", None, "01_Shallow/v2.0.md"),
        ("./a/./b", None, "01_Shallow/a/b.md"),
    ],
)
def test_a_path_is_relative_to_the_layer(palace: Palace, path: str, layer: str | None, place: str) -> None:
    assert palace.write("x", path=path, layer=layer)["saved_path"] == place


def test_a_path_that_contradicts_the_layer_is_refused(palace: Palace) -> None:
    with pytest.raises(InvalidArguments, match="02_Sediment"):
        palace.write("x", path="02_Sediment/x", layer="bedrock")


def test_a_taken_name_gets_a_number_and_the_answer_says_so(palace: Palace) -> None:
    palace.write("one", title="Plan", layer="bedrock")

    answer = palace.write("two", title="plan")

    assert answer["saved_path"] == "01_Shallow/plan 2.md"
    assert any("plan 2" in warning for warning in answer["warnings"])


def test_a_taken_explicit_path_is_refused_with_the_rev(palace: Palace, vault: Path) -> None:
    """MC-17: create never overwrites, whatever the case."""
    first = palace.write("forty lines", path="2025-05-05")

    for path in ("2025-05-05", "2025-05-05.md"):
        with pytest.raises(Exists) as refused:
            palace.write("summary", path=path)
        assert refused.value.facts["rev"] == first["rev"]

    assert palace.read(path=first["saved_path"])["content"] == "forty lines"


def test_a_file_that_the_index_does_not_know_yet_is_not_overwritten(
    palace: Palace, vault: Path, note: Note
) -> None:
    """MC-17: exclusive creation on disk, not a look into the index."""
    palace.search("anything")
    path = note("01_Shallow/fresh.md", "a person made this 10 ms ago\n")

    with pytest.raises(Exists):
        palace.write("x", path="fresh")
    renamed = palace.write("x", title="fresh")

    assert path.read_text(encoding="utf-8") == "a person made this 10 ms ago\n"
    assert renamed["saved_path"] == "01_Shallow/fresh 2.md"


def test_titles_that_clean_up_to_one_name_become_four_notes(palace: Palace, vault: Path) -> None:
    """FS-06."""
    titles = {"a/b": "one", "a:b": "two", "a-b": "three", "A b ": "four"}

    saved = {title: palace.write(text, title=title)["saved_path"] for title, text in titles.items()}

    assert len({path.casefold() for path in saved.values()}) == 4
    for title, text in titles.items():
        assert palace.read(path=saved[title])["content"] == text


@pytest.mark.parametrize(
    "title", ["Why now?", "a/b", "x:y", '"q"', "<t>", "p|q", "s*t", "back\\slash", "../up"]
)
def test_a_title_no_file_can_hold_stays_findable(palace: Palace, vault: Path, title: str) -> None:
    """FS-03: cleaned for the file, kept as an alias."""
    saved = palace.write("x", title=title)["saved_path"]

    assert saved.count("/") == 1
    assert palace.read(title=title)["path"] == saved


def test_density_at_writing_is_a_rating(palace: Palace, vault: Path) -> None:
    saved = palace.write("x", title="Gold", density=0.75)["saved_path"]

    found = header(vault, saved)
    assert (found["density"], found["rated_on"], found["rises_on"]) == (0.75, "2031-03-01", "2031-03-08")


@pytest.mark.parametrize("density", [-0.1, 1.1, True])
def test_a_density_outside_0_to_1_is_refused(palace: Palace, density: float) -> None:
    with pytest.raises(InvalidArguments, match="density"):
        palace.write("x", title="Gold", density=density)


def test_tags_are_written_as_a_block_list_without_hash(palace: Palace, vault: Path) -> None:
    saved = palace.write("x", title="T", tags=["#apollo", "team talk", "apollo"])["saved_path"]

    assert "tags:\n  - apollo\n  - team-talk\n" in (vault / saved).read_text(encoding="utf-8")


@pytest.mark.parametrize("tag", ["[x]", "1984", "a,b", "a.b"])
def test_a_tag_obsidian_would_not_know_is_refused(palace: Palace, tag: str) -> None:
    with pytest.raises(InvalidArguments, match="tag"):
        palace.write("x", title="T", tags=[tag])


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"content": ""}, InvalidArguments),
        ({"content": " \n "}, InvalidArguments),
        ({"content": "x\0y"}, InvalidArguments),
        ({"content": "cut \ud83e here"}, InvalidArguments),
        ({"content": "x", "title": "cut \ud83e"}, InvalidArguments),
        ({"content": "x", "title": "a\0b"}, InvalidArguments),
        ({"content": "x", "tags": ["\ud83e"]}, InvalidArguments),
        ({"content": "x", "mode": "overwrite"}, InvalidArguments),
        ({"content": "x", "layer": "mantle"}, InvalidArguments),
        ({"content": "x", "path": "../x"}, PathViolation),
        ({"content": "x", "path": "/etc/passwd"}, PathViolation),
        ({"content": "x", "path": ".obsidian/app"}, PathViolation),
        ({"content": "x" * 50_001}, BudgetExceeded),
        ({"content": "```dataviewjs\n1\n```"}, UnsafeContent),
        ({"content": "x", "mode": "replace", "path": "none"}, NotFound),
        ({"content": "x", "mode": "append", "path": "none"}, NotFound),
        ({"content": "x", "mode": "append"}, InvalidArguments),
        ({"content": "x", "supersedes": "Nobody"}, NotFound),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    palace: Palace, vault: Path, arguments: dict[str, Any], refusal: type[Exception]
) -> None:
    """MC-04, MC-14, MC-11."""
    before = sorted(vault.rglob("*.md"))

    with pytest.raises(refusal):
        palace.write(**arguments)

    assert sorted(vault.rglob("*.md")) == before


def test_active_content_is_written_where_policy_allows_it(palace: Palace, vault: Path) -> None:
    (vault / "_System/Policy.md").write_text("---\nactive_content: allow\n---\n", encoding="utf-8")

    assert palace.write("```dataviewjs\n1\n```", title="Code")["saved_path"]


def test_an_inline_field_that_dataview_would_merge_is_warned_of(palace: Palace) -> None:
    answer = palace.write("density:: 0.9", title="Inline")

    assert any("density" in warning for warning in answer["warnings"])


def test_appending_keeps_every_byte_that_was_there(palace: Palace, note: Note, vault: Path) -> None:
    path = note("01_Shallow/log.md", b"---\r\nid: mem_a\r\n# keep\r\nzeta: 1\r\n---\r\n# Log\r\nfirst")

    palace.write("second", mode="append", path="log")

    data = path.read_bytes()
    assert b"# keep\r\nzeta: 1\r\n" in data
    assert data.endswith(b"---\r\n# Log\r\nfirst\r\n\r\nsecond")
    assert b"\n" not in data.replace(b"\r\n", b"")


def test_appending_to_a_broken_header_leaves_its_bytes_alone(palace: Palace, note: Note) -> None:
    """FM-02 and SPEC §2: the body can still be appended to."""
    path = note("01_Shallow/plan.md", "---\nname: plan\nsummary: cost: 40\n---\n# Plan\n")

    answer = palace.write("more", mode="append", path="plan")

    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\nname: plan\nsummary: cost: 40\n---\n# Plan\n")
    assert "more" in text
    assert any("line 3" in warning for warning in answer["warnings"])


def test_replacing_needs_the_rev_that_was_read(palace: Palace) -> None:
    saved = palace.write("old", title="T")
    with pytest.raises(Conflict):
        palace.write("new", mode="replace", path=saved["saved_path"])
    with pytest.raises(Conflict):
        palace.write("new", mode="replace", path=saved["saved_path"], if_rev="000000000000")

    palace.write("new", mode="replace", path=saved["saved_path"], if_rev=saved["rev"])

    assert palace.read(path=saved["saved_path"])["content"] == "new"


def test_the_rev_that_a_refusal_names_is_the_one_that_is_taken(palace: Palace, note: Note) -> None:
    """A note that records no layer has its folder's default lifetime, in the refusal too."""
    note("01_Shallow/T.md", "---\ndecay_days: 7\n---\nold")
    with pytest.raises(Conflict) as refused:
        palace.write("new", mode="replace", path="T")

    palace.write("new", mode="replace", path="T", if_rev=str(refused.value.facts["rev"]))

    assert palace.read(path="01_Shallow/T.md")["content"] == "new"


def test_a_mere_reading_does_not_change_the_rev(palace: Palace, clock: Clock) -> None:
    saved = palace.write("old", title="T")
    clock.turn(days=1)
    palace.read(path=saved["saved_path"])
    palace.metabolize(confirm=True)

    palace.write("new", mode="replace", path=saved["saved_path"], if_rev=saved["rev"])

    assert palace.read(path=saved["saved_path"])["content"] == "new"


def test_a_persons_edit_makes_a_replace_a_conflict(palace: Palace, vault: Path) -> None:
    saved = palace.write("old", title="T")
    path = vault / saved["saved_path"]
    path.write_text(path.read_text(encoding="utf-8") + "a person's line\n", encoding="utf-8")

    with pytest.raises(Conflict, match="changed since you read it"):
        palace.write("new", mode="replace", path=saved["saved_path"], if_rev=saved["rev"])


def test_replacing_a_note_that_a_person_moved_names_where_it_is(palace: Palace, vault: Path) -> None:
    """MC-19: never two notes with one id."""
    saved = palace.write("old", path="spec")
    (vault / "01_Shallow/spec.md").rename(vault / "02_Sediment/spec.md")

    with pytest.raises(NotFound, match=r"02_Sediment/spec\.md"):
        palace.write("new", mode="replace", path="spec", layer="shallow", if_rev=saved["rev"])


def test_superseding_marks_both_notes(palace: Palace, vault: Path) -> None:
    palace.write("x", title="Old way")

    saved = palace.write("y", title="New way", supersedes="Old way")["saved_path"]

    assert header(vault, saved)["supersedes"] == ["[[Old way]]"]
    assert header(vault, "01_Shallow/Old way.md")["superseded_by"] == "[[New way]]"


def test_rating_is_not_a_use(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="T")
    clock.turn(days=3)

    answer = palace.rate(path="01_Shallow/T.md", density=0.8)

    found = header(vault, "01_Shallow/T.md")
    assert answer["before"]["density"] == 0.2
    assert answer["after"]["density"] == 0.8
    assert (found["last_touched"], found["rated_on"], found["rises_on"]) == (
        "2031-03-01T12:00:00",
        "2031-03-04",
        "2031-03-08",
    )


def test_pinning_takes_the_due_day_away(palace: Palace, vault: Path) -> None:
    palace.write("x", title="T")

    answer = palace.rate(path="01_Shallow/T.md", pinned=True)

    assert answer["decays_on"] is None
    assert header(vault, "01_Shallow/T.md")["pinned"] is True


def test_an_unpinned_note_is_not_let_go_the_same_night(palace: Palace, clock: Clock) -> None:
    palace.write("x", title="T")
    palace.rate(path="01_Shallow/T.md", pinned=True)
    clock.turn(days=100)
    palace.rate(path="01_Shallow/T.md", pinned=False)
    clock.turn(days=1)

    assert palace.metabolize(confirm=True)["archived"] == []


@pytest.mark.parametrize("arguments", [{}, {"decay_days": 0}, {"decay_days": -1}, {"density": 2}])
def test_a_rating_that_says_nothing_is_refused(palace: Palace, arguments: dict[str, Any]) -> None:
    palace.write("x", title="T")

    with pytest.raises(InvalidArguments):
        palace.rate(path="01_Shallow/T.md", **arguments)


def test_rating_a_note_with_a_broken_header_changes_nothing(palace: Palace, note: Note) -> None:
    """FM-02, MC-20."""
    path = note("01_Shallow/plan.md", "---\nsummary: cost: 40 (was: 55)\n---\n# Plan\n")
    before = path.read_bytes()

    for _ in range(10):
        with pytest.raises(MalformedNote, match="line 2"):
            palace.rate(path="01_Shallow/plan.md", density=0.5)

    assert path.read_bytes() == before


def test_a_read_only_palace_writes_nothing(open_palace: OpenPalace, vault: Path, note: Note) -> None:
    note("01_Shallow/a.md", "x\n")
    palace = open_palace(read_only=True)

    for act in (
        lambda: palace.write("x", title="T"),
        lambda: palace.rate(path="01_Shallow/a.md", density=1),
        lambda: palace.metabolize(confirm=True),
        lambda: palace.purge("01_Shallow/a.md", confirm=True),
        lambda: palace.update_map("add_link", "[[a]]"),
        lambda: palace.recover(),
    ):
        with pytest.raises(PolicyViolation, match="read-only"):
            act()
    palace.read(path="01_Shallow/a.md")

    assert (vault / "01_Shallow/a.md").read_text(encoding="utf-8") == "x\n"
    assert not (vault / ".palace").exists()


def test_limits_come_from_the_settings(open_palace: OpenPalace) -> None:
    palace = open_palace(limits=Limits(content=10, query=5))

    with pytest.raises(BudgetExceeded):
        palace.write("eleven signs", title="T")
    with pytest.raises(BudgetExceeded):
        palace.search("six or more")
