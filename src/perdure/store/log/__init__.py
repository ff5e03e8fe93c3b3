"""The event log: append, project, follow, import, repair."""
