"""What is shipped: the wheel holds the package and the template, and its installed copy works alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from vault_palace import __version__

ROOT = Path(__file__).resolve().parent.parent
# Taken before the fixtures move the home folder away: pip may use the person's cache of downloads.
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".tools", "__pycache__", ".*_cache", ".hypothesis", ".coverage*", "build", "dist"
)


def run(words: Sequence[str | Path], *, cwd: Path, env: dict[str, str] | None = None, text: str = "") -> str:
    """Run a command; its standard output, or a failure that shows what it said."""
    ended = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=env,
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, f"{words}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "vault-palace"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    out = tmp_path_factory.mktemp("dist")
    run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source],
        cwd=out,
        env=OUTSIDE,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of a fresh environment with the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    run([sys.executable, "-m", "venv", place], cwd=place.parent, env=OUTSIDE)
    commands = place / ("Scripts" if os.name == "nt" else "bin")
    quiet = {**OUTSIDE, "PIP_ROOT_USER_ACTION": "ignore", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run([commands / "python", "-m", "pip", "install", "--quiet", wheel], cwd=place.parent, env=quiet)
    return commands


def test_the_wheel_holds_every_module_and_the_whole_template(wheel: Path) -> None:
    package = [path for path in (ROOT / "vault_palace").rglob("*.py") if "__pycache__" not in path.parts]
    template = [path for path in (ROOT / "vault_template").rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT).as_posix() for path in package}
    expected |= {f"vault_palace/{path.relative_to(ROOT).as_posix()}" for path in template}

    held = set(zipfile.ZipFile(wheel).namelist())

    assert expected - held == set()
    assert "vault_palace/py.typed" in held
    assert "vault_palace/vault_template/.obsidian/types.json" in held


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()

    tops = {name.split("/")[0] for name in held}

    assert tops == {"vault_palace", f"vault_palace-{__version__}.dist-info"}
    assert [name for name in held if "__pycache__" in name or name.endswith(".pyc")] == []


def test_the_installed_copy_says_its_version(installed: Path, tmp_path: Path) -> None:
    said = run([installed / "vault-palace", "--version"], cwd=tmp_path, env=OUTSIDE)

    assert said == f"vault-palace {__version__}\n"


def test_the_installed_copy_does_the_main_job(installed: Path, tmp_path: Path) -> None:
    command, vault, cwd = installed / "vault-palace", tmp_path / "My Vault", tmp_path
    env = {**dict(os.environ), "VAULT_PALACE_VAULT": str(vault)}
    env.pop("PYTHONPATH", None)

    run([command, "init", vault], cwd=cwd, env=env)
    saved = json.loads(
        run([command, "write", "Order holds in one part.", "--title", "Kafka", "--json"], cwd=cwd, env=env)
    )
    found = json.loads(run([command, "search", "order", "--json"], cwd=cwd, env=env))

    assert saved["saved_path"] == "01_Shallow/Kafka.md"
    assert [match["path"] for match in found["matches"]] == ["01_Shallow/Kafka.md"]
    assert (vault / ".obsidian" / "types.json").is_file()


def test_the_installed_server_answers_over_stdio(installed: Path, tmp_path: Path) -> None:
    command, vault = installed / "vault-palace", tmp_path / "vault"
    run([command, "init", vault], cwd=tmp_path, env=dict(os.environ))
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "smoke", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)

    said = run([command, "serve", "--vault", vault], cwd=tmp_path, env=dict(os.environ), text=text)

    answers = {answer["id"]: answer["result"] for answer in map(json.loads, said.splitlines())}
    assert answers[1]["serverInfo"] == {
        **answers[1]["serverInfo"],
        "name": "vault-palace",
        "version": __version__,
    }
    assert "write_memory" in {tool["name"] for tool in answers[2]["tools"]}


def test_the_installed_command_connects_a_host_to_itself(installed: Path, tmp_path: Path) -> None:
    command, vault = installed / "vault-palace", tmp_path / "vault"
    run([command, "init", vault], cwd=tmp_path, env=dict(os.environ))

    said = run(
        [command, "connect", "codex", "--vault", "vault", "--json"], cwd=tmp_path, env=dict(os.environ)
    )

    entry = json.loads(said)["entry"]
    assert entry == {"command": str(command), "args": ["serve", "--vault", str(vault)]}
