"""MCP servers as tools: names, lists of tools, results and pauses, as pure decisions.

location.mcp runs the servers of a Location, host.mcp speaks the protocol.
"""
