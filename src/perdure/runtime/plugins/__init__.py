"""Plugins: registering what they add, and loading installed ones."""
