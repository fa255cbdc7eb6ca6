"""Vault Palace: memory for AI agents as an Obsidian vault whose layers age like sediment."""

__version__ = "0.1.0"
