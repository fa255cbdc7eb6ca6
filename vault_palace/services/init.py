"""Lays the shipped vault out: into an empty folder, an Obsidian vault, or a Sediment Palace folder.

Nothing that is there is overwritten; settings of `.obsidian` gain what they lack. Everything is decided
before the first byte is written, so that a dry run says the same, a refusal leaves no trace, and a second
run finds everything kept.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from vault_palace.core import frontmatter, settings
from vault_palace.core.errors import Exists, InvalidArguments, NotFound, PathViolation, VaultError
from vault_palace.core.model import OLD_POLICY, POLICY_NOTE, Value
from vault_palace.core.policy import Policy
from vault_palace.services import policies
from vault_palace.services.answers import InitAnswer, InitFile
from vault_palace.services.zones import zone_of
from vault_palace.storage import files
from vault_palace.storage.vault import Vault, new_palace, palace_mark

SETTINGS = ".obsidian"
_KEEP_FOLDER = ".gitkeep"
_DATAVIEW = f"{SETTINGS}/plugins/dataview/manifest.json"
_SNIPPET = f"{SETTINGS}/snippets/{settings.SNIPPET}.css"


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to happen at one path. `data` is None when nothing is; `expect` as for `files.put`."""

    path: str
    done: str
    detail: str = ""
    data: bytes | None = None
    expect: str | None = None


def template_root() -> Path:
    """The folder of the shipped vault: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "vault_template"
    return inside if inside.is_dir() else package.parent / "vault_template"


def init(root: Path | str, *, template: Path, zone_name: str, dry_run: bool = False) -> InitAnswer:
    """Make *root* a palace, with *zone_name* as its time zone, and say what was done, file by file.

    Refused with nothing written: homes, roots, layers, files, folders inside another palace, and folders
    where a symbolic link would lead a file of the palace elsewhere.
    """
    if not zone_name.strip() or zone_of(zone_name.strip()) is None:
        raise InvalidArguments(
            f"There is no time zone {zone_name!r}.",
            hint="Name one such as Europe/Berlin.",
            argument="timezone",
        )
    place = new_palace(root)
    _refuse(place)
    vault = Vault(place)
    notes: list[str] = []
    steps = list(_plan(vault, template, zone_name.strip(), notes))
    if os.path.isdir(vault.root / SETTINGS) and any(
        step.data is not None and step.path.startswith(f"{SETTINGS}/") for step in steps
    ):
        notes.append("Obsidian reads its settings when it starts: restart it if this vault is open.")
    if not dry_run:
        files.make_folders(place)
        # Settings come before the snippet whose newness they depend on, Policy last: a run that is cut short
        # is taken up by the next as if it had not been.
        order = sorted(steps, key=lambda step: (step.done != "merged", step.path == POLICY_NOTE))
        steps = sorted((_carry_out(vault, step) for step in order), key=lambda step: step.path)
    return InitAnswer(
        vault=str(place),
        dry_run=dry_run,
        timezone=_zone_in_force(vault, steps, zone_name.strip()),
        files=[InitFile(path=step.path, done=step.done, detail=step.detail) for step in steps],
        notes=notes,
    )


def _zone_in_force(vault: Vault, steps: list[_Step], zone_name: str) -> str:
    """The zone that counts: a policy note that was there before keeps its own."""
    if any(step.path == POLICY_NOTE and step.done == "created" for step in steps):
        return zone_name
    policy, _ = policies.read(vault, None)
    return policy.timezone or str(policy.zone)


def _refuse(place: Path) -> None:
    if os.path.lexists(place) and not os.path.isdir(place):
        raise PathViolation(f"{place} is a file, not a folder.", path=str(place))
    for above in place.parents:
        if palace_mark(above) is not None:
            raise PathViolation(
                f"{place} lies inside the palace {above}.",
                hint="A room needs no init: any folder in a layer is one.",
                path=str(place),
            )


def _plan(vault: Vault, template: Path, zone_name: str, notes: list[str]) -> Iterator[_Step]:
    grown = os.path.isdir(vault.root / SETTINGS)
    # Only whether something is there; a link on the way is met, and said, at the file itself.
    circumstances = settings.Circumstances(
        new_snippet=not os.path.lexists(vault.root / _SNIPPET),
        dataview_installed=os.path.lexists(vault.root / _DATAVIEW),
    )
    for path in _shipped(template):
        data = template.joinpath(*path.split("/")).read_bytes()
        name = path.rpartition("/")[2]
        if path.startswith(f"{SETTINGS}/"):
            yield _settings(vault, path, data.decode("utf-8"), grown, circumstances)
        elif name == _KEEP_FOLDER:
            yield _folder(vault, path)
        else:
            found = _found(vault, path)
            if found is not None:
                yield _kept(path, found)
            elif path == POLICY_NOTE:
                yield _policy(vault, data.decode("utf-8"), zone_name, notes)
            else:
                yield _Step(path, "created", data=data)


def _shipped(template: Path) -> list[str]:
    """The template's files, sorted; its own folder has no links and nothing but files and folders."""
    found = [
        Path(folder, name).relative_to(template).as_posix()
        for folder, _, names in os.walk(template)
        for name in names
    ]
    if POLICY_NOTE not in found:
        raise NotFound(
            f"{template} is not the shipped vault.", hint="Install vault-palace again.", path=str(template)
        )
    return sorted(found)


def _found(vault: Vault, path: str) -> os.stat_result | None:
    """What is at *path*, None for nothing. A file where a folder of the path should be is refused."""
    place = vault.locate(path)
    for above in place.relative_to(vault.root).parents:
        folder = vault.root / above
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise PathViolation(
                f"{above.as_posix()} is a file where a folder should be.", path=above.as_posix()
            )
    try:
        return os.lstat(place)
    except FileNotFoundError:
        return None


def _kept(path: str, found: os.stat_result) -> _Step:
    return _Step(path, "kept", "" if stat.S_ISREG(found.st_mode) else "a folder is in its place")


def _folder(vault: Vault, path: str) -> _Step:
    """A folder of the layout. The file that makes version control keep it is only for empty ones."""
    folder = path.rpartition("/")[0]
    if _found(vault, path) is None and not (
        os.path.isdir(vault.root / folder) and os.listdir(vault.root / folder)
    ):
        return _Step(path, "created", data=b"")
    return _Step(path.removesuffix(_KEEP_FOLDER), "kept")


def _policy(vault: Vault, text: str, zone_name: str, notes: list[str]) -> _Step:
    """The policy note with the vault's zone, and with the limits of a Sediment Palace folder."""
    values: dict[str, Value] = {"timezone": zone_name}
    carried = ""
    if _found(vault, OLD_POLICY) is not None:
        old, problems = policies.read(vault, None)
        limits = _carried(old)
        values |= limits
        carried = (
            "; with "
            + ", ".join(f"{key} {_said(value)}" for key, value in limits.items())
            + f" of {OLD_POLICY}"
        )
        notes.append(f"{OLD_POLICY} stays as it is and no longer counts: {POLICY_NOTE} does.")
        if old.max_search_matches is not None or old.max_metabolize_scan is not None:
            notes.append("Its max_search_matches and max_metabolize_scan no longer cut anything off.")
        notes += [f"{problem.path}: {problem.message}" for problem in problems]
        notes.append(
            "From now on this vault ages by itself once a day; auto_metabolize: off in the policy ends that."
        )
    data = frontmatter.patch(text, values).encode("utf-8")
    return _Step(POLICY_NOTE, "created", f"timezone {zone_name}{carried}", data=data)


def _carried(old: Policy) -> dict[str, Value]:
    """The limits that both programs know. Sediment Palace counts calls in a window of its own length."""
    a_minute = ceil(old.max_destructive_per_minute * 60 / old.destructive_window_seconds)
    return {
        "destructive_require_confirm": old.destructive_require_confirm,
        "max_destructive_per_minute": a_minute,
    }


def _said(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _settings(
    vault: Vault, path: str, ours: str, grown: bool, circumstances: settings.Circumstances
) -> _Step:
    """One file of `.obsidian`. What cannot be reached or read there is left alone and said: the vault works
    without it."""
    name = path.removeprefix(f"{SETTINGS}/")
    try:
        found = _found(vault, path)
        if found is None:
            personal = grown and name == "app.json"
            text = settings.without_personal(ours) if personal else ours
            return _Step(path, "created", data=text.encode("utf-8"))
        if not stat.S_ISREG(found.st_mode):
            return _kept(path, found)
        stored = vault.read(path)
        merged = settings.merge(name, stored.data.decode("utf-8"), ours, circumstances)
    except UnicodeDecodeError:
        return _Step(path, "skipped", "it is not UTF-8, and is left alone")
    except VaultError as error:
        return _Step(path, "skipped", str(error))
    if merged is None:
        return _Step(path, "kept")
    if merged.problem:
        return _Step(path, "skipped", merged.problem)
    yours = f"yours stay: {', '.join(merged.left)}" if merged.left else ""
    if merged.text is None:
        return _Step(path, "kept", yours)
    detail = "; ".join(part for part in (f"added {', '.join(merged.added)}", yours) if part)
    return _Step(path, "merged", detail, data=merged.text.encode("utf-8"), expect=stored.fingerprint)


def _carry_out(vault: Vault, step: _Step) -> _Step:
    """Write one file and say what came of it. One that appeared since the plan was made is a person's."""
    if step.data is None:
        return step
    target = vault.locate(step.path)
    staged = files.stage(target, step.data)
    try:
        files.put(staged, target, expect=step.expect)
    except Exists:
        files.discard(staged)
        return _Step(step.path, "kept", "it appeared just now")
    except BaseException:
        # Settings that Obsidian saved in the same instant may stand there instead of ours.
        if files.fingerprint_at(staged) == files.fingerprint(step.data):
            files.discard(staged)
        raise
    return step
