"""The generated files of this repository: their names and what must stand in them."""

import msgspec

from perdure.protocol import openapi
from perdure.protocol.api import API
from perdure.schema import codec


def generated(version: str) -> dict[str, str]:
    """Path below the repository's root -> content."""
    document = openapi.document(API, title="Perdure", version=version)
    text = msgspec.json.format(codec.encode(document), indent=2).decode()
    return {"docs/openapi.json": text + "\n"}
