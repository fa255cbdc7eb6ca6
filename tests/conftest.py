"""What every test stands on: no real home, cache or clock, and a person's pen."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("dev", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


ROOM = 2 << 30  # bytes that must be free where the tests' vaults are made in memory


def pytest_configure() -> None:
    """Make the tests' vaults in memory where there is room: each write is flushed, and a disk takes its time.

    `PYTEST_DEBUG_TEMPROOT=/tmp` puts them on the disk all the same.
    """
    shared = Path("/dev/shm")
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or sys.platform != "linux" or not os.access(shared, os.W_OK):
        return
    if shutil.disk_usage(shared).free >= ROOM:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(shared)


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet; pytest's own way looks at all former ones to make the next."""
    base = tmp_path_factory.mktemp("homes", numbered=False)
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _isolated(_homes: Iterator[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Home, cache and state folders of their own, and no vault named by the environment.

    `tmp_path` comes first, so that it is taken away with the system's own functions back in place.
    """
    home = next(_homes)
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("CACHE", "STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / f".{name.lower()}"))
    for name in list(os.environ):
        if name.startswith(("VAULT_PALACE_", "SEDIMENT_")):
            monkeypatch.delenv(name)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """An empty palace: the layer folders and nothing else."""
    root = tmp_path / "vault"
    for folder in ("01_Shallow", "02_Sediment", "03_Bedrock", "_System"):
        (root / folder).mkdir(parents=True)
    return root


@pytest.fixture
def note(vault: Path) -> Callable[..., Path]:
    """Write a note as a person would: with a text editor, not through the program."""

    def write(path: str, text: str | bytes = "hello\n") -> Path:
        target = vault / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return target

    return write


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """Like `tmp_path`, in memory if possible: thousands of kills are not about the disk's speed."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=shared))
    yield folder
    shutil.rmtree(folder)
