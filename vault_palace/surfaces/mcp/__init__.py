"""The MCP server: how agents use the palace. The SDK is imported nowhere else."""
