"""Deprecated: programs use `perdure.connect`, and the types of `perdure`."""

from perdure.deprecation import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "DurableEvent": "perdure.DurableEvent",
        "DurablePlace": "perdure.DurablePlace",
        "LiveEvent": "perdure.LiveEvent",
        "Reconnected": "perdure.Reconnected",
        "TypedPerdureClient": "perdure.Client",
        "UnknownFact": "perdure.UnknownFact",
        "resuming_events": "perdure.resume_events",
    },
)
