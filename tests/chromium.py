"""Debian's Chromium, headless: what a page's own script says. Tests skip where there is none."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str | None:
    """The command of a browser on this machine."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def said(folder: Path, page: str) -> str:
    """What *page*, loaded from a file in *folder*, has written into its `#said`."""
    command = browser()
    assert command is not None
    place = folder / "page.html"
    place.write_text(page, encoding="utf-8")
    run = subprocess.run(
        [
            *(command, "--headless", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={folder}/profile", "--dump-dom", place.as_uri()),
        ],
        check=True,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    found = re.search(r'id="said"[^>]*>(.*?)</', run.stdout, re.DOTALL)
    assert found is not None, run.stdout[-2000:]
    return html.unescape(found[1])
