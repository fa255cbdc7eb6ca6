"""The splice in JSON with comments: one value changes, and every other byte stays."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.surfaces.hosts import jsonc

NEW = {"command": "/opt/vault-palace", "args": ["serve", "--vault", "/home/you/Väult"]}
PATH = ("mcpServers", "vault-palace")

# What a person could have in the file -> the same with the entry. Only what is new may differ.
GROWN = [
    ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
    (" \n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
    ("// mine\n", '// mine\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
    ("// mine", '// mine\n{\n  "a": {\n    "b": 1\n  }\n}\n'),
    ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
    ("{\n}\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
    ('{"a": {}}', '{"a": {"b": 1}}'),
    ('{"a":{"c":0}}', '{"a":{"c":0,"b":1}}'),
    ('{"a": {"c": 0}}\n', '{"a": {"c": 0, "b": 1}}\n'),
    ('{"a": {"c": 0,}}', '{"a": {"c": 0, "b": 1,}}'),
    ('{\n\t"a": {\n\t\t"c": 0\n\t}\n}\n', '{\n\t"a": {\n\t\t"c": 0,\n\t\t"b": 1\n\t}\n}\n'),
    (
        '{\r\n  "a": {\r\n    "c": 0\r\n  }\r\n}\r\n',
        '{\r\n  "a": {\r\n    "c": 0,\r\n    "b": 1\r\n  }\r\n}\r\n',
    ),
    ('{\n    "a": {}\n}\n', '{\n    "a": {\n        "b": 1\n    }\n}\n'),
    (
        '{\n  "a": {\n    "c": 0, // keep\n  },\n}\n',
        '{\n  "a": {\n    "c": 0, // keep\n    "b": 1,\n  },\n}\n',
    ),
    ('{\n  "a": {\n    "c": 0 // keep\n  }\n}\n', '{\n  "a": {\n    "c": 0, // keep\n    "b": 1\n  }\n}\n'),
    ('{\n  "a": {\n    // "b": 2\n  }\n}\n', '{\n  "a": {\n    // "b": 2\n    "b": 1\n  }\n}\n'),
    ('{\n  "a": { /* none */ }\n}\n', '{\n  "a": { /* none */\n    "b": 1\n   }\n}\n'),
    ('{\n  "c": [1, 2]\n}', '{\n  "c": [1, 2],\n  "a": {\n    "b": 1\n  }\n}'),
    ('{\n  "a": {\n    "b": 2 // two\n  }\n}\n', '{\n  "a": {\n    "b": 1 // two\n  }\n}\n'),
    ('{"\\u0061": {"b": [2, {"b": 3}]}}', '{"\\u0061": {"b": 1}}'),
]


@pytest.mark.parametrize(("before", "after"), GROWN)
def test_a_value_is_put_where_a_person_would_write_it(before: str, after: str) -> None:
    assert jsonc.put(before, ("a", "b"), 1) == after


# What a person has -> the same without `b`. A comment is nobody's to delete.
SHRUNK = [
    ('{"a": {"b": 1}}', '{"a": {}}'),
    ('{\n  "a": {\n    "b": 1\n  }\n}\n', '{\n  "a": {}\n}\n'),
    ('{"a":{"c":0,"b":1}}', '{"a":{"c":0}}'),
    ('{"a": {"b": 1, "c": 0}}', '{"a": {"c": 0}}'),
    ('{"a": {"c": 0, "b": 1,}}', '{"a": {"c": 0,}}'),
    ('{\n  "a": {\n    "b": 1,\n    "c": 0\n  }\n}\n', '{\n  "a": {\n    "c": 0\n  }\n}\n'),
    ('{\n  "a": {\n    "c": 0,\n    "b": 1\n  }\n}\n', '{\n  "a": {\n    "c": 0\n  }\n}\n'),
    ('{\r\n  "a": {\r\n    "c": 0,\r\n    "b": 1,\r\n  }\r\n}', '{\r\n  "a": {\r\n    "c": 0,\r\n  }\r\n}'),
    ('{"a": {\n  "c": 0, // zero\n  "b": 1 // one\n}}', '{"a": {\n  "c": 0 // zero\n  // one\n}}'),
    ('{"a": {\n  "b": 1 /* one */,\n  "c": 0\n}}', '{"a": {\n  /* one */\n  "c": 0\n}}'),
    ('{"a": {\n  // one\n  "b": 1\n}}', '{"a": {\n  // one\n}}'),
    ('{"a": {\n  // "c"\n  "b": 1, "d": 2\n}}', '{"a": {\n  // "c"\n  "d": 2\n}}'),
    ('{"a": {"c": 0}}', '{"a": {"c": 0}}'),
    ('{"z": 1}', '{"z": 1}'),
    ("", ""),
]


@pytest.mark.parametrize(("before", "after"), SHRUNK)
def test_a_value_is_taken_with_its_comma_alone(before: str, after: str) -> None:
    assert jsonc.take(before, ("a", "b")) == after


BROKEN = [
    ('{"a": 1', 1, 8, "the file ends"),
    ('{"a" 1}', 1, 6, ": was expected"),
    ('{\n  "a": 1\n  "b": 2\n}', 3, 3, ", or } was expected"),
    ("{a: 1}", 1, 2, "'a' cannot stand here"),
    ("{'a': 1}", 1, 2, "cannot stand here"),
    ('{"a": 1}}', 1, 9, "after the end"),
    ('{"a": /* x }', 1, 7, "a comment that does not end"),
    ('{"a": "x\n"}', 1, 7, "does not end on its line"),
    ('{"a": "\\x"}', 1, 7, "unreadable"),
    ('{"a": nul}', 1, 7, "cannot stand here"),
    ('{"a": 01}', 1, 8, ", or } was expected"),
    ('{"a": [1 2]}', 1, 10, ", or ] was expected"),
    ('{"a": ,}', 1, 7, "a value was expected"),
    ("[" * 300, 1, 202, "nested too deeply"),
    ('{"a": 1, "a": 2}', 1, 10, "a second time"),
    ("[]", 1, 1, "an object was expected"),
    ('\r\n{"a": null}', 2, 7, "an object was expected"),
]


@pytest.mark.parametrize(("text", "line", "column", "said"), BROKEN)
def test_what_is_broken_is_refused_with_its_place(text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(jsonc.Broken) as refused:
        jsonc.put(text, ("a", "b"), 1)

    assert (refused.value.line, refused.value.column) == (line, column)
    assert said in refused.value.said


# -- any file ----------------------------------------------------------------------------------------------

texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)
scalars = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
servers = st.dictionaries(texts.filter(lambda name: name != PATH[1]), values, max_size=4)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """*value* as somebody could have written it: blanks, comments and trailing commas anywhere."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    gaps = ["", "", " ", "\t", end, end + "  ", f'// a }} note " {end}', "/* , { */", f"{end}/*{end}*/ "]
    chance = random.Random(draw(st.integers(0, 2**32)))  # one draw a gap is slow

    def gap() -> str:
        return chance.choice(gaps)

    def joined(parts: list[str]) -> str:
        said = ",".join(gap() + part + gap() for part in parts)
        return said + ("," + gap() if parts and chance.random() < 0.5 else gap())

    def write(one: Any) -> str:
        if isinstance(one, dict):
            inner = [f"{json.dumps(key)}{gap()}:{gap()}{write(item)}" for key, item in one.items()]
            return f"{{{joined(inner)}}}"
        if isinstance(one, list):
            return f"[{joined([write(item) for item in one])}]"
        return json.dumps(one, ensure_ascii=chance.random() < 0.5)

    return gap() + write(value) + gap()


@st.composite
def configurations(draw: st.DrawFn) -> str:
    document = draw(st.dictionaries(texts, values, max_size=3))
    if draw(st.booleans()):
        document[PATH[0]] = draw(servers)
    else:
        document.pop(PATH[0], None)
    return draw(written(document))


def comments(text: str) -> list[str]:
    document = jsonc.read(text)
    return [text[start:end] for start, end in document.comments]


def untouched(text: str) -> dict[tuple[str, ...], str]:
    """The very text of everything beside the entry."""
    root = jsonc.read(text).root
    assert root is not None
    found: dict[tuple[str, ...], str] = {}
    for member in root.members:
        if member.key != PATH[0]:
            found[(member.key,)] = text[member.start : member.node.end]
            continue
        for inner in member.node.members:
            if inner.key != PATH[1]:
                found[(member.key, inner.key)] = text[inner.start : inner.node.end]
    return found


def is_within(inner: str, outer: str) -> bool:
    """Whether *outer* is *inner* with something put in between, and nothing taken away."""
    rest = iter(outer)
    return all(character in rest for character in inner)


@given(configurations())
def test_of_any_file_only_the_entry_changes(text: str) -> None:
    new = jsonc.put(text, PATH, NEW)

    assert is_within(text, new)
    assert untouched(new) == untouched(text)
    assert comments(new) == comments(text)
    node = jsonc.find(jsonc.read(new), PATH)
    assert node is not None
    assert node.value == NEW


@given(configurations())
def test_in_any_file_a_second_time_changes_nothing(text: str) -> None:
    once = jsonc.put(text, PATH, NEW)

    assert jsonc.put(once, PATH, NEW) == once


@given(configurations())
def test_from_any_file_only_the_entry_goes(text: str) -> None:
    new = jsonc.put(text, PATH, NEW)

    back = jsonc.take(new, PATH)

    assert is_within(back, new)
    assert untouched(back) == untouched(text)
    assert comments(back) == comments(text)
    assert jsonc.find(jsonc.read(back), PATH) is None


@given(configurations(), configurations())
def test_a_value_in_any_file_is_replaced_alone(text: str, other: str) -> None:
    first = jsonc.put(text, PATH, jsonc.read(other).root and {"old": [1, {"a": other}]})

    second = jsonc.put(first, PATH, NEW)

    assert untouched(second) == untouched(text)
    assert comments(second) == comments(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place_in_it(text: str) -> None:
    broken = None
    try:
        jsonc.put(text, PATH, NEW)
    except jsonc.Broken as error:
        broken = error

    if broken is not None:
        assert 1 <= broken.line <= text.count("\n") + text.count("\r") + 1
        assert 1 <= broken.column <= len(text) + 1


@given(values)
def test_what_is_plain_json_reads_as_the_standard_library_reads_it(value: Any) -> None:
    text = json.dumps(value, indent=1)

    root = jsonc.read(text).root

    assert root is not None
    assert json.dumps(root.value) == json.dumps(json.loads(text))
