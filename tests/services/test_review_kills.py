"""The keeper is killed at each step of obeying the review: it was obeyed once then, and no task is ticked."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.services.test_kill_points import base as base
from tests.services.test_kill_points import copy_of, notes
from tests.storage.killpoints import Stop, every_kill_point
from vault_palace.services.generated import REVIEW_NOTE
from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.services.review import Review

START = datetime(2031, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2031, 3, 4, 12, tzinfo=UTC)
WORDS = ["keep", "promote", "archive"]


def opened(base: Path, at: datetime) -> Palace:
    settings = PalaceSettings(
        cache_dir=base / "cache",
        state_dir=base / "state",
        clock=lambda: at,
        sleep=lambda _seconds: None,
    )
    return Palace.open(base / "vault", settings=settings)


def obey(base: Path, at: datetime = LATER) -> None:
    with opened(base, at) as palace:
        palace.house.refresh(if_older=0)
        review = Review(palace.house)
        review.see({row.path: row for row in palace.house.shelf.ask(lambda cache: cache.notes("memory"))})
        for _ in range(6):
            if review.act() is None:
                break


@pytest.fixture(scope="module", params=[*WORDS, "review: pin"])
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vault in which a person has just said one word about one memory, and linked to it."""
    base = tmp_path_factory.mktemp("asked")
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (base / "vault" / folder).mkdir(parents=True)
    (base / "vault/_System/Policy.md").write_text("---\ntimezone: UTC\n---\n", encoding="utf-8")
    with opened(base, START) as palace:
        palace.write("Dry as dust.", title="Sand")
    (base / "vault/table.md").write_text("| [[01_Shallow/Sand\\|s]] |\n|---|\n", encoding="utf-8")
    obey(base)
    note = base / "vault" / REVIEW_NOTE
    text = note.read_text("utf-8")
    if request.param in WORDS:
        assert f"- [ ] {request.param} [[Sand]]" in text
        note.write_text(text.replace(f"[ ] {request.param}", f"[x] {request.param}"), encoding="utf-8")
    else:
        memory = base / "vault/01_Shallow/Sand.md"
        said = memory.read_text("utf-8").replace("status: active", f"status: active\n{request.param}")
        memory.write_text(said, encoding="utf-8")
    for path in (note, base / "vault/01_Shallow/Sand.md"):
        at = (LATER - timedelta(minutes=30)).timestamp()
        os.utime(path, (at, at))
    return base


def but_the_review(base: Path) -> dict[str, str]:
    return {path: text for path, text in notes(base).items() if path != REVIEW_NOTE}


def test_a_killed_keeper_has_obeyed_once(asked: Path, base: Path) -> None:
    whole = base / "whole"
    copy_of(asked)(whole)
    obey(whole)
    wanted = but_the_review(whole)
    assert wanted != but_the_review(asked)
    shutil.rmtree(whole)

    def check(root: Path, stop: Stop | None) -> None:
        lock = root / "vault/.palace/lock"
        if lock.exists():  # an empty one is somebody's who is about to write into it, for ten seconds
            os.utime(lock, (0, 0))
        obey(root)
        obey(root)
        assert but_the_review(root) == wanted, f"after {stop}"
        review = (root / "vault" / REVIEW_NOTE).read_text("utf-8")
        assert "[x]" not in review
        assert review.count("takes it back") == 1

    stops = every_kill_point(base, copy_of(asked), obey, check, modes=("before",))

    assert stops > 10
