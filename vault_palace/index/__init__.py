"""The disposable search cache. It is fed values and never reads the vault itself."""
