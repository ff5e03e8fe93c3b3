"""The embedded host: the whole runtime inside the calling process, without a network.

Programs open it with `perdure.open` or `perdure.open_blocking`. The names of earlier releases are
deprecated.
"""

from perdure.deprecation import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "EmbeddedPerdure": "perdure.Host",
        "EmbeddedWire": "perdure.embedded.host.WireHost",
        "open_embedded": "perdure.open",
        "open_embedded_wire": "perdure.embedded.host.open_wire_host",
    },
)
