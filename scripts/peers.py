"""Brings what the tests need of npm into the checkout's ignored folder .tools: Node 22, the protocol's peers.

The exact versions stand in tests/peers/package.json. No package's install script runs, and Node is a package
like the others, so that nothing outside the checkout changes. What is already there is not fetched again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
WANTED = ROOT / "tests/peers/package.json"
LEAST_NODE = (22, 19)  # what the Inspector asks for


def bring(tools: Path = TOOLS, wanted: Path = WANTED) -> bool:
    """Make *tools* hold what *wanted* names; whether it does.

    Without npm or without a network it is as it was, and the tests that miss something say what.
    """
    tools.mkdir(parents=True, exist_ok=True)
    with FileLock(tools / "peers.lock"):
        if complete(tools, wanted):
            return True
        npm = shutil.which("npm")
        if npm is None:
            return False
        shutil.copyfile(wanted, tools / "package.json")
        # A lock file of another time would hold the old versions.
        (tools / "package-lock.json").unlink(missing_ok=True)
        how = ["--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--no-package-lock"]
        # Without a network npm would try for minutes.
        how += ["--fetch-retries", "1", "--fetch-retry-mintimeout", "1000", "--fetch-timeout", "60000"]
        subprocess.run([npm, "install", *how, "--prefix", tools], check=False)
        return complete(tools, wanted)


def complete(tools: Path = TOOLS, wanted: Path = WANTED) -> bool:
    """Whether every package of *wanted* is in *tools*, in its version, and a Node that can run them."""
    return not missing(tools, wanted) and node(tools) is not None


def missing(tools: Path = TOOLS, wanted: Path = WANTED) -> list[str]:
    """The packages of *wanted* that are not in *tools* in exactly that version."""
    return [
        f"{name}@{version}"
        for name, version in _read(wanted)["dependencies"].items()
        if _read(tools / "node_modules" / name / "package.json").get("version") != version
    ]


def node(tools: Path = TOOLS) -> str | None:
    """A Node that is new enough: the one from npm, else the machine's."""
    for found in _nodes(tools):
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        numbers = re.match(r"v(\d+)\.(\d+)\.", said)
        if numbers and (int(numbers[1]), int(numbers[2])) >= LEAST_NODE:
            return found
    return None


def _nodes(tools: Path) -> Iterator[str]:
    for path in (str(tools / "node_modules/.bin"), os.environ.get("PATH")):
        found = shutil.which("node", path=path)
        if found is not None:
            yield found


def _read(path: Path) -> Mapping[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def main() -> int:
    """Bring everything; says what is missing still."""
    if bring():
        print(f"Node and {len(_read(WANTED)['dependencies'])} packages are in {TOOLS.name}.")
        return 0
    what = ", ".join(missing()) or f"Node {'.'.join(map(str, LEAST_NODE))} or newer"
    print(f"missing, and the tests that need it are skipped: {what}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
