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
        prog="vault_palace.surfaces.mcp", description="Serve a vault over MCP on stdio, or over HTTP."
    )
    parser.add_argument("--vault", help="the vault's folder; else VAULT_PALACE_VAULT")
    parser.add_argument("--read-only", action="store_true", help="write nothing")
    parser.add_argument("--tools", metavar="NAMES", help="core, all, or tools with commas between")
    parser.add_argument("--http", metavar="[HOST:]PORT", help="over HTTP there")
    parser.add_argument("--no-token", action="store_true", help="ask for no token")
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[], help="a name to answer to"
    )
    options = parser.parse_args()
    try:
        settings = read_settings(
            options.vault, surface="mcp", read_only=options.read_only, tools=options.tools
        )
        if options.http is not None:
            from vault_palace.surfaces.mcp.address import read_address

            address = read_address(options.http)
            from vault_palace.surfaces.mcp.http import serve_http

            return serve_http(
                settings, address, with_token=not options.no_token, allowed_hosts=options.allow_host
            )
    except VaultError as error:
        sys.stderr.write(f"vault-palace: {error.code}: {error}\n")
        return error.exit_status
    from vault_palace.surfaces.mcp.server import serve

    return serve(settings)


if __name__ == "__main__":
    sys.exit(main())
