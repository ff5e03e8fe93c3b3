"""Optional features of a client, from the capabilities in its first request."""

from perdure.acp.wire.wire_value import object_of
from perdure.schema.codec import JsonValue
from perdure.schema.value import Value


class ClientFeatures(Value, kw_only=True):
    forms: bool = False
    """Whether the client can show its user a form."""
    notices: bool = False
    compaction: bool = False
    """Whether the client shows that older messages are summarised."""
    terminal_login: bool = False
    """Whether the client can start the agent in a terminal to log in."""


def read_features(capabilities: JsonValue) -> ClientFeatures:
    """Read the features. One that is missing, null or of another type counts as absent."""
    return ClientFeatures(
        forms=_has(capabilities, "elicitation", "form"),
        notices=_has(capabilities, "session", "notices"),
        compaction=_has(capabilities, "session", "compaction"),
        terminal_login=_has(capabilities, "auth", "terminal"),
    )


def _has(value: JsonValue, *path: str) -> bool:
    for name in path:
        value = object_of(value).get(name)
    return value is True or isinstance(value, dict)
