"""Processes that run in a directory, also those of a sandbox, which do not know their number."""

import os
from pathlib import Path

from perdure.host.process import table


def has_process_in(directory: Path) -> bool:
    for row in table.list_rows():
        try:
            if os.readlink(f"/proc/{row.pid}/cwd") == str(directory):
                return True
        except OSError:
            continue
    return False
