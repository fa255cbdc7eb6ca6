"""What a person sees: transcripts that are test, example and manual at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.surfaces.transcripts import FOLDER, play

NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("name", NAMES)
def test_a_transcript_is_what_happens(name: str, tmp_path: Path) -> None:
    written = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")

    happened = play(written, tmp_path / "vault")

    assert happened == written


def test_there_are_transcripts() -> None:
    assert {"first_day", "what_goes_wrong"} <= set(NAMES)
