"""A folder that Sediment Palace filled opens as it is: nothing of it changes by looking, every tool works.

The folder below is written by hand in that program's format. That program reads headers with PyYAML and
answers them as JSON, so what ours writes must come back there as text, numbers and lists.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.services.conftest import Clock
from tests.services.test_metabolize import snapshot
from tests.surfaces.mcp.rawclient import RawClient
from vault_palace.core import frontmatter
from vault_palace.core.errors import Exists, PolicyViolation, RateLimited
from vault_palace.services.palace import Palace, PalaceSettings

NOW = datetime(2031, 3, 1, 12, tzinfo=UTC)


def memory(
    number: int,
    layer: str,
    *,
    age: int = 3,
    idle: int = 1,
    density: float = 0.2,
    streak: int = 0,
    status: str = "active",
    tags: str = "tags: []",
    more: str = "",
    body: str = "Body with [[alpha]].",
    now: datetime = NOW,
) -> str:
    """A note as Sediment Palace dumps it: quoted dates with an offset and six digits of a second."""
    created, touched = (
        (now - timedelta(days=days, microseconds=17)).isoformat(timespec="microseconds")
        for days in (age, idle)
    )
    days = {"shallow": 7, "sediment": 60, "bedrock": 36500}[layer]
    return (
        f"---\nid: mem_0a1b2c3d4e{number:02x}\nlayer: {layer}\ncreated: '{created}'\n"
        f"last_touched: '{touched}'\ndensity: {density}\nstreak: {streak}\ndecay_days: {days}\n{tags}\n"
        f"status: {status}\nsource_session: mcp_session\n{more}---\n\n{body}"
    )


def notes(now: datetime = NOW) -> dict[str, str]:
    def made(number: int, layer: str, **values: Any) -> str:
        return memory(number, layer, now=now, **values)

    return {
        "01_Shallow/alpha.md": made(1, "shallow", streak=10, body="# Alpha\n\nKafka keeps topics.\n"),
        "01_Shallow/ideas/beta.md": made(
            2, "shallow", age=9, idle=2, density=0.6, tags="tags:\n- apollo\n- db"
        ),
        "01_Shallow/ideas/stale.md": made(3, "shallow", age=40, idle=30, streak=-3, status="decaying"),
        "01_Shallow/keys.md": made(
            4, "shallow", more="mood: calm # mine\nnested:\n  a: 1\n", tags="tags:\n- 'yes'\n- '2024'"
        ),
        "01_Shallow/plain.md": "No header at all, about Kafka.\n",
        "02_Sediment/gamma.md": made(5, "sediment", age=90, idle=20, density=0.85, streak=5),
        "02_Sediment/fading.md": made(6, "sediment", age=200, idle=150, streak=1),
        "02_Sediment/люди/dragged.md": made(7, "shallow", age=20, idle=5),  # the header names another layer
        "03_Bedrock/omega.md": made(8, "bedrock", age=300, idle=250, status="crystallized"),
        "_Archive/01_Shallow/ideas/purged.md": made(
            9, "shallow", age=50, idle=9, status="archived", tags="tags:\n- purged\n- apollo"
        ),
    }


# Which operations it began and did not complete: a write, a move and an ageing.
STARTED = (
    ("9f01", "write_memory", {"layer": "shallow", "path": "01_Shallow/lost.md"}),
    (
        "9f02",
        "move_file",
        {"source": "01_Shallow/alpha.md", "dest_layer": "sediment", "destination": "02_Sediment/alpha.md"},
    ),
    ("9f03", "metabolize", {"dry_run": False, "days_threshold": None}),
)


def journal() -> str:
    def line(op: str, state: str, operation: str, payload: object) -> str:
        event = {"timestamp": "2031-02-27T00:00:00+00:00", "operation_id": op, "operation": operation}
        return json.dumps({**event, "state": state, "payload": payload}) + "\n"

    done = line("9f00", "started", "update_map", {}) + line("9f00", "completed", "update_map", {})
    return done + "".join(line(op, "started", verb, payload) for op, verb, payload in STARTED) + '{"torn'


POLICY = """\
destructive_require_confirm: true
limits:
  max_search_matches: 3
  max_metabolize_scan: 5000
rate_limit:
  window_seconds: 30
  max_destructive_ops: 4
"""
SYSTEM = {
    "_System/policy.yaml": POLICY,
    "_System/journal.log": journal(),
    "_System/policy_events.log": '{"timestamp": 1.5, "type": "destructive_op", "operation": "metabolize"}\n',
    "_System/telemetry.log": '{"timestamp": 1.5, "tool_name": "read_map", "status": "success"}\n',
    "_System/metrics.json": '{"read_map": {"count": 1, "success": 1, "error": 0}}',
    "_System/locks/5d41402abc4b2a76b9719d911017c592.lock": "",
    "PALACE_MAP.md": "# PALACE MAP\n\n## Links\n- [[alpha]]\n- [[beta]]\n",
}


def write_folder(root: Path, now: datetime = NOW) -> Path:
    for path, text in {**notes(now), **SYSTEM}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))
        os.utime(target, ((now - timedelta(days=1)).timestamp(),) * 2)
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "project/memory")


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def palace(folder: Path, tmp_path: Path, clock: Clock) -> Iterator[Palace]:
    """The folder, opened without `init`."""
    settings = PalaceSettings(
        cache_dir=tmp_path / "cache", state_dir=tmp_path / "state", clock=clock, sleep=clock.sleep
    )
    with Palace.open(folder, settings=settings) as opened:
        yield opened


def properties(root: Path, path: str) -> dict[str, Any]:
    return dict(frontmatter.read((root / path).read_text(encoding="utf-8")).values)


def changed(before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]]) -> set[str]:
    """Which files differ in bytes or time, the program's own state and journal aside."""
    own = (".palace/", "_System/journal/")
    paths = before.keys() | after.keys()
    return {path for path in paths if before.get(path) != after.get(path) and not path.startswith(own)}


def lines_changed(before: bytes, after: bytes) -> set[str]:
    """The properties whose lines differ, and `(body)`."""
    found = set()
    for text, other in ((before, after), (after, before)):
        header, _, body = text.decode().removeprefix("---\n").partition("---\n")
        others, _, other_body = other.decode().removeprefix("---\n").partition("---\n")
        found |= {line.partition(":")[0] for line in header.splitlines() if line not in others.splitlines()}
        if body != other_body:
            found.add("(body)")
    return found


def readable_there(root: Path) -> None:
    """Every note comes back to Sediment Palace as it needs it: its casts succeed, its answers are JSON."""
    for path in root.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        if not text.startswith("---\n"):
            continue
        header = yaml.safe_load(text.split("---\n", 2)[1])
        json.dumps(header)  # its server ends on a date here
        assert isinstance(header["id"], str)
        assert header["layer"] in ("shallow", "sediment", "bedrock")
        assert isinstance(float(header["density"]), float)
        assert isinstance(header["streak"], int)
        assert isinstance(header["decay_days"], int)
        assert isinstance(list(header.get("tags") or []), list)
        for key in ("created", "last_touched"):
            datetime.fromisoformat(str(header[key]))


# -- opening and looking ------------------------------------------------------------------------------------


def test_the_folder_opens_as_what_it_is(palace: Palace) -> None:
    status = palace.status()

    assert status["mode"] == "sediment-palace"
    assert status["layers"] == {"shallow": 5, "sediment": 3, "bedrock": 1}
    assert status["archived"] == 1
    assert status["timezone"]


LOOKS: dict[str, Callable[[Palace], object]] = {
    "status": lambda palace: palace.status(),
    "health": lambda palace: palace.health(),
    "check": lambda palace: palace.check(),
    "map": lambda palace: palace.read_map(),
    "search": lambda palace: palace.search("kafka"),
    "room": lambda palace: palace.search("body", room="01_Shallow/ideas"),
    "find": lambda palace: palace.find("body", layer="sediment"),
    "read untouched": lambda palace: palace.read(path="01_Shallow/alpha.md", touch=False),
    "read archived": lambda palace: palace.read(path="_Archive/01_Shallow/ideas/purged.md"),
    "read the map": lambda palace: palace.read(path="PALACE_MAP.md"),
    "dry run": lambda palace: palace.metabolize(dry_run=True, days_threshold=2, force=True),
    "reindex": lambda palace: palace.reindex(),
    "close": lambda palace: palace.close(),
}


@pytest.mark.parametrize("name", LOOKS)
def test_looking_changes_nothing_at_all(folder: Path, palace: Palace, name: str) -> None:
    before = snapshot(folder)

    LOOKS[name](palace)

    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        # Ten is the highest use: the touch leaves the streak.
        ("01_Shallow/alpha.md", {"last_touched", "backlinks", "decays_on", "rises_on", "rises_to"}),
        ("01_Shallow/keys.md", {"last_touched", "backlinks", "decays_on", "streak"}),
        ("01_Shallow/ideas/stale.md", {"last_touched", "backlinks", "decays_on", "streak", "status"}),
        ("03_Bedrock/omega.md", {"last_touched", "backlinks", "streak"}),
        (
            "02_Sediment/люди/dragged.md",
            {"last_touched", "backlinks", "decays_on", "streak", "layer", "layer_since", "decay_days"},
        ),
    ],
)
def test_reading_changes_the_lines_of_the_touch_alone(
    folder: Path, palace: Palace, path: str, lines: set[str]
) -> None:
    before = snapshot(folder)

    palace.read(path=path)

    after = snapshot(folder)
    assert changed(before, after) == {path}
    assert lines_changed(before[path][0], after[path][0]) <= lines
    assert properties(folder, path)["last_touched"] == palace.house.policy().wall(NOW).isoformat()


def test_a_second_reading_on_the_same_day_changes_nothing(folder: Path, palace: Palace) -> None:
    palace.read(path="01_Shallow/keys.md")
    before = snapshot(folder)

    palace.read(path="01_Shallow/keys.md")

    assert snapshot(folder) == before


def test_metadata_is_answered_as_it_stands_in_the_note(palace: Palace) -> None:
    found = palace.read(path="01_Shallow/keys.md", touch=False)

    assert found["metadata"]["created"] == "2031-02-26T11:59:59.999983+00:00"
    assert (found["metadata"]["density"], found["metadata"]["streak"]) == (0.2, 0)
    assert (found["metadata"]["tags"], found["metadata"]["mood"]) == (["yes", "2024"], "calm")
    assert found["content"].strip() == "Body with [[alpha]]."
    assert found["warnings"] == []


def test_the_healthy_notes_are_no_problem(palace: Palace) -> None:
    """What is reported is what is wrong: operations that were never completed."""
    assert {problem.code for problem in palace.check()} == {"old_operation_open"}


# -- its journal and its policy -----------------------------------------------------------------------------


def test_operations_it_never_completed_are_surfaced_with_their_note(folder: Path, palace: Palace) -> None:
    before = (folder / "_System/journal.log").read_bytes()

    answer = palace.recover()

    assert (answer["unresolved_count"], answer["recovered_count"]) == (3, 0)
    assert [(one["operation_id"], one["operation"], one["path"]) for one in answer["recovered"]] == [
        ("9f01", "write_memory", "01_Shallow/lost.md"),
        ("9f02", "move_file", "01_Shallow/alpha.md"),
        ("9f03", "metabolize", ""),
    ]
    assert {one["status"] for one in answer["recovered"]} == {"open"}
    assert [(one.path, one.line) for one in palace.check()] == [
        ("_System/journal.log", line) for line in (3, 4, 5)
    ]
    assert (folder / "_System/journal.log").read_bytes() == before


def test_its_limit_of_matches_cuts_a_page_and_the_cursor_goes_on(palace: Palace) -> None:
    first = palace.search("body", limit=10)
    rest = palace.search("body", limit=10, cursor=first["cursor"])

    assert (len(first["matches"]), len(rest["matches"]), first["total"]) == (3, 3, 7)


def test_its_limit_of_destructive_calls_counts_within_its_window(palace: Palace, clock: Clock) -> None:
    for path in ("alpha", "keys", "ideas/beta", "ideas/stale"):
        palace.purge(f"01_Shallow/{path}.md", confirm=True)

    with pytest.raises(RateLimited):
        palace.purge("02_Sediment/gamma.md", confirm=True)

    clock.turn(hours=31 / 3600)
    assert (
        palace.purge("02_Sediment/gamma.md", confirm=True)["archived_to"] == "_Archive/02_Sediment/gamma.md"
    )


@pytest.mark.parametrize(("required", "refused"), [("true", True), ("false", False)])
def test_its_word_on_confirmation_counts(folder: Path, palace: Palace, required: str, refused: bool) -> None:
    text = POLICY.replace("confirm: true", f"confirm: {required}")
    (folder / "_System/policy.yaml").write_text(text, encoding="utf-8")

    if refused:
        with pytest.raises(PolicyViolation):
            palace.purge("01_Shallow/alpha.md")
    else:
        palace.purge("01_Shallow/alpha.md")

    assert (folder / "01_Shallow/alpha.md").exists() is refused


def test_its_limit_of_scanned_notes_leaves_the_rest_for_the_next_run(folder: Path, palace: Palace) -> None:
    (folder / "_System/policy.yaml").write_text("limits:\n  max_metabolize_scan: 3\n", encoding="utf-8")
    planned = palace.metabolize(dry_run=True)

    first = palace.metabolize(confirm=True)
    later = [palace.metabolize(confirm=True) for _ in range(3)]

    assert (planned["promoted"], planned["archived"]) == (first["promoted"], first["archived"])
    assert "5 notes for the next run" in first["note"]
    assert later[-1]["note"] == ""
    assert sum(len(run["archived"]) for run in (first, *later)) == 2
    before = snapshot(folder)
    palace.metabolize(confirm=True)
    assert changed(before, snapshot(folder)) == set()


def test_a_policy_that_does_not_parse_is_reported_and_stops_nothing(folder: Path, palace: Palace) -> None:
    (folder / "_System/policy.yaml").write_text("limits: [\n", encoding="utf-8")

    assert "bad_policy" in {problem.code for problem in palace.check()}
    assert palace.search("kafka")["matches"]


# -- ageing it ----------------------------------------------------------------------------------------------


def test_ageing_gives_sensible_results(folder: Path, palace: Palace) -> None:
    planned = palace.metabolize(dry_run=True)

    answer = palace.metabolize(confirm=True)

    assert answer["promoted"] == ["02_Sediment/ideas/beta.md", "03_Bedrock/gamma.md"]
    assert answer["archived"] == ["_Archive/01_Shallow/ideas/stale.md", "_Archive/02_Sediment/fading.md"]
    assert answer["decisions"] == planned["decisions"]
    assert properties(folder, "02_Sediment/люди/dragged.md")["layer"] == "sediment"
    assert properties(folder, "01_Shallow/plain.md")["layer"] == "shallow"
    risen = properties(folder, "02_Sediment/ideas/beta.md")
    assert (risen["layer"], risen["decay_days"], risen["status"]) == ("sediment", 60, "active")


def test_ageing_twice_changes_nothing_more(folder: Path, palace: Palace) -> None:
    palace.metabolize(confirm=True)
    before = snapshot(folder)

    palace.metabolize(confirm=True)

    assert changed(before, snapshot(folder)) == set()


def test_what_a_person_added_survives_ageing_byte_for_byte(folder: Path, palace: Palace) -> None:
    before = (folder / "01_Shallow/keys.md").read_text(encoding="utf-8").splitlines()

    palace.metabolize(confirm=True)

    after = (folder / "01_Shallow/keys.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in before if line not in after] == []
    assert "mood: calm # mine" in after


# -- going back ---------------------------------------------------------------------------------------------


def test_the_folder_stays_readable_for_sediment_palace(folder: Path, palace: Palace, clock: Clock) -> None:
    palace.write("New text.", path="ideas/new", tags=["yes"], density=0.7, source_session="2026-01-01")
    palace.write("Newer text.", title="Newer", supersedes="new")
    palace.write("more", path="alpha", mode="append")
    for path in ("01_Shallow/keys.md", "03_Bedrock/omega.md", "02_Sediment/люди/dragged.md"):
        palace.read(path=path)
    palace.rate(path="02_Sediment/gamma.md", density=0.9, pinned=True, decay_days=90)
    palace.move("01_Shallow/alpha.md", "sediment", new_path="renamed/alpha 1")
    palace.purge("01_Shallow/ideas/beta.md", reason="old", confirm=True)
    palace.restore("_Archive/01_Shallow/ideas/purged.md")
    palace.metabolize(confirm=True)
    clock.turn(days=9)
    palace.metabolize(confirm=True)

    readable_there(folder)


def test_after_init_dates_are_written_bare_as_anywhere(folder: Path, palace: Palace) -> None:
    (folder / "_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")

    palace.read(path="01_Shallow/keys.md")

    assert "\nlast_touched: 2031-03-01T12:00:00\n" in (folder / "01_Shallow/keys.md").read_text(
        encoding="utf-8"
    )


def test_a_streak_that_sediment_palace_sets_meanwhile_is_respected(folder: Path, palace: Palace) -> None:
    palace.read(path="01_Shallow/keys.md")
    path = folder / "01_Shallow/keys.md"
    text = path.read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---\n", 2)[1]) | {"streak": 4}
    body = text.split("---\n", 2)[2].strip()
    dumped = yaml.safe_dump(header, allow_unicode=True, sort_keys=False).strip()
    path.write_text(f"---\n{dumped}\n---\n\n{body}", encoding="utf-8")  # as it writes notes

    palace.metabolize(confirm=True)

    found = properties(folder, "01_Shallow/keys.md")
    assert (found["streak"], found["last_touched"]) == (4, palace.house.policy().wall(NOW).isoformat())


# -- its tools, over the wire -------------------------------------------------------------------------------


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RawClient]:
    """The server on a folder whose notes are as old as they would be today."""
    root = write_folder(tmp_path / "project/memory", datetime.now(UTC))
    with RawClient(root) as raw:
        raw.open()
        yield raw


# Each of its tools with its own argument names, and the keys its answers had.
CALLS: tuple[tuple[str, dict[str, object], set[str]], ...] = (
    ("read_map", {}, {"map"}),
    (
        "write_memory",
        {"layer": "shallow", "path": "n.md", "content": "c", "tags": ["a"], "source_session": "s"},
        {"saved_path"},
    ),
    ("read_memory", {"path": "01_Shallow/alpha.md"}, {"path", "metadata", "content"}),
    ("read_memory", {"query": "kafka", "layer": "shallow"}, {"query", "layer", "matches"}),
    ("search_room", {"room": "01_Shallow", "query": "kafka"}, {"room", "query", "matches"}),
    ("search_room", {"room": "01_Shallow/ideas", "query": "body"}, {"room", "query", "matches"}),
    ("search_room", {"room": ".", "query": "kafka"}, {"room", "query", "matches"}),
    ("move_file", {"source": "01_Shallow/keys.md", "dest_layer": "sediment"}, {"source", "destination"}),
    (
        "move_file",
        {"source": "01_Shallow/alpha.md", "dest_layer": "bedrock", "new_path": "r/a.md"},
        {"source", "destination"},
    ),
    ("update_map", {"action": "add_link", "details": {"link": "[[gamma]]"}}, {"action", "link"}),
    ("update_map", {"action": "remove_link", "details": {"link": "[[alpha]]"}}, {"action", "link"}),
    ("recover_journal", {}, {"unresolved_count", "recovered_count", "recovered"}),
    (
        "metabolize",
        {"dry_run": True, "days_threshold": 14, "confirm": False},
        {
            *("dry_run", "scanned", "promoted", "archived", "decaying"),
            *("promoted_count", "archived_count", "decaying_count"),
        },
    ),
    ("metabolize", {"confirm": True}, {"dry_run", "scanned", "promoted", "archived", "decaying"}),
    (
        "purge_memory",
        {"path": "01_Shallow/ideas/beta.md", "reason": "r", "confirm": True},
        {"path", "archived_to", "reason"},
    ),
    ("healthcheck", {}, {"status", "service", "version"}),
    ("get_metrics", {}, set()),
)


@pytest.mark.parametrize(("tool", "arguments", "keys"), CALLS)
def test_each_of_its_tools_works(
    client: RawClient, tool: str, arguments: dict[str, object], keys: set[str]
) -> None:
    answer = client.good(tool, **arguments)

    assert keys <= answer.keys()


def test_one_session_uses_all_its_tools_in_turn(client: RawClient, tmp_path: Path) -> None:
    root = tmp_path / "project/memory"
    before = snapshot(root)
    kept = [path for path in SYSTEM if path != "PALACE_MAP.md"]

    calls = [call for call in CALLS if "ideas/beta" not in str(call[1])]  # the ageing moves that one
    for tool, arguments, _ in calls:
        client.good(tool, **arguments)

    after = snapshot(root)
    assert {path: after[path] for path in kept} == {path: before[path] for path in kept}
    assert client.good("healthcheck")["mode"] == "sediment-palace"
    assert client.good("get_metrics")["move_file"]["success"] == 2
    # The link to the note that was renamed followed it.
    assert after["PALACE_MAP.md"][0] == b"# PALACE MAP\n\n## Links\n- [[a]]\n- [[beta]]\n- [[gamma]]\n"
    readable_there(root)


def test_writing_over_a_note_is_the_one_thing_refused(palace: Palace, folder: Path) -> None:
    """Sediment Palace replaced it; here a note is never overwritten by a create (SPEC §9)."""
    before = (folder / "01_Shallow/alpha.md").read_bytes()

    with pytest.raises(Exists):
        palace.write("over", layer="shallow", path="alpha.md")

    assert (folder / "01_Shallow/alpha.md").read_bytes() == before
