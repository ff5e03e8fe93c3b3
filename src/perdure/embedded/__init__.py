"""Perdure inside another program: the same client, with the server in the same process."""

from perdure.embedded.host import EmbeddedPerdure, open_embedded

__all__ = ["EmbeddedPerdure", "open_embedded"]
