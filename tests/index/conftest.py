"""An open cache in a folder of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vault_palace.index.cache import Cache


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "one" / "index.sqlite3"


@pytest.fixture
def cache(file: Path) -> Iterator[Cache]:
    with Cache.open(file, "vault-1") as opened:
        yield opened
