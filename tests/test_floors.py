"""The floors of the package are a test: every import and every forbidden call is read from the source.

Each rule is one row of a table below; the second half of the module feeds the checker made-up modules
that break one rule each, so that a checker which has gone blind fails too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "vault_palace"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What each floor may import of the package. storage and index stand side by side: neither knows the other.
FLOORS = {
    "": {"surfaces"},  # __main__.py
    "core": {"core"},
    "storage": {"core", "storage"},
    "index": {"core", "index"},
    "services": {"core", "storage", "index", "services"},
    "surfaces": {"core", "storage", "index", "services", "surfaces"},
}

# Modules that only some places may import: name -> the places (prefixes of the path inside the package).
KEPT = {
    "mcp": ("surfaces/mcp/",),
    "mcp_types": ("surfaces/mcp/",),
    "uvicorn": ("surfaces/mcp/http.py",),
    "h11": ("surfaces/mcp/http.py",),
    "typer": ("surfaces/cli",),
    "rich": ("surfaces/cli",),
    "sqlite3": ("index/",),
    "filelock": ("storage/",),
    "shutil": ("storage/files.py",),
    "tempfile": ("storage/files.py",),
    "tomlkit": ("surfaces/hosts/toml.py",),
}

# A person's files outside the vault are changed in one place, and what decides their text writes nothing.
OUTSIDE, FILING = "surfaces/hosts/", "surfaces/hosts/filing.py"

# The bottom floor is pure: what it needs arrives as an argument.
IMPURE = _words(
    "os io time logging sqlite3 socket subprocess threading asyncio tempfile shutil glob random secrets uuid "
    "platformdirs filelock tzlocal"
)
PURE_PATHS = frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"})
CLOCKS = frozenset({"now", "utcnow", "today"})

WRITERS = ("storage/files.py", "index/cache.py")  # the notes, and the cache's own file
CHANGING_OS = _words(
    "replace rename renames remove unlink mkdir makedirs rmdir removedirs link symlink truncate ftruncate "
    "chmod fchmod chown utime write pwrite writev mkfifo copy_file_range sendfile"
)
CHANGING_METHODS = _words(
    "write_text write_bytes rename unlink mkdir rmdir symlink_to hardlink_to chmod lchmod"
)
OPEN_FOR_CHANGE = _words("O_WRONLY O_RDWR O_CREAT O_TRUNC O_APPEND")


def wrongs(place: str, source: str) -> list[str]:
    """What *source*, standing at *place* inside the package, does that its floor must not do."""
    tree = ast.parse(source)
    floor = place.partition("/")[0] if "/" in place else ""
    found: list[str] = []
    for node in ast.walk(tree):
        for rule in RULES:
            found += [f"{place}:{getattr(node, 'lineno', 0)}: {wrong}" for wrong in rule(place, floor, node)]
    return found


def imported(node: ast.AST) -> list[str]:
    """The dotted names an import statement brings in; `from a import b` brings in `a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def goes_up(_place: str, floor: str, node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.level:
        yield "relative import"
    for name in imported(node):
        parts = name.split(".")
        if parts[0] != "vault_palace" or len(parts) == 1:
            continue
        if parts[1] in FLOORS and parts[1] not in FLOORS[floor]:
            yield f"{floor or 'the top'} imports {parts[1]}"


def not_kept(place: str, _floor: str, node: ast.AST) -> Iterator[str]:
    for name in imported(node):
        places = KEPT.get(name.split(".")[0])
        if places is not None and not place.startswith(places):
            yield f"imports {name.split('.')[0]}, which only {' and '.join(places)} may"


def writes_outside(place: str, _floor: str, node: ast.AST) -> Iterator[str]:
    if not place.startswith(OUTSIDE) or place == FILING:
        return
    for name in imported(node):
        if name.startswith("vault_palace.storage"):
            yield f"imports {name}, which only {FILING} may"


def impure(_place: str, floor: str, node: ast.AST) -> Iterator[str]:
    if floor != "core":
        return
    for name in imported(node):
        top, _, rest = name.partition(".")
        if top in IMPURE:
            yield f"core imports {top}"
        if top == "pathlib" and rest not in PURE_PATHS:
            yield "core imports pathlib"
    if isinstance(node, ast.Attribute) and node.attr in CLOCKS and "date" in ast.unparse(node.value):
        yield f"core reads the clock: {ast.unparse(node)}"
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"open", "print", "input"}:
        yield f"core calls {ast.unparse(node.func)}"


def reads_environment(place: str, _floor: str, node: ast.AST) -> Iterator[str]:
    if place == "surfaces/config.py":
        return
    names = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
    said = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    if said in names or names.intersection(imported(node)):
        yield "reads the environment"


def changes_bytes(place: str, _floor: str, node: ast.AST) -> Iterator[str]:
    if place in WRITERS:
        return
    if isinstance(node, ast.ImportFrom) and node.module == "os":
        for alias in node.names:
            if alias.name in CHANGING_OS:
                yield f"imports os.{alias.name}"
    if not isinstance(node, ast.Call):
        return
    called = ast.unparse(node.func)
    last = called.rpartition(".")[2]
    if called == f"os.{last}" and last in CHANGING_OS:
        yield f"calls {called}"
    elif called == "os.open" and node.args and ast.unparse(node.args[0]) != "os.devnull":
        if OPEN_FOR_CHANGE.intersection(
            part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
        ):
            yield "opens for writing"
    elif last == "open" and _writes(node, called):
        yield "opens for writing"
    elif called != last and not called.startswith("os."):
        # Path.replace(target) has one argument, str.replace two; Path.touch() has none, the rules' touch has.
        bare = not node.keywords and not node.args
        one = len(node.args) == 1 and not node.keywords
        if last in CHANGING_METHODS or (last == "replace" and one) or (last == "touch" and bare):
            yield f"calls {called}"


def _writes(node: ast.Call, called: str) -> bool:
    """Whether an `open` call's mode changes the file; a mode that is no literal counts as one that does."""
    if any(word.arg == "closefd" for word in node.keywords):
        return False  # a descriptor that is open already; how it was opened is looked at where that was
    given = [word.value for word in node.keywords if word.arg == "mode"]
    place = 1 if called in {"open", "io.open", "gzip.open"} else 0
    mode = given[0] if given else (node.args[place] if len(node.args) > place else ast.Constant("r"))
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return called in {"open", "io.open"}
    return bool(set("wax+").intersection(mode.value)) and set(mode.value) <= set("rwaxbt+U")


Rule = Callable[[str, str, ast.AST], Iterator[str]]
RULES: tuple[Rule, ...] = (goes_up, not_kept, writes_outside, impure, reads_environment, changes_bytes)

MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("place", MODULES)
def test_a_module_keeps_to_its_floor(place: str) -> None:
    source = (PACKAGE / place).read_text(encoding="utf-8")

    found = wrongs(place, source)

    assert found == []


@pytest.mark.parametrize("place", MODULES)
def test_a_module_says_first_what_it_is_for(place: str) -> None:
    tree = ast.parse((PACKAGE / place).read_text(encoding="utf-8"))

    said = ast.get_docstring(tree)

    assert said or not tree.body


def test_every_floor_is_looked_at() -> None:
    seen = {place.partition("/")[0] for place in MODULES if "/" in place}

    assert seen == set(FLOORS) - {""}


WRONG = [
    ("core/rules.py", "from vault_palace.storage.files import put", "core imports storage"),
    ("core/rules.py", "import vault_palace.index.cache", "core imports index"),
    ("core/rules.py", "from vault_palace import services", "core imports services"),
    ("core/rules.py", "def f():\n    from vault_palace.surfaces import cli", "core imports surfaces"),
    ("storage/vault.py", "from vault_palace.index.cache import Cache", "storage imports index"),
    ("index/cache.py", "from vault_palace.storage.vault import Vault", "index imports storage"),
    ("index/cache.py", "from vault_palace.services.palace import Palace", "index imports services"),
    ("services/palace.py", "from vault_palace.surfaces import config", "services imports surfaces"),
    ("__main__.py", "from vault_palace.core.errors import VaultError", "the top imports core"),
    ("core/rules.py", "from .model import Layer", "relative import"),
    ("surfaces/cli/app.py", "import mcp", "imports mcp"),
    ("services/palace.py", "from mcp_types import Tool", "imports mcp_types"),
    ("services/palace.py", "import rich.table", "imports rich"),
    ("services/palace.py", "import tomlkit", "imports tomlkit"),
    (
        "surfaces/hosts/connect.py",
        "from vault_palace.storage import files",
        "which only surfaces/hosts/filing.py",
    ),
    ("services/palace.py", "import sqlite3", "imports sqlite3"),
    ("services/palace.py", "import shutil", "imports shutil"),
    ("core/rules.py", "import os", "core imports os"),
    ("core/rules.py", "import os.path", "core imports os"),
    ("core/rules.py", "from pathlib import Path", "core imports pathlib"),
    ("core/rules.py", "import pathlib", "core imports pathlib"),
    ("core/rules.py", "import sqlite3", "core imports sqlite3"),
    ("core/rules.py", "from time import monotonic", "core imports time"),
    ("core/rules.py", "import logging", "core imports logging"),
    ("core/rules.py", "from datetime import datetime\nx = datetime.now()", "reads the clock"),
    ("core/rules.py", "import datetime\nx = datetime.date.today()", "reads the clock"),
    ("core/rules.py", "from datetime import datetime\nx = datetime.utcnow", "reads the clock"),
    ("core/rules.py", "text = open('note.md').read()", "core calls open"),
    ("core/rules.py", "print('hello')", "core calls print"),
    ("services/palace.py", "import os\nhome = os.environ['HOME']", "reads the environment"),
    ("services/palace.py", "import os\nhome = os.getenv('HOME')", "reads the environment"),
    ("surfaces/mcp/server.py", "from os import environ", "reads the environment"),
    ("services/palace.py", "open('note.md', 'w')", "opens for writing"),
    ("services/palace.py", "open('note.md', mode='ab')", "opens for writing"),
    ("services/palace.py", "open('note.md', mode)", "opens for writing"),
    ("services/palace.py", "path.open('x')", "opens for writing"),
    ("services/palace.py", "import os\nos.open('note.md', os.O_RDONLY | os.O_CREAT)", "opens for writing"),
    ("services/palace.py", "path.write_text('hello')", "calls path.write_text"),
    ("services/palace.py", "path.write_bytes(b'')", "calls path.write_bytes"),
    ("storage/vault.py", "import os\nos.replace('a', 'b')", "calls os.replace"),
    ("storage/vault.py", "import os\nos.rename('a', 'b')", "calls os.rename"),
    ("storage/vault.py", "import os\nos.unlink('a')", "calls os.unlink"),
    ("storage/vault.py", "import os\nos.mkdir('a')", "calls os.mkdir"),
    ("storage/vault.py", "from os import replace", "imports os.replace"),
    ("services/palace.py", "path.replace(other)", "calls path.replace"),
    ("services/palace.py", "path.touch()", "calls path.touch"),
    ("services/palace.py", "path.parent.mkdir(parents=True)", "calls path.parent.mkdir"),
]


@pytest.mark.parametrize(("place", "source", "wrong"), WRONG, ids=[f"{p}: {s}" for p, s, _ in WRONG])
def test_the_checker_sees_a_wrong_module(place: str, source: str, wrong: str) -> None:
    found = wrongs(place, source)

    assert any(wrong in said for said in found), found


RIGHT = [
    ("core/rules.py", "from vault_palace.core.model import Layer"),
    ("core/rules.py", "from datetime import date, datetime, time, timedelta"),
    ("core/names.py", "from pathlib import PurePosixPath"),
    ("core/names.py", "text = 'a-b'.replace('-', ' ')"),
    ("services/palace.py", "after = rules.touch(memory, now, policy)"),
    ("services/palace.py", "after = dataclasses.replace(memory, streak=1)"),
    ("services/palace.py", "day = moment.replace(hour=0)"),
    (
        "services/palace.py",
        "from vault_palace.storage.vault import Vault\nfrom vault_palace.index.cache import Cache",
    ),
    ("services/palace.py", "from vault_palace import __version__"),
    ("services/palace.py", "palace = Palace.open(root, settings=settings)"),
    ("services/palace.py", "data = open('note.md', 'rb').read()"),
    ("storage/vault.py", "import os\nfd = os.open('note.md', os.O_RDONLY)"),
    ("surfaces/cli/screen.py", "import os\nfd = os.open(os.devnull, os.O_WRONLY)"),
    ("surfaces/mcp/wire.py", "sink = open(1, 'wb', closefd=False)"),
    ("storage/files.py", "import os\nos.replace('a', 'b')"),
    ("surfaces/config.py", "import os\nhome = os.environ.get('HOME')"),
    ("surfaces/mcp/server.py", "from mcp.server import MCPServer"),
    ("surfaces/hosts/filing.py", "from vault_palace.storage import files"),
    ("surfaces/cli/app.py", "import typer\nfrom vault_palace.services.palace import Palace"),
    ("__main__.py", "from vault_palace.surfaces.cli import main"),
]


@pytest.mark.parametrize(("place", "source"), RIGHT, ids=[f"{p}: {s}" for p, s in RIGHT])
def test_the_checker_lets_a_right_module_be(place: str, source: str) -> None:
    found = wrongs(place, source)

    assert found == []
