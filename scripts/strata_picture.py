"""Renders the strata picture of a sample palace into the PNG that the README shows.

Needs Chromium, Chrome or Edge on the path (Debian and Ubuntu: `apt-get install chromium`). The picture is
drawn by the product itself, so run this after a change of `vault_palace/core/strata.py`:

    python scripts/strata_picture.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from vault_palace.core.strata import Band, Strata, Stratum, draw  # noqa: E402 - found by the line above

TARGET = ROOT / "scripts" / "pictures" / "strata.png"
LARGEST = 200_000
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")

SAMPLE = Strata(
    (
        Stratum(
            "shallow",
            51,
            (
                Band("standup", 16, 0.18, 6),
                Band("incidents", 13, 0.55, 1),
                Band("reading", 9, 0.35, 2),
                Band("", 8, 0.25, 3),
                Band("ideas", 5, 0.75),
            ),
        ),
        Stratum(
            "sediment",
            92,
            (
                Band("apollo", 31, 0.66, 1),
                Band("architecture", 24, 0.8),
                Band("people", 17, 0.5),
                Band("how we deploy", 12, 0.7),
                Band("vendors", 8, 0.2, 2),
            ),
        ),
        Stratum(
            "bedrock",
            40,
            (Band("principles", 17, 1.0), Band("decisions", 14, 0.85), Band("glossary", 9, 0.55)),
        ),
        Stratum("archive", 128),
    ),
    date(2026, 5, 4),
)


def main() -> int:
    """Write the PNG; 1 when there is no browser or the picture is too large for the repository."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        print(f"None of these is on the path: {', '.join(BROWSERS)}.", file=sys.stderr)
        return 1
    svg = draw(SAMPLE)
    height = int(svg.partition('height="')[2].partition('"')[0])
    with tempfile.TemporaryDirectory(prefix="strata-") as folder:
        page, made = Path(folder, "page.html"), Path(folder, "strata.png")
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><body style="margin:0">{svg}', encoding="utf-8"
        )
        command = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--force-device-scale-factor=1", "--default-background-color=00000000"),
            *(f"--user-data-dir={folder}/profile", f"--window-size=760,{height}"),
            *(f"--screenshot={made}", page.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        picture = made.read_bytes()
    if len(picture) > LARGEST:
        print(f"The picture has {len(picture):,} bytes; at most {LARGEST:,} belong here.", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(picture)
    print(f"{TARGET.relative_to(ROOT)}: {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
