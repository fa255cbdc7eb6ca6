"""Every way in without the token, tried on the real server: each is shut, and tells nothing on the way."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.surfaces.mcp.rawclient import ENVELOPE, MODERN, ROOT, SECONDS
from tests.surfaces.mcp.rawhttp import (
    BOTH,
    HttpClient,
    HttpServer,
    read_answer,
    request_bytes,
    status_of,
)
from vault_palace.surfaces.mcp.gate import MOST_BODY

FAKE = "tests.surfaces.mcp.fakeserver"
SECRET = "swordfish"
WRITE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "write_memory", "arguments": {"content": "x", "title": "Intruder"}, "_meta": ENVELOPE},
}
BODY = json.dumps(WRITE).encode()
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "CONNECT")
PATHS = (
    "/",
    "/mcp",
    "/mcp/",
    "//mcp",
    "/MCP",
    "/%6dcp",
    "/mcp?x=1",
    "/mcp/../health/..",
    "/health/",
    "/healthz",
    "/health/../mcp",
    "/health%2f..%2fmcp",
    "/%00",
    "/sse",
    "/messages",
    "/register",
    "/authorize",
    "/token",
    "/docs",
    "/openapi.json",
    "/metrics",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    "/01_Shallow/Secret%20plans.md",
    "/../../../../etc/passwd",
    "http://127.0.0.1/mcp",
    "*",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server of a vault with something to hide. At the end nothing was written and no log has the token."""
    root = tmp_path_factory.mktemp("hidden-away") / "vault"
    (root / "01_Shallow").mkdir(parents=True)
    (root / "01_Shallow/Secret plans.md").write_text(f"the word is {SECRET}\n", encoding="utf-8")
    state = tmp_path_factory.mktemp("state")
    env = {
        "VAULT_PALACE_CACHE_DIR": str(state / "cache"),
        "VAULT_PALACE_STATE_DIR": str(state / "state"),
        "VAULT_PALACE_WATCH": "off",
    }
    with HttpServer(root, env=env) as running:
        running.ready()
        yield running
        assert [path.name for path in (root / "01_Shallow").iterdir()] == ["Secret plans.md"]
        assert running.token not in running.stderr()
        assert "Traceback" not in running.stderr()
        assert running.process.poll() is None


def headers(server: HttpServer, *, token: str | None = None, **more: str) -> dict[str, str]:
    """The headers of a good request of the modern era, with a token only if one is given."""
    fields = {
        "Host": server.authority,
        "Content-Type": "application/json",
        "Accept": BOTH,
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "write_memory",
    }
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    return {**fields, **{name.replace("_", "-"): value for name, value in more.items()}}


def shut(server: HttpServer, answer: bytes, *statuses: int) -> None:
    """The answer is a refusal, gives nothing away and ends the connection."""
    assert status_of(answer) in (statuses or (401,)), answer
    for told in (
        SECRET,
        "Secret",
        "hidden-away",
        "01_Shallow",
        server.token,
        "Traceback",
        "uvicorn",
        "python",
    ):
        assert told.encode() not in answer
    assert b"connection: close" in answer.lower()


def test_with_the_token_the_door_opens(server: HttpServer) -> None:
    read = {**WRITE, "params": {"name": "search_room", "arguments": {"query": SECRET}, "_meta": ENVELOPE}}
    fields = headers(server, token=server.token, Mcp_Name="search_room")

    answer = server.exchange(request_bytes("POST", "/mcp", fields, json.dumps(read).encode()))

    assert status_of(answer) == 200
    assert SECRET.encode() in answer


def wrong_credentials(token: str) -> dict[str, Sequence[tuple[str, str]]]:
    """Headers that are no credentials, by what is wrong with them."""
    coded = base64.b64encode(f"user:{token}".encode()).decode()
    one = "Authorization"
    return {
        "none": [],
        "empty": [(one, "")],
        "scheme alone": [(one, "Bearer")],
        "scheme and blank": [(one, "Bearer ")],
        "bare token": [(one, token)],
        "basic": [(one, f"Basic {coded}")],
        "other scheme": [(one, f"Token {token}")],
        "glued": [(one, f"Bearer{token}")],
        "tab": [(one, f"Bearer\t{token}")],
        "quoted": [(one, f'Bearer "{token}"')],
        "named": [(one, f"Bearer token={token}")],
        "wrong": [(one, "Bearer vp_" + "A" * 43)],
        "prefix": [(one, f"Bearer {token[:-1]}")],
        "longer": [(one, f"Bearer {token}A")],
        "last one wrong": [(one, f"Bearer {token[:-1]}{'A' if token[-1] != 'A' else 'B'}")],
        "other case": [(one, f"Bearer {token.swapcase()}")],
        "two tokens": [(one, f"Bearer {token} {token}")],
        "list": [(one, f"Bearer {token}, Bearer {token}")],
        "twice": [(one, f"Bearer {token}"), (one, f"Bearer {token}")],
        "right and wrong": [(one, f"Bearer {token}"), (one, "Bearer x")],
        "not ascii": [(one, "Bearer caf\xe9\xff")],
        "not ascii at the end": [(one, f"Bearer {token}\xe9")],
        "very long": [(one, "Bearer " + "A" * 8_000)],
        "cookie": [("Cookie", f"token={token}; Authorization=Bearer {token}")],
        "own header": [("X-Api-Key", token), ("X-Authorization", f"Bearer {token}")],
        "proxy": [("Proxy-Authorization", f"Bearer {token}")],
        "underscore": [("Authorization_", f"Bearer {token}")],
        "forwarded": [("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1"), ("Forwarded", "for=::1")],
    }


@pytest.mark.parametrize("how", wrong_credentials("x" * 43))
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_credentials_that_are_none_are_refused(server: HttpServer, method: str, how: str) -> None:
    lines = [f"{name}: {value}" for name, value in headers(server).items()]
    lines += [f"{name}: {value}" for name, value in wrong_credentials(server.token)[how]]
    body = BODY if method == "POST" else b""
    head = "\r\n".join([f"{method} /mcp HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""])

    answer = server.exchange(head.encode("latin-1") + body)

    shut(server, answer)


@pytest.mark.parametrize(
    "path", ["/mcp?token={}", "/mcp?access_token={}", "/mcp?authorization=Bearer+{}", "/{}"]
)
def test_a_token_in_the_address_is_not_taken(server: HttpServer, path: str) -> None:
    request = request_bytes("POST", path.format(server.token), headers(server), BODY)

    shut(server, server.exchange(request))


def test_a_token_in_the_body_is_not_taken(server: HttpServer) -> None:
    fields = headers(server, Content_Type="application/x-www-form-urlencoded")

    shut(
        server,
        server.exchange(request_bytes("POST", "/mcp", fields, f"access_token={server.token}".encode())),
    )


@pytest.mark.parametrize("token", [None, "vp_" + "A" * 43], ids=["none", "wrong"])
@pytest.mark.parametrize("method", METHODS)
def test_without_the_token_every_path_and_method_answers_alike(
    server: HttpServer, method: str, token: str | None
) -> None:
    answers = set()
    for path in PATHS:
        answer = server.exchange(request_bytes(method, path, headers(server, token=token)), 5)
        shut(server, answer)
        answers.add(answer)

    assert len(answers) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_health_says_nothing_but_ok_to_anyone(server: HttpServer, method: str) -> None:
    fields = {"Host": server.authority, "Connection": "close"}

    answer = server.exchange(request_bytes(method, "/health?verbose=1", fields))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert status_of(answer) == 200
    assert body == (b'{"status": "ok"}' if method == "GET" else b"")
    assert b"server:" not in head.lower()


@pytest.mark.parametrize("method", [method for method in METHODS if method not in ("GET", "HEAD")])
def test_health_is_only_for_reading(server: HttpServer, method: str) -> None:
    shut(server, server.exchange(request_bytes(method, "/health", headers(server))))


def foreign_hosts(port: int) -> list[str]:
    return [
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"localhost.evil.example:{port}",
        f"127.0.0.1:{port}.evil.example",
        f"evil.example@127.0.0.1:{port}",
        f"127.0.0.1:{port + 1}",
        f"127.0.0.2:{port}",
        f"0.0.0.0:{port}",
        f"2130706433:{port}",
        f"0x7f.1:{port}",
        "localhost",
        "127.0.0.1",
        "",
        f"[::ffff:127.0.0.1]:{port}",
        f"127.0.0.1:{port}, evil.example",
        f"127.0.0.1:{port}/",
    ]


@pytest.mark.parametrize("at", range(len(foreign_hosts(1))))
@pytest.mark.parametrize("path", ["/mcp", "/health"])
def test_another_host_is_refused_even_with_the_token(server: HttpServer, path: str, at: int) -> None:
    fields = headers(server, token=server.token, Host=foreign_hosts(server.port)[at])

    answer = server.exchange(request_bytes("POST" if path == "/mcp" else "GET", path, fields, BODY))

    shut(server, answer, 421)


def test_a_request_has_one_host(server: HttpServer) -> None:
    named = f"Host: {server.authority}\r\n"
    rest = f"Authorization: Bearer {server.token}\r\n\r\n"
    two = f"GET /health HTTP/1.1\r\n{named}Host: evil.example\r\n{rest}"
    none = f"GET /health HTTP/1.1\r\n{rest}"
    old = f"GET /health HTTP/1.0\r\n{rest}"

    for request in (two, none, old):
        assert status_of(server.exchange(request.encode())) in (400, 421)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "https://evil.example",
        "http://evil.example:{port}",
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:{other}",
        "http://localhost:{port}.evil.example",
        "http://localhost:{port}/",
        "http://localhost:{port}@evil.example",
        "file://",
        "chrome-extension://abcdefgh",
        "localhost:{port}",
        "http://",
        "",
        "http://localhost:{port} http://evil.example",
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/health"])
def test_a_page_from_elsewhere_is_refused_even_with_the_token(
    server: HttpServer, path: str, origin: str
) -> None:
    named = origin.format(port=server.port, other=server.port + 1)
    fields = headers(server, token=server.token, Origin=named)

    answer = server.exchange(request_bytes("POST" if path == "/mcp" else "GET", path, fields, BODY))

    shut(server, answer, 403)
    assert b"access-control" not in answer.lower()


def test_a_browser_is_never_told_that_it_may_ask(server: HttpServer) -> None:
    fields = {
        "Host": server.authority,
        "Origin": f"http://{server.authority}",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }

    answer = server.exchange(request_bytes("OPTIONS", "/mcp", fields))

    shut(server, answer)
    assert b"access-control" not in answer.lower()


HOST, TOKEN = b"@HOST@", b"@TOKEN@"
AUTH = b"Host: @HOST@\r\nAuthorization: Bearer @TOKEN@\r\nContent-Type: application/json\r\n"
HIDDEN = b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /mcp HTTP/1.1\r\n"
        + AUTH
        + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n"
        + AUTH
        + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: identity\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n"
        + AUTH
        + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: 4, 5\r\n\r\nabcde",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: +4\r\n\r\nabcd",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: 0x4\r\n\r\nabcd",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Content-Length : 4\r\n\r\nabcd",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\n" + AUTH + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffffffff\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: @HOST@\r\nX: a\x00b\r\nAuthorization: Bearer @TOKEN@\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: @HOST@\r\nX y: b\r\nAuthorization: Bearer @TOKEN@\r\n\r\n",
        b"GET /mcp HTTP/9.9\r\nHost: @HOST@\r\n\r\n",
        b"GET  /mcp HTTP/1.1\r\nHost: @HOST@\r\n\r\n",
        b"GET /mcp\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: @HOST@\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: @HOST@\r\n"
        + b"".join(b"X%d: a\r\n" % at for at in range(120))
        + b"\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: @HOST@\r\n\r\n",
    ],
)
def test_what_two_readers_could_take_for_two_things_is_refused(server: HttpServer, request_: bytes) -> None:
    data = request_ + HIDDEN
    data = data.replace(HOST, server.authority.encode()).replace(TOKEN, server.token.encode())

    with server.connect() as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        answer = b""
        while more := _received(line):
            answer += more

    assert 400 <= status_of(answer) < 500, answer
    assert answer.count(b"HTTP/1.1 ") == 1  # what came after it was not taken for a request
    assert b"Traceback" not in answer


def _received(line: socket.socket) -> bytes:
    try:
        return line.recv(65_536)
    except ConnectionError:
        return b""


def test_the_body_of_a_refused_request_is_not_the_next_request(server: HttpServer) -> None:
    smuggled = request_bytes("POST", "/mcp", headers(server, token=server.token), BODY)

    answer = server.exchange(request_bytes("POST", "/mcp", headers(server), smuggled) + smuggled)

    shut(server, answer)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("upgrade", ["websocket", "h2c", "TLS/1.2"])
def test_there_is_nothing_to_upgrade_to(server: HttpServer, upgrade: str) -> None:
    fields = headers(server, Connection="Upgrade, HTTP2-Settings", Upgrade=upgrade)
    fields |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}

    shut(server, server.exchange(request_bytes("GET", "/mcp", fields)))


def test_without_the_token_no_body_is_waited_for(server: HttpServer) -> None:
    endless = request_bytes("POST", "/mcp", headers(server, Content_Length=str(10**12)))
    chunked = request_bytes("POST", "/mcp", headers(server, Transfer_Encoding="chunked")) + b"5\r\nhel"

    for request in (endless, chunked):
        shut(server, server.exchange(request))


def test_a_body_that_is_too_long_is_refused_by_its_length_alone(server: HttpServer) -> None:
    fields = headers(server, token=server.token, Content_Length=str(MOST_BODY + 1))

    shut(server, server.exchange(request_bytes("POST", "/mcp", fields)), 413)


def test_a_chunked_body_that_is_too_long_is_refused_on_the_way(server: HttpServer) -> None:
    fields = headers(server, token=server.token, Transfer_Encoding="chunked")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"

    answer = server.exchange(request_bytes("POST", "/mcp", fields) + chunk * (MOST_BODY // 0x100000 + 1))

    # A client that is still sending may lose the answer with its connection; it is never let on.
    assert status_of(answer) in (413, 0)


def test_a_chunked_body_is_read(server: HttpServer) -> None:
    read = {**WRITE, "params": {"name": "search_room", "arguments": {"query": "word"}, "_meta": ENVELOPE}}
    fields = headers(server, token=server.token, Transfer_Encoding="chunked", Mcp_Name="search_room")
    body = json.dumps(read).encode()
    chunks = b"".join(b"1;x=y\r\n" + body[at : at + 1] + b"\r\n" for at in range(len(body))) + b"0\r\n\r\n"

    assert status_of(server.exchange(request_bytes("POST", "/mcp", fields) + chunks)) == 200


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json, text/plain",
        "text/plain; application/json",
        "",
    ],
)
def test_a_form_of_a_page_is_no_message(server: HttpServer, kind: str) -> None:
    fields = headers(server, token=server.token, Content_Type=kind)

    shut(server, server.exchange(request_bytes("POST", "/mcp", fields, BODY)), 415)


def test_a_compressed_message_is_refused(server: HttpServer) -> None:
    fields = headers(server, token=server.token, Content_Encoding="gzip")

    shut(server, server.exchange(request_bytes("POST", "/mcp", fields, b"\x1f\x8b")), 415)


@pytest.mark.parametrize("path", [path for path in PATHS if path.partition("?")[0] not in ("/mcp", "/%6dcp")])
def test_with_the_token_there_is_still_only_one_path(server: HttpServer, path: str) -> None:
    shut(server, server.exchange(request_bytes("POST", path, headers(server, token=server.token), BODY)), 404)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "CONNECT", "HEAD"])
def test_with_the_token_there_are_still_only_three_methods(server: HttpServer, method: str) -> None:
    shut(server, server.exchange(request_bytes(method, "/mcp", headers(server, token=server.token))), 405)


def session_headers(server: HttpServer, session: str, token: str | None) -> dict[str, str]:
    fields = {"Host": server.authority, "Accept": BOTH, "Mcp-Session-Id": session}
    return fields | ({} if token is None else {"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_session_id_is_no_token(server: HttpServer, method: str) -> None:
    with HttpClient(None, server=server) as client:
        client.open()
        fields = {**session_headers(server, client.session, None), "Content-Type": "application/json"}

        shut(server, server.exchange(request_bytes(method, "/mcp", fields, BODY)))

        assert client.good("search_room", query=SECRET)["total"] == 1  # it lives on


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_session_cannot_be_guessed(server: HttpServer, method: str) -> None:
    with HttpClient(None, server=server) as client:
        client.open()
        near = client.session[:-1] + ("0" if client.session[-1] != "0" else "1")
        for guess in (near, client.session[:-1], client.session.upper() + "x", "*", "", "0" * 32):
            fields = {
                **session_headers(server, guess, server.token),
                "Content-Type": "application/json",
            }

            answer = server.exchange(request_bytes(method, "/mcp", fields, BODY))

            assert status_of(answer) in (400, 404, 406), answer
            assert client.session.encode() not in answer
        assert client.good("search_room", query=SECRET)["total"] == 1


def test_a_session_that_was_ended_is_over(server: HttpServer) -> None:
    with HttpClient(None, server=server) as client, HttpClient(None, server=server) as other:
        client.open()
        other.open()
        request = request_bytes("DELETE", "/mcp", session_headers(server, client.session, server.token))

        assert status_of(server.exchange(request)) == 200
        assert status_of(server.exchange(request)) == 404
        assert other.good("search_room", query=SECRET)["total"] == 1


# -- limits, on a server whose patience is short ---------------------------------------------------------


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server that waits for nobody."""
    yield from with_constants(
        tmp_path_factory,
        {"http.HEAD_SECONDS": 0.3, "gate.BODY_SECONDS": 0.3, "http.SESSION_IDLE_SECONDS": 0.2},
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with room for few."""
    yield from with_constants(tmp_path_factory, {"http.MOST_SESSIONS": 2, "http.MOST_CONNECTIONS": 6})


def with_constants(
    tmp_path_factory: pytest.TempPathFactory, constants: dict[str, float]
) -> Iterator[HttpServer]:
    env = {
        "FAKE_CONSTANTS": json.dumps(constants),
        "VAULT_PALACE_STATE_DIR": str(tmp_path_factory.mktemp("state")),
    }
    with HttpServer(tmp_path_factory.mktemp("vault"), module=FAKE, env=env) as running:
        running.ready()
        yield running


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /mcp HTTP/1.1\r\nHost: x\r\n", b"\r\n"])
def test_a_request_that_does_not_come_is_not_waited_for(hasty: HttpServer, sent: bytes) -> None:
    with hasty.connect() as line:
        line.sendall(sent)

        assert status_of(read_answer(line)) in (0, 400)  # and closed, else this would wait


def test_a_next_request_that_does_not_come_is_not_waited_for(hasty: HttpServer) -> None:
    with hasty.connect() as line:
        line.sendall(request_bytes("GET", "/health", {"Host": hasty.authority}))
        assert status_of(read_answer(line)) == 200
        line.sendall(b"GET /hea")

        assert read_answer(line) == b""


def test_a_body_that_does_not_come_is_not_waited_for(hasty: HttpServer) -> None:
    fields = headers(hasty, token=hasty.token, Content_Length="100")

    shut(hasty, hasty.exchange(request_bytes("POST", "/mcp", fields) + b"{"), 408)


def test_a_session_that_nobody_uses_ends(hasty: HttpServer) -> None:
    client = HttpClient(None, server=hasty)
    client.open()
    request = request_bytes("GET", "/mcp", session_headers(hasty, client.session, hasty.token))

    # Asking keeps a session alive, and so each question comes after more than its time.
    last = time.monotonic() + SECONDS
    while status_of(_beginning(hasty, request)) != 404:
        assert time.monotonic() < last, "it never ended"
        time.sleep(0.5)


def _beginning(server: HttpServer, request: bytes) -> bytes:
    with server.connect() as line:
        line.sendall(request)
        return line.recv(64)


def test_sessions_are_counted_and_a_place_that_is_left_is_free_again(small: HttpServer) -> None:
    clients = [HttpClient(None, server=small) for _ in range(2)]
    for client in clients:
        client.open()
    late = HttpClient(None, server=small)

    late.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
    message = late.receive()
    assert message is not None
    assert (late.statuses, message["error"]["message"]) == ([503], "Too many open sessions")

    assert not clients[0].tool("read_map").get("isError")
    gone = request_bytes("DELETE", "/mcp", session_headers(small, clients[1].session, small.token))
    assert status_of(small.exchange(gone)) == 200
    assert late.open()


def test_connections_are_counted(small: HttpServer) -> None:
    lines = [small.connect() for _ in range(6)]

    answer = small.exchange(request_bytes("GET", "/health", {"Host": small.authority}))

    assert status_of(answer) == 503
    for line in lines:
        line.close()
    small.ready()


# -- the token's file and the way it is started ------------------------------------------------------------


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vault_palace", *words],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


def test_a_new_token_counts_at_once_and_ends_the_streams_of_the_old_one(vault: Path) -> None:
    with HttpClient(vault) as client:
        client.open()
        server, old = client.server, client.server.token
        line = server.connect()
        line.sendall(request_bytes("GET", "/mcp", session_headers(server, client.session, old)))
        assert status_of(line.recv(4096)) == 200

        assert run("token", "--rotate", "--vault", str(vault)).stdout.strip() == server.token != old

        shut(server, server.exchange(request_bytes("POST", "/mcp", headers(server, token=old), BODY)))
        assert client.good("search_room", query="x")["total"] == 0  # it reads the new one from the file
        line.close()


@pytest.mark.parametrize("harm", ["gone", "open", "empty", "link", "folder"])
def test_a_file_that_cannot_be_trusted_opens_to_nobody(tmp_path: Path, harm: str) -> None:
    with HttpServer(tmp_path, module=FAKE) as server:
        server.ready()
        token, place = server.token, server.token_file

        match harm:
            case "gone":
                place.unlink()
            case "open":
                place.chmod(0o644)
            case "empty":
                place.write_text("")
            case "link":
                place.rename(tmp_path / "elsewhere")
                place.symlink_to(tmp_path / "elsewhere")
            case "folder":
                place.unlink()
                place.mkdir()

        for given in (token, "", "\n"):
            fields = headers(server, token=given)
            assert status_of(server.exchange(request_bytes("POST", "/mcp", fields, BODY))) in (400, 401)


def test_a_token_that_others_can_read_is_refused_at_the_start(vault: Path) -> None:
    run("token", "--vault", str(vault))
    [place] = Path(os.environ["XDG_STATE_HOME"]).rglob("*.token")
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    place.chmod(0o640)

    for ended in (run("serve", "--http", "0", "--vault", str(vault)), run("token", "--vault", str(vault))):
        assert ended.returncode == 15
        assert "policy_violation: Others can read the token's file" in ended.stderr
        assert "--rotate" in ended.stderr
        assert place.read_text().strip() not in ended.stderr + ended.stdout

    assert run("token", "--rotate", "--vault", str(vault)).returncode == 0
    assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"])
def test_an_address_that_others_reach_is_refused_without_a_token(vault: Path, address: str) -> None:
    ended = run("serve", "--http", address, "--no-token", "--vault", str(vault))

    assert ended.returncode == 15
    assert "policy_violation: " in ended.stderr
    assert "listening" not in ended.stderr


def test_on_loopback_a_person_can_do_without_the_token(vault: Path) -> None:
    with HttpServer(vault, options=["--no-token"]) as server:
        server.ready()
        read = {**WRITE, "params": {"name": "search_room", "arguments": {"query": "x"}, "_meta": ENVELOPE}}
        body = json.dumps(read).encode()
        named = headers(server, Mcp_Name="search_room")

        assert status_of(server.exchange(request_bytes("POST", "/mcp", named, body))) == 200
        assert not server.token_file.exists()
        for fields, status in (
            ({**named, "Host": "evil.example"}, 421),
            ({**named, "Origin": "http://evil.example"}, 403),
            ({**named, "Origin": "null"}, 403),
            ({**named, "Content-Type": "text/plain"}, 415),
        ):
            shut_ = server.exchange(request_bytes("POST", "/mcp", fields, body))
            assert status_of(shut_) == status


def test_beyond_loopback_names_are_checked_as_well(tmp_path: Path) -> None:
    options = ["--allow-host", "palace.example", "--allow-host", "other.example:8443"]
    with HttpServer(tmp_path, module=FAKE, address="0.0.0.0:0", options=options) as server:
        for host, status in (
            (f"127.0.0.1:{server.port}", (200, 503)),
            (f"localhost:{server.port}", (200, 503)),
            ("palace.example", (200, 503)),
            (f"palace.example:{server.port}", (200, 503)),
            ("other.example:8443", (200, 503)),
            ("other.example", (421,)),
            (f"evil.example:{server.port}", (421,)),
            (f"192.0.2.1:{server.port}", (421,)),
        ):
            assert server.get("/health", Host=host)[0] in status, host
        shut(server, server.exchange(request_bytes("POST", "/mcp", headers(server), BODY)))


@pytest.mark.parametrize("words", [["--no-token"], ["--allow-host", "x"]])
def test_the_options_of_http_are_not_taken_silently_without_it(vault: Path, words: list[str]) -> None:
    ended = run("serve", *words, "--vault", str(vault))

    assert ended.returncode == 2
    assert "--http" in ended.stderr


def test_the_token_is_in_no_line_of_the_log(vault: Path) -> None:
    with HttpClient(vault) as client:
        client.open()
        token = client.server.token
        client.bad("read_memory", path=f"01_Shallow/{token}.md")
        client.server.exchange(
            b"GET /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"
        )
        client.server.signal(signal.SIGTERM)
        client.server.wait()

        assert token not in client.server.stderr()
        assert token not in client.server.stdout()
    kept = [path for path in vault.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]
    assert kept == []
