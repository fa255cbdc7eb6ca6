"""A raw client for servers that speak JSON-RPC in lines: starts one, calls its tools, waits with a limit."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 600.0
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class NoAnswerError(Exception):
    """The server said nothing for too long, or ended."""


class Server:
    """One server process; `started` is the time in seconds from its start to the answered `initialize`."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._last = 0
        self._lines: queue.Queue[str] = queue.Queue()
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        threading.Thread(target=self._listen, daemon=True).start()
        self.hello = self.ask("initialize", HELLO)
        self.started = time.perf_counter() - begun
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise NoAnswerError(f"{method}: no answer in {PATIENCE:.0f} s") from None
            if not line:
                raise NoAnswerError(f"{method}: the server ended")
            answer = json.loads(line)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise NoAnswerError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[float, dict[str, Any]]:
        """Call a tool; the seconds it took, and its answer (MCP's, or Sediment Palace's own key)."""
        begun = time.perf_counter()
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        took = time.perf_counter() - begun
        if result.get("isError"):
            raise NoAnswerError(f"{tool}: {result.get('content')} {result.get('error', '')}")
        return took, dict(result.get("structuredContent") or result.get("data") or {})


def ours(vault: Path, state: Path) -> Server:
    """This checkout's server on *vault*, its cache and state below *state*."""
    env = {"VAULT_PALACE_CACHE_DIR": str(state / "cache"), "VAULT_PALACE_STATE_DIR": str(state / "state")}
    return Server([sys.executable, "-m", "vault_palace", "serve", "--vault", str(vault)], env)


def sediment_palace(checkout: Path, project: Path) -> Server:
    """Sediment Palace's server on `project/memory`, its limits raised so that it answers at all."""
    policy = project / "memory" / "_System" / "policy.yaml"
    policy.parent.mkdir(parents=True, exist_ok=True)
    policy.write_text(
        "destructive_require_confirm: true\n"
        "limits:\n  max_search_matches: 100\n  max_metabolize_scan: 1000000\n"
        "rate_limit:\n  window_seconds: 60\n  max_destructive_ops: 1000\n",
        encoding="utf-8",
    )
    env = {
        "PYTHONPATH": str(checkout / "src"),
        "SEDIMENT_PROJECT_ROOT": str(project),
        "SEDIMENT_TIMEOUT_DEFAULT_SECONDS": "600",
        "SEDIMENT_TIMEOUT_METABOLIZE_SECONDS": "600",
    }
    return Server([sys.executable, "-m", "sediment_palace.main"], env)


def command_line() -> str:
    """The command that was given, to quote with its figures."""
    import shlex

    name = Path(sys.argv[0]).with_suffix("").name
    return shlex.join(["python", "-m", f"scripts.bench.{name}", *sys.argv[1:]])
