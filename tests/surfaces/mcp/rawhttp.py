"""A client over HTTP that is nobody's library: a real server process, and requests as bytes where need be.

`HttpClient` holds the same conversation as `RawClient` over the other transport, so that a test can be run
on both. `exchange` sends any bytes at all.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.surfaces.mcp.rawclient import MODERN, ROOT, SECONDS, RawClient
from vault_palace.services import bearer
from vault_palace.surfaces import config

LISTENING = re.compile(rb"^vault-palace: listening on http://(.+):(\d+)/mcp$", re.MULTILINE)
BOTH = "application/json, text/event-stream"


class HttpServer:
    """One server process on a port of its own choice. Use it in a `with`: it never outlives it."""

    def __init__(
        self,
        vault: Path | str | None,
        *,
        env: Mapping[str, str] | None = None,
        python: Sequence[str] = (),
        module: str = "vault_palace.surfaces.mcp",
        options: Sequence[str] = (),
        address: str = "0",
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115 - closed in __exit__
        named = [] if vault is None else ["--vault", str(vault)]
        environ = {**os.environ, **(env or {})}
        self.process = subprocess.Popen(
            [sys.executable, *python, "-m", module, *named, "--http", address, *options],
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            cwd=ROOT,
            env=environ,
        )
        self.host, self.port = self._listening()
        settings = config.read_settings(vault, surface="test", environ=environ)
        self.token_file = bearer.token_file(settings.state_dir, settings.root)

    def __enter__(self) -> HttpServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(SECONDS)
        self._stderr.close()
        self._stdout.close()

    @property
    def token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def _listening(self) -> tuple[str, int]:
        last = time.monotonic() + SECONDS
        while time.monotonic() < last:
            if found := LISTENING.search(self.stderr().encode("utf-8")):
                return found[1].decode("ascii").strip("[]"), int(found[2])
            assert self.process.poll() is None, f"the server ended: {self.stderr()}"
            time.sleep(0.01)
        raise AssertionError("the server never listened")

    def stderr(self) -> str:
        return _text(self._stderr)

    def stdout(self) -> str:
        return _text(self._stdout)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit status, once the process has ended by itself."""
        return self.process.wait(SECONDS)

    def ready(self) -> None:
        """Wait until the vault is open."""
        last = time.monotonic() + SECONDS
        while self.get("/health")[0] != 200:
            assert time.monotonic() < last, f"never healthy: {self.stderr()}"
            time.sleep(0.05)

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """A plain GET; status and body."""
        answer = self.exchange(request_bytes("GET", path, {"Host": self.authority, **headers}))
        return status_of(answer), answer.partition(b"\r\n\r\n")[2]

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), SECONDS)

    def exchange(self, data: bytes, seconds: float = SECONDS) -> bytes:
        """Send *data* and read until the server closes, or has sent one whole answer of a known length."""
        with self.connect() as line:
            with contextlib.suppress(ConnectionError):
                line.sendall(data)
            return read_answer(line, seconds)


def request_bytes(method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> bytes:
    """A request as it goes over the line."""
    fields = dict(headers)
    if body is not None:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1") + (body or b"")


def status_of(answer: bytes) -> int:
    """The status of an answer's first line; 0 for no answer at all."""
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else 0


def read_answer(line: socket.socket, seconds: float = SECONDS) -> bytes:
    """What comes until the end, or one answer with a `content-length`."""
    data = b""
    last = time.monotonic() + seconds
    while True:
        head, separator, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"(?im)^content-length: (\d+)\r?$", head)
        if separator and length and len(body) >= int(length[1]):
            return data
        if not select.select([line], [], [], max(0.0, last - time.monotonic()))[0]:
            raise AssertionError(f"no whole answer within {seconds} s: {data!r}")
        try:
            more = line.recv(65_536)
        except ConnectionError:
            return data
        if not more:
            return data
        data += more


def _text(stream: Any) -> str:
    # Not through the stream's own position: the process writes at the same one.
    size = os.fstat(stream.fileno()).st_size
    return os.pread(stream.fileno(), size, 0).decode("utf-8", "replace")


class HttpClient(RawClient):
    """The conversation of `RawClient`, each message a POST and each answer's messages as they come."""

    def __init__(
        self,
        vault: Path | str | None,
        *,
        env: Mapping[str, str] | None = None,
        python: Sequence[str] = (),
        modern: bool = False,
        module: str = "vault_palace.surfaces.mcp",
        options: Sequence[str] = (),
        server: HttpServer | None = None,
        name: str = "raw",
    ) -> None:
        self.own = server is None
        self.server = server or HttpServer(vault, env=env, python=python, module=module, options=options)
        self._begin(modern, name)
        self.process = self.server.process
        self.session = ""
        self.statuses: list[int] = []
        self._under_way: dict[str, http.client.HTTPConnection] = {}
        self._readers: list[threading.Thread] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.own:
            self.server.__exit__(kind, error, trace)
        else:
            self.leave()
        for reader in self._readers:
            reader.join(SECONDS)

    def stderr(self) -> str:
        return self.server.stderr()

    def leave(self) -> None:
        """Close every line to the server at once."""
        for line in list(self._under_way.values()):
            self._cut(line)

    def end_input(self) -> None:
        """A server over HTTP has no end of input: it is told to stop."""
        self.server.signal(signal.SIGTERM)

    def wait(self) -> int:
        """0 for a server that ended as it was told to."""
        status = self.server.wait()
        return 0 if status == 128 + signal.SIGTERM else status

    def rest(self) -> list[dict[str, Any]]:
        for reader in self._readers:
            reader.join(SECONDS)
        self._arrived.put(None)
        return super().rest()

    def headers(self, message: Any) -> dict[str, str]:
        """What goes with *message*."""
        fields = {
            "Authorization": f"Bearer {self.server.token}",
            "Content-Type": "application/json",
            "Accept": BOTH,
        }
        if self.session:
            fields["Mcp-Session-Id"] = self.session
            fields["MCP-Protocol-Version"] = "2025-11-25"
        if self.modern:
            fields["MCP-Protocol-Version"] = MODERN
            if isinstance(message, dict) and isinstance(message.get("method"), str):
                fields["Mcp-Method"] = message["method"]
                params = message.get("params")
                name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
                if isinstance(name, str) and name.isascii():
                    fields["Mcp-Name"] = name
        return fields

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self.modern and method == "notifications/cancelled":
            # In this era a request is cancelled by closing its line.
            line = self._under_way.get(str(params["requestId"]))
            if line is not None:
                self._cut(line)
            return
        super().notify(method, params)

    def send_bytes(self, data: bytes) -> None:
        try:
            message = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            message = None
        line = http.client.HTTPConnection(self.server.host, self.server.port, timeout=SECONDS)
        line.request("POST", "/mcp", data.rstrip(b"\n"), self.headers(message))
        wants = str(message["id"]) if isinstance(message, dict) and "id" in message else ""
        if not wants:
            self._read_messages(line, wants)  # in its turn: what follows is sent after it was taken
            return
        self._under_way[wants] = line
        reader = threading.Thread(target=self._read_messages, args=(line, wants), daemon=True)
        self._readers.append(reader)
        reader.start()

    def _read_messages(self, line: http.client.HTTPConnection, request_id: str) -> None:
        try:
            answer = line.getresponse()
            self.statuses.append(answer.status)
            self.session = answer.headers.get("Mcp-Session-Id", self.session)
            if answer.headers.get_content_type() == "text/event-stream":
                for raw in answer:
                    if raw.startswith(b"data:") and raw[5:].strip():
                        self._arrived.put(raw[5:].strip() + b"\n")
            elif body := answer.read():
                self._arrived.put(body + b"\n")
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # cut by this side, or by a server that ended
        finally:
            self._under_way.pop(request_id, None)
            line.close()

    @staticmethod
    def _cut(line: http.client.HTTPConnection) -> None:
        sock = line.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
