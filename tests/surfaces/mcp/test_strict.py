"""Arguments are read strictly: refused by name, or understood as meant, never guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.core.errors import InvalidArguments
from vault_palace.surfaces.mcp.strict import Argument, read_arguments, schema_of
from vault_palace.surfaces.mcp.texts import TOOLS

ARGUMENTS = (
    Argument(name="title"),
    Argument(name="room", blank=True),
    Argument(name="layer", choices=("shallow", "sediment")),
    Argument(name="limit", kind="integer", least=1, most=100),
    Argument(name="density", kind="number", least=0, most=1),
    Argument(name="confirm", kind="boolean"),
    Argument(name="tags", kind="words"),
    Argument(name="details", kind="object", inner=(Argument(name="link", required=True),)),
)


def read(**given_: object) -> dict[str, object]:
    return read_arguments("a_tool", ARGUMENTS, given_)


def refusal(**given_: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        read(**given_)
    return caught.value


@pytest.mark.parametrize(
    ("given_", "value"),
    [
        ({"limit": 5}, 5),
        ({"limit": "5"}, 5),
        ({"limit": " 5 "}, 5),
        ({"limit": 3.0}, 3),
        ({"density": 0}, 0),
        ({"density": 1.0}, 1.0),
        ({"density": "0.25"}, 0.25),
        ({"density": ".5"}, 0.5),
        ({"confirm": True}, True),
        ({"confirm": "true"}, True),
        ({"confirm": "false"}, False),
        ({"title": "  blanks kept  "}, "  blanks kept  "),
        ({"room": "ideas"}, "ideas"),
        ({"layer": "sediment"}, "sediment"),
        ({"details": {"link": "[[x]]"}}, {"link": "[[x]]"}),
        ({"details": '{"link": "[[x]]"}'}, {"link": "[[x]]"}),
    ],
)
def test_a_value_is_read_as_meant(given_: dict[str, object], value: object) -> None:
    [read_value] = read(**given_).values()

    assert (read_value, type(read_value)) == (value, type(value))


@pytest.mark.parametrize(
    ("tags", "stored"),
    [
        (["svc", "db"], ["svc", "db"]),
        ('["svc", "db"]', ["svc", "db"]),
        ("svc, db", ["svc", "db"]),
        ("svc", ["svc"]),
        (["svc", "svc", " db "], ["svc", "db"]),
        ("svc,,db,", ["svc", "db"]),
        ([], []),
        ("", []),
    ],
)
def test_fm_05_tags_in_any_spelling_are_the_same_list(tags: object, stored: list[str]) -> None:
    assert read(tags=tags) == {"tags": stored}


@pytest.mark.parametrize(
    "tags",
    ['["svc", "db"', "[svc, db]", '[["svc"]]', "[1]", '["\\ud83e"]', [1], [None], {"a": 1}, 7, None],
)
def test_fm_05_tags_that_are_no_list_of_texts_are_refused(tags: object) -> None:
    assert refusal(tags=tags).facts["argument"] == "tags"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", []),
        ("title", {"a": 1}),
        ("title", 7),
        ("title", True),
        ("title", None),
        ("title", ""),
        ("title", " \n"),
        ("room", None),
        ("layer", "Shallow"),
        ("layer", "archive"),
        ("limit", True),
        ("limit", 3.5),
        ("limit", "3.5"),
        ("limit", "five"),
        ("limit", ""),
        ("limit", None),
        ("limit", []),
        ("limit", 0),
        ("limit", -5),
        ("limit", 101),
        ("limit", 10**400),
        ("limit", "9" * 400),
        ("limit", float("inf")),
        ("density", True),
        ("density", float("nan")),
        ("density", float("inf")),
        ("density", 10**400),
        ("density", "1e3"),
        ("density", "nan"),
        ("density", -0.0001),
        ("density", 1.0001),
        ("confirm", 1),
        ("confirm", "yes"),
        ("confirm", None),
        ("details", []),
        ("details", "[[x]]"),
        ("details", None),
    ],
)
def test_mc_07_a_value_of_the_wrong_kind_is_refused_by_name(name: str, value: object) -> None:
    error = refusal(**{name: value})

    assert error.facts["argument"] == name
    assert name in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("details", "argument"),
    [({}, "details.link"), ({"link": "x", "extra": 1}, "details.extra"), ({"link": 3}, "details.link")],
)
def test_the_inside_of_an_object_is_as_strict(details: object, argument: str) -> None:
    assert refusal(details=details).facts["argument"] == argument


@pytest.mark.parametrize(
    "value", ["cut \ud83e here", "a\0b", ["ok", "\udc00"], {"link": "\0"}, {"\ud83e": "x"}]
)
@pytest.mark.parametrize("name", ["title", "room", "tags", "details", "limit", "layer"])
def test_mc_04_mc_14_text_that_cannot_be_stored_is_refused_by_name(name: str, value: object) -> None:
    error = refusal(**{name: value})

    assert str(error.facts["argument"]).split(".")[0] == name
    str(error).encode("utf-8")  # the refusal itself can be sent


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_an_optional_argument_that_may_be_blank_is_then_as_if_not_given(blank: str) -> None:
    assert read(room=blank) == {}


@pytest.mark.parametrize("blank", ["", "  "])
def test_sr_05_a_required_argument_that_may_be_blank_is_kept(blank: str) -> None:
    query = Argument(name="query", required=True, blank=True)

    assert read_arguments("search_room", (query,), {"query": blank}) == {"query": blank}


def test_an_unknown_argument_is_refused_with_the_known_ones() -> None:
    error = refusal(bogus=1)

    assert error.facts["argument"] == "bogus"
    assert "title, room, layer" in str(error)


def test_a_long_unknown_name_is_not_echoed_whole() -> None:
    error = refusal(**{"x\ud83e" * 5000: 1})

    assert len(str(error)) < 300
    str(error).encode("utf-8")


def test_all_missing_arguments_are_named_at_once() -> None:
    needs = (Argument(name="source", required=True), Argument(name="dest_layer", required=True))

    with pytest.raises(InvalidArguments, match="needs source, dest_layer"):
        read_arguments("move_file", needs, {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(name=st.sampled_from([argument.name for argument in ARGUMENTS]), value=JSON)
def test_any_json_is_read_or_refused_by_name(name: str, value: Any) -> None:
    refused = ""
    try:
        outcome = list(read(**{name: value}))
    except InvalidArguments as error:
        outcome, refused = [], str(error.facts["argument"])

    blank = name == "room" and not str(value).strip()
    assert outcome == [name] or refused.split(".")[0] == name or (blank and outcome == [])


def test_depth_is_no_danger() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert refusal(title=deep).facts["argument"] == "title"
    assert refusal(tags="[" * 100_000).facts["argument"] == "tags"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_strict_slim_and_plain(tool: Any) -> None:
    schema = schema_of(tool.arguments)

    assert schema["additionalProperties"] is False
    text = json.dumps(schema)
    for noise in ('"anyOf"', '"$ref"', '"$defs"', '"null"'):
        assert noise not in text
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == [argument.name for argument in tool.arguments]
