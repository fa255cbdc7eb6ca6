"""The protocol's other implementations, as npm has them: fixtures that find them and start our server.

Nothing here fetches anything: `python -m scripts.peers` does (the gates run it), and without it each test is
skipped by name.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scripts import peers

HERE = Path(__file__).parent
SECONDS = 120.0  # generous: a slow machine must not fail a test
ERAS = ("legacy", "modern")


@dataclass(frozen=True, slots=True)
class Finished:
    """What a peer's process left: its exit status, its output, what it complained of."""

    status: int
    output: str
    complaints: str

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.output)
        except ValueError:
            raise AssertionError(f"no JSON: {self.output!r}\n{self.complaints}") from None


@dataclass(frozen=True, slots=True)
class Node:
    """Node and the packages below `.tools`; `run` is the only way in, and always ends."""

    program: str
    home: Path

    def run(self, script: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Finished:
        done = subprocess.run(
            [self.program, str(script), *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
            cwd=self.home,
            env={**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory", "NO_COLOR": "1", **(env or {})},
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def package(self, name: str) -> Path:
        """The folder of an npm package in the version that is wanted; without it the test is skipped."""
        if any(absent.rpartition("@")[0] == name for absent in peers.missing()):
            pytest.skip(f"npm's {name} is not in .tools (python -m scripts.peers brings it)")
        return peers.TOOLS / "node_modules" / name


@pytest.fixture(scope="session")
def _program() -> str:
    """A Node that is new enough; without one the test is skipped."""
    program = peers.node()
    if program is None:
        pytest.skip("Node 22 is not in .tools (python -m scripts.peers brings it)")
    return program


@pytest.fixture
def node(_program: str, tmp_path: Path) -> Node:
    home = tmp_path / "peer"
    home.mkdir()
    return Node(_program, home)


def server_on(vault: Path, *options: str) -> dict[str, Any]:
    """How a host starts the real server on *vault*: command, arguments, working folder, environment."""
    kept = ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME")
    return {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-m", "vault_palace", "serve", "--vault", str(vault), *options],
        "cwd": str(peers.ROOT),
        "env": {name: os.environ[name] for name in kept},
    }


Inspect = Callable[..., Finished]


@pytest.fixture
def inspect(node: Node) -> Inspect:
    """The Inspector's command line on a server: `inspect(where, era, method, *options)`."""
    script = node.package("@modelcontextprotocol/inspector") / "clients/launcher/build/index.js"

    def run(where: Mapping[str, Any], era: str, method: str, *options: str) -> Finished:
        config = node.home / "servers.json"
        config.write_text(json.dumps({"mcpServers": {"palace": dict(where)}}), encoding="utf-8")
        chosen: Sequence[str] = (
            "--cli",
            "--config",
            str(config),
            "--server",
            "palace",
            "--protocol-era",
            era,
        )
        return node.run(script, *chosen, "--format", "json", "--quiet", "--method", method, *options)

    return run


@dataclass(frozen=True, slots=True)
class Served:
    """A server that listens: where, and the token it asks for."""

    url: str
    token: str

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def as_bearer(self) -> dict[str, str]:
        """What bearer.mjs reads."""
        return {"BEARER": self.token, "PACKAGES": str(peers.TOOLS / "node_modules")}


@contextmanager
def served(vault: Path) -> Iterator[Served]:
    """The real server on *vault* over HTTP, at a port of its own, ended in the end as a person ends it."""
    palace = [sys.executable, "-m", "vault_palace"]
    where = ["--vault", str(vault)]
    with subprocess.Popen(
        [*palace, "serve", "--http", "0", *where], cwd=peers.ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            ready = process.stderr.readline()
            url = re.search(r"http://\S+", ready)
            assert url is not None, ready + process.stderr.read()
            told = subprocess.run(
                [*palace, "token", *where],
                cwd=peers.ROOT,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=True,
            )
            yield Served(url[0], told.stdout.strip())
            process.terminate()
            complaints = process.communicate(timeout=SECONDS)[1]
            assert "Traceback" not in complaints, complaints
            assert process.returncode == 128 + signal.SIGTERM or sys.platform == "win32"
        finally:
            process.kill()
