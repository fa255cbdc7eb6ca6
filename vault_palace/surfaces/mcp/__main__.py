"""`python -m vault_palace.surfaces.mcp --vault PATH`: the server without the command line's imports."""

from __future__ import annotations

import argparse
import sys

from vault_palace.core.errors import VaultError
from vault_palace.surfaces.config import read_settings, run_in_utf8


def main() -> int:
    """Read the options, serve, and answer the exit status."""
    run_in_utf8()
    parser = argparse.ArgumentParser(
        prog="vault_palace.surfaces.mcp", description="Serve a vault over MCP on stdio."
    )
    parser.add_argument("--vault", help="the vault's folder; else VAULT_PALACE_VAULT")
    options = parser.parse_args()
    try:
        settings = read_settings(options.vault, surface="mcp")
    except VaultError as error:
        sys.stderr.write(f"vault-palace: {error.code}: {error}\n")
        return error.exit_status
    from vault_palace.surfaces.mcp.server import serve

    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
