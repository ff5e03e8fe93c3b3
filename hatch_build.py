"""Build hook: the readme of the package index is README.md with absolute links.

A page of an index has no files beside it, so a link such as `docs/security.md` would lead nowhere.
"""

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

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


def absolute_links(text: str, source: str) -> str:
    """Return Markdown whose relative links lead to the main branch of a source repository."""
    return _RELATIVE_LINK.sub(rf"]({source}/blob/main/\1)", text)
