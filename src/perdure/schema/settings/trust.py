"""Trust requests of a project's configuration, as clients see them."""

from typing import Literal

from perdure.schema.codec import Record


class TrustWish(Record):
    """A request of a document that has no effect until a person trusts the document."""

    kind: Literal["program", "key"]
    path: str
    """The document."""
    message: str
    """What it would do; completes a sentence that begins with its path and `would`."""


class TrustInfo(Record):
    """Whether all requests of a Location's configuration are granted, and which are not."""

    trusted: bool
    off: tuple[TrustWish, ...]
