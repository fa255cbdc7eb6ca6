"""The real server that gives a leaving client a moment only, for the tests that wait for it to give up."""

from __future__ import annotations

import sys

from vault_palace.surfaces.mcp import server, wire
from vault_palace.surfaces.mcp.__main__ import main

if __name__ == "__main__":
    wire.FAREWELL_SECONDS = 0.5
    server.SIGNAL_SECONDS = 0.5
    sys.exit(main())
