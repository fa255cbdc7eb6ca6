"""Several agents at once on one vault: calls a second and how long they took, over stdio and over HTTP.

Over stdio each client has a server process of its own, over HTTP all share one. Half of the calls read a
note (a use, which is written), three in ten search, two in ten write a new note.

python -m scripts.bench.clients [--clients 10] [--calls 100] [--notes 1000]
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.bench.make_vault import make, words
from scripts.bench.wire import PATIENCE, NoAnswerError, command_line, ours

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
SHARES = (("read_memory", 5), ("search_room", 3), ("write_memory", 2))
LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)/mcp")

Ask = Callable[[str, Mapping[str, Any]], object]


@dataclass
class Figures:
    """What all clients of one transport saw."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    took: float = 0.0


class Line:
    """One client over HTTP, its connection kept open."""

    def __init__(self, port: int, token: str, name: str) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._meta = {**META, "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
        self._token = token
        self._last = 0

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return its structured answer."""
        self._last += 1
        params = {"name": tool, "arguments": arguments, "_meta": self._meta}
        body = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": "tools/call", "params": params})
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        self._line.request("POST", "/mcp", body.encode(), headers)
        answer = self._line.getresponse()
        data = answer.read()
        if answer.headers.get_content_type() == "text/event-stream":
            data = data.rpartition(b"data: ")[2]
        result = json.loads(data).get("result")
        if answer.status != 200 or result is None or result.get("isError"):
            raise NoAnswerError(f"{tool}: {answer.status} {data[:200]!r}")
        return dict(result["structuredContent"])

    def close(self) -> None:
        self._line.close()


@contextmanager
def over_stdio(vault: Path, state: Path, count: int) -> Iterator[list[Ask]]:
    """As many server processes as clients."""
    with ExitStack() as stack:
        yield [stack.enter_context(ours(vault, state)).call for _ in range(count)]


@contextmanager
def over_http(vault: Path, state: Path, count: int) -> Iterator[list[Ask]]:
    """One server process for all clients."""
    env = {
        **os.environ,
        "VAULT_PALACE_CACHE_DIR": str(state / "cache"),
        "VAULT_PALACE_STATE_DIR": str(state / "state"),
    }
    command = [sys.executable, "-m", "vault_palace"]
    token = subprocess.run(
        [*command, "token", "--vault", str(vault)], env=env, capture_output=True, check=True, encoding="ascii"
    ).stdout.strip()
    log = state / "http.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*command, "serve", "--vault", str(vault), "--http", "0"], env=env, stderr=said
        )
    try:
        lines = [Line(_port(log, process), token, f"bench {number}") for number in range(count)]
        yield [line.call for line in lines]
        for line in lines:
            line.close()
    finally:
        process.terminate()
        process.wait(60)


def _port(log: Path, process: subprocess.Popen[bytes]) -> int:
    last = time.monotonic() + PATIENCE
    while time.monotonic() < last and process.poll() is None:
        if found := LISTENING.search(log.read_text(encoding="utf-8")):
            return int(found[1])
        time.sleep(0.01)
    raise NoAnswerError(f"the server did not listen: {log.read_text(encoding='utf-8')}")


def run(asks: list[Ask], calls: int, paths: list[str]) -> Figures:
    """Let every client make its *calls* at once with the others."""
    figures, vocabulary = Figures(), words(8000)
    begin = threading.Barrier(len(asks) + 1)
    names, weights = [name for name, _ in SHARES], [share for _, share in SHARES]

    def client(number: int, ask: Ask) -> None:
        chance = random.Random(number)
        begin.wait()
        for at in range(calls):
            tool = chance.choices(names, weights)[0]
            arguments: dict[str, Any]
            if tool == "read_memory":
                arguments = {"path": chance.choice(paths)}
            elif tool == "search_room":
                arguments = {"query": " ".join(chance.choices(vocabulary[:400], k=2))}
            else:
                body = " ".join(chance.choices(vocabulary, k=40))
                arguments = {"title": f"bench {number} {at} {os.getpid()}", "content": body}
            started = time.perf_counter()
            try:
                ask(tool, arguments)
            except (NoAnswerError, OSError, http.client.HTTPException, ValueError) as error:
                figures.errors.append(str(error))
            figures.seconds[tool].append(time.perf_counter() - started)

    threads = [threading.Thread(target=client, args=each) for each in enumerate(asks)]
    for thread in threads:
        thread.start()
    begin.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    figures.took = time.perf_counter() - started
    return figures


def percentile(seconds: list[float], percent: int) -> float:
    """The nearest-rank percentile in milliseconds."""
    return sorted(seconds)[math.ceil(len(seconds) * percent / 100) - 1] * 1000


def tell(who: str, figures: Figures) -> None:
    everything = [one for each in figures.seconds.values() for one in each]
    print(
        f"  {who:6} {len(everything) / figures.took:7.1f} calls/s   errors {len(figures.errors)}   "
        f"p50 {statistics.median(everything) * 1000:7.1f} ms   p95 {percentile(everything, 95):7.1f} ms"
    )
    for tool, seconds in sorted(figures.seconds.items()):
        print(f"         {tool:14} p50 {percentile(seconds, 50):7.1f}   p95 {percentile(seconds, 95):7.1f}")
    for error in figures.errors[:5]:
        print(f"         {error}")


def main() -> int:
    """Measure both transports; 1 when a call failed."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--clients", type=int, default=10)
    asked.add_argument("--calls", type=int, default=100)
    asked.add_argument("--notes", type=int, default=1000)
    asked.add_argument("--only", choices=["stdio", "http"])
    given = asked.parse_args()
    failed = False
    print(command_line())
    print(f"{given.clients} clients at once, {given.calls} calls each, {given.notes} notes")
    for who, begun in (("stdio", over_stdio), ("HTTP", over_http)):
        if given.only not in (None, who.lower()):
            continue
        with tempfile.TemporaryDirectory(prefix="vault-palace-bench-") as folder:
            base = Path(folder)
            (base / "state").mkdir()
            paths = make(base / "vault", given.notes)
            with begun(base / "vault", base / "state", given.clients) as asks:
                for ask in asks:  # every vault is open and its cache is warm
                    ask("search_room", {"query": "warm"})
                figures = run(asks, given.calls, paths)
            tell(who, figures)
            failed = failed or bool(figures.errors)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
