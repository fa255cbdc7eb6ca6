"""Runs every gate and ends with what was covered, what was skipped and why, and one line that says it all.

Each gate runs even when an earlier one failed, so that one run shows everything that is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from scripts import peers

ROOT = peers.ROOT
PACKAGE = "vault_palace"
FLOORS = ("core", "storage", "index", "services", "surfaces")
# Per cent of branches, and of lines and branches together, that the tests must run through.
LEAST = {"core": 95.0, "storage": 95.0}


@dataclass(frozen=True, slots=True)
class Skip:
    """A test that did not run, and why."""

    test: str
    reason: str


@dataclass(frozen=True, slots=True)
class Covered:
    """How much of a floor the tests ran through, in per cent."""

    floor: str
    branches: float
    all: float

    @property
    def enough(self) -> bool:
        return min(self.branches, self.all) >= LEAST.get(self.floor, 0.0)


def main() -> int:
    """Run the gates; 0 when all hold."""
    started = time.monotonic()
    os.chdir(ROOT)
    failed: list[str] = []
    python = sys.executable
    with tempfile.TemporaryDirectory(prefix="vault-palace-gates-") as folder:
        results = Path(folder) / "results.xml"
        env = {**os.environ, "COVERAGE_FILE": str(Path(folder) / "coverage"), "NODE_PATH": node_modules()}
        env["PYTHONHASHSEED"] = "0"  # with it one seed of the co-editing torture is one course of events
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process that a test starts compiles all anew
        # Workers that take over each other's tests: the kill tests are few and long. More of them than
        # processors: half of the time they wait for a process that a test started, or for the disk.
        count = (os.cpu_count() or 1) + 2
        workers = ["-n", str(count), "--dist", "worksteal", f"--cov={PACKAGE}", "--cov-report="]
        tests = [python, "-m", "pytest", "-q", *workers, f"--junitxml={results}"]
        for name, command in (
            ("lint", [python, "-m", "ruff", "check", "."]),
            ("format", [python, "-m", "ruff", "format", "--check", "."]),
            ("types", [python, "-m", "mypy"]),
            ("tests", tests),
        ):
            print(f"\n== {name}: {' '.join(command[2:])}", flush=True)
            if subprocess.run(command, env=env, check=False).returncode:
                failed.append(name)
        skips, counts = read_results(results)
        covered = read_coverage(Path(folder), env)
    short = [one for one in covered if not one.enough]
    if short or not covered:
        failed.append("coverage")
    summarise(skips, covered)
    seconds = time.monotonic() - started
    said = ", ".join(f"{count} {what}" for what, count in counts.items()) or "no test ran"
    if failed:
        print(f"FAILED: {', '.join(failed)} ({said} in {seconds:.0f} s)")
        return 1
    print(f"all gates hold: {said} in {seconds:.0f} s")
    return 0


def node_modules() -> str:
    """Where Node finds the packages of the tests, which are fetched once, where npm and a network are."""
    peers.bring()
    return os.pathsep.join(filter(None, [str(peers.TOOLS / "node_modules"), os.environ.get("NODE_PATH", "")]))


def read_results(path: Path) -> tuple[list[Skip], dict[str, int]]:
    """What pytest's report says was skipped, and its counts."""
    skips: list[Skip] = []
    counts: dict[str, int] = defaultdict(int)
    if not path.exists():
        return skips, counts
    for case in ElementTree.parse(path).iter("testcase"):
        test = f"{case.get('classname', '')}.{case.get('name', '')}".removeprefix("tests.")
        skipped = case.find("skipped")
        if skipped is not None:
            counts["skipped"] += 1
            skips.append(Skip(test, skipped.get("message", "")))
        elif case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
        else:
            counts["passed"] += 1
    return skips, {name: counts[name] for name in ("failed", "passed", "skipped") if counts[name]}


def read_coverage(folder: Path, env: dict[str, str]) -> list[Covered]:
    """Coverage by floor; empty when none was measured."""
    report = folder / "coverage.json"
    coverage = [sys.executable, "-m", "coverage"]
    made = subprocess.run([*coverage, "json", "--quiet", "-o", str(report)], env=env, check=False)
    if made.returncode or not report.exists():
        return []
    files = json.loads(report.read_text(encoding="utf-8"))["files"]
    sums: dict[str, list[int]] = {floor: [0, 0, 0, 0] for floor in FLOORS}
    for name, data in files.items():
        parts = Path(name).parts
        if len(parts) > 2 and parts[0] == PACKAGE and parts[1] in sums:
            total, found = sums[parts[1]], data["summary"]
            for at, key in enumerate(("covered_branches", "num_branches", "covered_lines", "num_statements")):
                total[at] += found.get(key, 0)  # absent when nothing at all was run
    return [
        Covered(floor, _share(hit, branches), _share(hit + lines, branches + statements))
        for floor, (hit, branches, lines, statements) in sums.items()
    ]


def _share(part: int, whole: int) -> float:
    # Nothing to run through is nothing covered: a floor that was not measured must not pass for whole.
    return 100.0 * part / whole if whole else 0.0


def summarise(skips: list[Skip], covered: list[Covered]) -> None:
    """The closing words: coverage by floor, what was skipped and what this machine lacks."""
    print("\n== summary")
    for one in covered:
        least = f" (at least {LEAST[one.floor]:.0f})" if one.floor in LEAST else ""
        mark = "" if one.enough else "  <- too little"
        print(f"coverage {one.floor:9} branches {one.branches:5.1f} %, all {one.all:5.1f} %{least}{mark}")
    by_reason: dict[str, list[str]] = defaultdict(list)
    for skip in skips:
        by_reason[skip.reason].append(skip.test)
    for reason, tests in sorted(by_reason.items()):
        shown = ", ".join(sorted(tests)[:6]) + (f" and {len(tests) - 6} more" if len(tests) > 6 else "")
        print(f"skipped {len(tests)}: {reason}: {shown}")
    if not skips:
        print("skipped: nothing")
    for tool, command in (
        ("node", "apt-get install -y nodejs npm"),
        ("npm", "apt-get install -y npm"),
        ("chromium", "apt-get install -y chromium"),
    ):
        if shutil.which(tool) is None:
            print(f"{tool} is not on this machine; tests that need it are skipped. This brings it: {command}")
    if not peers.complete():
        what = ", ".join(peers.missing()) or "a Node that is new enough"
        print(f"not in .tools, and the tests that need it are skipped: {what}. npm and a network bring it.")


if __name__ == "__main__":
    sys.exit(main())
