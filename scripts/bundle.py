"""Builds what others list and install the server by: an MCPB bundle for hosts, a registry's `server.json`.

    python -m scripts.bundle OUT [--namespace io.github.OWNER] [--tools FOLDER]

OUT gets `server.json`, the folder `bundle/` and, where npm's mcpb is in FOLDER (`.tools` by default, brought
by `python -m scripts.peers`), the checked and packed `vault-palace-VERSION.mcpb`. Everything is made from
pyproject.toml, the package and the table of tools, so that no number stands in two places. Nothing is
published.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts import peers
from vault_palace import __version__
from vault_palace.surfaces.mcp.texts import TOOLS

ROOT = Path(__file__).resolve().parent.parent
NAME = "vault-palace"
MCPB = "@anthropic-ai/mcpb"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SHORT = "Memory for AI agents as a folder of Markdown in layers that age; an Obsidian vault"  # at most 100
LONG = (
    "The vault is a folder of plain Markdown notes that you read and edit in Obsidian. Lay one out first "
    "with `uvx vault-palace init FOLDER`, then choose that folder here. Nothing leaves this machine."
)
VAULT = "VAULT_PALACE_VAULT"
# What the bundle needs to be built and run where it is unpacked.
SHIPPED = ("vault_palace", "vault_template", "pyproject.toml", "README.md", "LICENSE")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc")
_MARK = re.compile(r"^<!-- mcp-name: (\S+) -->$", re.MULTILINE)


def main() -> int:
    """Build all into the folder given; 0 when it is right, 1 when something is not, and that is said."""
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("out", type=Path, help="the folder for what is built; made if it is not there")
    words.add_argument("--namespace", help="who publishes, such as io.github.OWNER; else README's mcp-name")
    words.add_argument("--tools", type=Path, default=peers.TOOLS, help="where npm's packages are")
    given = words.parse_args()
    name = f"{given.namespace}/{NAME}" if given.namespace else mcp_name()
    if name is None:
        print("README has no line `<!-- mcp-name: NAMESPACE/vault-palace -->`, and no --namespace was given.")
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    listing = server_json(name)
    wrong = problems(listing)
    for said in wrong:
        print(f"server.json: {said}")
    (given.out / "server.json").write_text(_json(listing), encoding="utf-8")
    folder = stage(given.out / "bundle")
    packed = pack(folder, given.out / f"{NAME}-{__version__}.mcpb", given.tools)
    if packed is None:
        print(f"{MCPB} is not in {given.tools}: {folder} is neither checked nor packed.")
        print("This brings it: python -m scripts.peers")
    return 1 if wrong or packed is False else 0


def project() -> Mapping[str, Any]:
    """The table `project` of pyproject.toml."""
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


def mcp_name(readme: str | None = None) -> str | None:
    """The name in the registry, as README says it: the package index shows README, which proves the owner."""
    text = (ROOT / "README.md").read_text(encoding="utf-8") if readme is None else readme
    found = _MARK.findall(text)
    return found[0] if len(found) == 1 else None


# -- the bundle ---------------------------------------------------------------------------------------------


def manifest() -> dict[str, Any]:
    """What a desktop host reads of the bundle: how the server is started, and what it asks the person for."""
    about = project()
    return {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": "Vault Palace",
        "version": about["version"],
        "description": about["description"],
        "long_description": LONG,
        "author": {"name": "The Vault Palace authors"},
        "license": about["license"],
        "keywords": about["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "vault_palace/surfaces/mcp/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", NAME, "serve"],
                "env": {VAULT: "${user_config.vault}"},
            },
        },
        "user_config": {
            "vault": {
                "type": "directory",
                "title": "Vault",
                "description": "The folder that vault-palace init laid out.",
                "required": True,
            }
        },
        "tools": [{"name": tool.name, "description": tool.about} for tool in TOOLS],
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": about["requires-python"]},
        },
    }


def stage(folder: Path) -> Path:
    """Make *folder* anew with the manifest and all that it starts."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name in SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copyfile(source, folder / name)
    (folder / "manifest.json").write_text(_json(manifest()), encoding="utf-8")
    return folder


def pack(folder: Path, out: Path, tools: Path) -> bool | None:
    """Check the manifest and pack the bundle by npm's mcpb; None where that is not."""
    program = tools / "node_modules" / MCPB / "dist" / "cli" / "cli.js"
    node = shutil.which("node")
    if node is None or not program.is_file():
        return None
    for words in (["validate", str(folder / "manifest.json")], ["pack", str(folder), str(out)]):
        ended = subprocess.run(
            [node, str(program), *words], capture_output=True, encoding="utf-8", check=False, cwd=out.parent
        )
        if ended.returncode:
            print(ended.stdout + ended.stderr)
            return False
    return True


# -- the registry -------------------------------------------------------------------------------------------


def server_json(name: str) -> dict[str, Any]:
    """What the registry lists: where the package is, and how it is started."""
    version = project()["version"]
    return {
        "$schema": SCHEMA,
        "name": name,
        "title": "Vault Palace",
        "description": SHORT,
        "version": version,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": NAME,
                "version": version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "serve"}],
                "environmentVariables": [
                    {
                        "name": VAULT,
                        "description": "The folder that vault-palace init laid out, as an absolute path",
                        "format": "filepath",
                        "isRequired": True,
                    }
                ],
            }
        ],
    }


_SERVER_NAME = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+")
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+(?:[-+.]?[0-9A-Za-z][0-9A-Za-z.+-]*)?")
_KEYS = {"$schema", "name", "title", "description", "version", "packages", "repository", "websiteUrl"}
_PACKAGE_KEYS = {
    "registryType",
    "registryBaseUrl",
    "identifier",
    "version",
    "runtimeHint",
    "transport",
    "packageArguments",
    "runtimeArguments",
    "environmentVariables",
}


def problems(document: Mapping[str, Any]) -> list[str]:
    """What the registry would refuse of a `server.json`, by our reading of its rules for such a package."""
    found = [f"unknown: {key}" for key in document.keys() - _KEYS]
    found += [f"missing: {key}" for key in ("name", "description", "version") if not document.get(key)]
    name, version = str(document.get("name", "")), str(document.get("version", ""))
    if not (3 <= len(name) <= 200 and _SERVER_NAME.fullmatch(name)):
        found.append(f"name: {name!r} is not NAMESPACE/NAME with one slash, of 3 to 200 characters")
    if len(str(document.get("description", ""))) > 100:
        found.append("description: longer than 100 characters")
    if len(str(document.get("title", ""))) > 100:
        found.append("title: longer than 100 characters")
    if not _VERSION.fullmatch(version):
        found.append(f"version: {version!r} is not one exact version")
    for package in document.get("packages", []):
        found += [f"package: {said}" for said in _package_problems(package, version)]
    return found


def _package_problems(package: Mapping[str, Any], version: str) -> list[str]:
    found = [f"unknown: {key}" for key in package.keys() - _PACKAGE_KEYS]
    found += [
        f"missing: {key}" for key in ("registryType", "identifier", "transport") if not package.get(key)
    ]
    if package.get("version") != version:
        found.append("version: not the server's")
    if package.get("transport", {}).get("type") not in {"stdio", "streamable-http", "sse"}:
        found.append("transport: of no known type")
    for argument in package.get("packageArguments", []):
        if argument.get("type") == "positional" and not {"value", "valueHint"} & argument.keys():
            found.append("argument: without value or valueHint")
        if argument.get("type") == "named" and not argument.get("name"):
            found.append("argument: without name")
        if argument.get("type") not in {"positional", "named"}:
            found.append("argument: of no known type")
    found += [
        "variable: without name" for one in package.get("environmentVariables", []) if not one.get("name")
    ]
    return found


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
