"""What a project's configuration asks for that only a person grants, as clients see it."""

from typing import Literal

from perdure.schema.codec import Record


class TrustWish(Record):
    """Something that is off until a person trusts the document that asks for it."""

    kind: Literal["program", "key"]
    path: str
    """The document."""
    message: str
    """What it wants to do, as the end of a sentence that begins with its path and `would`."""


class TrustInfo(Record):
    """Whether everything that a Location's configuration asks for is granted, and what is not."""

    trusted: bool
    off: tuple[TrustWish, ...]
