"""The official conformance suite against the real server over HTTP, with its token, in both sets it has.

Each baseline lists the checks that fail for want of the suite's own test fixtures, and names the fixture.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.peers.conftest import HERE, Node, served
from vault_palace.surfaces.mcp.texts import TOOLS

REVISIONS = ("2025-11-25", "2026-07-28")
SUITE = "@modelcontextprotocol/conformance"
ENTRY = re.compile(r"  - (?P<check>[a-z0-9-]+:[a-z0-9-]+) # (?P<kind>tool|prompt|resource) (?P<what>.+)")


def baseline(revision: str) -> Path:
    return HERE / f"conformance-{revision}.yml"


def entries(revision: str) -> list[re.Match[str]]:
    """The listed checks of a baseline, each with the fixture it wants."""
    lines = baseline(revision).read_text(encoding="utf-8").splitlines()
    found = [ENTRY.fullmatch(line) for line in lines if line.lstrip().startswith("- ")]
    assert found
    assert all(found), "a line without the fixture it wants"
    return [entry for entry in found if entry is not None]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_conformance_suite_fails_for_want_of_its_own_fixtures_alone(
    node: Node, vault: Path, revision: str
) -> None:
    results = node.home / "results"
    suite = node.package(SUITE) / "dist/index.js"

    with served(vault) as server:
        done = node.run(
            suite,
            *("server", "--url", server.url, "--requirements", revision, "--output-dir", str(results)),
            *("--expected-failures", str(baseline(revision))),
            # The suite has no option for a token.
            env={"NODE_OPTIONS": f"--import={(HERE / 'bearer.mjs').as_uri()}", **server.as_bearer()},
        )

    assert done.status == 0, done.output[done.output.find("=== SUMMARY") :] + done.complaints
    assert "Baseline check passed" in done.output
    ran = [json.loads(path.read_text(encoding="utf-8")) for path in results.glob("*/checks.json")]
    statuses = Counter(check["status"] for checks in ran for check in checks)
    # That it was the protocol it spoke, and not a refusal that everything failed of alike.
    assert statuses["SUCCESS"] > statuses["FAILURE"] + statuses["WARNING"], statuses


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_check_that_may_fail_wants_a_fixture_that_the_suite_has_and_this_server_has_not(
    node: Node, revision: str
) -> None:
    code = (node.package(SUITE) / "dist/index.js").read_text(encoding="utf-8")
    ours = {tool.name for tool in TOOLS}

    for entry in entries(revision):
        fixture = entry["what"].removeprefix("with an ").removesuffix(" argument")
        assert fixture in code, entry["check"]
        assert fixture not in ours


def test_a_check_that_may_fail_is_listed_once() -> None:
    for revision in REVISIONS:
        checks = [entry["check"] for entry in entries(revision)]

        assert sorted(checks) == sorted(set(checks))
