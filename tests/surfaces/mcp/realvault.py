"""A server in this process around a real vault, spoken to by the SDK's client in either protocol era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from mcp import Client

from vault_palace.services.palace import Palace, PalaceSettings
from vault_palace.surfaces.mcp.desk import Desk
from vault_palace.surfaces.mcp.door import Door
from vault_palace.surfaces.mcp.server import build

SECONDS = 60.0


def talk(
    vault: Path, era: str, conversation: Callable[[Client], Awaitable[None]], *, read_only: bool = False
) -> None:
    """Hold *conversation* with a server around the palace at *vault*."""
    settings = PalaceSettings(
        cache_dir=vault.parent / "cache",
        state_dir=vault.parent / "state",
        session="test-1",
        read_only=read_only,
    )
    desk = Desk(Door(lambda: Palace.open(vault, settings=settings)), read_only=read_only)

    async def main() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(build(desk), mode=era) as client:
                await conversation(client)

    anyio.run(main)


def fading(name: str, days: str = "2020-04-20") -> str:
    """The text of a memory that the next ageing lets go."""
    return (
        f"---\nid: mem_{abs(hash(name)) % 16**12:012x}\nlayer: shallow\ncreated: {days}T09:00:00\n"
        f"last_touched: {days}T09:00:00\ndensity: 0.2\nstreak: 0\ndecay_days: 7\nstatus: active\n"
        f"decays_on: {days}\n---\n\nAbout {name}.\n"
    )
