"""The scripts behind the two commands: the gates can fail, the benchmark's vault is the same each time."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scripts import first_session, gates, peers
from scripts.bench import make_vault

REPORT = """<testsuites><testsuite>
<testcase classname="tests.core.test_rules" name="test_a"/>
<testcase classname="tests.core.test_rules" name="test_b"><failure message="no"/></testcase>
<testcase classname="tests.core.test_rules" name="test_c"><error message="no"/></testcase>
<testcase classname="tests.test_bases" name="test_d"><skipped message="Node is not here"/></testcase>
</testsuite></testsuites>"""


def test_what_was_skipped_is_named_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "results.xml").write_text(REPORT, encoding="utf-8")

    skips, counts = gates.read_results(tmp_path / "results.xml")

    assert skips == [gates.Skip("test_bases.test_d", "Node is not here")]
    assert counts == {"failed": 2, "passed": 1, "skipped": 1}


def test_no_report_counts_nothing(tmp_path: Path) -> None:
    assert gates.read_results(tmp_path / "results.xml") == ([], {})


@pytest.mark.parametrize(
    ("floor", "branches", "whole", "enough"),
    [
        ("core", 95.0, 95.0, True),
        ("core", 94.9, 99.0, False),
        ("storage", 99.0, 94.9, False),
        ("services", 10.0, 10.0, True),
    ],
)
def test_too_little_coverage_of_a_guarded_floor_is_seen(
    floor: str, branches: float, whole: float, enough: bool
) -> None:
    assert gates.Covered(floor, branches, whole).enough is enough


def test_the_closing_words_name_each_skip_and_the_floor_that_falls_short(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gates.summarise([gates.Skip("test_x", "no oracle")], [gates.Covered("core", 90.0, 97.0)])

    said = capsys.readouterr().out
    assert "skipped 1: no oracle: test_x" in said
    assert "coverage core" in said
    assert "<- too little" in said


def test_the_benchmarks_vault_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    today = datetime(2026, 11, 30, 12, tzinfo=UTC)

    for name in ("a", "b"):
        make_vault.make(tmp_path / name, 50, today=today)

    first, second = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.md")}
        for name in ("a", "b")
    )
    assert first == second
    assert len(first) == 50


def test_the_snippet_is_json_for_every_path() -> None:
    said = first_session.next_steps("/opt/my tools/vault-palace", '/home/ä ö/My "Vault" \\ (2)')

    start, end = said.index("{"), said.rindex("}") + 1
    server = json.loads(said[start:end])["mcpServers"]["vault-palace"]
    assert server == {
        "command": "/opt/my tools/vault-palace",
        "args": ["serve", "--vault", '/home/ä ö/My "Vault" \\ (2)'],
    }


def packages(tools: Path, **versions: str) -> Path:
    """A folder of tools with these packages in it, and what is wanted: `a` in version 1.2.3."""
    for name, version in versions.items():
        folder = tools / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"version": version}))
    wanted = tools.parent / "wanted.json"
    wanted.write_text(json.dumps({"dependencies": {"a": "1.2.3"}}))
    return wanted


@pytest.mark.parametrize(
    ("there", "missing"), [({}, ["a@1.2.3"]), ({"a": "1.2.4"}, ["a@1.2.3"]), ({"a": "1.2.3", "b": "9"}, [])]
)
def test_a_package_in_another_version_is_missing(
    tmp_path: Path, there: dict[str, str], missing: list[str]
) -> None:
    wanted = packages(tmp_path / "tools", **there)

    assert peers.missing(tmp_path / "tools", wanted) == missing


def test_what_is_there_already_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = packages(tmp_path / "tools", a="1.2.3")
    monkeypatch.setattr(peers, "node", lambda _: "node")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("npm was run"))

    assert peers.bring(tmp_path / "tools", wanted)


def test_without_npm_what_is_missing_stays_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = packages(tmp_path / "tools")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert not peers.bring(tmp_path / "tools", wanted)


def test_what_npm_cannot_bring_is_named_in_the_closing_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "missing", lambda *_: ["a@1.2.3"])

    gates.summarise([], [])

    assert "not in .tools, and the tests that need it are skipped: a@1.2.3" in capsys.readouterr().out


def test_every_package_the_tests_use_is_named_in_one_exact_version() -> None:
    wanted = json.loads(peers.WANTED.read_text())

    named = wanted["dependencies"] | wanted["optionalDependencies"]
    assert all(version[0].isdigit() for version in named.values()), named
    assert not (peers.WANTED.parent / "package-lock.json").exists()
