"""What people and agents hold: the command line and the MCP server. They parse, call one method, render."""
