"""What a process is started with: the vault, the places for derived data, the limits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vault_palace.core.errors import InvalidArguments
from vault_palace.surfaces import config
from vault_palace.surfaces.config import read_settings


def test_the_vault_given_wins_over_the_environment(tmp_path: Path) -> None:
    environ = {"VAULT_PALACE_VAULT": str(tmp_path / "other")}

    settings = read_settings(tmp_path / "mine", surface="cli", environ=environ)

    assert settings.root == tmp_path / "mine"


def test_the_environment_names_the_vault_when_none_is_given(tmp_path: Path) -> None:
    settings = read_settings(None, surface="cli", environ={"VAULT_PALACE_VAULT": f"{tmp_path}/vault/"})

    assert settings.root == tmp_path / "vault"


@pytest.mark.parametrize(
    ("given", "environ"),
    [(None, {}), ("", {}), ("  ", {"VAULT_PALACE_VAULT": "/vault"}), (None, {"VAULT_PALACE_VAULT": " "})],
)
def test_no_vault_is_refused_and_never_the_current_folder(
    given: str | None, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, vault: Path
) -> None:
    monkeypatch.chdir(vault)

    with pytest.raises(InvalidArguments, match="--vault"):
        read_settings(given, surface="cli", environ=environ)


def test_sediment_palaces_project_root_is_told_of_and_not_used() -> None:
    with pytest.raises(InvalidArguments) as caught:
        read_settings(None, surface="cli", environ={"SEDIMENT_PROJECT_ROOT": "/work"})

    assert str(Path("/work/memory")) in str(caught.value)


def test_a_relative_vault_is_made_absolute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    settings = read_settings("a/../b", surface="cli", environ={})
    monkeypatch.chdir(tmp_path.parent)

    assert settings.root == tmp_path / "b"


def test_the_home_sign_is_the_persons_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))

    assert read_settings("~/vault", surface="cli", environ={}).root == tmp_path / "vault"


@pytest.mark.parametrize("vault", ["a\0b", "~nobody-of-that-name/vault"])
def test_a_path_that_is_none_is_refused(vault: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read_settings(vault, surface="cli", environ={})

    assert caught.value.facts["argument"] == "vault"


def test_derived_data_lies_in_the_users_own_folders_and_outside_the_vault(vault: Path) -> None:
    settings = read_settings(vault, surface="cli")

    for folder in (settings.cache_dir, settings.state_dir):
        assert folder.is_absolute()
        assert "vault-palace" in folder.parts
        assert not folder.is_relative_to(vault)
        assert not folder.exists()  # reading the settings makes nothing


def test_derived_data_can_be_put_elsewhere(tmp_path: Path) -> None:
    environ = {
        "VAULT_PALACE_VAULT": "/vault",
        "VAULT_PALACE_CACHE_DIR": str(tmp_path / "c"),
        "VAULT_PALACE_STATE_DIR": str(tmp_path / "s"),
    }

    settings = read_settings(None, surface="mcp", environ=environ)

    assert (settings.cache_dir, settings.state_dir) == (tmp_path / "c", tmp_path / "s")


@pytest.mark.parametrize("variable", ["VAULT_PALACE_CACHE_DIR", "VAULT_PALACE_STATE_DIR"])
def test_a_relative_folder_for_derived_data_is_refused(variable: str) -> None:
    with pytest.raises(InvalidArguments, match=variable):
        read_settings("/vault", surface="mcp", environ={variable: "cache"})


def test_sediment_palaces_limits_are_kept() -> None:
    environ = {
        "SEDIMENT_BUDGET_WRITE_CONTENT": "1000",
        "SEDIMENT_BUDGET_READ_QUERY": "300",
        "SEDIMENT_BUDGET_SEARCH_QUERY": "200",
        "SEDIMENT_BUDGET_PURGE_REASON": "",
    }

    limits = read_settings("/vault", surface="mcp", environ=environ).for_palace().limits

    assert (limits.content, limits.query, limits.room, limits.reason) == (1000, 200, 1024, 1024)


@pytest.mark.parametrize("value", ["many", "0", "-1", "1.5", "1e3", "٣", "9" * 20])
def test_a_limit_that_is_no_number_is_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidArguments, match="SEDIMENT_BUDGET_SEARCH_ROOM"):
        read_settings("/vault", surface="mcp", environ={"SEDIMENT_BUDGET_SEARCH_ROOM": value})


@pytest.mark.parametrize(
    ("given", "variable", "tools"),
    [
        (None, "", None),
        (None, "read_map,wake_up", ("wake_up", "read_map")),
        ("search_room", "read_map", ("search_room",)),
    ],
)
def test_the_tools_of_a_server_are_those_given_or_those_of_the_environment(
    given: str | None, variable: str, tools: tuple[str, ...] | None
) -> None:
    settings = read_settings("/vault", surface="mcp", environ={"VAULT_PALACE_TOOLS": variable}, tools=given)

    assert settings.tools == tools


@pytest.mark.parametrize("given", ["", "core,remember"])
def test_a_tool_that_is_not_there_is_refused_before_a_server_starts(given: str) -> None:
    with pytest.raises(InvalidArguments, match="tool"):
        read_settings("/vault", surface="mcp", environ={}, tools=given)


def test_each_process_has_a_session_of_its_own() -> None:
    names = {read_settings("/vault", surface="mcp", environ={}).session for _ in range(20)}

    assert len(names) == 20
    assert all(name.startswith("mcp-") for name in names)


def test_the_settings_of_the_palace_are_the_same(vault: Path) -> None:
    settings = read_settings(vault, surface="cli", read_only=True)

    palace = settings.for_palace()

    assert (palace.cache_dir, palace.state_dir) == (settings.cache_dir, settings.state_dir)
    assert (palace.session, palace.read_only) == (settings.session, True)
    assert palace.clock().tzinfo is not None


SHOW = """\
import sys
from vault_palace.surfaces.config import run_in_utf8
run_in_utf8()
print(sys.getfilesystemencoding(), *sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file names on Windows are no bytes")
def test_a_process_with_another_encoding_starts_again_in_utf_8_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(SHOW)
    environ = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    environ["PYTHONPATH"] = str(Path(config.__file__).parents[2])

    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), "a b", "--c"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.strip() == "utf-8 a b --c"


def test_a_process_in_utf_8_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("started again"))

    config.run_in_utf8()


@pytest.mark.parametrize(
    ("text", "how"),
    [("", "auto"), (" ", "auto"), ("auto", "auto"), ("EVENTS", "events"), ("poll", "poll"), (" off ", "off")],
)
def test_the_environment_says_how_to_learn_of_changes(tmp_path: Path, text: str, how: str) -> None:
    settings = config.read_settings(tmp_path, surface="mcp", environ={config.WATCH: text})

    assert settings.watch == how


def test_an_unknown_way_to_learn_of_changes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArguments, match="auto, events, poll, off"):
        config.read_settings(tmp_path, surface="mcp", environ={config.WATCH: "polling"})
