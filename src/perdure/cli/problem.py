"""`Problem`, the expected failure of a command, and the exit statuses.

Every command loads this module, also those that must start quickly, so it imports nothing.
"""

FAILED_STATUS = 1
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130


class Problem(Exception):
    """An expected failure. Its text is printed and the command exits with FAILED_STATUS."""
