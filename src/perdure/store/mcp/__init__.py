"""Lists of tools that MCP servers had."""
