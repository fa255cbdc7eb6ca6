"""Search cases: what people and agents type must find what is visible, and no sign may offend the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.index.notes_by_hand import a_note
from vault_palace.core.text import excerpt
from vault_palace.index.cache import Cache
from vault_palace.index.search import search


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache.open(tmp_path / "c" / "index.sqlite3", "v") as opened:
        opened.put(a_note("02_Sediment/filler.md", "nothing of it here", title="Filler"))
        yield opened


def _found(cache: Cache, query: str) -> list[str]:
    return [hit.note.stem for hit in search(cache, query).hits]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("don't", ["panic"]),
        ("don\u2019t", ["panic"]),
        ("don\u2018t", ["panic"]),
        ("O'Neill", ["oneill"]),
        ("O\u2019Neill", ["oneill"]),
        ("oneill", ["oneill"]),
        ("neill", ["oneill"]),
        ('"stop', ["oneill"]),
        ("'", []),
        ("''", []),
        ("rock 'n' roll", ["rock"]),
        ("rock \u2019n\u2019 roll", ["rock"]),
        ("\u201cstop\u201d", ["oneill"]),
        ('"don\'t panic"', ["panic"]),
        ("'panic", ["panic"]),
        ('""panic""', ["panic"]),
    ],
)
def test_sr_02_quotes_are_signs_and_curly_apostrophes_are_straight_ones(
    cache: Cache, query: str, expected: list[str]
) -> None:
    cache.put(a_note("01_Shallow/panic.md", "don't panic", title="-"))
    cache.put(a_note("01_Shallow/oneill.md", 'O\'Neill said "stop"', title="-"))
    cache.put(a_note("01_Shallow/rock.md", "rock \u2019n\u2019 roll", title="-"))

    assert _found(cache, query) == expected


_SIGNS = "@maria #roadmap 50% C++ a=b x&y path/to/file why? [br] {j} v1.2.3 ~tilde; back\\slash $5 a,b;c <t>"


@pytest.mark.parametrize("token", _SIGNS.split())
@pytest.mark.parametrize(
    "sentence", ["{}", "please tell me of {} now", "({})", '"{}"', "{}: {}", "-{}", "NOT {}"]
)
def test_sr_03_each_visible_token_finds_its_note(cache: Cache, token: str, sentence: str) -> None:
    cache.put(a_note("01_Shallow/n.md", _SIGNS, title="-"))

    found = search(cache, sentence.replace("{}", token))

    assert found.hits[0].note.stem == "n"
    assert excerpt(_SIGNS, found.terms)


@pytest.mark.parametrize("token", [token for token in _SIGNS.split() if token != "why?"])
def test_sr_03_a_token_with_a_sign_counts_beside_other_words(cache: Cache, token: str) -> None:
    """`why?` alone is a question, not a token with a sign: it is a stop word where other words are found."""
    cache.put(a_note("01_Shallow/n.md", _SIGNS, title="-"))

    assert "n" in _found(cache, f"nothing like the filler and {token}")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "   ",
        "*",
        "***",
        "()",
        '"',
        "?!",
        "\u200b",
        ".",
        "\x00",
        "AND",
        "NOT",
        "a" * 100_000,
        "* " * 50_000,
    ],
    ids=lambda query: ascii(query[:6]),
)
def test_sr_05_a_query_that_asks_for_nothing_gets_nothing_and_a_hint(cache: Cache, query: str) -> None:
    cache.put(a_note("01_Shallow/n.md", "zebra 🧭"))

    found = search(cache, query)

    assert found.hits == ()
    assert found.total == 0
    assert found.cursor is None
    assert found.hint


def test_sr_05_an_emoji_is_a_word(cache: Cache) -> None:
    cache.put(a_note("01_Shallow/n.md", "go 🧭 north"))

    assert _found(cache, "🧭") == ["n"]


def test_sr_05_a_stop_word_alone_is_searched_page_by_page(cache: Cache) -> None:
    for number in range(12):
        cache.put(a_note(f"01_Shallow/{number:02d}.md", "the zebra"))

    found = search(cache, "the", limit=10)

    assert (len(found.hits), found.total) == (10, 12)
    assert found.cursor


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("倉庫", ["store"]),
        ("盤點", ["store"]),
        ("維護計畫", ["store"]),
        ("beta", ["qx"]),
        ("qx", ["qx"]),
        ("도서", ["library"]),
        ("ไทย", ["thai"]),
        ("計", ["store"]),
        ("martens", ["english"]),
        ("mart*", ["english"]),
    ],
)
def test_sr_06_parts_of_text_without_blanks_are_found(cache: Cache, query: str, expected: list[str]) -> None:
    cache.put(a_note("01_Shallow/store.md", "倉庫盤點與維護計畫", title="-"))
    cache.put(a_note("01_Shallow/qx.md", "重新編譯qx-beta後完成", title="-"))
    cache.put(a_note("01_Shallow/library.md", "부산도서관안내", title="-"))
    cache.put(a_note("01_Shallow/thai.md", "ภาษาไทยง่าย", title="-"))
    cache.put(a_note("01_Shallow/english.md", "a marten in the wood", title="-"))

    assert _found(cache, query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("mart*", {"martin", "marten"}),
        ("MART*", {"martin", "marten"}),
        ("see mart*", {"martin", "marten"}),
        ('"mart"*', set()),
        ("mart", set()),
        ("*arten", set()),
        ("mar*en", set()),
        ("é*", set()),
        ("marten", {"marten"}),
    ],
)
def test_sr_08_a_star_at_the_end_of_a_word_means_its_beginning(
    cache: Cache, query: str, expected: set[str]
) -> None:
    for name in ("martin", "marten", "smarten"):
        cache.put(a_note(f"01_Shallow/{name}.md", name))

    assert set(_found(cache, query)) == expected


def test_sr_09_no_text_is_found_that_is_in_no_note(cache: Cache) -> None:
    """Overwritten, renamed, deleted, archived: the words of the old state lead nowhere."""
    cache.put(a_note("01_Shallow/one.md", "ghostword"))
    cache.put(a_note("01_Shallow/one.md", "other"))
    overwritten = _found(cache, "ghostword")

    cache.put(a_note("01_Shallow/two.md", "phantom"))
    with cache.batch():
        cache.remove("01_Shallow/two.md")
        cache.put(a_note("01_Shallow/three.md", "phantom"))
    renamed = _found(cache, "phantom two")

    with cache.batch():
        cache.remove("01_Shallow/three.md")
        cache.put(a_note("_Archive/01_Shallow/three.md", "phantom"))
    archived = _found(cache, "phantom")

    cache.remove("01_Shallow/one.md")

    assert (overwritten, renamed, archived) == ([], ["three"], [])
    assert _found(cache, "other one") == []
    assert cache.troubles() == ()
    assert cache.searched_count() == 2  # the filler and the archived note
