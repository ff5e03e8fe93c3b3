"""`perdure mcp`: the command, and the file that `add` writes."""
