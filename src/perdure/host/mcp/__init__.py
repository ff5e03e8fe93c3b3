"""Adapter of ports.mcp: the protocol by the package `mcp`, over processes of ours and over HTTP."""
