"""Builds the web page of a clone that has none yet. A package brings the page with it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perdure.cli import terminal
from perdure.server.settings import WEB_DIRECTORY

_WITHOUT_PAGE: Final = "PERDURE_WITHOUT_PAGE"


def build_if_missing(variables: Mapping[str, str]) -> None:
    """Build it, and tell; a page that cannot be built stops nothing.

    With the variable PERDURE_WITHOUT_PAGE nothing is built.
    """
    if variables.get(_WITHOUT_PAGE):
        return
    script = Path(__file__).parents[5] / "scripts" / "web.py"
    if os.path.exists(os.path.join(WEB_DIRECTORY, "index.html")) or not script.is_file():
        return
    terminal.print_note("building the web page (once)\n")
    subprocess.run([sys.executable, str(script)], check=False, stdout=subprocess.DEVNULL)
