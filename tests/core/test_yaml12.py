"""What plain words mean, what a hostile header may cost, and that what we write reads back everywhere."""

from __future__ import annotations

import math
import re
from io import StringIO

import pytest
import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from vault_palace.core.errors import InvalidArguments
from vault_palace.core.model import Value
from vault_palace.core.yaml12 import MAX_DEPTH, Form, Unreadable, load, load_value, scalar, shown
from vault_palace.core.yamltext import as_read, is_date, number, property_lines, quoted, text_form, value_form

# What a careless writer leaves bare and some reader then takes for something else.
TRAPS = [
    *(
        "",
        " ",
        "~",
        "null",
        "Null",
        "NULL",
        "nil",
        "none",
        "true",
        "True",
        "TRUE",
        "false",
        "yes",
        "Yes",
        "YES",
    ),
    *(
        "no",
        "No",
        "NO",
        "on",
        "On",
        "ON",
        "off",
        "Off",
        "OFF",
        "y",
        "Y",
        "n",
        "N",
        ".nan",
        ".NaN",
        ".inf",
        "-.INF",
    ),
    *("1", "+1", "-1", "012", "0o14", "0x1F", "0b101", "1_000", "1e5", "1e-05", "1.", ".5", "5.0", "1_0.5"),
    *("12:30", "190:20:30", "1:30:00.5", "-3:25", "2026-11-30", "2026-11-30T12:00:00", "2026-11-30 12:00:00"),
    *(
        "2026-02-30",
        "2026-1-1",
        "2001-12-14t21:59:43.10-05:00",
        "0000-01-01",
        "2026-11-30T24:00:00",
        "2026-13-01",
    ),
    *("=", "<<", "-", "--", "---", "...", "?", ":", "a:", ": a", "a: b", "a:b", "a #b", "a# b", "#a", "# a"),
    *(
        "*a",
        "&a",
        "!a",
        "!!str a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "'a'",
        '"a"',
        "[a]",
        "{a}",
        "[[Name]]",
        "a, b",
    ),
    *(
        " a",
        "a ",
        "\ta",
        "a\t",
        "a\tb",
        "a\nb",
        "\n",
        "a\n",
        "\r",
        "a\r\nb",
        "a\\b",
        'a"b',
        "it's",
        "C:\\new\\x",
    ),
    *(
        "a\x00b",
        "a\x07b",
        "a\x0cb",
        "a\x1bb",
        "a\x7fb",
        "a\x85b",
        "a\x9fb",
        "a\xa0b",
        "\xa0a",
        "a\u2028b",
        "a\u2029b",
    ),
    *(
        "\ufeffa",
        "a\ufeffb",
        "a\ufffeb",
        "\uffff",
        "\U0001f469\u200d\U0001f4bb",
        "é",
        "e\u0301",
        "\u0301",
        "日本語",
        "١٢",
    ),
    *(
        "${x}",
        "{{x}}",
        "<% x %>",
        "a - b",
        "- a",
        "? a",
        "-a",
        "?a",
        ":a",
        "a?",
        "a!",
        "a%",
        "_",
        "_1",
        "x" * 2000,
    ),
]
texts = st.text(max_size=40) | st.sampled_from(TRAPS)
values = (
    texts
    | st.integers()
    | st.booleans()
    | st.floats(-1e9, 1e9).map(lambda x: round(x, 4))
    | st.none()
    | st.lists(texts, max_size=4)
)


def by_yaml_11(text: str) -> object:
    return yaml.safe_load(text)


def by_yaml_12(text: str) -> object:
    return YAML(typ="safe", pure=True).load(StringIO(text))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("no", "no"),
        ("off", "off"),
        ("y", "y"),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("", None),
        ("~", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("012", 12),
        ("01234", 1234),
        ("-0", 0),
        ("+7", 7),
        ("0o14", 12),
        ("0o18", "0o18"),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("0b11", "0b11"),
        ("12:30", "12:30"),
        ("1:30:00", "1:30:00"),
        ("1_000", "1_000"),
        ("1e-05", 1e-05),
        ("1e5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("3.10", 3.1),
        ("1.2.3", "1.2.3"),
        (".", "."),
        ("-", "-"),
        ("2026-11-30", "2026-11-30"),
        ("2026-11-30T12:00:00", "2026-11-30T12:00:00"),
        (".inf", math.inf),
        ("+.Inf", math.inf),
        ("-.INF", -math.inf),
        ("1e999", math.inf),
        ("<<", "<<"),
        ("=", "="),
        ("١٢", "١٢"),
        ("9007199254740993", 9007199254740993),
        ("7" * 5000, "7" * 5000),
    ],
)
def test_a_plain_word_means_what_yaml_12_core_says(text: str, meaning: Value) -> None:
    found = scalar(text)

    assert (found, type(found)) == (meaning, type(meaning))


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_nan_is_read_in_its_three_spellings(text: str) -> None:
    found = scalar(text)

    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("7", 7),
        ("0.2", 0.2),
        ("1.0", 1.0),
        ("1e-05", 1e-05),
        ("007", "007"),
        ("+7", "+7"),
        ("0x1F", "0x1F"),
        ("3.10", "3.10"),
        (".5", ".5"),
        (".nan", ".nan"),
        ("-.inf", "-.inf"),
        ("1e999", "1e999"),
        ("9007199254740991", 9007199254740991),
        ("9007199254740992", "9007199254740992"),
        ("0.12345678901234567", "0.12345678901234567"),
        ("True", True),
        ("no", "no"),
    ],
)
def test_a_number_is_shown_as_its_text_where_a_reader_could_change_it(text: str, answer: Value) -> None:
    view = shown(scalar(text), text)

    assert (view, type(view)) == (answer, type(answer))


@pytest.mark.parametrize("char", "\x00\x01\x0b\x0c\x1b\x1d\x7f\x85\x9f\u2028\u2029\ud800\ufeff\ufffe")
@pytest.mark.parametrize(
    "form", ["a: x{}y\nb: 1\n", "a: 'x{}y'\nb: 1\n", 'a: "x{}y"\nb: 1\n', "a: |-\n  x{}y\nb: 1\n"]
)
def test_a_character_that_other_readers_refuse_or_split_at_is_part_of_the_value(form: str, char: str) -> None:
    document = load(form.format(char))

    assert [(entry.name, entry.value) for entry in document.entries] == [("a", f"x{char}y"), ("b", 1)]
    assert document.entries[1].key.line == form.count("\n") - 1


def test_a_lone_carriage_return_is_no_line_end() -> None:
    document = load('a: "x\ry"\r\nb: 2\r\n')

    assert [(entry.value, entry.key.line) for entry in document.entries] == [("x\ry", 0), (2, 1)]


def test_an_escape_is_never_taken_for_a_hidden_character() -> None:
    document = load('a: "\\U00100000"\nb: x\x0cy\nc: \U000f0000\n')

    assert [entry.value for entry in document.entries] == ["\U00100000", "x\x0cy", "\U000f0000"]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("a: b: c\n", 0, "colon"),
        ("x: 1\na: b: c\ny: 2\n", 1, "colon"),
        ("x: 1\na: [1, 2\ny: 2\n", 1, "bracket"),
        ("x: 1\na: {b: 2\ny: 2\n", 1, "brace"),
        ("x: 1\na: 'b\ny: 2\n", 1, "quotation"),
        ("x: 1\na: *b c\ny: 2\n", 1, "*"),
        ("x: 1\na: *b* c\ny: 2\n", 1, "*"),
        ("x: 1\na: `b`\ny: 2\n", 1, "quotes"),
        ("x: 1\na: @b\ny: 2\n", 1, "quotes"),
        ("x: 1\na: %b\ny: 2\n", 1, "quotes"),
        ("x: 1\na:\n\tb: 1\n", 2, "tab"),
        ("x: 1\nword\ny: 2\n", 1, "colon"),
        ("x: 1\ny: 2\nx: 3\n", 2, "twice"),
        ("x: 1\ny: {a: 1, a: 2}\n", 1, "twice"),
        ("x: 1\n--- y\n", 1, "second"),
        ("- a\n- b\n", 0, "name: value"),
        ("# c\n\nDear diary\n", 2, "name: value"),
        ("42\n", 0, "name: value"),
        ("null\n", 0, "name: value"),
        ("a: &x [*x]\n", 0, "inside"),
        ("a: 1\nb: *nothing\n", 1, "nothing"),
        ("a: " + "[" * 200, 0, "nested"),
        ("a: " + "[" * 5000, 0, "nested"),
        ("".join(f"{' ' * i}a:\n" for i in range(MAX_DEPTH + 2)), MAX_DEPTH, "nested"),
        ("a: \x0c \U00100000 \U000f0000 \ue000\n", 0, "private-use"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, word: str) -> None:
    with pytest.raises(Unreadable) as caught:
        load(text)

    assert caught.value.line == line
    assert word in caught.value.message


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "  \n\n# x\n"])
def test_blank_and_comment_only_text_holds_no_properties(text: str) -> None:
    document = load(text)

    assert document.entries == ()


def test_tags_never_build_an_object() -> None:
    text = "a: !!python/object/apply:os.system [boom]\nb: !mine 5\nc: !!int '5'\n"
    text += "d: !!str 5\ne: !!binary aGk=\nf: ! 5\n"

    found = {entry.name: entry.value for entry in load(text).entries}

    assert found == {"a": ["boom"], "b": "5", "c": 5, "d": "5", "e": "aGk=", "f": "5"}


def test_aliases_read_as_what_they_stand_for() -> None:
    document = load("a: &x [1, no]\nb: *x\n&k c: {d: *k}\n")

    assert [(entry.name, entry.value, entry.fixed) for entry in document.entries] == [
        ("a", [1, "no"], True),
        ("b", [1, "no"], True),
        ("c", {"d": "c"}, True),
    ]


def test_a_merge_key_is_an_ordinary_key_as_in_yaml_12() -> None:
    document = load("a: {x: 1}\n<<: {x: 2}\n")

    assert {entry.name: entry.value for entry in document.entries} == {"a": {"x": 1}, "<<": {"x": 2}}


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    levels = "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )

    with pytest.raises(Unreadable, match="too many"):
        load("a: &a [x, x, x, x, x, x, x, x, x, x]\n" + levels)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1: x\n", "1"),
        ("012: x\n", "012"),
        ("true: x\n", "true"),
        ("? [a, b]\n: x\n", "[a, b]"),
        ("? \n: x\n", ""),
    ],
)
def test_a_key_that_is_no_text_is_named_as_it_is_written(text: str, name: str) -> None:
    document = load(text)

    assert [(entry.name, entry.value) for entry in document.entries] == [(name, "x")]


def test_an_entry_knows_where_its_value_begins_and_ends() -> None:
    text = "a: x y # c\nb:\n  - p # c\n  # c\n  -\n# c\nd: |+\n  l\n  # l\n\n\n# c\n"
    text += "e: [1,\n  2] # c\nf: 'q\n  r' # c\n"

    found = {e.name: (e.form, tuple(e.start), tuple(e.end)) for e in load(text).entries}

    assert found == {
        "a": (Form.PLAIN, (0, 3), (0, 6)),
        "b": (Form.SEQUENCE, (2, 2), (4, 3)),
        "d": (Form.BLOCK, (6, 3), (8, 5)),
        "e": (Form.FLOW, (12, 3), (13, 4)),
        "f": (Form.QUOTED, (14, 3), (15, 4)),
    }


@pytest.mark.parametrize(
    ("text", "value"), [("a: {b: [no, 1]}\n", {"a": {"b": ["no", 1]}}), ("- 1\n", [1]), ("", None)]
)
def test_a_settings_file_is_read_as_a_whole(text: str, value: Value) -> None:
    found = load_value(text)

    assert found == value


@given(texts)
@example("a: 'b'")
def test_reading_any_text_ends_in_values_or_in_a_line(text: str) -> None:
    wrong_line = -1

    try:
        load(text)
    except Unreadable as error:
        wrong_line = error.line

    assert -1 <= wrong_line <= text.count("\n")


@given(st.text(alphabet="+-.0123456789eEox_:TNaninfullrsyo~", max_size=8))
def test_plain_words_agree_with_another_yaml_12_reader(word: str) -> None:
    assume(word.strip("-. ") and not word.endswith(":"))
    # The other reader keeps `1_000` and `0b1` as numbers and `.0e0` as text, unlike YAML 1.2 core.
    assume(not any(sign in word for sign in "_xo"))
    assume(not re.match(r"[-+]?\.[0-9]+[eE]", word))
    theirs = by_yaml_12(f"a: {word}\n")
    assume(isinstance(theirs, dict) and isinstance(theirs.get("a"), bool | int | float | str))
    assert isinstance(theirs, dict)

    ours = scalar(word)

    assert repr(ours) == repr(theirs["a"])


@given(values)
def test_a_value_reads_back_alike_in_yaml_11_and_12(value: Value) -> None:
    # A date is a date to one kind of reader and text to the other, and stays bare where it may be meant.
    names = ("title",) if isinstance(value, str) and is_date(value) else ("title", "k: y", "on")

    for name in names:
        text = "".join(property_lines(name, value))

        assert by_yaml_11(text) == {name: value}
        assert by_yaml_12(text) == {name: value}
        assert {entry.name: entry.value for entry in load(text).entries} == {name: as_read(value)}


@pytest.mark.parametrize("text", TRAPS)
def test_a_trap_reads_back_as_the_same_text_everywhere(text: str) -> None:
    key = "k" + text[:500]
    written = f"a: {text_form(text)}\nb:\n  - {text_form(text)}\nc: [{text_form(text, flow=True)}]\n"
    written += f"{text_form(key)}: 1\n"
    wanted = {"a": text, "b": [text], "c": [text], key: 1}

    assert by_yaml_11(written) == by_yaml_12(written) == wanted
    assert {entry.name: entry.value for entry in load(written).entries} == wanted


@given(st.dictionaries(texts.map(lambda key: key[:500]), texts | st.lists(texts, max_size=2), max_size=3))
def test_a_nested_value_is_written_on_one_line(value: dict[str, Value]) -> None:
    written = f"a: {value_form(value)}\n"

    assert "\n" not in written[:-1]
    assert by_yaml_11(written) == by_yaml_12(written) == {"a": value}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (-3, "-3"),
        (0.2, "0.2"),
        (1.0, "1"),
        (0.123456, "0.1235"),
        (1e-05, "0"),
        (-1e-05, "0"),
        (1e16, "10000000000000000"),
        ("cli-42", "cli-42"),
        ("mem_0a1b2c3d4e5f", "mem_0a1b2c3d4e5f"),
        ("Über uns", "Über uns"),
        ("[[Kafka topics]]", '"[[Kafka topics]]"'),
        ("Retro: week 12", '"Retro: week 12"'),
        ("6", '"6"'),
        ([], "[]"),
        ([None, 1, "a, b"], '[null, 1, "a, b"]'),
        ({"a": {"b": 1}}, "{a: {b: 1}}"),
    ],
)
def test_a_value_is_written_in_the_plainest_form_that_is_safe(value: Value, form: str) -> None:
    assert value_form(value) == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2026-11-30", "2026-11-30"),
        ("2026-11-30T12:00:00", "2026-11-30T12:00:00"),
        ("2026-02-30", '"2026-02-30"'),
        ("2026-11-30T25:00:00", '"2026-11-30T25:00:00"'),
        ("2026-11-30T12:00", '"2026-11-30T12:00"'),
        ("2026-11-30 12:00:00", '"2026-11-30 12:00:00"'),
        ("2026-11-30\n", '"2026-11-30\\n"'),
    ],
)
def test_only_a_real_date_in_the_one_form_is_written_bare(text: str, form: str) -> None:
    assert property_lines("due", text) == [f"due: {form}\n"]


@pytest.mark.parametrize("name", ["title", "source_session", "tags"])
def test_a_text_property_that_looks_like_a_date_is_quoted(name: str) -> None:
    assert property_lines(name, "2026-11-30") == [f'{name}: "2026-11-30"\n']


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(InvalidArguments):
        number(value)


@pytest.mark.parametrize("form", [quoted, text_form])
def test_half_a_surrogate_pair_is_refused(form: object) -> None:
    assert callable(form)

    with pytest.raises(InvalidArguments):
        form("a\ud800b")


def test_a_settings_file_that_cannot_be_read_names_its_line() -> None:
    with pytest.raises(Unreadable) as caught:
        load_value("a: 1\nb: c: d\n")

    assert caught.value.line == 1
