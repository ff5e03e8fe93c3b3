"""Text formats and text matching that several concepts share: JSONC, YAML, XML tags, globs.

A module belongs here if it knows nothing about Sessions, models or files.
"""
