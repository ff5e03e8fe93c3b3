"""JSON-RPC over lines: the way to an editor and back, without any meaning."""
