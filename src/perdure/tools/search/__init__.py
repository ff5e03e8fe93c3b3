"""Searching files with ripgrep, or with the bundled fallback program."""
