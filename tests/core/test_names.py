"""Names and paths: what a title becomes, and what a caller's path may not be."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vault_palace.core import links, names
from vault_palace.core.errors import InvalidArguments, PathViolation
from vault_palace.core.places import is_conflict_copy, is_passing

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🏴󠁧󠁢󠁥󠁮󠁧󠁿"

titles = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        st.sampled_from(
            "/\\:*?\"<>|#^[]%.-~ \t\n`'\u200b\u200d\u200e\ufeff\u00a0\u0301\u093f🧭🏴\U000e0067é漢NULCOM1md"
        ),
    ),
    max_size=140,
)


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Why now?", "Why now"),  # FS-03, the whole row of it
        ("a/b", "a-b"),
        ("x:y", "x-y"),
        ('"q"', "'q'"),
        ("<t>", "t"),
        ("p|q", "p-q"),
        ("s*t", "s t"),
        ("back\\slash", "back-slash"),
        ("../up", "up"),
        ("tab\there", "tab here"),
        ("Retro: week 12", "Retro - week 12"),
        ("A | B", "A - B"),  # WL-12
        ("C# basics", "C basics"),
        ("Arr[0]]", "Arr(0))"),
        ("up^down", "up-down"),
        ("%%x%%", "%x%"),
        ("100%", "100%"),  # DB-05: ordinary signs stay
        ("a_b", "a_b"),
        ("final", "final"),  # WL-21: the extension is the product's
        ("final.md", "final"),
        ("final.MD", "final"),
        ("a.md.md", "a"),
        ("v2.0", "v2.0"),
        ("v1.2 plan", "v1.2 plan"),  # WL-07
        ("node.js", "node.js"),
        ("A b ", "A b"),  # FS-06
        ("dots...", "dots"),
        (".hidden", "hidden"),
        ("~home", "home"),
        ("-rf", "rf"),
        ("CON", "CON_"),
        ("con", "con_"),
        ("nul.txt", "nul_.txt"),
        ("COM1", "COM1_"),
        ("lpt9 .a", "lpt9_.a"),
        ("COM10", "COM10"),
        ("console", "console"),
        ("x\u202egnp", "xgnp"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("no\u00a0break", "no break"),
        ("e\u0301", "é"),
        ("line\u2028one", "line one"),
        ("می‌خواهم", "می‌خواهم"),
        (f"{FAMILY} trip", f"{FAMILY} trip"),
        (f"{FLAG} tea", f"{FLAG} tea"),
        ("plan (conflicted copy)", "plan (conflicted copy) note"),
        ("", "Untitled"),
        ("???", "Untitled"),
        ("\u3164", "Untitled"),
    ],
)
def test_title_becomes_a_name_for_every_system(title: str, name: str) -> None:
    assert names.file_name(title) == name


@pytest.mark.parametrize("title", ["a\0b", "\0", "a\ud83dx", "\udc00"])
def test_title_with_null_or_half_a_character_is_refused_mc_14(title: str) -> None:
    with pytest.raises(InvalidArguments):
        names.file_name(title)


@pytest.mark.parametrize(
    ("title", "whole"),
    [
        ("é" * 140, "é"),
        ("e\u0301\u0323" * 140, unicodedata.normalize("NFC", "e\u0301\u0323")),
        ("漢" * 84, "漢"),
        ("漢" * 86, "漢"),
        ("🧭" * 63, "🧭"),
        ("a" * 252, "a"),
        ("a" * 300, "a"),
        (FAMILY * 20, FAMILY),
        (FLAG * 20, FLAG),
        ("🇩🇪" * 60, "🇩🇪"),
        ("👍🏽" * 60, "👍🏽"),
        ("नि" * 90, "नि"),
    ],
)
def test_long_title_is_cut_between_whole_characters_fs_05(title: str, whole: str) -> None:
    name = names.file_name(title)

    assert name == whole * (len(name) // len(whole))
    assert len(name) <= 100
    assert 140 <= len(name.encode()) <= 180 or len(name) == 100


def test_long_title_is_cut_at_a_word_when_one_ends_near() -> None:
    name = names.file_name("observation " * 12)

    assert name == " ".join(["observation"] * 8)


@given(titles)
@example("final.md.")
@example("a." + "b" * 97 + ".md")
@example("CON\u200b")
@example("<\u0338")
@example("x" * 95 + " (conflicted copy)")
@example("\U0001f3f4\U000e0067\u200d")
def test_name_of_a_name_is_itself(title: str) -> None:
    name = names.file_name(title)

    assert names.file_name(name) == name


@given(titles)
@example("x" * 95 + " (conflicted copy)")
def test_name_fits_every_file_system(title: str) -> None:
    name = names.file_name(title)

    assert 1 <= len(name) <= 100
    assert len(name.encode()) <= 180
    assert not re.search(r'[\\/:*"<>?|\x00-\x1f\x7f]', name)
    assert name == name.strip(" .")
    assert unicodedata.is_normalized("NFC", name)
    assert not is_passing(f"{name}.md")
    assert not is_conflict_copy(f"{name}.md")


@given(titles)
def test_name_is_linkable_from_any_note(title: str) -> None:
    name = names.file_name(title)
    path = f"01_Shallow/{name}.md"

    (link,) = links.find(f"see [[{name}]]")

    assert links.Resolver([path, "other.md"]).resolve(link.path, "other.md") == path
    assert names.linkable(name)


@given(titles)
def test_name_is_accepted_as_a_path(title: str) -> None:
    name = names.file_name(title)

    assert names.note_path(f"01_Shallow/{name}") == f"01_Shallow/{name}.md"


@pytest.mark.parametrize(
    ("one", "other"),
    [("Plan", "plan"), ("é", "e\u0301"), ("É", "é"), ("a b", "a\u00a0b"), ("Ω", "\u2126"), ("a.MD", "a.md")],
)
def test_names_that_a_system_confuses_share_a_key(one: str, other: str) -> None:
    assert names.key(one) == names.key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    list(pairwise(("a_b", "axb", "100%", "1000", "plan", "plan-complete", "[x]", "x", "straße", "strasse"))),
)
def test_names_with_wildcards_keep_their_own_key_db_05(one: str, other: str) -> None:
    assert names.key(one) != names.key(other)


def test_titles_that_clean_up_alike_get_numbers_fs_06() -> None:
    taken: dict[str, str] = {}

    for title in ("a/b", "a:b", "a-b", "A b ", "A-B"):
        name = names.unique(names.file_name(title), lambda stem: names.key(stem) in taken)
        taken[names.key(name)] = name

    assert list(taken.values()) == ["a-b", "a-b 2", "a-b 3", "A b", "A-B 4"]


@pytest.mark.parametrize("letter", ["a", "漢", "é", FAMILY])
def test_number_is_added_within_the_limits_fs_05(letter: str) -> None:
    stem = names.file_name(letter * 300)

    name = names.unique(stem, lambda taken: taken == stem)

    assert name.endswith(" 2")
    assert len(name) <= 100
    assert len(name.encode()) <= 180
    assert stem.startswith(name.removesuffix(" 2"))


def test_free_name_is_left_as_it_is() -> None:
    assert names.unique("plan", lambda stem: False) == "plan"


@pytest.mark.parametrize(
    ("given_path", "path"),
    [
        ("L1/./a", "L1/a.md"),  # MC-11: harmless
        ("./L1//a.md", "L1/a.md"),
        ("final", "final.md"),  # WL-21
        ("final.md", "final.md"),
        ("final.MD", "final.md"),
        ("v2.0", "v2.0.md"),
        ("L_1/100%", "L_1/100%.md"),
        ("01_Shallow/ideas/Café", "01_Shallow/ideas/Café.md"),
        ("e\u0301", "é.md"),
        ("a..b", "a..b.md"),
    ],
)
def test_path_is_made_plain(given_path: str, path: str) -> None:
    assert names.note_path(given_path) == path


ESCAPES = [
    "../v-private/secret",
    "L1/../../v-private/secret.md",
    "L1/../b",
    "/etc/passwd",
    "//host/share",
    "~/x",
    "~root/x",
    "L1/%2e%2e/%2e%2e/x",
    "L1/%252E%252e/x",
    "L1%2fx",
    "a%5cb",
    "..\\..\\x",
    "L1\\x",
    "L1/./../../x",
    "file:///etc/passwd",
    "https://x.example/a",
    "C:/x",
    "C:x",
    "L1/sub/../../ARC/../../x",
    "L1/... /x",
    ".. /x",
    "",
    "  ",
    ".",
    "./",
    "/",
    "L1/",
    "L1/a.md\0.png",
    "L1\0",
    "a\nb",
    "a\x7fb",
    "a\ud800",
    ".obsidian/app.json",
    "L1/.hidden/x",
    "L1/.x",
    "a/node_modules/x",
]


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("path", ESCAPES)
def test_path_that_leaves_or_hides_is_refused_mc_11_mc_14(path: str, existing: bool) -> None:
    with pytest.raises(PathViolation):
        names.note_path(path, existing=existing)


@pytest.mark.parametrize("path", [path for path in ESCAPES if path != "L1/"])
def test_folder_that_leaves_or_hides_is_refused_mc_11_mc_14(path: str) -> None:
    with pytest.raises(PathViolation):
        names.folder_path(path)


def test_folder_may_end_with_a_slash() -> None:
    assert names.folder_path("01_Shallow/./ideas/") == "01_Shallow/ideas"


def test_folder_is_not_given_an_extension() -> None:
    assert names.folder_path("v2.0") == "v2.0"


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("L1/Why now?", "Why now"),
        ("L1/x:y", "x-y"),
        ("L1/Lot #9", "Lot 9"),
        ("L1/[x]", "(x)"),
        ("L1/a^b", "a-b"),
        ("L1/%%x", "%x"),
        ("L1/CON", "CON_"),
        ("L1/nul.md", "nul_"),
        ("aux/x", "aux_"),
        ("L1/trailing ", "trailing"),
        ("L1/trailing.", "trailing"),
        ("L1/ x", "x"),
        ("L1/~x", "x"),
        ("L1/a\u200bb", "ab"),
        ("L1/a\u202eb", "ab"),
        ("L1/a\u00a0b", "a b"),
        ("L1/" + "a" * 101, "a" * 100),
        ("L1/" + "漢" * 61, "漢" * 60),
        ("L1/x (conflicted copy)", "x (conflicted copy) note"),
    ],
)
def test_new_name_that_not_every_system_holds_is_refused_with_one_that_does(path: str, safe: str) -> None:
    with pytest.raises(PathViolation) as refused:
        names.note_path(path)

    assert refused.value.facts["safe_name"] == safe
    assert safe in refused.value.hint


@pytest.mark.parametrize(
    "path", ["L1/[x].md", "L1/Lot #9.md", "L1/x.MD", "L1/cafe\u0301.md", "L1/ x.md", "L1/a*b.md"]
)
def test_existing_note_is_named_as_it_is_wl_13_db_05(path: str) -> None:
    assert names.note_path(path, existing=True) == path


def test_existing_note_may_be_named_without_its_extension() -> None:
    assert names.note_path("L1/[x]", existing=True) == "L1/[x].md"


@pytest.mark.parametrize("path", ["../secret\x1b[2J", "x" * 5000 + "/../y"])
def test_refusal_shows_a_short_printable_path(path: str) -> None:
    with pytest.raises(PathViolation) as refused:
        names.note_path(path)

    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("stem", "can"),
    [
        ("Lot 9", True),
        ("Lot #9", False),
        ("a|b", False),
        ("[x]", False),
        ("a^", False),
        ("%%", False),
        (" a", False),
    ],
)
def test_hard_to_link_names_are_known_wl_13(stem: str, can: bool) -> None:
    assert names.linkable(stem) is can


@given(st.text(max_size=60))
def test_path_is_plain_or_refused(text: str) -> None:
    try:
        path = names.note_path(text)
    except PathViolation:
        return

    parts = path.split("/")
    assert path.endswith(".md")
    assert not {"", ".", ".."} & set(parts)
    assert names.note_path(path) == path
