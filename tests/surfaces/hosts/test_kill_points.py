"""Stopped at any call, `connect` leaves a person's file as it was or as it shall be, never a piece of it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.storage.killpoints import Stop, every_failure_point, every_kill_point
from tests.surfaces.hosts.machines import done, linux

OLD = '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n'


def prepare(root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    file = Path(linux(root).home) / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(OLD)


def connected(root: Path) -> None:
    done(linux(root), "cursor")


def whole(root: Path, stop: Stop | None) -> None:
    folder = root / "home" / ".cursor"
    text = (folder / "mcp.json").read_text(encoding="utf-8")
    assert text == OLD or sorted(json.loads(text)["mcpServers"]) == ["a", "vault-palace"], stop
    assert stop is not None or text != OLD
    for backup in folder.glob("*.bak"):
        assert backup.read_text(encoding="utf-8") == OLD


def test_killed_anywhere_the_file_is_whole(memory_path: Path) -> None:
    every_kill_point(memory_path, prepare, connected, whole)


def test_failing_anywhere_the_file_is_whole_and_nothing_is_left_beside_it(memory_path: Path) -> None:
    def clean(root: Path, stop: Stop | None) -> None:
        whole(root, stop)
        assert [path.name for path in (root / "home" / ".cursor").glob("*.tmp")] == [], stop

    every_failure_point(memory_path, prepare, connected, clean)
