"""Perdure: a durable home for coding-agent conversations."""

__version__ = "0.1.0"
