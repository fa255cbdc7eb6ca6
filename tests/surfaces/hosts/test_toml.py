"""The change in TOML: a table comes and goes, and the lines of everything else stay."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from vault_palace.surfaces.hosts import toml

PATH = ("mcp_servers", "vault-palace")
NEW = {"command": "/opt/vault-palace", "args": ["serve", "--vault", "/home/you/Väult"]}
ENTRY = (
    '[mcp_servers.vault-palace]\ncommand = "/opt/vault-palace"\n'
    'args = ["serve", "--vault", "/home/you/Väult"]\n'
)

GROWN = [
    ("", ENTRY),
    ("a = 1\n", "a = 1\n\n" + ENTRY),
    ("a = 1", "a = 1\n\n" + ENTRY),
    ("a = 1\r\n", "a = 1\r\n\r\n" + ENTRY.replace("\n", "\r\n")),
    ("[mcp_servers.a]\nx = 1\n\n[z]\n", "[mcp_servers.a]\nx = 1\n\n[z]\n\n" + ENTRY),
    ("[mcp_servers]\n", "[mcp_servers]\n\n" + ENTRY),
    ("mcp_servers.a.command = 'x'\n", "mcp_servers.a.command = 'x'\n\n" + ENTRY),
    ("[[list]]\na = 1\n", "[[list]]\na = 1\n\n" + ENTRY),
]


@pytest.mark.parametrize(("before", "after"), GROWN)
def test_a_table_comes_at_the_end(before: str, after: str) -> None:
    assert toml.put(before, PATH, NEW) == after


def test_a_table_goes_with_what_is_below_it_alone() -> None:
    text = (
        f"# a\n[mcp_servers.a]\nx = 1\n\n{ENTRY}\n[mcp_servers.vault-palace.env]\nK = 'v'\n\n[z] # z\ny = 2\n"
    )

    assert toml.take(text, PATH) == "# a\n[mcp_servers.a]\nx = 1\n\n[z] # z\ny = 2\n"


def test_a_quoted_header_is_known() -> None:
    text = (
        f"""[ "mcp_servers" . 'vault-palace' ] # mine\ncommand = "old" # c\nargs = {NEW["args"]!r}\n[z]\n"""
    )

    new = toml.put(text, (*PATH, "command"), NEW["command"])

    assert new == text.replace('"old"', '"/opt/vault-palace"')


UNFIT = [
    "mcp_servers = {}\n",
    "mcp_servers = { vault-palace = { command = 'x' } }\n",
]


@pytest.mark.parametrize("text", UNFIT)
def test_a_form_in_which_other_lines_would_change_is_refused(text: str) -> None:
    path, value = (PATH, NEW) if "vault-palace" not in text else ((*PATH, "command"), "y")

    with pytest.raises(toml.Unfit):
        toml.put(text, path, value)


keys = st.text(st.characters(codec="utf-8", blacklist_categories=["Cs", "Cc"]), max_size=6)
scalars = st.booleans() | st.integers(-(2**40), 2**40) | keys
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    document: dict[str, Any] = draw(
        st.dictionaries(keys.filter(lambda key: key != PATH[0]), values, max_size=3)
    )
    others = st.dictionaries(keys, scalars, max_size=2)
    servers = draw(st.dictionaries(keys.filter(lambda key: key != PATH[1]), others, max_size=3))
    lines = tomlkit.dumps({**document, PATH[0]: servers} if servers else document).splitlines()
    for number in draw(st.lists(st.integers(0, len(lines)), max_size=3)):
        lines.insert(number, draw(st.sampled_from(["# a note [x]", "", "  # mcp_servers"])))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from(["", end, end * 3]))
    tomllib.loads(text)
    return text


@given(documents())
def test_in_any_file_the_table_comes_and_goes_alone(text: str) -> None:
    new = toml.put(text, PATH, NEW)
    back = toml.take(new, PATH)

    assert new.startswith(text)
    assert tomllib.loads(new)[PATH[0]][PATH[1]] == NEW
    assert back.startswith(text.rstrip())
    assert back.strip() == text.strip()
