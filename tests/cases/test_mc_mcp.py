"""Cases MC of the collection, on the real server process and a real vault.

MC-10 and MC-16 are not here: bursts of calls belong to the stateful tests, and no tool replaces a section.
What only the line itself decides (noise, broken lines, signals) is in tests/surfaces/mcp/test_stdio.py and,
for the same over HTTP, in test_http.py beside it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.mcp.rawclient import RawClient
from tests.surfaces.mcp.rawhttp import HttpClient
from vault_palace.core import budget

WriteNote = Callable[..., Path]
LONG_AGO = 1_600_000_000

MEMORY = """\
---
id: {id}
layer: shallow
created: 2020-01-01T12:00:00
last_touched: 2020-01-01T12:00:00
density: {density}
streak: 0
decay_days: 7
status: active
---

{body}
"""


def memory(
    number: int, *, body: str = "text", density: float = 0.2, streak: int = 0, created: str = ""
) -> str:
    """A memory as the program would have written it long ago."""
    return MEMORY.format(
        id=f"mem_{number:012x}",
        created=created or "2020-01-01T12:00:00",
        density=density,
        streak=streak,
        body=body,
    )


def files(root: Path) -> dict[str, bytes]:
    """Every file a person or the program keeps below *root*, without this machine's state."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".palace" not in path.parts and "journal" not in path.parts
    }


def unfinished(root: Path) -> list[str]:
    """Staged files and locks that a call left behind."""
    return [
        path.name
        for path in root.rglob("*")
        if path.is_file() and path.suffix in (".tmp", ".lock", ".staged")
    ]


# A conversation over each transport; over HTTP in the era that the name says.
Connect = Callable[..., RawClient]
TRANSPORTS: dict[str, Connect] = {
    "stdio": RawClient,
    "http": HttpClient,
    "http-modern": partial(HttpClient, modern=True),
}


@pytest.fixture(params=["stdio", "http"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Begin a conversation over one of the transports."""
    return TRANSPORTS[request.param]


@pytest.fixture(scope="module", params=TRANSPORTS)
def connect_once(request: pytest.FixtureRequest) -> Connect:
    """The same for a conversation that many tests share."""
    return TRANSPORTS[request.param]


@pytest.fixture
def client(vault: Path, connect: Connect) -> Iterator[RawClient]:
    """A conversation over an empty palace."""
    with connect(vault) as raw:
        raw.open()
        yield raw


# MC-01 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("python", [(), ("-W", "always", "-X", "dev")])
def test_mc_01_a_session_with_a_broken_note_puts_nothing_but_protocol_on_standard_output(
    vault: Path, note: WriteNote, modern: bool, python: tuple[str, ...]
) -> None:
    note("01_Shallow/broken.md", "---\ntitle: [never: closed\ntags: {\n---\nzebra\n")

    with RawClient(vault, modern=modern, python=python) as client:
        client.open()
        assert client.ask("tools/list")["result"]["tools"]
        client.bad("read_memory", path="01_Shallow/missing.md")
        client.good("search_room", query="zebra")
        client.end_input()
        client.rest()

        assert client.wait() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in client.lines)


@pytest.mark.parametrize("where", ["missing", "empty", "file"])
def test_mc_01_a_vault_that_is_none_ends_the_server_before_it_speaks(tmp_path: Path, where: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")

    with RawClient(tmp_path / where) as client:
        assert client.wait() not in (0, 1)
        assert client.rest() == []
        assert client.lines == []
        assert where in client.stderr()
        assert "Traceback" not in client.stderr()


def test_mc_01_no_vault_at_all_ends_the_server_with_the_next_step(tmp_path: Path) -> None:
    with RawClient(None) as client:
        assert client.wait() == 2
        assert client.rest() == []
        assert "--vault" in client.stderr()
        assert "VAULT_PALACE_VAULT" in client.stderr()


# MC-02 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C"},
        {"PYTHONIOENCODING": "gbk:strict", "LANG": "C.UTF-8"},
    ],
    ids=["C", "gbk"],
)
def test_mc_02_text_is_utf_8_whatever_the_locale(vault: Path, connect: Connect, env: dict[str, str]) -> None:
    body = "→ ✓ 漢字 🧭 \u00a0"

    with connect(vault, env=env) as client:
        client.open()
        saved = client.good("write_memory", title="тест", content=body)
        read = client.good("read_memory", path=saved["saved_path"])
        found = client.good("search_room", query="漢字")

    assert saved["saved_path"] == "01_Shallow/тест.md"
    assert body in read["content"]
    assert [match["path"] for match in found["matches"]] == ["01_Shallow/тест.md"]
    assert body in (vault / "01_Shallow/тест.md").read_text(encoding="utf-8")


# MC-04 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "argument"),
    [
        ("write_memory", r'{"title":"ok","content":"cut \ud83e here"}', "content"),
        ("write_memory", r'{"title":"cut \ud83e","content":"x"}', "title"),
        ("write_memory", r'{"title":"ok","content":"x","tags":["a","\ud83e"]}', "tags"),
        ("write_memory", r'{"title":"ok","content":"x","source_session":"\udd16"}', "source_session"),
        ("search_room", r'{"query":"\ud83e"}', "query"),
    ],
)
def test_mc_04_half_a_surrogate_pair_is_refused_before_anything_is_written(
    client: RawClient, vault: Path, tool: str, arguments: str, argument: str
) -> None:
    client.good("healthcheck")
    before = files(vault)
    params = f'{{"name":"{tool}","arguments":{arguments}}}'

    client.send_bytes(
        f'{{"jsonrpc":"2.0","id":700,"method":"tools/call","params":{params}}}\n'.encode("ascii")
    )

    text = client.answer(700)["result"]["content"][0]["text"]
    assert text.startswith(f"invalid_arguments: {argument} ")
    assert files(vault) == before
    assert client.good("recover_journal")["unresolved_count"] == 0
    assert client.good("search_room", query="cut here ok")["matches"] == []


def test_mc_04_bytes_that_are_no_utf_8_are_refused_by_name(client: RawClient, vault: Path) -> None:
    before = files(vault)
    params = b'{"name":"write_memory","arguments":{"title":"ok","content":"caf\xe9"}}'

    client.send_bytes(b'{"jsonrpc":"2.0","id":700,"method":"tools/call","params":' + params + b"}\n")

    assert client.answer(700)["result"]["content"][0]["text"].startswith("invalid_arguments: content ")
    assert files(vault) == before


# MC-05 ----------------------------------------------------------------------------------------------------

NOTES = 400  # the collection says 3,000; an answer shows at most 100 of them, and so its size is the same


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, connect_once: Connect) -> Iterator[RawClient]:
    """A vault where every note holds the word *meeting*, one a megabyte of it, and all link to one."""
    root = tmp_path_factory.mktemp("crowded")
    shallow = root / "01_Shallow"
    shallow.mkdir()
    for number in range(NOTES):
        text = memory(number, body=f"A meeting about topic {number}, see [[Hub]].", density=0.4)
        (shallow / f"meeting {number}.md").write_text(text, encoding="utf-8")
    (shallow / "Hub.md").write_text(memory(NOTES, body="The hub of every meeting."), encoding="utf-8")
    giant = "a long meeting with many words\n" * 34_000
    (shallow / "Giant.md").write_text(memory(NOTES + 1, body=giant), encoding="utf-8")
    state = tmp_path_factory.mktemp("state")
    env = {"VAULT_PALACE_CACHE_DIR": str(state / "cache"), "VAULT_PALACE_STATE_DIR": str(state / "state")}
    with connect_once(root, env=env) as client:
        client.open()
        yield client


def cost(result: dict[str, Any]) -> int:
    """Tokens of the dearer of an answer's two forms."""
    compact = json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))
    return max(budget.tokens(result["content"][0]["text"]), budget.tokens(compact))


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        ({}, 6_000),
        ({"limit": 100}, 6_000),
        ({"limit": 100, "max_tokens": 1_000}, 1_000),
        ({"limit": 3, "max_tokens": 200}, 200),
    ],
)
def test_mc_05_a_common_word_gives_a_page_with_a_total_and_a_way_to_go_on(
    crowded: RawClient, arguments: dict[str, Any], most: int
) -> None:
    result = crowded.tool("search_room", query="meeting", **arguments)

    page = result["structuredContent"]
    assert cost(result) <= most
    assert page["total"] == NOTES + 2
    assert page["cursor"]
    assert page["cursor"] in result["content"][0]["text"]


def test_mc_05_ten_hits_cost_no_more_than_800_tokens_of_text(crowded: RawClient) -> None:
    result = crowded.tool("search_room", query="meeting")

    assert len(result["structuredContent"]["matches"]) == 10
    assert budget.tokens(result["content"][0]["text"]) <= 800


def test_mc_05_pages_of_a_small_budget_show_every_hit_once(crowded: RawClient) -> None:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = crowded.good("search_room", query="meeting", limit=100, max_tokens=4_000, **cursor)
        seen += [match["path"] for match in page["matches"]]
        if not page["cursor"]:
            break
        cursor = {"cursor": page["cursor"]}

    assert len(seen) == NOTES + 2
    assert len(set(seen)) == NOTES + 2


@pytest.mark.parametrize("limit", [1_000, 100_000, 0, -5])
def test_mc_05_a_bad_limit_is_refused_with_the_range(crowded: RawClient, limit: int) -> None:
    text = crowded.bad("search_room", query="meeting", limit=limit)

    assert text.startswith("invalid_arguments: limit ")
    assert "1 to 100" in text


@pytest.mark.parametrize(
    ("given_", "most"), [({}, 9_000), ({"max_tokens": 500}, 500), ({"max_tokens": 20_000}, 20_000)]
)
def test_mc_05_a_giant_note_is_cut_with_a_mark_and_a_way_to_go_on(
    crowded: RawClient, given_: dict[str, int], most: int
) -> None:
    result = crowded.tool("read_memory", path="01_Shallow/Giant.md", touch=False, **given_)

    assert cost(result) <= most
    assert result["structuredContent"]["truncated"] is True
    assert "max_tokens" in result["structuredContent"]["more"]


def test_mc_05_the_backlinks_of_a_hub_are_bounded(crowded: RawClient) -> None:
    result = crowded.tool("read_memory", title="Hub", touch=False)

    assert cost(result) <= 9_000
    assert 1 <= len(result["structuredContent"]["backlinks"]) <= 50


def test_mc_05_a_plan_for_every_note_is_bounded_and_says_how_many(crowded: RawClient) -> None:
    result = crowded.tool("metabolize", dry_run=True)

    assert cost(result) <= 6_000
    assert result["structuredContent"]["scanned"] == NOTES + 2


# MC-07 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"content": "x", "title": []}, "title"),
        ({"content": "x", "title": {"a": 1}}, "title"),
        ({"content": "x", "title": 7}, "title"),
        ({"content": "x", "title": ""}, "title"),
        ({"content": None, "title": "t"}, "content"),
        ({"content": "", "title": "t"}, "content"),
        ({}, "content"),
        ({"content": "x" * 5_000_000, "title": "t"}, "content"),
        ({"content": "x", "title": "t", "bogus": 1}, "bogus"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_mc_07_a_malformed_write_names_the_argument_and_writes_nothing(
    client: RawClient, vault: Path, arguments: dict[str, Any], argument: str
) -> None:
    before = files(vault)

    text = client.bad("write_memory", **arguments)

    assert text.split(":")[0] in ("invalid_arguments", "budget_exceeded")
    assert argument in text
    assert len(text) < 1_000  # the value is not echoed
    assert files(vault) == before
    assert client.good("healthcheck")["status"] == "ok"


# MC-08 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_mc_08_cancelled_runs_leave_every_note_whole_and_once(
    vault: Path, note: WriteNote, transport: str
) -> None:
    count, chance = 60, random.Random(8)
    for number in range(count):
        path = note(
            f"01_Shallow/note {number}.md", memory(number, body=f"word{number} [[note 0]]", density=0.9)
        )
        os.utime(path, (LONG_AGO, LONG_AGO))  # nobody is writing it now

    with TRANSPORTS[transport](vault) as client:
        client.open()
        client.good("healthcheck")
        for _ in range(15):
            request = client.request("tools/call", {"name": "metabolize", "arguments": {"confirm": True}})
            # The moment of the cancellation is arbitrary on purpose; no outcome depends on it.
            time.sleep(chance.random() * 0.05)
            client.notify("notifications/cancelled", {"requestId": request})
            client.notify("notifications/cancelled", {"requestId": 4_000_000})
            assert client.ask("tools/list")["result"]["tools"]
            assert "matches" in client.good("search_room", query="word1")
        client.good("metabolize", confirm=True)

        assert client.good("recover_journal")["unresolved_count"] == 0
        assert client.good("healthcheck")["status"] == "ok"
    places = [
        path.relative_to(vault).parts[0] for path in vault.rglob("note *.md") if ".palace" not in path.parts
    ]
    assert places == ["02_Sediment"] * count
    assert unfinished(vault) == []
    for number in range(count):
        text = (vault / f"02_Sediment/note {number}.md").read_text(encoding="utf-8")
        assert text.count(f"word{number} [[note 0]]") == 1
        assert text.count("layer: sediment\n") == 1


def test_mc_08_a_cancelled_write_is_there_whole_or_not_at_all(client: RawClient, vault: Path) -> None:
    chance = random.Random(80)
    body = "a line of the note\n" * 2_500
    for number in range(15):
        arguments = {"title": f"big {number}", "content": body}
        request = client.request("tools/call", {"name": "write_memory", "arguments": arguments})
        time.sleep(chance.random() * 0.02)
        client.notify("notifications/cancelled", {"requestId": request})
        assert client.ask("tools/list")["result"]["tools"]
    client.end_input()
    client.rest()
    client.wait()

    for path in (vault / "01_Shallow").glob("*.md"):
        assert path.read_text(encoding="utf-8").endswith(body)
    assert unfinished(vault) == []


# MC-11 ----------------------------------------------------------------------------------------------------

ESCAPES = [
    "../v-private/secret",
    "../vault-private/secret.md",
    "01_Shallow/../../vault-private/secret.md",
    "/etc/passwd",
    "~/x",
    "01_Shallow/%2e%2e/%2e%2e/x",
    "..\\..\\x",
    "01_Shallow/./../../x",
    "file:///etc/passwd",
    "01_Shallow/sub/../../_Archive/../../x",
    "C:\\Windows\\win.ini",
    "\\\\server\\share\\x",
]


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, connect_once: Connect
) -> Iterator[tuple[RawClient, Path]]:
    """A vault beside a folder with a secret, and its server."""
    outside = tmp_path_factory.mktemp("outside")
    root = outside / "vault"
    (root / "01_Shallow").mkdir(parents=True)
    (root / "01_Shallow/a.md").write_text(memory(1), encoding="utf-8")
    (outside / "vault-private").mkdir()
    (outside / "vault-private/secret.md").write_text("the secret word is swordfish\n")
    state = tmp_path_factory.mktemp("state")
    env = {"VAULT_PALACE_CACHE_DIR": str(state / "cache"), "VAULT_PALACE_STATE_DIR": str(state / "state")}
    with connect_once(root, env=env) as client:
        client.open()
        client.good("healthcheck")
        yield client, outside


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize(
    ("tool", "argument", "others"),
    [
        ("write_memory", "path", {"content": "x"}),
        ("read_memory", "path", {}),
        ("rate_memory", "path", {"density": 0.5}),
        ("purge_memory", "path", {"confirm": True}),
        ("restore_memory", "path", {}),
        ("move_file", "source", {"dest_layer": "sediment"}),
        ("move_file", "new_path", {"source": "01_Shallow/a.md", "dest_layer": "sediment"}),
        ("search_room", "room", {"query": "swordfish"}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_mc_11_a_path_that_leaves_the_vault_is_refused(
    guarded: tuple[RawClient, Path], tool: str, argument: str, others: dict[str, Any], escape: str
) -> None:
    client, outside = guarded
    before = files(outside)

    text = client.bad(tool, **{argument: escape, **others})

    allowed = ("path_violation", "not_found") if argument == "room" else ("path_violation",)
    assert text.split(":")[0] in allowed
    assert "swordfish" not in text
    assert files(outside) == before


@pytest.mark.parametrize("escape", ESCAPES)
def test_mc_11_a_title_names_a_file_within_the_vault_whatever_it_holds(
    guarded: tuple[RawClient, Path], escape: str
) -> None:
    client, outside = guarded
    beside = {path: data for path, data in files(outside).items() if not path.startswith("vault/")}

    result = client.tool("write_memory", title=escape, content="x")

    after = {path: data for path, data in files(outside).items() if not path.startswith("vault/")}
    assert after == beside
    if not result.get("isError"):
        saved = result["structuredContent"]["saved_path"]
        assert saved.startswith("01_Shallow/")
        assert saved.count("/") == 1


def test_mc_11_a_harmless_dot_in_a_path_works(guarded: tuple[RawClient, Path]) -> None:
    client, _ = guarded

    assert client.good("read_memory", path="01_Shallow/./a", touch=False)["path"] == "01_Shallow/a.md"


# MC-13 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["option", "variable", "slash", "link"])
def test_mc_13_a_vault_with_an_unusual_path_works_in_every_way(
    tmp_path: Path, connect: Connect, way: str
) -> None:
    root = tmp_path / "My Vault (2) & [äöü] #1 %20"
    (root / "01_Shallow").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    vault = {"option": root, "variable": None, "slash": f"{root}/", "link": link}[way]
    env = {"VAULT_PALACE_VAULT": str(root)} if way == "variable" else {}

    with connect(vault, env=env) as client:
        client.open()
        client.good("write_memory", title="Target", content="the words to find")
        client.good("write_memory", title="Source", content="see [[Target]]", path="ideas/Source")
        found = client.good("search_room", query="words", room="01_Shallow")
        moved = client.good("move_file", source="01_Shallow/Target.md", dest_layer="sediment")
        client.good("purge_memory", path=moved["destination"], confirm=True)
        restored = client.good("restore_memory", path="_Archive/02_Sediment/Target.md")
        read = client.good("read_memory", path=restored["restored_to"])
        client.good("metabolize", dry_run=True)
        recovered = client.good("recover_journal")
        health = client.good("healthcheck")

    assert [match["path"] for match in found["matches"]] == ["01_Shallow/Target.md"]
    assert read["backlinks"] == ["01_Shallow/ideas/Source.md"]
    assert recovered["unresolved_count"] == 0
    assert (health["status"], health["index"]["notes"]) == ("ok", 2)
    assert (root / "02_Sediment/Target.md").exists()


# MC-14 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "argument"),
    [
        ("write_memory", {"title": "a\0b", "content": "x"}, "title"),
        ("write_memory", {"path": "01_Shallow\0/a", "content": "x"}, "path"),
        ("write_memory", {"title": "t", "content": "x\0y"}, "content"),
        ("read_memory", {"path": "01_Shallow/a.md\0.png"}, "path"),
        ("purge_memory", {"path": "01_Shallow/a.md\0.png", "confirm": True}, "path"),
        ("search_room", {"query": "q\0"}, "query"),
        ("search_room", {"query": "q", "room": "01_Shallow\0"}, "room"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_mc_14_a_null_byte_is_refused_by_name(
    guarded: tuple[RawClient, Path], tool: str, arguments: dict[str, Any], argument: str
) -> None:
    client, outside = guarded
    before = files(outside)

    assert client.bad(tool, **arguments).startswith(f"invalid_arguments: {argument} ")
    assert files(outside) == before


# MC-17 ----------------------------------------------------------------------------------------------------

DAY = "".join(f"line {number} of the day\n" for number in range(40))


@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("01_Shallow/2025-05-05.md", {"path": "2025-05-05"}),
        ("01_Shallow/2025-05-05.md", {"path": "01_Shallow/2025-05-05.md"}),
        ("01_Shallow/Daily Log.md", {"path": "daily log"}),
    ],
)
def test_mc_17_create_at_a_taken_path_answers_exists_and_leaves_the_note(
    client: RawClient, note: WriteNote, place: str, arguments: dict[str, str]
) -> None:
    client.good("healthcheck")
    path = note(place, DAY)  # not yet indexed, made a moment ago

    text = client.bad("write_memory", content="summary", **arguments)

    assert text.startswith("exists: ")
    assert "append" in text or "replace" in text
    assert path.read_text() == DAY
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("place", ["01_Shallow/Day.md", "01_Shallow/dAY.md", "_Archive/01_Shallow/Day.md"])
def test_mc_17_create_with_a_taken_title_makes_a_second_name_and_says_so(
    client: RawClient, note: WriteNote, place: str
) -> None:
    client.good("healthcheck")
    path = note(place, DAY)

    result = client.tool("write_memory", content="summary", title="Day")

    # SPEC: a taken *title* gets ` 2` and the answer says so; only an explicit path answers `exists`.
    assert result["structuredContent"]["saved_path"] == "01_Shallow/Day 2.md"
    assert "Day 2" in result["content"][0]["text"]
    assert path.read_text() == DAY


def test_mc_17_exists_tells_the_rev_that_replace_needs(
    client: RawClient, note: WriteNote, vault: Path
) -> None:
    note("01_Shallow/day.md", DAY)
    refused = client.tool("write_memory", content="summary", path="day")

    rev = refused["_meta"]["rev"]
    client.good("write_memory", content="summary", path="day", mode="replace", if_rev=rev)

    assert "summary" in (vault / "01_Shallow/day.md").read_text()


# MC-19 ----------------------------------------------------------------------------------------------------


def test_mc_19_replace_of_a_note_that_a_person_moved_makes_no_second_one(
    client: RawClient, vault: Path
) -> None:
    saved = client.good("write_memory", title="spec", content="first text")
    (vault / "02_Sediment").mkdir(exist_ok=True)
    (vault / "01_Shallow/spec.md").rename(vault / "02_Sediment/spec.md")

    result = client.tool(
        "write_memory",
        layer="shallow",
        path="spec",
        content="second text",
        mode="replace",
        if_rev=saved["rev"],
    )

    notes = [path for path in vault.rglob("spec*.md") if ".palace" not in path.parts]
    assert notes == [vault / "02_Sediment/spec.md"]
    text = result["content"][0]["text"]
    assert "02_Sediment/spec.md" in text
    held = "first text" if result.get("isError") else "second"
    assert held in notes[0].read_text()


# MC-20 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("no_such_tool", {}, "not_found"),
        ("read_memory", {"path": "01_Shallow/missing.md"}, "not_found"),
        ("read_memory", {"id": "mem_ffffffffffff"}, "not_found"),
        ("read_memory", {"title": "Missing"}, "not_found"),
        ("purge_memory", {"path": "01_Shallow/missing.md", "confirm": True}, "not_found"),
        ("purge_memory", {"path": "01_Shallow/a.md"}, "policy_violation"),
        ("restore_memory", {"path": "_Archive/01_Shallow/missing.md"}, "not_found"),
        ("move_file", {"source": "01_Shallow/missing.md", "dest_layer": "sediment"}, "not_found"),
        ("move_file", {"source": "01_Shallow/a.md", "dest_layer": "shallow", "new_path": "b"}, "exists"),
        ("rate_memory", {"path": "01_Shallow/broken.md", "density": 0.5}, "malformed_note"),
        ("rate_memory", {"path": "01_Shallow/a.md"}, "invalid_arguments"),
        ("write_memory", {"path": "missing", "content": "x", "mode": "append"}, "not_found"),
        ("write_memory", {"path": "a", "content": "x", "mode": "replace"}, "conflict"),
        (
            "write_memory",
            {"path": "a", "content": "x", "mode": "replace", "if_rev": "0123456789ab"},
            "conflict",
        ),
        ("write_memory", {"title": "t", "content": "```dataviewjs\ndv.view('x')\n```"}, "unsafe_content"),
        ("search_room", {"query": "x", "room": "no such room"}, "not_found"),
        ("search_room", {"query": "x" * 513}, "budget_exceeded"),
        (
            "purge_memory",
            {"path": "01_Shallow/a.md", "reason": "x" * 1_025, "confirm": True},
            "budget_exceeded",
        ),
        ("metabolize", {}, "policy_violation"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_mc_20_a_failure_has_the_flag_a_stable_code_and_no_effect(
    failing: tuple[RawClient, Path], tool: str, arguments: dict[str, Any], code: str
) -> None:
    client, root = failing
    before = files(root)

    result = client.tool(tool, **arguments)

    text = result["content"][0]["text"]
    assert result["isError"] is True
    assert text.split(":")[0] == code
    assert result["_meta"]["code"] == code
    assert "structuredContent" not in result
    assert files(root) == before


@pytest.fixture(scope="module")
def failing(
    tmp_path_factory: pytest.TempPathFactory, connect_once: Connect
) -> Iterator[tuple[RawClient, Path]]:
    """A vault with two sound notes and a broken one."""
    root = tmp_path_factory.mktemp("failing")
    shallow = root / "01_Shallow"
    shallow.mkdir()
    (shallow / "a.md").write_text(memory(1), encoding="utf-8")
    (shallow / "b.md").write_text(memory(2), encoding="utf-8")
    (shallow / "broken.md").write_text("---\ntags: [a\n---\ntext\n")
    state = tmp_path_factory.mktemp("state")
    env = {"VAULT_PALACE_CACHE_DIR": str(state / "cache"), "VAULT_PALACE_STATE_DIR": str(state / "state")}
    with connect_once(root, env=env) as client:
        client.open()
        client.good("healthcheck")
        yield client, root


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_memory", {"title": "t", "content": "x"}),
        ("rate_memory", {"path": "01_Shallow/a.md", "density": 0.5}),
        ("purge_memory", {"path": "01_Shallow/a.md", "confirm": True}),
        ("move_file", {"source": "01_Shallow/a.md", "dest_layer": "sediment"}),
        ("metabolize", {"confirm": True}),
        ("update_map", {"action": "add_link", "details": {"link": "[[a]]"}}),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_mc_20_a_vault_that_policy_makes_read_only_refuses_every_write(
    read_only: tuple[RawClient, Path], tool: str, arguments: dict[str, Any]
) -> None:
    client, root = read_only
    before = files(root)

    assert client.bad(tool, **arguments).startswith("policy_violation: ")
    assert files(root) == before


def test_mc_20_a_vault_that_is_read_only_can_be_read(read_only: tuple[RawClient, Path]) -> None:
    client, root = read_only
    before = files(root)

    assert client.good("read_memory", path="01_Shallow/a.md")["content"].strip() == "text"
    assert client.good("search_room", query="text")["total"] == 1
    assert files(root) == before


@pytest.fixture(scope="module")
def read_only(
    tmp_path_factory: pytest.TempPathFactory, connect_once: Connect
) -> Iterator[tuple[RawClient, Path]]:
    root = tmp_path_factory.mktemp("readonly")
    (root / "01_Shallow").mkdir()
    (root / "_System").mkdir()
    (root / "_System/Policy.md").write_text("---\nread_only: true\n---\n")
    (root / "01_Shallow/a.md").write_text(memory(1), encoding="utf-8")
    state = tmp_path_factory.mktemp("state")
    env = {"VAULT_PALACE_CACHE_DIR": str(state / "cache"), "VAULT_PALACE_STATE_DIR": str(state / "state")}
    with connect_once(root, env=env) as client:
        client.open()
        yield client, root


# FM-05 as a whole call; the readings of every spelling are in tests/surfaces/mcp/test_strict.py -------------


@pytest.mark.parametrize(
    ("tags", "stored"), [('["svc", "db"]', ["svc", "db"]), ("svc, db", ["svc", "db"]), ("svc", ["svc"])]
)
def test_fm_05_tags_given_as_text_are_stored_as_a_list(
    failing: tuple[RawClient, Path], tags: str, stored: list[str]
) -> None:
    client, _ = failing

    saved = client.good("write_memory", title="Orbit", content="x", tags=tags)

    assert client.good("read_memory", path=saved["saved_path"], touch=False)["metadata"]["tags"] == stored
