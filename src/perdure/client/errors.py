"""The two ways in which a call fails: as the contract declares, or on the way to the server.

The clients with decoded values raise a declared failure as its class of `schema.errors`. The wire
client raises it as a WireError around the tagged value; tell kinds apart by `tag`, or with a guard
of `client.generated.failures`. A ClientError says in one word what went wrong on the way.
"""

from typing import Literal, cast

from perdure.schema.codec import JsonObject
from perdure.schema.errors import DeclaredError, PerdureError

Reason = Literal[
    "transport",  # no answer, or it broke off
    "unexpected-status",  # an answer that the contract does not know
    "unsupported-content-type",  # an answer in another content type than the contract's
    "malformed-response",  # the right content type, but not the promised shape
]


class WireError(DeclaredError):
    """A declared failure as it came over the wire."""

    def __init__(self, value: JsonObject, *, status: int) -> None:
        message = str(value.get("message", ""))
        super().__init__(f"{value['_tag']}: {message}")
        self.message = message
        self.tag = str(value["_tag"])
        self.status = status
        self._value = value

    @property
    def value(self) -> JsonObject:
        return self._value


class ClientError(PerdureError):
    """The call failed on its way. Whether the server carried out the request is not known."""

    def __init__(self, reason: Reason, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.status = status


def has_tag(value: object, tag: str) -> bool:
    """Whether `value`, which may be anything, is a failure of this kind."""
    return isinstance(value, dict) and cast("JsonObject", value).get("_tag") == tag
