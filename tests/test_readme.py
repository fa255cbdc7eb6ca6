"""The commands of README run as they stand there, in a copy, in one shell, with a home of their own.

A fenced `sh` block with `<!-- run -->` above it is run. The environment that `scripts/palace` would make
is stood in for by the one that runs the tests, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vault_palace.core import errors
from vault_palace.core.model import PROPERTIES
from vault_palace.surfaces.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUN = re.compile(r"^<!-- run -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "tests")

pytestmark = pytest.mark.skipif(os.name == "nt", reason="README's commands are for a POSIX shell")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout whose environment is the one that runs this test."""
    copy = tmp_path / "vault-palace"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    commands = copy / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name, words in (("python", ""), ("vault-palace", "-m vault_palace ")):
        command = commands / name
        command.write_text(
            f'#!/bin/sh\nPYTHONPATH="{copy}" exec "{sys.executable}" {words}"$@"\n', encoding="utf-8"
        )
        command.chmod(0o755)
    settings = (copy / "pyproject.toml").read_text(encoding="utf-8")
    sums = subprocess.run(["cksum"], input=settings, capture_output=True, encoding="utf-8", check=True)
    (copy / ".venv" / "vault-palace.stamp").write_text(f"dev {sums.stdout}", encoding="utf-8")
    return copy


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-eu"],
        input=script,
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def test_the_commands_of_the_readme_run(checkout: Path) -> None:
    script = "\n".join(RUN.findall(README))

    ended = shell(script, checkout)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Valley weather" in ended.stdout
    vault = Path(os.environ["HOME"]) / "VaultPalace"
    text = (vault / "02_Sediment" / "Valley weather.md").read_text(encoding="utf-8")
    assert "Written on the phone." in text  # resolved
    assert "It smells of the sea." not in text  # undone
    assert [path.name for path in (vault / "02_Sediment").glob("Valley weather*")] == ["Valley weather.md"]
    assert not list(vault.rglob("Stray thought.md"))  # forgotten
    assert "![[PALACE_MAP.svg]]" in (vault / "PALACE_MAP.md").read_text(encoding="utf-8")  # kept


def test_setting_up_again_plays_no_second_session_and_changes_no_note(checkout: Path) -> None:
    first = shell("./scripts/palace ~/VaultPalace", checkout)
    vault = Path(os.environ["HOME"]) / "VaultPalace"
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}

    second = shell("./scripts/palace ~/VaultPalace", checkout)

    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "> write_memory(" in first.stdout
    assert "> write_memory(" not in second.stdout
    assert '"mcpServers"' in second.stdout
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before


def test_the_first_session_shows_a_reason_for_what_would_move(checkout: Path) -> None:
    ended = shell('./scripts/palace "My Vault (2) & [äöü] #1 %20"', checkout)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "would go to sediment: 01_Shallow/Apollo uses event sourcing.md: " in ended.stdout
    assert str(checkout / "My Vault (2) & [äöü] #1 %20") in ended.stdout


@pytest.fixture
def bare(checkout: Path) -> Path:
    """A folder of the few commands that a machine without Python has; the environment is not made yet."""
    (checkout / ".venv" / "vault-palace.stamp").unlink()
    tools = checkout / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "cksum", "id", "rm", "apt-get"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/true")
    return tools


@pytest.mark.parametrize("command", ["./scripts/palace vault", "./scripts/test"])
def test_a_machine_without_python_is_told_the_one_command_that_brings_it(
    command: str, checkout: Path, bare: Path
) -> None:
    ended = shell(f'PATH="{bare}" {command}', checkout)

    assert ended.returncode == 3
    assert "apt-get install -y python3 python3-venv\n" in ended.stderr


@pytest.mark.parametrize(
    ("lacks", "packages"),
    [("version_info", "python3.11 python3.11-venv"), ("ensurepip", "python3-venv")],
)
def test_a_machine_whose_python_lacks_something_is_told_what_brings_it(
    lacks: str, packages: str, checkout: Path, bare: Path
) -> None:
    python = bare / "python3"
    python.write_text(f'#!/bin/sh\ncase "$2" in *{lacks}*) exit 1 ;; esac\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)

    ended = shell(f'PATH="{bare}" ./scripts/test', checkout)

    assert ended.returncode == 3
    assert f"apt-get install -y {packages}\n" in ended.stderr


def _first_cells(heading: str) -> set[str]:
    """The words in code marks of the first cells of the tables under a heading."""
    part = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| ")]
    return {word.split()[0] for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_every_property_has_its_row() -> None:
    named = _first_cells("What a note holds")

    assert named == {kind.name for kind in PROPERTIES}


def test_every_command_has_its_row() -> None:
    named = _first_cells("The command line")

    assert named == {
        one.name or one.callback.__name__ for one in app.registered_commands if one.callback is not None
    }


def test_every_command_is_shown_at_work() -> None:
    lines = "\n".join(RUN.findall(README)).splitlines()
    shown = {line.split()[1] for line in lines if line.startswith("vault-palace ")}

    # `scripts/palace`, which stands there as well, runs these two.
    assert shown | {"init", "serve"} == _first_cells("The command line")


def test_every_picture_is_there_and_says_what_it_shows() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", README)

    assert pictures
    for words, place in pictures:
        assert len(words) > 20
        assert (ROOT / place).read_bytes().startswith(b"\x89PNG")


def test_every_tool_has_its_row() -> None:
    from vault_palace.surfaces.mcp.texts import TOOLS

    named = _first_cells("For agents")

    assert named == {tool.name for tool in TOOLS}


def test_every_exit_status_is_documented() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]

    for kind in kinds:
        if issubclass(kind, errors.VaultError) and kind.exit_status > 2:
            assert f"`{kind.code}` {kind.exit_status}" in README


@pytest.fixture
def strata(vault: Path) -> Path:
    """A note in each layer, one with text for a density, one whose body claims a density."""
    notes = {
        "01_Shallow/Rated.md": "---\ndensity: 0.6\nstreak: 1\n---\nfirst\n",
        "01_Shallow/Claims.md": "---\ndensity: 0.2\n---\ndensity:: 1\n",
        "02_Sediment/Text.md": '---\ndensity: "high"\n---\nsecond\n',
        "03_Bedrock/room/Rock.md": "---\ndensity: 0.95\nstreak: 7\n---\nthird\n",
        "_Archive/01_Shallow/Gone.md": "---\ndensity: 0.9\n---\nfourth\n",
    }
    for path, text in notes.items():
        place = vault / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")
    return vault


def test_the_dataview_block_shows_the_strongest_memories(strata: Path) -> None:
    from tests.queries import queries, table

    (query,) = queries(ROOT / "README.md")

    _, rows = table(strata, query)

    assert rows == [("03_Bedrock/room/Rock.md", 0.95, 7), ("01_Shallow/Rated.md", 0.6, 1)]


def test_the_base_shows_every_memory(strata: Path) -> None:
    from tests.queries import base

    (text,) = re.findall(r"^```yaml\n(filters:.*?)^```$", README, re.MULTILINE | re.DOTALL)
    (strata / "Mine.base").write_text(text, encoding="utf-8")

    _, rows = base(strata, "Mine.base", "By layer", "2026-11-30T12:00:00")

    assert [row[0] for row in rows] == [
        "01_Shallow/Claims.md",
        "01_Shallow/Rated.md",
        "02_Sediment/Text.md",
        "03_Bedrock/room/Rock.md",
    ]
