"""The programs that host agents, and their configuration files, which belong to a person."""
