"""Perdure inside another program: the same client, with the server in the same process."""

from perdure.embedded.host import (
    EmbeddedPerdure,
    EmbeddedWire,
    open_embedded,
    open_embedded_wire,
)

__all__ = ["EmbeddedPerdure", "EmbeddedWire", "open_embedded", "open_embedded_wire"]
