"""The version of Perdure, and the folder that its package is installed in."""

import os
from typing import Final

__version__ = "0.1.0"

PACKAGE_FOLDER: Final = os.path.dirname(os.path.abspath(__file__))
