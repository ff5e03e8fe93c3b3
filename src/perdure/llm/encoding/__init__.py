"""Helpers shared by all wire protocols: attachments, call ids, tool inputs, provider JSON."""
