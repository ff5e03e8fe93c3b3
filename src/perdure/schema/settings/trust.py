"""Trust requests of a project's configuration, as clients see them."""

from typing import Literal

from perdure.schema.codec import Record

WishKind = Literal["program", "key", "provider", "model", "agent", "command", "address", "setting"]
"""What a request is about: a program to start, a key to send, a provider to talk to, a model to
choose, an agent, a command, an address to fetch from, or another setting."""


class TrustWish(Record):
    """A request of a document that has no effect until a person trusts the document."""

    kind: WishKind
    path: str
    """The document."""
    message: str
    """What it would do; completes a sentence that begins with its path and `would`."""


class TrustInfo(Record):
    """Whether all requests of a Location's configuration are granted, and which are not."""

    trusted: bool
    off: tuple[TrustWish, ...]
