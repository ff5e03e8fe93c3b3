"""How a command ends when not well: a Problem instead of a traceback, and the status to exit with.

Loaded by every command, also by those that must start quickly: it imports nothing.
"""

FAILED_STATUS = 1
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130


class Problem(Exception):
    """Expected and explained; the command ends with FAILED_STATUS."""
