"""What the surfaces do with input that nobody should send: they answer in form, in time, in budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vault_palace.core import budget
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.surfaces.cli import main
from vault_palace.surfaces.mcp import fit, tools
from vault_palace.surfaces.mcp.metrics import Metrics


def read_answer(**changed: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "path": "01_Shallow/a.md",
        "title": "a",
        "metadata": {"id": "mem_a", "layer": "shallow", "created": "2031-03-01T12:00:00", "density": 0.2},
        "content": "body\n",
        "rev": "0" * 12,
        "backlinks": [],
        "truncated": False,
        "warnings": [],
    }
    return answer | changed


def fitted(answer: dict[str, Any], most: int) -> fit.Answered:
    return fit.within(tools.catalogue()["read_memory"].shape, answer, most)


def test_thousands_of_properties_are_left_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted anew for each of them, one call took minutes."""
    counted: list[int] = []
    count = fit.cost

    def counting(text: str) -> int:
        counted.append(len(text))
        return count(text)

    monkeypatch.setattr(fit, "cost", counting)
    many = {f"k{number}": f"v{number}" for number in range(5_000)}

    answered = fitted(read_answer(metadata={"id": "mem_a", "layer": "shallow", **many}), 2_000)

    assert len(counted) < 40
    assert {"id", "layer"} <= answered.structured["metadata"].keys()  # the palace's own are the last to go
    assert len(answered.structured["metadata"]) > 50
    assert answered.structured["content"] == "body\n"


@pytest.mark.parametrize("text", ['"\\\n' * 30_000, "漢" * 60_000, "x" * 200_000, "a" + "\u0301" * 50_000])
def test_a_larger_budget_never_shows_less(text: str) -> None:
    """Quotes and line ends cost more as JSON than as text; that once left nothing of the note."""
    shown = [
        len(fitted(read_answer(content=text), most).structured["content"]) for most in (500, 2_000, 9_000)
    ]

    assert shown == sorted(shown)
    assert shown[0] > 50


@pytest.mark.parametrize("most", [200, 1_000])
def test_a_budget_holds_whatever_the_note_is_made_of(most: int) -> None:
    answer = read_answer(
        metadata={"id": "mem_a", **{f"{'k' * 50}{number}": '"' * 200 for number in range(300)}},
        content='"\\\n' * 10_000,
        backlinks=[f"01_Shallow/{'深' * 60} {number}.md" for number in range(50)],
    )

    answered = fitted(answer, most)

    assert budget.tokens(answered.text) <= most
    assert budget.tokens(json.dumps(answered.structured, ensure_ascii=False, separators=(",", ":"))) <= most


# -- the command line, as a program that a shell starts ------------------------------------------------------

PROGRAM = [sys.executable, "-m", "vault_palace"]
ROOT = Path(__file__).parents[2]
SECONDS = 120.0  # generous: a slow machine must not fail a test


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def started(script: str, *words: str | Path, **env: str) -> Ended:
    """What `sh` makes of *script*, in which `"$@"` is the command with *words*."""
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", *PROGRAM, *map(str, words)],
        capture_output=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=SECONDS,
        check=False,
    )
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    assert "Traceback" not in err, err
    return Ended(done.returncode, out, err)


posix = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell is needed")


@posix
@pytest.mark.parametrize(
    ("script", "words", "status"),
    [
        ('"$@" <&-', ["write", "-"], 2),
        ('"$@" >&-', ["status"], 74),
        ('"$@" >&-', ["status", "--json"], 74),
        ('"$@" 2>&-', ["read", "nothing"], 10),
        ('"$@" <&- >&- 2>&-', ["status"], 74),
        ('"$@" <&-', ["serve"], 0),
        ('"$@" </dev/null >&-', ["serve"], 74),
        ('"$@" <&- 2>&-', ["serve"], 0),
    ],
)
def test_a_closed_stream_is_no_fault_of_the_program(
    vault: Path, script: str, words: list[str], status: int
) -> None:
    assert started(script, *words, "--vault", vault).status == status


@posix
def test_an_endless_input_is_given_up(vault: Path) -> None:
    ended = started('yes | "$@"', "write", "-", "--vault", vault)

    assert ended.status == 17
    assert [*vault.rglob("*.md")] == []


@posix
def test_a_vault_relative_to_a_folder_that_is_gone_is_refused(vault: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()

    ended = started(f'cd {gone} && rmdir {gone} && exec "$@"', "status", "--vault", "v", "--json")

    assert (ended.status, json.loads(ended.out)["error"]["code"]) == (2, "invalid_arguments")


@posix
@pytest.mark.parametrize("words", [["--id", "\udcff"], ["\udcff\udcfe"], ["--title", "t\udcff"]])
def test_bytes_that_are_no_utf_8_name_no_note(vault: Path, words: list[str]) -> None:
    ended = started('"$@"', "read", *words, "--vault", vault, "--json")

    assert (ended.status, json.loads(ended.out)["error"]["code"]) == (2, "invalid_arguments")


@posix
def test_a_state_folder_that_cannot_be_is_named(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    ended = started('"$@"', "status", "--vault", vault, VAULT_PALACE_STATE_DIR=str(tmp_path / "file/deeper"))

    assert ended.status == 22
    assert "VAULT_PALACE_STATE_DIR" in ended.err


@pytest.mark.parametrize("density", ["nan", "inf", "-1", "2"])
def test_a_density_to_search_for_that_is_none_is_refused(
    vault: Path, density: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["search", "x", "--min-density", density, "--vault", str(vault), "--json"])

    assert (status, json.loads(capsys.readouterr().out)["error"]["code"]) == (2, "invalid_arguments")


def test_a_tag_that_is_empty_filters_nothing(vault: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (vault / "01_Shallow/a.md").write_text("granite\n", encoding="utf-8")

    main(["search", "granite", "--tag", "", "--tag", "#", "--vault", str(vault), "--json"])

    assert len(json.loads(capsys.readouterr().out)["matches"]) == 1


# -- the text is sufficient alone ----------------------------------------------------------------------------


def leaves(value: object) -> Iterator[str]:
    """Every word and number in *value* that an agent could act on."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield from (" ".join(line.split()) for line in value.split("\n"))
    elif isinstance(value, float | int) and not isinstance(value, bool):
        yield f"{value:g}"


# What the caller said itself, or what is told in other words or follows from a path.
SAID = {
    "write_memory": {"mode"},
    "read_memory": {"truncated"},
    "search_room": {"room", "age_days", "layer"},
    "metabolize": {"rule", "promoted", "decaying"},
    "purge_memory": {"reason"},
}


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("write_memory", {"content": "slate", "title": "b/c", "tags": ["x"]}),
        ("read_memory", {"path": "01_Shallow/a.md"}),
        ("search_room", {"query": "granite", "limit": 1}),
        ("rate_memory", {"path": "01_Shallow/a.md", "density": 0.25}),
        ("metabolize", {"confirm": True, "force": True}),
        ("purge_memory", {"path": "01_Shallow/a.md", "confirm": True, "reason": "dull"}),
        ("move_file", {"source": "01_Shallow/a.md", "dest_layer": "bedrock", "new_path": "q/Ω"}),
        ("healthcheck", {}),
    ],
)
def test_an_agent_that_gets_the_text_alone_misses_nothing(
    vault: Path, tmp_path: Path, tool: str, given: dict[str, object]
) -> None:
    for name, header in (("a", 'title: "Stones: granite"\n'), ("b", ""), ("c", "density: [\n")):
        text = f"---\nid: mem_{name}\n{header}---\ngranite of {name}, see [[a]] and [[nowhere]]\n"
        (vault / f"01_Shallow/{name}.md").write_text(text, encoding="utf-8")
        os.utime(vault / f"01_Shallow/{name}.md", (1e9, 1e9))
    (vault / "_Archive/01_Shallow").mkdir(parents=True)
    settings = PalaceSettings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state")

    with Palace.open(vault, settings=settings) as palace:
        call = tools.Call(palace=lambda: palace, arguments=dict(given), metrics=Metrics(()))
        answered = tools.answer(tools.catalogue()[tool], call)

    told = " ".join(answered.text.split())
    kept = prune(answered.structured, SAID.get(tool, set()))
    assert [leaf for leaf in leaves(kept) if leaf not in told] == []


def prune(value: Any, without: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: prune(item, without) for key, item in value.items() if key not in without}
    return [prune(item, without) for item in value] if isinstance(value, list) else value
