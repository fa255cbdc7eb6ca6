"""Words of notes and queries, stop words, and snippets around a match."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.text import WORD_LENGTH, Term, excerpt, query_words, words

_TEXT = st.text(st.characters(), max_size=300)  # lone surrogates and NUL are characters too


def _finds(query: str, note: str) -> bool:
    terms, _ = query_words(query)
    return any(term.matches(words(note)) for term in terms)


@given(_TEXT)
def test_words_can_be_joined_and_stored_whatever_the_text_holds(text: str) -> None:
    for word in words(text):
        assert word
        assert not any(c.isspace() or (c.isascii() and not c.isalnum()) for c in word)
        word.encode("utf-8")


@given(_TEXT)
def test_each_visible_word_of_a_note_finds_it(text: str) -> None:
    for visible in text.split():
        if words(visible) and not words(visible)[0].startswith(("\uff0b", "\uff03")):
            assert _finds(visible, text) or "*" in visible


@given(_TEXT)
def test_composed_and_decomposed_letters_are_the_same_word(text: str) -> None:
    assert words(unicodedata.normalize("NFC", text)) == words(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't", ["dont", "don"]),
        ("don\u2019t", ["dont", "don"]),
        ("O'Neill", ["oneill", "neill", "oneil"]),
        ("rock 'n' roll", ["rock", "n", "roll"]),
        ("running", ["running", "run"]),
        ("Straße", ["strasse", "strass"]),
        ("caf\u00e9", ["café", "cafe"]),
        ("книгами", ["книгами", "книг"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("mem_0a1b", ["mem", "0a1b"]),
        ("C++ and c#", ["c＋＋", "c", "and", "c＃", "c"]),
        ("page#anchor", ["page", "anchor", "anchor"][:2]),
        ("soft\u00adhyphen", ["softhyphen"]),
        ("倉庫x", ["倉", "倉庫", "庫", "x"]),
        ("ﾃｽﾄ", ["テ", "テス", "ス", "スト", "ト"]),
        ("🧭️ 👍🏽", ["🧭", "👍"]),
        ("()[]{}*?!", []),
        ("\x00\ud800", []),
    ],
)
def test_the_words_of_a_text_are_those_that_the_rules_say(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_a_word_without_end_is_found_by_its_beginning() -> None:
    found = words("a" * 100_000)

    assert found[0] == "a" * WORD_LENGTH


def test_no_word_is_lost_where_a_long_text_is_cut_in_pieces() -> None:
    text = " ".join(f"q{number:05d}z" for number in range(30_000))

    found = set(words(text))

    assert all(f"q{number:05d}z" in found for number in range(30_000))


@pytest.mark.parametrize(
    ("query", "kept", "dropped"),
    [
        ("what is the apollo", ["apollo"], ["what", "is", "the"]),
        ("the", ["the"], []),
        ("to be or not to be", ["to", "be", "or", "not"], []),
        ("don't panic", ["panic"], ["don't"]),
        ("die Reihenfolge der Häuser", ["reihenfolge", "häuser"], ["die", "der"]),
        ("die another day", ["die", "day"], ["another"]),
        ("как читать книгу", ["читать", "книгу"], ["как"]),
        ("tell me of a=b please", ["a", "b"], ["tell", "me", "of", "please"]),
        ("zebra {j}", ["zebra", "j"], []),
        ("zebra path/to/file", ["zebra", "path", "file"], ["to"]),
        ("zebra 10", ["zebra", "10"], []),
        ("python3 v1.2", ["python3", "v1", "2"], ["python"]),
        ("zebra ZEBRA zebra", ["zebra"], []),
        ("維護計畫", ["維護", "護計", "計畫"], []),
        ("計", ["計"], []),
        ("mart*", ["mart*"], []),
        ("(mart*)", ["mart*"], []),
        ('"mart"*', ["mart"], []),
        ("*arten", ["arten"], []),
        ("mar*en", ["mar"], ["en"]),
        ("**mart*", ["mart"], []),
        ("", [], []),
        ("'' \" ?! () *** . \u200b", [], []),
    ],
)
def test_a_query_keeps_the_words_that_tell_something(query: str, kept: list[str], dropped: list[str]) -> None:
    found, left_out = query_words(query)

    assert [term.shown for term in found] == kept
    assert [term.shown for term in left_out] == dropped


def test_a_star_behind_a_word_asks_for_all_words_that_begin_so() -> None:
    assert _finds("mart*", "martin")
    assert _finds("mart*", "marten")
    assert not _finds("mart*", "smarten")
    assert not _finds("mart", "martin")


@given(_TEXT)
def test_no_query_raises(query: str) -> None:
    kept, dropped = query_words(query)

    assert not (dropped and not kept)


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"w{n}q" for n in range(30_000)),
        "倉庫" * 50_000,
        ",".join(f"w{n}q" for n in range(30_000)),
        "y" * 100_000,
    ],
    ids=["words", "one run", "no blanks", "one word"],
)
def test_a_query_of_any_length_asks_for_a_bounded_number_of_words(query: str) -> None:
    kept, dropped = query_words(query)

    assert 0 < len(kept) <= 64
    assert len(dropped) <= 64


def _terms(query: str) -> tuple[Term, ...]:
    return query_words(query)[0]


def test_a_snippet_is_centred_on_the_match() -> None:
    text = "lead " * 100 + "Apollo uses\n\nevent   sourcing here " + "tail " * 100

    snippet = excerpt(text, _terms("event source"), 60)

    assert "Apollo uses event sourcing here" in snippet
    assert snippet.startswith("…lead")
    assert snippet.endswith("tail…")


def test_a_snippet_shows_where_most_of_the_words_stand_together() -> None:
    text = "alpha " + "x " * 500 + "beta " + "y " * 500 + "the alpha beta pair " + "z " * 500

    assert "alpha beta pair" in excerpt(text, _terms("alpha beta"), 80)


@pytest.mark.parametrize(
    ("text", "query", "within"),
    [
        ("倉庫盤點與維護計畫" * 50 + "目標達成" + "倉庫盤點與維護計畫" * 50, "達成", "達成"),
        ("la la " * 99 + "the cafe\u0301 opens " + "la la " * 99, "café", "cafe\u0301"),
        ("la la " * 99 + "don\u2019t panic " + "la la " * 99, "don't", "don\u2019t"),
        ("la la " * 99 + "O\u2019Neill said " + "la la " * 99, "neill", "O\u2019Neill"),
        ("la la " * 99 + "martini " + "la la " * 99, "mart*", "martini"),
        ("la la " * 99 + "ＦＵＬＬ width " + "la la " * 99, "full", "ＦＵＬＬ"),
        ("la la " * 99 + "ภาษาไทยง่าย " + "la la " * 99, "ไทย", "ไทย"),
        ("la la " * 99 + "good 👍🏽 luck " + "la la " * 99, "👍", "👍🏽"),
        ("la la " * 200_000 + "needle", "needle", "needle"),
    ],
)
def test_a_snippet_finds_what_the_search_found(text: str, query: str, within: str) -> None:
    snippet = excerpt(text, _terms(query), 60)

    assert within in snippet
    assert snippet.startswith("…")


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt("# Title\n\nA  short\tnote.\n", _terms("note")) == "# Title A short note."


def test_without_a_match_the_beginning_is_shown() -> None:
    snippet = excerpt("first words " + "more " * 100, _terms("absent"), 40)

    assert snippet.startswith("first words more")
    assert snippet.endswith("more…")


@given(text=_TEXT, query=st.text(max_size=20), width=st.integers(20, 200))
def test_a_snippet_is_one_showable_line_no_longer_than_asked(text: str, query: str, width: int) -> None:
    snippet = excerpt(text * 3, _terms(query) or _terms(text[:40]), width)

    assert len(snippet) <= width
    assert "\n" not in snippet
    assert "\x00" not in snippet
    snippet.encode("utf-8")


@given(
    st.lists(st.sampled_from(["e\u0301", "👍🏽", "न\u0940", "a", " ", "ก\u0e48"]), min_size=60, max_size=200)
)
def test_a_snippet_never_parts_a_sign_from_its_marks(signs: list[str]) -> None:
    text = "".join(signs)
    middle = excerpt(text, (), 40).strip("…")

    at = " ".join(text.split()).find(middle)
    assert at == 0
    rest = " ".join(text.split())[len(middle) :]
    assert not rest or not (unicodedata.category(rest[0]).startswith("M") or rest[0] == "🏽")
