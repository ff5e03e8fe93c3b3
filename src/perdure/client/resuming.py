"""Deprecated: moved to `perdure.client.reconnect`; programs use `perdure.resume_events`."""

from perdure.deprecation import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "Reconnected": "perdure.Reconnected",
        "resume": "perdure.client.reconnect.resume",
        "resuming_events": "perdure.client.reconnect.resume_wire_events",
    },
)
