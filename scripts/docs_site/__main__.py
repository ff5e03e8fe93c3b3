"""Builds the documentation site: `python -m scripts.docs_site`."""

import sys

from scripts.docs_site import build


def main() -> int:
    try:
        folder = build.build()
    except build.SiteError as error:
        print(f"the documentation site was not built:\n{error}", file=sys.stderr)
        return 1
    print(f"documentation site: {folder.relative_to(build.ROOT)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
