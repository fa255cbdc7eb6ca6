"""Search: rank, filters, pages, and the words of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.index.notes_by_hand import a_note
from vault_palace.core.errors import InvalidArguments
from vault_palace.core.model import Layer
from vault_palace.index.cache import Cache
from vault_palace.index.search import Hits, folders_of, room_exists, rooms, search


def _paths(hits: Hits) -> list[str]:
    return [hit.path for hit in hits.hits]


def test_any_word_is_enough_and_more_words_come_first(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/one.md", "zebra lives here and there"))
    cache.put(a_note("01_Shallow/two.md", "zebra and quagga live here"))
    cache.put(a_note("01_Shallow/none.md", "something else entirely today"))

    found = search(cache, "quagga zebra")

    assert _paths(found) == ["01_Shallow/two.md", "01_Shallow/one.md"]


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ({"title": "zebra"}, {"tags": ("zebra",)}),
        ({"tags": ("zebra",)}, {"text": "zebra"}),
        ({"aliases": ("zebra",)}, {"text": "zebra"}),
    ],
)
def test_a_title_weighs_more_than_a_tag_and_a_tag_more_than_the_text(
    cache: Cache, stronger: dict[str, object], weaker: dict[str, object]
) -> None:
    cache.put(a_note("01_Shallow/a.md", **({"text": "filler"} | weaker)))  # type: ignore[arg-type]
    cache.put(a_note("01_Shallow/z.md", **({"text": "filler"} | stronger)))  # type: ignore[arg-type]
    for number in range(8):
        cache.put(a_note(f"01_Shallow/n{number}.md", "filler"))

    assert _paths(search(cache, "zebra")) == ["01_Shallow/z.md", "01_Shallow/a.md"]


def test_equal_notes_come_in_the_order_of_their_paths(cache: Cache) -> None:
    for name in ("c", "a", "b"):
        cache.put(a_note(f"01_Shallow/{name}.md", "zebra", title="same"))

    assert _paths(search(cache, "zebra")) == ["01_Shallow/a.md", "01_Shallow/b.md", "01_Shallow/c.md"]


def test_a_hit_says_what_matched_where(cache: Cache) -> None:
    cache.put(
        a_note(
            "01_Shallow/apollo/x.md", "event sourcing for apollo", title="Kafka topics", tags=("design/log",)
        )
    )

    hit = search(cache, "kafka designs apollo events sourc* absent").hits[0]

    assert hit.why == "title: kafka; tags: designs; folder: apollo; text: events, sourc*"


@pytest.fixture
def rooms_cache(cache: Cache) -> Cache:
    for path in (
        "01_Shallow/top.md",
        "01_Shallow/ideas/a.md",
        "01_Shallow/ideas/deep/b.md",
        "01_Shallow/ideas2/c.md",
        "01_Shallow/ideas-old/d.md",
        "02_Sediment/ideas/e.md",
        "02_Sediment/L_1/f.md",
        "02_Sediment/Lx1/g.md",
        "03_Bedrock/cafe\u0301/h.md",
        "_Archive/01_Shallow/ideas/i.md",
        "_System/Policy.md",
        "PALACE_MAP.md",
    ):
        cache.put(a_note(path, "zebra"))
    return cache


@pytest.mark.parametrize(
    ("room", "names"),
    [
        ("", "abcdefgh"),
        (".", "abcdefgh"),
        (" / ", "abcdefgh"),
        ("01_Shallow/ideas", "ab"),
        ("01_Shallow/ideas/", "ab"),
        ("./01_Shallow/ideas", "ab"),
        ("ideas", "abe"),
        ("ideas/deep", "b"),
        ("shallow", "abcd"),
        ("Shallow", "abcd"),
        ("02_Sediment", "efg"),
        ("shallow/ideas", "ab"),
        ("L_1", "f"),
        ("caf\u00e9", "h"),
        ("_Archive", ""),
        ("idea", ""),
        ("01_Shallow/%", ""),
        ("../02_Sediment", ""),
    ],
)
def test_a_room_is_a_folder_with_all_below_it(rooms_cache: Cache, room: str, names: str) -> None:
    found = search(rooms_cache, "zebra", room=room, limit=50)

    assert "".join(sorted(path[-4] for path in _paths(found) if not path.endswith("top.md"))) == names


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        ("", True),
        ("bedrock", True),
        ("ideas", True),
        ("ideas/deep", True),
        ("02_Sediment/ideas", True),
        ("idea", False),
        ("ideas%", False),
        ("03_Bedrock/ideas", False),
        ("L%1", False),
    ],
)
def test_a_room_that_holds_no_note_does_not_exist(rooms_cache: Cache, room: str, expected: bool) -> None:
    assert room_exists(rooms_cache, room) is expected


def test_the_rooms_that_there_are_can_be_named(rooms_cache: Cache) -> None:
    assert list(rooms(rooms_cache))[:2] == ["01_Shallow", "01_Shallow/ideas"]
    assert rooms(rooms_cache)["01_Shallow/ideas"] == 1


def test_the_archive_is_searched_only_when_asked(rooms_cache: Cache) -> None:
    assert "_Archive/01_Shallow/ideas/i.md" not in _paths(search(rooms_cache, "zebra", limit=50))
    assert "_Archive/01_Shallow/ideas/i.md" in _paths(
        search(rooms_cache, "zebra", room="ideas", include_archived=True, limit=50)
    )
    assert folders_of("_Archive/01_Shallow") == ("_Archive/01_Shallow",)


def test_a_layer_can_be_asked_for(rooms_cache: Cache) -> None:
    found = search(rooms_cache, "zebra", layer=Layer.BEDROCK)

    assert _paths(found) == ["03_Bedrock/cafe\u0301/h.md"]


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ((), "abc"),
        (("proj",), "ab"),
        (("#Proj",), "ab"),
        (("proj/x",), "a"),
        (("proj", "other"), "b"),
        (("pro",), ""),
        (("proj/",), "ab"),
        (("pro_",), ""),
    ],
)
def test_all_tags_must_be_there_and_a_parent_means_its_children(
    cache: Cache, tags: tuple[str, ...], names: str
) -> None:
    cache.put(a_note("01_Shallow/a.md", "zebra", tags=("Proj/X",)))
    cache.put(a_note("01_Shallow/b.md", "zebra", tags=("proj", "other")))
    cache.put(a_note("01_Shallow/c.md", "zebra", tags=("project",)))

    found = search(cache, "zebra", tags=tags)

    assert "".join(sorted(path[-4] for path in _paths(found))) == names


def test_a_density_can_be_asked_for_at_least(cache: Cache) -> None:
    for name, density in (("a", 0.5), ("b", 0.4999), ("c", None), ("d", 1.0)):
        cache.put(a_note(f"01_Shallow/{name}.md", "zebra", density=density))

    found = search(cache, "zebra", min_density=0.5)

    assert _paths(found) == ["01_Shallow/a.md", "01_Shallow/d.md"]


def test_pages_hold_every_match_once(cache: Cache) -> None:
    for number in range(23):
        cache.put(a_note(f"01_Shallow/n{number:02d}.md", "zebra " * (number % 3 + 1)))
    seen: list[str] = []

    page = search(cache, "zebra", limit=10)
    seen += _paths(page)
    while page.cursor:
        page = search(cache, "zebra", limit=10, cursor=page.cursor)
        seen += _paths(page)

    assert page.total == 23
    assert len(seen) == len(set(seen)) == 23


@pytest.mark.parametrize("cursor", ["", "x", "MTAuYWJj", "é", "\x00", "====", "MTA", "a" * 1000])
def test_a_garbled_cursor_is_refused(cache: Cache, cursor: str) -> None:
    cache.put(a_note("01_Shallow/a.md", "zebra"))

    with pytest.raises(InvalidArguments):
        search(cache, "zebra", cursor=cursor)


def test_a_cursor_of_another_search_is_refused(cache: Cache) -> None:
    for number in range(3):
        cache.put(a_note(f"01_Shallow/{number}.md", "zebra"))
    cursor = search(cache, "zebra", limit=1).cursor

    with pytest.raises(InvalidArguments):
        search(cache, "zebra", limit=1, cursor=cursor, layer=Layer.SHALLOW)
    with pytest.raises(InvalidArguments):
        search(cache, "zebras", limit=1, cursor=cursor)


def test_a_page_beyond_the_last_match_says_how_many_there_were(cache: Cache) -> None:
    for number in range(3):
        cache.put(a_note(f"01_Shallow/{number}.md", "zebra"))
    cursor = search(cache, "zebra", limit=2).cursor
    cache.remove("01_Shallow/0.md")
    cache.remove("01_Shallow/1.md")

    page = search(cache, "zebra", limit=2, cursor=cursor)

    assert page.hits == ()
    assert page.total == 1
    assert "no further page" in page.hint


@pytest.mark.parametrize(
    ("query", "arguments", "hint"),
    [
        ("?!", {}, "no word or number"),
        ("absent", {}, "No memory holds: absent"),
        ("zebra", {"layer": Layer.BEDROCK}, "1 note matches"),
        ("quagga", {}, "1 archived note does"),
    ],
)
def test_an_empty_answer_says_why(cache: Cache, query: str, arguments: dict[str, Layer], hint: str) -> None:
    cache.put(a_note("01_Shallow/a.md", "zebra"))
    cache.put(a_note("_Archive/01_Shallow/b.md", "quagga"))

    found = search(cache, query, layer=arguments.get("layer"))

    assert found.hits == ()
    assert hint in found.hint


def test_stop_words_are_searched_when_nothing_else_is_found(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/a.md", "what about the index"))
    cache.put(a_note("01_Shallow/b.md", "zebra"))

    assert _paths(search(cache, "zebra index")) == ["01_Shallow/b.md"]
    assert _paths(search(cache, "absent index")) == ["01_Shallow/a.md"]


def test_a_long_stop_word_that_is_rare_here_tells_something(cache: Cache) -> None:
    with cache.batch():
        for number in range(99):
            cache.put(a_note(f"01_Shallow/{number:02d}.md", "something about zebra"))
        cache.put(a_note("01_Shallow/found.md", "a system of stripes"))

    assert _paths(search(cache, "about stripes system"))[0] == "01_Shallow/found.md"
    assert "system" in search(cache, "stripes system").hits[0].why


def test_a_word_with_a_number_means_the_whole_word_where_there_is_one(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/a.md", "python3 here"))
    cache.put(a_note("01_Shallow/b.md", "perl5 or python 2"))

    assert _paths(search(cache, "python3")) == ["01_Shallow/a.md"]
    assert _paths(search(cache, "perl 5")) == ["01_Shallow/b.md"]
    assert _paths(search(cache, "python9")) == ["01_Shallow/a.md", "01_Shallow/b.md"]


def test_the_terms_of_the_answer_are_what_was_searched_for(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/a.md", "zebra"))

    found = search(cache, "the zebra")

    assert [term.shown for term in found.terms] == ["zebra"]


@given(query=st.text(st.characters(), max_size=60))
def test_no_query_is_an_error_of_the_engine(query: str, words_cache: Cache) -> None:
    found = search(words_cache, query)

    assert found.hits or found.hint


@pytest.fixture(scope="module")
def words_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    file: Path = tmp_path_factory.mktemp("words") / "c" / "index.sqlite3"
    with Cache.open(file, "v") as cache:
        cache.put(
            a_note("01_Shallow/a.md", 'AND OR NOT NEAR title: {text} ^start "quoted" * 1 é 倉 🧭 a b c')
        )
        yield cache
