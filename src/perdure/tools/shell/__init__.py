"""Parsing shell commands and bounding their output."""
