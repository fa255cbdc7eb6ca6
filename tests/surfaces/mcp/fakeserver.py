"""The real server process around a fake palace, so that a test decides when a call ends.

Run as a module with `--vault FOLDER`. A `write_memory` makes the file `started` in that folder, waits for a
file `go`, then makes `finished`; a `metabolize` makes `started` and works on until it is cancelled. What a
test asks for by `title` is printed, warned of or raised.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from tests.surfaces.mcp.fakepalace import FakePalace
from vault_palace.services import answers
from vault_palace.surfaces.config import Settings
from vault_palace.surfaces.mcp import server
from vault_palace.surfaces.mcp.__main__ import main


class SlowPalace(FakePalace):
    """Does what its docstring above says; `opened` and `closed` are files as well."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        (root / "opened").touch()

    def close(self) -> None:
        super().close()
        sys.stdout.write("closing noise\n")
        sys.stdout.flush()
        (self.root / "closed").touch()

    def write(self, content: str, **arguments: Any) -> answers.WriteAnswer:
        match arguments.get("title"):
            case "noise":
                sys.stdout.write("a banner\n")
                sys.stdout.flush()
                os.write(1, b"a stray line\n")
                subprocess.run([sys.executable, "-c", "print('a child speaks')"], check=True, timeout=60)
                warnings.warn("an odd thing", stacklevel=1)
            case "crash":
                raise RuntimeError("the password is swordfish")
            case "slow":
                (self.root / "started").touch()
                while not (self.root / "go").exists():
                    time.sleep(0.002)
                (self.root / "finished").touch()
        return super().write(content, **arguments)

    def metabolize(self, *, progress: Any = None, cancelled: Any = None, **arguments: Any) -> Any:
        (self.root / "started").touch()
        done = 0
        while not cancelled():
            done += 1
            progress(done, 1_000_000, "01_Shallow/a.md")
            time.sleep(0.001)
        (self.root / "finished").touch()
        answer = super().metabolize(**arguments)
        answer["cancelled"] = True
        return answer


def _open(settings: Settings) -> Any:
    return SlowPalace(settings.root)


if __name__ == "__main__":
    # What takes a person's patience in earnest is over sooner in a test: {"http.HEAD_SECONDS": 0.2}
    for name, value in json.loads(os.environ.get("FAKE_CONSTANTS", "{}")).items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(f"vault_palace.surfaces.mcp.{module}"), constant, value)
    server._open = _open
    server.must_be_palace = lambda settings: None
    server._attend = lambda palace, settings, desk, transport: None  # type: ignore[assignment, return-value]
    sys.exit(main())
