"""Makes the bundled facts about models from a file in the format of models.dev.

    curl -sO https://models.dev/api.json
    python scripts/model_snapshot.py api.json

The file may be compressed with gzip. Only fields that the program uses are kept. Equal input gives
equal output.
"""

import argparse
import gzip
import sys
from pathlib import Path

from perdure.core.models import facts_archive
from perdure.core.models.facts_archive import ModelArchive, ModelArchiveError

TARGET = Path(__file__).parents[1] / "src" / "perdure" / "data" / "models.json.gz"
GZIP_START = b"\x1f\x8b"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Make the bundled facts about models.")
    parser.add_argument(
        "source", type=Path, help="JSON of models.dev, or the same compressed with gzip"
    )
    parser.add_argument(
        "--target", type=Path, default=TARGET, help=f"write this file (default: {TARGET.name})"
    )
    asked = parser.parse_args(argv)
    data = asked.source.read_bytes()
    published = gzip.decompress(data) if data.startswith(GZIP_START) else data
    try:
        packed = facts_archive.pack(published)
    except ModelArchiveError as error:
        print(f"{asked.source} is not a file of models.dev: {error}", file=sys.stderr)
        return 1
    asked.target.parent.mkdir(exist_ok=True)
    asked.target.write_bytes(packed)
    archive = ModelArchive(packed)
    models = sum(len(archive.models(provider)) for provider in archive.providers)
    print(f"{len(archive.providers)} providers, {models} models, {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
