"""A client that is nobody's library: lines to a real server process and lines back, each read with a limit.

It can be rude on purpose (broken lines, odd bytes, an early end), which no SDK's client can.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[3]
SECONDS = 60.0  # generous: a slow machine must not fail a test
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
}


class RawClient:
    """One server process and its two pipes. Use it in a `with`: the process never outlives it."""

    capabilities: dict[str, Any]  # that the client declares

    def __init__(
        self,
        vault: Path | str | None,
        *,
        env: Mapping[str, str] | None = None,
        python: Sequence[str] = (),
        modern: bool = False,
        module: str = "vault_palace.surfaces.mcp",
        listens: bool = True,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        self._begin(modern, "raw")
        self.capabilities.update(capabilities or {})
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        options = [] if vault is None else ["--vault", str(vault)]
        self.process = subprocess.Popen(
            [sys.executable, *python, "-m", module, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        if listens:
            self._reader.start()

    def _begin(self, modern: bool, name: str) -> None:
        self.modern = modern
        self.name = name
        self.capabilities = {}
        self.lines: list[bytes] = []  # every message that came
        self._id = 0
        self._arrived: queue.Queue[bytes | None] = queue.Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        if self._reader.ident is not None:
            self._reader.join(SECONDS)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._stderr.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._arrived.put(line)
        self._arrived.put(None)

    def send_bytes(self, data: bytes) -> None:
        """*data* as it is; a line needs its line end."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        """One message on one line, as UTF-8 bytes and not as escapes."""
        self.send_bytes(json.dumps(message, ensure_ascii=False).encode("utf-8") + b"\n")

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request of this client's era and answer its id."""
        self._id += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": self._id, "method": method}
        if params is not None or self.modern:
            message["params"] = dict(params or {})
        if self.modern:
            own = {
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
            message["params"]["_meta"] = {**ENVELOPE, **own, **message["params"].get("_meta", {})}
        self.send(message)
        return self._id

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        """The next message, or None at the end of the output. Fails when nothing comes in time."""
        line = self._arrived.get(timeout=seconds)
        if line is None:
            return None
        self.lines.append(line)
        message = json.loads(line.decode("utf-8"))
        assert message["jsonrpc"] == "2.0"
        assert isinstance(message, dict)
        return message

    def answer(self, request_id: int) -> dict[str, Any]:
        """The response to *request_id*; what comes before it is kept in `lines` only."""
        while True:
            message = self.receive()
            assert message is not None, f"the server ended: {self.stderr()}"
            if message.get("id") == request_id:
                return message

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.request(method, params))

    def open(self) -> dict[str, Any]:
        """Begin the conversation in this client's era; answers the result."""
        if self.modern:
            result = self.ask("server/discover")["result"]
        else:
            result = self.ask(
                "initialize",
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities,
                    "clientInfo": {"name": self.name, "version": "1"},
                },
            )["result"]
            self.notify("notifications/initialized", {})
        assert isinstance(result, dict)
        return result

    def tool(self, name: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool call, good or bad."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        result = answer["result"]
        assert isinstance(result, dict)
        return result

    def good(self, name: str, **arguments: object) -> dict[str, Any]:
        """The structured content of a call that must succeed."""
        result = self.tool(name, **arguments)
        assert not result.get("isError"), result["content"][0]["text"]
        content = result["structuredContent"]
        assert isinstance(content, dict)
        return content

    def bad(self, name: str, **arguments: object) -> str:
        """The text of a call that must fail."""
        result = self.tool(name, **arguments)
        assert result.get("isError") is True, result
        assert "structuredContent" not in result
        text = result["content"][0]["text"]
        assert isinstance(text, str)
        return text

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit status, once the process has ended by itself."""
        return self.process.wait(SECONDS)

    def rest(self) -> list[dict[str, Any]]:
        """All messages until the end of the output."""
        messages: list[dict[str, Any]] = []
        while (message := self.receive()) is not None:
            messages.append(message)
        return messages

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")
