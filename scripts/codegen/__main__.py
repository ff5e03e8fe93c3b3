"""Writes the files generated from the endpoint table: `python -m scripts.codegen [folder]`."""

import sys
from pathlib import Path

from perdure.version import __version__
from scripts.codegen.files import generated


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, content in generated(__version__).items():
        (root / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
