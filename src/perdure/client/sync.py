"""Deprecated: programs use `perdure.connect_blocking`, which gives decoded values."""

from perdure.deprecation import moved_names

__getattr__ = moved_names(
    __name__, {"SyncPerdureClient": "perdure.client.blocking_wire.BlockingWireClient"}
)
