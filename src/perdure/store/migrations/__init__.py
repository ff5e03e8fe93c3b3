"""Numbered SQL files, forward only. A new table is a new file; see `store.migrate`."""
