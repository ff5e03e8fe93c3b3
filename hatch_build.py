"""Build hooks: the readme of the package index, and the web page.

The readme is README.md with absolute links, because a page of an index has no files beside it. A
wheel without the web page is not built, unless PERDURE_WITHOUT_PAGE=1 asks for that.
"""

import os
import re
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGE: Final = "src/perdure/data/web/index.html"
WITHOUT_PAGE: Final = "PERDURE_WITHOUT_PAGE"
# `](docs/x.md)`, `](docs/x.md#part)`; not `](https://...)` and not `](#part)`.
_RELATIVE_LINK: Final = re.compile(r"\]\((?![a-z][a-z0-9+.-]*:|#|/)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Sets the field `readme` of the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute_links(text, metadata["urls"]["Source"]),
        }


class PageHook(BuildHookInterface[Any]):
    """Refuses to build what is published without the web page."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del build_data
        page = Path(self.root) / PAGE
        if version != "editable" and not page.exists() and not os.environ.get(WITHOUT_PAGE):
            raise FileNotFoundError(
                f"{PAGE} is missing: run `make web` first, or set {WITHOUT_PAGE}=1"
            )


def absolute_links(text: str, source: str) -> str:
    """Return Markdown whose relative links lead to the main branch of a source repository."""
    return _RELATIVE_LINK.sub(rf"]({source}/blob/main/\1)", text)
