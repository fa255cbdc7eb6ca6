"""Laying the vault out: what is created, what stays, what gains something, and where it is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from vault_palace.core import frontmatter
from vault_palace.core.errors import InvalidArguments, NotFound, PathViolation
from vault_palace.services.answers import InitAnswer
from vault_palace.services.init import init, template_root
from vault_palace.storage import files

TEMPLATE = template_root()
ZONE = "Europe/Berlin"
SHIPPED = sum(path.is_file() for path in TEMPLATE.rglob("*"))


def lay_out(root: Path, *, zone_name: str = ZONE, dry_run: bool = False) -> InitAnswer:
    return init(root, template=TEMPLATE, zone_name=zone_name, dry_run=dry_run)


def done(answer: InitAnswer) -> dict[str, str]:
    return {entry["path"]: entry["done"] for entry in answer["files"]}


def detail(answer: InitAnswer, path: str) -> str:
    return next(entry["detail"] for entry in answer["files"] if entry["path"] == path)


def snapshot(root: Path) -> dict[str, bytes | None]:
    """Every file and folder below *root*, dot-folders too."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def write(root: Path, path: str, text: str) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode("utf-8"))
    return target


def read_json(root: Path, path: str) -> dict[str, object]:
    document = json.loads((root / path).read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


# -- an empty folder ----------------------------------------------------------------------------------------


def test_an_empty_folder_gets_every_file_of_the_template(tmp_path: Path) -> None:
    shipped = {path.relative_to(TEMPLATE).as_posix() for path in TEMPLATE.rglob("*") if path.is_file()}

    answer = lay_out(tmp_path / "new" / "vault")

    laid = {path for path, data in snapshot(tmp_path / "new" / "vault").items() if data is not None}
    assert (laid, set(done(answer))) == (shipped, shipped)


def test_all_is_created_where_nothing_was(tmp_path: Path) -> None:
    answer = lay_out(tmp_path / "vault")

    assert set(done(answer).values()) == {"created"}


def test_files_but_the_policy_are_the_templates_bytes(tmp_path: Path) -> None:
    lay_out(tmp_path / "vault")

    differing = [
        path
        for path, data in snapshot(tmp_path / "vault").items()
        if data is not None and data != (TEMPLATE / path).read_bytes()
    ]
    assert differing == ["_System/Policy.md"]


def test_the_policy_names_the_zone(tmp_path: Path) -> None:
    lay_out(tmp_path / "vault", zone_name="Asia/Tokyo")

    policy = frontmatter.read((tmp_path / "vault/_System/Policy.md").read_text(encoding="utf-8"))
    assert policy.values["timezone"] == "Asia/Tokyo"


def test_a_second_run_keeps_everything(tmp_path: Path) -> None:
    lay_out(tmp_path / "vault")
    before = snapshot(tmp_path / "vault")

    answer = lay_out(tmp_path / "vault", zone_name="Asia/Tokyo")

    assert set(done(answer).values()) == {"kept"}
    assert snapshot(tmp_path / "vault") == before


def test_a_second_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path / "vault")
    monkeypatch.setattr(files, "stage", lambda *_, **__: pytest.fail("a file was written"))

    answer = lay_out(tmp_path / "vault")

    assert answer["files"]


def test_a_dry_run_says_the_same_and_leaves_no_trace(tmp_path: Path) -> None:
    planned = lay_out(tmp_path / "vault", dry_run=True)

    assert not (tmp_path / "vault").exists()
    assert planned["files"] == lay_out(tmp_path / "vault")["files"]


def test_the_answer_names_the_zone_that_counts(tmp_path: Path) -> None:
    first = lay_out(tmp_path / "vault", zone_name="Asia/Tokyo")

    second = lay_out(tmp_path / "vault", zone_name="Europe/Oslo")

    assert (first["timezone"], second["timezone"]) == ("Asia/Tokyo", "Asia/Tokyo")


def test_a_restart_of_obsidian_is_asked_for_only_when_its_settings_change(tmp_path: Path) -> None:
    write(tmp_path / "vault", ".obsidian/app.json", "{}")

    first, second = lay_out(tmp_path / "vault"), lay_out(tmp_path / "vault")

    assert (len(first["notes"]), second["notes"]) == (1, [])


@pytest.mark.parametrize("name", ["My Vault (2) & [äöü] #1 %20", "日本 語"])
def test_mc_13_unusual_signs_in_the_path_are_fine(tmp_path: Path, name: str) -> None:
    lay_out(tmp_path / name)

    assert (tmp_path / name / "_System/Policy.md").is_file()


@pytest.mark.parametrize("fails_at", range(1, SHIPPED + 1, 3))
def test_a_run_that_was_cut_short_is_taken_up_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    write(tmp_path / "vault", ".obsidian/appearance.json", "{}")
    calls = 0
    real = files.put

    def failing(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        nonlocal calls
        calls += 1
        if calls == fails_at:
            raise KeyboardInterrupt
        return real(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", failing)
    with pytest.raises(KeyboardInterrupt):
        lay_out(tmp_path / "vault")
    monkeypatch.setattr(files, "put", real)

    lay_out(tmp_path / "vault")

    write(tmp_path / "straight", ".obsidian/appearance.json", "{}")
    lay_out(tmp_path / "straight")
    assert snapshot(tmp_path / "vault") == snapshot(tmp_path / "straight")


# -- where something is -------------------------------------------------------------------------------------


def test_no_file_that_is_there_changes(tmp_path: Path) -> None:
    mine = {
        "PALACE_MAP.md": "# Mine\n",
        "_System/Policy.md": "---\nshallow_days: 3\n---\n",
        "_System/Dashboards/About to decay.md": "",
        ".obsidian/snippets/palace.css": "/* mine */",
        ".obsidian/plugins/dataview/data.json": '{"enableDataviewJs": true}',
        "01_Shallow/Note.md": "note\n",
        "Ideas/Other.md": "other\n",
    }
    for path, text in mine.items():
        write(tmp_path / "vault", path, text)

    answer = lay_out(tmp_path / "vault")

    kept = {path: (tmp_path / "vault" / path).read_text(encoding="utf-8") for path in mine}
    assert kept == mine
    assert {done(answer)[path] for path in mine if path in done(answer)} == {"kept"}


def test_a_layer_that_holds_notes_gets_no_file_of_ours(tmp_path: Path) -> None:
    write(tmp_path / "vault", "01_Shallow/ideas/Note.md", "note\n")

    answer = lay_out(tmp_path / "vault")

    assert sorted(os.listdir(tmp_path / "vault/01_Shallow")) == ["ideas"]
    assert done(answer)["01_Shallow/"] == "kept"


SETTINGS = {
    "app.json": (
        '{"vimMode": true, "newLinkFormat": "absolute", "userIgnoreFilters": ["Old/"]}',
        {
            "vimMode": True,
            "newLinkFormat": "absolute",
            "userIgnoreFilters": ["Old/", "_Archive/", "_System/"],
        },
    ),
    "core-plugins.json": ('{"graph": false}', {"graph": False, "bases": True}),
    "types.json": ('{"types": {"density": "text", "mood": "text"}}', {}),
    "appearance.json": (
        '{"theme": "moonstone", "enabledCssSnippets": ["mine"]}',
        {"theme": "moonstone", "enabledCssSnippets": ["mine", "palace"]},
    ),
    "templates.json": ('{"folder": "Mine"}', {"folder": "Mine", "timeFormat": "HH:mm:ss"}),
}


@pytest.mark.parametrize(("name", "before", "expected"), [(name, *row) for name, row in SETTINGS.items()])
def test_settings_gain_what_they_lack(
    tmp_path: Path, name: str, before: str, expected: dict[str, object]
) -> None:
    write(tmp_path / "vault", f".obsidian/{name}", before)

    answer = lay_out(tmp_path / "vault")

    after = read_json(tmp_path / "vault", f".obsidian/{name}")
    assert {key: after[key] for key in expected} == expected
    assert done(answer)[f".obsidian/{name}"] == "merged"


def test_the_persons_property_types_stay(tmp_path: Path) -> None:
    write(tmp_path / "vault", ".obsidian/types.json", '{"types": {"density": "text", "mood": "text"}}')

    answer = lay_out(tmp_path / "vault")

    types = read_json(tmp_path / "vault", ".obsidian/types.json")["types"]
    assert isinstance(types, dict)
    assert (types["density"], types["mood"], types["streak"]) == ("text", "text", "number")
    assert "yours stay: density" in detail(answer, ".obsidian/types.json")


@pytest.mark.parametrize(
    "key", ["newFileLocation", "newFileFolderPath", "attachmentFolderPath", "trashOption"]
)
@pytest.mark.parametrize("app", ["{}", None])
def test_where_a_persons_new_notes_go_is_not_changed_in_their_vault(
    tmp_path: Path, app: str | None, key: str
) -> None:
    write(tmp_path / "vault", ".obsidian/workspace.json", "{}")
    if app is not None:
        write(tmp_path / "vault", ".obsidian/app.json", app)

    lay_out(tmp_path / "vault")

    assert key not in read_json(tmp_path / "vault", ".obsidian/app.json")


def test_colour_groups_are_added_behind_the_persons(tmp_path: Path) -> None:
    mine = {"query": "path:01_Shallow", "color": {"a": 1, "rgb": 1}}
    write(tmp_path / "vault", ".obsidian/graph.json", json.dumps({"scale": 0.5, "colorGroups": [mine]}))

    lay_out(tmp_path / "vault")

    graph = read_json(tmp_path / "vault", ".obsidian/graph.json")
    groups = graph["colorGroups"]
    assert isinstance(groups, list)
    assert (groups[0], [group["query"] for group in groups].count("path:01_Shallow")) == (mine, 1)
    assert "search" not in graph


def test_a_bookmark_in_a_group_is_not_added_again(tmp_path: Path) -> None:
    group = {"type": "group", "items": [{"type": "file", "path": "PALACE_MAP.md"}]}
    write(tmp_path / "vault", ".obsidian/bookmarks.json", json.dumps({"items": [group]}))

    answer = lay_out(tmp_path / "vault")

    added = detail(answer, ".obsidian/bookmarks.json")
    assert ("PALACE_MAP.md" in added, "_System/Policy.md" in added) == (False, True)


def test_older_lists_of_core_plugins_gain_bases_alone(tmp_path: Path) -> None:
    target = write(tmp_path / "vault", ".obsidian/core-plugins.json", '["file-explorer"]')

    lay_out(tmp_path / "vault")

    assert json.loads(target.read_text(encoding="utf-8")) == ["file-explorer", "bases"]


@pytest.mark.parametrize(("installed", "after"), [(False, ["calendar", "dataview"]), (True, ["calendar"])])
def test_dataview_that_a_person_switched_off_stays_off(
    tmp_path: Path, installed: bool, after: list[str]
) -> None:
    target = write(tmp_path / "vault", ".obsidian/community-plugins.json", '["calendar"]')
    if installed:
        write(tmp_path / "vault", ".obsidian/plugins/dataview/manifest.json", "{}")

    lay_out(tmp_path / "vault")

    assert json.loads(target.read_text(encoding="utf-8")) == after


def test_the_snippet_that_a_person_switched_off_stays_off(tmp_path: Path) -> None:
    lay_out(tmp_path / "vault")
    target = write(tmp_path / "vault", ".obsidian/appearance.json", '{"enabledCssSnippets": []}')

    lay_out(tmp_path / "vault")

    assert target.read_text(encoding="utf-8") == '{"enabledCssSnippets": []}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"types": []}',
        "[]",
        '{"a": 1, "a": 2}',
        '{"types": {}, "x": NaN}',
        '{"types": {}, "x": 1e999}',
        "[" * 5000,
    ],
)
def test_settings_that_are_not_plain_json_are_left_alone(tmp_path: Path, text: str) -> None:
    target = write(tmp_path / "vault", ".obsidian/types.json", text)

    answer = lay_out(tmp_path / "vault")

    assert target.read_text(encoding="utf-8") == text
    assert done(answer)[".obsidian/types.json"] == "skipped"


def test_settings_that_are_not_utf_8_are_left_alone(tmp_path: Path) -> None:
    target = write(tmp_path / "vault", ".obsidian/app.json", "{}")
    target.write_bytes(b'{"a": "\xe8"}')

    answer = lay_out(tmp_path / "vault")

    assert target.read_bytes() == b'{"a": "\xe8"}'
    assert done(answer)[".obsidian/app.json"] == "skipped"


@pytest.mark.parametrize(
    ("before", "start", "end"),
    [
        ('{\n\t"types": {}\n}', '{\n\t"types": {\n\t\t"id"', "\n}"),
        ('{\n    "types": {}\n}\n', '{\n    "types": {\n        "id"', "\n}\n"),
        ('\ufeff{\r\n  "types": {}\r\n}\r\n', '\ufeff{\r\n  "types": {\r\n    "id"', "\r\n}\r\n"),
    ],
)
def test_settings_keep_their_style(tmp_path: Path, before: str, start: str, end: str) -> None:
    target = write(tmp_path / "vault", ".obsidian/types.json", before)

    lay_out(tmp_path / "vault")

    after = target.read_bytes().decode("utf-8")
    assert (after[: len(start)], after[-len(end) :]) == (start, end)


def test_a_vault_that_was_there_is_settled_after_one_run(tmp_path: Path) -> None:
    for name, (before, _) in SETTINGS.items():
        write(tmp_path / "vault", f".obsidian/{name}", before)
    lay_out(tmp_path / "vault")
    before_second = snapshot(tmp_path / "vault")

    answer = lay_out(tmp_path / "vault")

    assert set(done(answer).values()) == {"kept"}
    assert snapshot(tmp_path / "vault") == before_second


def test_a_file_that_appears_during_the_run_is_the_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.put

    def racing(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        if target.name == "PALACE_MAP.md":
            target.write_text("mine", encoding="utf-8")
        return real(staged, target, expect=expect)

    monkeypatch.setattr(files, "put", racing)

    answer = lay_out(tmp_path / "vault")

    assert (tmp_path / "vault/PALACE_MAP.md").read_text(encoding="utf-8") == "mine"
    assert done(answer)["PALACE_MAP.md"] == "kept"


# -- a Sediment Palace folder -------------------------------------------------------------------------------


@pytest.fixture
def sediment(tmp_path: Path) -> Path:
    root = tmp_path / "memory"
    write(root, "01_Shallow/alpha.md", "---\ncreated: '2026-01-01T10:00:00'\n---\nbody\n")
    write(root, "PALACE_MAP.md", "# PALACE MAP\n")
    write(root, "_System/journal.log", "")
    write(
        root,
        "_System/policy.yaml",
        "destructive_require_confirm: false\nlimits:\n  max_search_matches: 50\n  max_metabolize_scan: 5000\n"
        "rate_limit:\n  window_seconds: 30\n  max_destructive_ops: 7\n",
    )
    return root


def test_a_sediment_palace_folder_keeps_every_byte(sediment: Path) -> None:
    before = snapshot(sediment)

    lay_out(sediment)

    after = snapshot(sediment)
    assert {path: after[path] for path in before} == before


def test_a_sediment_palace_folders_limits_are_carried_over(sediment: Path) -> None:
    answer = lay_out(sediment)

    policy = frontmatter.read((sediment / "_System/Policy.md").read_text(encoding="utf-8")).values
    assert (policy["destructive_require_confirm"], policy["max_destructive_per_minute"]) == (False, 14)
    assert "max_destructive_per_minute 14" in detail(answer, "_System/Policy.md")
    assert any("no longer counts" in note for note in answer["notes"])


def test_a_policy_yaml_that_does_not_parse_is_said(sediment: Path) -> None:
    write(sediment, "_System/policy.yaml", "limits: [\n")

    answer = lay_out(sediment)

    assert any("policy.yaml" in note and "counts" not in note for note in answer["notes"])


# -- refusals -----------------------------------------------------------------------------------------------


def test_fs_18_a_home_is_refused() -> None:
    home = Path(os.environ["HOME"])

    with pytest.raises(PathViolation):
        lay_out(home)

    assert list(home.iterdir()) == []


@pytest.mark.parametrize("root", ["/", "", " ", "~"])
def test_fs_18_roots_and_no_name_are_refused(root: str) -> None:
    with pytest.raises(PathViolation):
        init(root, template=TEMPLATE, zone_name=ZONE)


@pytest.mark.parametrize("folder", ["01_Shallow", "_System", "01_Shallow/room", "Ideas"])
def test_fs_18_a_folder_inside_a_palace_is_refused(tmp_path: Path, folder: str) -> None:
    lay_out(tmp_path / "vault")
    (tmp_path / "vault" / folder).mkdir(parents=True, exist_ok=True)
    before = snapshot(tmp_path / "vault")

    with pytest.raises(PathViolation):
        lay_out(tmp_path / "vault" / folder)

    assert snapshot(tmp_path / "vault") == before


def test_a_file_is_refused(tmp_path: Path) -> None:
    target = write(tmp_path, "vault", "text")

    with pytest.raises(PathViolation):
        lay_out(target)

    assert target.read_text(encoding="utf-8") == "text"


@pytest.mark.parametrize("path", ["_System", "01_Shallow"])
def test_a_file_where_a_folder_should_be_is_refused_before_anything_is_written(
    tmp_path: Path, path: str
) -> None:
    write(tmp_path / "vault", path, "text")
    before = snapshot(tmp_path / "vault")

    with pytest.raises(PathViolation):
        lay_out(tmp_path / "vault")

    assert snapshot(tmp_path / "vault") == before


@pytest.mark.parametrize("path", ["_System", "02_Sediment", "_System/Dashboards", "PALACE_MAP.md"])
@pytest.mark.parametrize("dangling", [False, True])
def test_fs_09_a_link_that_leads_elsewhere_is_refused_before_anything_is_written(
    tmp_path: Path, path: str, dangling: bool
) -> None:
    outside = tmp_path / "outside"
    if not dangling:
        outside.mkdir()
    link = tmp_path / "vault" / path
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    before = set(snapshot(tmp_path))

    with pytest.raises(PathViolation):
        lay_out(tmp_path / "vault")

    assert set(snapshot(tmp_path)) == before


def test_settings_behind_a_link_are_left_alone(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    write(shared, "app.json", "{}")
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault/.obsidian").symlink_to(shared)

    answer = lay_out(tmp_path / "vault")

    assert snapshot(shared) == {"app.json": b"{}"}
    assert done(answer)[".obsidian/app.json"] == "skipped"


@pytest.mark.parametrize("zone_name", ["", "Nowhere/Land", "../etc/passwd", "UTC\nread_only: true"])
def test_a_zone_that_is_none_is_refused(tmp_path: Path, zone_name: str) -> None:
    with pytest.raises(InvalidArguments):
        lay_out(tmp_path / "vault", zone_name=zone_name)

    assert not (tmp_path / "vault").exists()


def test_a_template_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(NotFound):
        init(tmp_path / "vault", template=tmp_path / "empty", zone_name=ZONE)


def test_a_failed_write_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(staged: Path, target: Path, *, expect: str | None) -> bytes | None:
        raise OSError

    monkeypatch.setattr(files, "put", failing)

    with pytest.raises(OSError):
        lay_out(tmp_path / "vault")

    assert [path for path, data in snapshot(tmp_path / "vault").items() if data is not None] == []
