"""The Context Sources of a Location: built-in facts, instruction files, plugin sources."""
