"""Bytes on disk: where they are, who may change them, and how a change survives a crash."""
