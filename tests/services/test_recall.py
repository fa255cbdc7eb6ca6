"""Reading and searching: whole, cut, by section; any word; and a use that is counted once a day."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.conftest import Clock
from vault_palace.core import frontmatter
from vault_palace.core.errors import Conflict, InvalidArguments, NotFound
from vault_palace.index.cache import CacheBusy
from vault_palace.services.palace import Palace

Note = Callable[..., Path]


def header(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def test_reading_counts_as_one_use_a_day(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="T")
    clock.turn(days=2)

    for _ in range(10):
        palace.read(path="01_Shallow/T.md")
        clock.turn(hours=0.5)

    found = header(vault, "01_Shallow/T.md")
    assert (found["streak"], found["last_touched"]) == (1, "2031-03-03T12:00:00")


def test_reading_lifts_a_negative_use_also_on_the_same_day(
    palace: Palace, vault: Path, clock: Clock, note: Note
) -> None:
    note(
        "01_Shallow/T.md",
        "---\nid: mem_t\nlayer: shallow\ncreated: 2031-02-01\n"
        "last_touched: 2031-03-01T09:00:00\nstreak: -3\n---\nx\n",
    )

    palace.read(path="01_Shallow/T.md")

    assert header(vault, "01_Shallow/T.md")["streak"] == 0


def test_a_reading_that_is_no_touch_writes_nothing(palace: Palace, vault: Path, clock: Clock) -> None:
    palace.write("x", title="T")
    clock.turn(days=2)
    before = (vault / "01_Shallow/T.md").read_bytes()

    palace.read(path="01_Shallow/T.md", touch=False)
    palace.search("x")

    assert (vault / "01_Shallow/T.md").read_bytes() == before


def test_a_touch_changes_only_its_own_lines(palace: Palace, vault: Path, clock: Clock, note: Note) -> None:
    path = note(
        "01_Shallow/T.md",
        "---\n# mine\nid: mem_t\nlayer: shallow\ncreated: '2031-02-01T00:00:00+00:00'\n"
        "last_touched: '2031-02-27T00:00:00+00:00'\ndensity: 0.20\nstreak: 1\nbacklinks: 0\ndecay_days: 7\n"
        "decays_on: 2031-03-14\nstatus: active\nzeta: [1,  2]\n---\nbody",
    )
    before = path.read_text(encoding="utf-8").splitlines()

    palace.read(id="mem_t")

    after = path.read_text(encoding="utf-8").splitlines()
    changed = {old.split(":")[0] for old, new in zip(before, after, strict=True) if old != new}
    assert changed == {"last_touched", "streak", "decays_on"}


@pytest.mark.parametrize("given", [{"path": "01_Shallow/T.md"}, {"path": "01_Shallow/T"}, {"title": "t"}])
def test_a_note_is_read_by_path_or_title(palace: Palace, given: dict[str, str]) -> None:
    palace.write("x", title="T")

    assert palace.read(**given)["content"] == "x"  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{}, {"path": "a", "id": "b"}, {"path": ""}, {"title": " "}])
def test_exactly_one_way_to_name_a_note_is_taken(palace: Palace, given: dict[str, str]) -> None:
    with pytest.raises(InvalidArguments):
        palace.read(**given)  # type: ignore[arg-type]


def test_a_moved_note_is_hinted_at(palace: Palace, vault: Path) -> None:
    palace.write("x", title="T")
    (vault / "01_Shallow/T.md").rename(vault / "02_Sediment/T.md")

    with pytest.raises(NotFound, match=r"02_Sediment/T\.md"):
        palace.read(path="01_Shallow/T.md")


def test_an_id_that_two_notes_share_is_refused_with_both_paths(palace: Palace, note: Note) -> None:
    note("01_Shallow/a.md", "---\nid: mem_x\n---\n")
    note("01_Shallow/b.md", "---\nid: mem_x\n---\n")

    with pytest.raises(Conflict) as refused:
        palace.read(id="mem_x")

    assert refused.value.facts["paths"] == ["01_Shallow/a.md", "01_Shallow/b.md"]


def test_an_id_means_the_main_file_beside_a_conflict_copy(palace: Palace, note: Note) -> None:
    """FS-14: a copy is never read as the memory."""
    note("01_Shallow/budget.md", "---\nid: 7f\n---\nmain")
    note("01_Shallow/budget.sync-conflict-20250102-030405-ABCDEFG.md", "---\nid: 7f\n---\ncopy")

    assert palace.read(id="7f")["content"] == "main"
    assert palace.search("copy")["matches"] == []


def test_reading_by_path_needs_no_cache(palace: Palace, vault: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    palace.write("x", title="T")

    def unusable(_shelf: object) -> None:
        raise CacheBusy("held elsewhere")

    monkeypatch.setattr(type(palace.house.shelf), "cache", property(unusable))

    assert palace.read(path="01_Shallow/T.md", touch=False)["content"] == "x"


def test_a_long_note_is_cut_and_says_how_to_get_the_rest(palace: Palace) -> None:
    body = "\n\n".join(f"## Part {number}\n\n" + "words and more words. " * 60 for number in range(20))
    palace.write(body, title="Long")

    answer = palace.read(title="Long", max_tokens=300)

    assert answer["truncated"]
    assert [line.partition(" (")[0] for line in answer["outline"]] == ["Part 0", "Part 1", "Part 19"]
    assert "3 of 20 headings:" in answer["more"]
    assert answer["next"] == f"from {len(answer['content'])}"
    assert palace.read(title="Long", section="Part 7")["content"].startswith("## Part 7")


def test_numbers_that_json_would_bend_are_shown_as_their_text(palace: Palace, note: Note) -> None:
    """FM-11, FM-14."""
    note("01_Shallow/n.md", "---\nzip: 01234\nmsg_id: 9007199254740993\nopens: 10:00\ntitle: 3.10\n---\nx")

    answer = palace.read(path="01_Shallow/n.md", touch=False)

    assert answer["metadata"]["zip"] == "01234"
    assert answer["metadata"]["msg_id"] == "9007199254740993"
    assert answer["metadata"]["opens"] == "10:00"
    assert answer["title"] == "3.10"


def test_bytes_that_are_not_utf8_are_shown_and_never_changed(palace: Palace, note: Note, vault: Path) -> None:
    """FS-12."""
    path = note("01_Shallow/old.md", b"---\ntitle: Cr\xe8me\n---\nbr\xfbl\xe9e\n")
    before = path.read_bytes()

    answer = palace.read(path="01_Shallow/old.md")
    palace.metabolize(confirm=True)

    assert answer["warnings"]
    assert path.read_bytes() == before
    assert [problem.code for problem in palace.check()] == ["not_utf8"]


def test_search_narrows_by_room_layer_tag_and_density(palace: Palace) -> None:
    palace.write("word one", path="ideas/a", tags=["x/y"], density=0.9)
    palace.write("word two", path="ideas/b", layer="sediment")
    palace.write("word three", path="c")

    def found(**filters: Any) -> list[str]:
        return sorted(match["path"] for match in palace.search("word", **filters)["matches"])

    assert len(found()) == 3
    assert found(room="ideas") == ["01_Shallow/ideas/a.md", "02_Sediment/ideas/b.md"]
    assert found(room="01_Shallow/ideas") == ["01_Shallow/ideas/a.md"]
    assert found(room="sediment") == ["02_Sediment/ideas/b.md"]
    assert found(layer="sediment") == ["02_Sediment/ideas/b.md"]
    assert found(tags=["x"]) == ["01_Shallow/ideas/a.md"]
    assert found(min_density=0.5) == ["01_Shallow/ideas/a.md"]
    assert len(found(room=".")) == 3


def test_a_missing_room_is_said_to_be_missing(palace: Palace) -> None:
    palace.write("x", path="ideas/a")

    with pytest.raises(NotFound, match="ideas"):
        palace.search("x", room="nowhere")


def test_each_hit_carries_why_age_density_and_due_day(palace: Palace, clock: Clock) -> None:
    palace.write("The kraken sleeps.", title="Sea")
    clock.turn(days=3)

    (match,) = palace.search("kraken")["matches"]

    assert (match["age_days"], match["density"], match["decays_on"], match["layer"]) == (
        3,
        0.2,
        "2031-03-09",
        "shallow",
    )
    assert "kraken" in match["why"]
    assert "kraken" in match["snippet"]


def test_the_cursor_brings_every_hit_once(palace: Palace) -> None:
    for number in range(23):
        palace.write("meeting notes", title=f"Meeting {number}")

    seen: list[str] = []
    cursor = None
    while True:
        page = palace.search("meeting", limit=5, cursor=cursor)
        seen += [match["path"] for match in page["matches"]]
        cursor = page["cursor"]
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 23


def test_an_answer_over_its_budget_is_cut_at_a_note_and_goes_on(palace: Palace) -> None:
    """MC-05."""
    for number in range(10):
        palace.write("meeting " + "long words here " * 20, title=f"Meeting {number}")

    first = palace.search("meeting", max_tokens=300)
    rest = palace.search("meeting", cursor=first["cursor"])

    assert 0 < len(first["matches"]) < 10
    assert first["note"]
    assert {match["path"] for match in first["matches"]}.isdisjoint(
        match["path"] for match in rest["matches"]
    )


@pytest.mark.parametrize("limit", [0, -5, 1000, True])
def test_a_limit_out_of_range_is_refused(palace: Palace, limit: int) -> None:
    with pytest.raises(InvalidArguments):
        palace.search("x", limit=limit)


@pytest.mark.parametrize("query", ["", "   ", "*", "()", '"', "?!", "\u200b", "."])
def test_a_query_without_words_answers_a_hint(palace: Palace, query: str) -> None:
    """SR-05."""
    palace.write("x", title="T")

    answer = palace.search(query)

    assert answer["matches"] == []
    assert answer["note"]


def test_a_persons_edit_is_found_without_anyone_asking(
    palace: Palace, vault: Path, note: Note, clock: Clock
) -> None:
    palace.write("ghostword", title="T")
    path = vault / "01_Shallow/T.md"
    path.write_text(path.read_text(encoding="utf-8").replace("ghostword", "newword"), encoding="utf-8")
    palace.house.refresh(if_older=0)

    assert palace.search("ghostword")["matches"] == []
    assert [match["title"] for match in palace.search("newword")["matches"]] == ["T"]


def test_a_deleted_note_leaves_no_ghost(palace: Palace, vault: Path) -> None:
    palace.write("ghostword", title="T")
    (vault / "01_Shallow/T.md").unlink()
    palace.house.refresh(if_older=0)

    assert palace.search("ghostword")["matches"] == []


def test_reading_by_query_answers_as_before(palace: Palace) -> None:
    palace.write("hello world", path="ideas/t1")

    answer = palace.find("hello", layer="shallow")

    assert answer["matches"][0]["path"] == "01_Shallow/ideas/t1.md"
