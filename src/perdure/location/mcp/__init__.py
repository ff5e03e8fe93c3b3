"""The MCP servers of a Location: their processes and connections, and the tools that they offer."""
