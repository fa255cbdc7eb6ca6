"""A file as a person of each host has it, and the same file after `connect`: looked at by people."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.surfaces.hosts.machines import done, linux
from vault_palace.surfaces.hosts import jsonc
from vault_palace.surfaces.hosts.catalogue import HOSTS
from vault_palace.surfaces.hosts.connect import choose

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.name for path in GOLDEN.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_the_file_of_each_host_grows_by_the_entry_alone(case: str, tmp_path: Path) -> None:
    before = next((GOLDEN / case).glob("before.*"))
    after = before.with_stem("after")
    host = HOSTS[case.removesuffix("-2")]
    machine = linux(tmp_path)
    file = Path(choose(host.places["user"], machine)).with_suffix(before.suffix)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before.read_bytes())

    done(machine, host.name)

    assert file.read_bytes() == after.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_what_came_goes_again(case: str, tmp_path: Path) -> None:
    before = next((GOLDEN / case).glob("before.*"))
    host = HOSTS[case.removesuffix("-2")]
    machine = linux(tmp_path)
    file = Path(choose(host.places["user"], machine)).with_suffix(before.suffix)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before.read_bytes())
    done(machine, host.name)

    done(machine, host.name, vault=None, remove=True)

    left = file.read_bytes()
    if case == "gemini":  # its file had no object for servers, and keeps the empty one
        assert json.loads(left) == {**json.loads(before.read_bytes()), "mcpServers": {}}
    else:
        assert left.rstrip() == before.read_bytes().rstrip()


@pytest.mark.parametrize("case", CASES)
def test_a_golden_file_is_what_its_host_can_read(case: str) -> None:
    for path in (GOLDEN / case).iterdir():
        text = path.read_text(encoding="utf-8-sig")

        values = tomllib.loads(text) if path.suffix == ".toml" else jsonc.read(text).root

        assert values
