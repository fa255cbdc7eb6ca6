"""What others install and list the server by: made from one source, right by the rules, and it starts."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from scripts import bundle, peers
from vault_palace import __version__
from vault_palace.surfaces.mcp.texts import TOOLS

NAME = "io.github.someone/vault-palace"
ROOT = Path(__file__).resolve().parent.parent
MCPB = peers.TOOLS / "node_modules" / bundle.MCPB


def test_every_version_is_the_same() -> None:
    listing = bundle.server_json(NAME)

    said = {
        "pyproject.toml": bundle.project()["version"],
        "package": __version__,
        "manifest": bundle.manifest()["version"],
        "server.json": listing["version"],
        "server.json, package": listing["packages"][0]["version"],
    }

    assert set(said.values()) == {__version__}, said


def test_readme_names_the_server_in_the_registry_once() -> None:
    name = bundle.mcp_name()

    assert name is not None, "README lacks the line <!-- mcp-name: NAMESPACE/vault-palace -->"
    assert bundle.problems(bundle.server_json(name)) == []
    assert name.endswith("/vault-palace")


@pytest.mark.parametrize(
    ("readme", "name"),
    [
        ("# Vault\n<!-- mcp-name: io.github.a/vault-palace -->\n", "io.github.a/vault-palace"),
        ("# Vault\n", None),
        ("text <!-- mcp-name: io.github.a/b -->\n", None),
        ("<!-- mcp-name: io.github.a/b -->\n<!-- mcp-name: io.github.c/b -->\n", None),
    ],
)
def test_the_name_is_read_from_its_own_line(readme: str, name: str | None) -> None:
    assert bundle.mcp_name(readme) == name


def test_what_is_listed_is_right_by_the_rules() -> None:
    assert bundle.problems(bundle.server_json(NAME)) == []


def changed(**values: Any) -> dict[str, Any]:
    return {**bundle.server_json(NAME), **values}


def packaged(**values: Any) -> dict[str, Any]:
    return changed(packages=[{**bundle.server_json(NAME)["packages"][0], **values}])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (changed(name="vault-palace"), "one slash"),
        (changed(name="io.github.a/b/c"), "one slash"),
        (changed(name="io_github/b"), "one slash"),
        (changed(name="i/" + "b" * 199), "200"),
        (changed(description="x" * 101), "longer than 100"),
        (changed(description=""), "missing: description"),
        (changed(title="x" * 101), "title"),
        (changed(version="latest"), "one exact version"),
        (changed(version="^0.1.0"), "one exact version"),
        (changed(version="0.1"), "one exact version"),
        (changed(versoin="0.1.0"), "unknown: versoin"),
        (packaged(version="0.0.1"), "not the server's"),
        (packaged(transport={"type": "pipe"}), "transport"),
        (packaged(identifier=""), "missing: identifier"),
        (packaged(registry_type="pypi"), "unknown: registry_type"),
        (packaged(packageArguments=[{"type": "positional"}]), "without value"),
        (packaged(packageArguments=[{"type": "named"}]), "without name"),
        (packaged(packageArguments=[{"type": "odd"}]), "no known type"),
        (packaged(environmentVariables=[{"description": "x"}]), "variable: without name"),
    ],
)
def test_what_the_registry_would_refuse_is_seen(document: dict[str, Any], said: str) -> None:
    assert any(said in one for one in bundle.problems(document))


def test_the_manifest_names_the_tools_that_the_server_has() -> None:
    named = [tool["name"] for tool in bundle.manifest()["tools"]]

    assert named == [tool.name for tool in TOOLS]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bundle.stage(tmp_path_factory.mktemp("out") / "bundle")


def test_the_bundle_holds_all_that_its_build_asks_for(staged: Path) -> None:
    template = [path.relative_to(ROOT) for path in (ROOT / "vault_template").rglob("*") if path.is_file()]
    package = [path.relative_to(ROOT) for path in (ROOT / "vault_palace").rglob("*.py")]

    missing = [path for path in (*template, *package) if not (staged / path).is_file()]

    assert missing == []
    assert (staged / bundle.manifest()["server"]["entry_point"]).is_file()
    assert list(staged.rglob("*.pyc")) == []


def start(folder: Path, vault: Path, home: Path) -> dict[str, Any]:
    """Start the server of the unpacked bundle by its manifest, with this Python in the place of uv's."""
    config = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["server"]["mcp_config"]
    assert config["command"] == "uv"
    assert config["args"][:4] == ["run", "--directory", "${__dirname}", "vault-palace"]
    chosen = {
        name: value.replace("${user_config.vault}", str(vault)) for name, value in config["env"].items()
    }
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "vault_palace", *config["args"][4:]],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(folder), **chosen},
        cwd=folder,
    )

    async def session() -> dict[str, Any]:
        with anyio.fail_after(120):
            async with Client(stdio_client(server)) as client:
                answer = await client.call_tool("healthcheck", {})
        return dict(answer.structured_content or {})

    return anyio.run(session)


def test_the_server_of_the_bundle_starts(staged: Path, vault: Path, tmp_path: Path) -> None:
    health = start(staged, vault, tmp_path)

    assert (health["status"], health["version"], health["vault"]) == ("ok", __version__, str(vault))


@pytest.mark.skipif(
    not MCPB.is_dir(), reason=f"{bundle.MCPB} is not in .tools (python -m scripts.peers brings it)"
)
def test_the_packed_bundle_is_valid_and_starts_where_it_is_unpacked(
    staged: Path, vault: Path, tmp_path: Path
) -> None:
    packed, unpacked = tmp_path / "vault-palace.mcpb", tmp_path / "un packed"

    valid = bundle.pack(staged, packed, peers.TOOLS)
    with zipfile.ZipFile(packed) as file:
        file.extractall(unpacked)

    assert valid is True
    assert files_of(unpacked) == files_of(staged)
    assert start(unpacked, vault, tmp_path)["status"] == "ok"


@pytest.mark.skipif(
    not MCPB.is_dir(), reason=f"{bundle.MCPB} is not in .tools (python -m scripts.peers brings it)"
)
def test_a_manifest_that_is_wrong_is_refused(
    staged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({**bundle.manifest(), "server": {"type": "uv"}}))

    assert bundle.pack(tmp_path, tmp_path / "x.mcpb", peers.TOOLS) is False
    assert "entry_point" in capsys.readouterr().out


def test_without_the_packer_the_rest_is_built_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["bundle", str(out), "--namespace", "io.github.someone", "--tools", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)

    status = bundle.main()

    assert status == 0
    assert "neither checked nor packed" in capsys.readouterr().out
    assert json.loads((out / "server.json").read_text(encoding="utf-8"))["name"] == NAME
    assert json.loads((out / "bundle" / "manifest.json").read_text(encoding="utf-8")) == bundle.manifest()


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
