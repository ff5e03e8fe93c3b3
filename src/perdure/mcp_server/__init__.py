"""`perdure mcp-server`: Sessions as durable workers of other agents, over MCP.

It speaks the protocol by itself, as JSON lines, in both of its eras: the handshake of 2024 and
2025, and the requests of 2026 that stand for themselves.
"""
