"""The two ways in which a call fails: as the contract declares, or because the way there failed.

A DeclaredError carries the tagged value as it came over the wire; tell kinds apart by `tag`, or
with a guard of `client.generated.failures`, never by class. A ClientError says in one word what
went wrong between here and there.
"""

from typing import Literal, cast

from perdure.schema.codec import JsonObject

Reason = Literal[
    "transport",  # no answer, or it broke off
    "unexpected-status",  # an answer that the contract does not know
    "unsupported-content-type",  # an answer in another language
    "malformed-response",  # the right language, but not the promised shape
]


class DeclaredError(Exception):
    """A failure that is part of the contract: the caller can act on it."""

    def __init__(self, value: JsonObject, *, status: int) -> None:
        super().__init__(f"{value['_tag']}: {value.get('message', '')}")
        self.value = value
        self.status = status

    @property
    def tag(self) -> str:
        return str(self.value["_tag"])

    @property
    def message(self) -> str:
        return str(self.value.get("message", ""))


class ClientError(Exception):
    """The infrastructure failed. What the server did with the request is not known."""

    def __init__(self, reason: Reason, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.status = status


def has_tag(value: object, tag: str) -> bool:
    """Whether `value`, from wherever it came, is a failure of this kind."""
    return isinstance(value, dict) and cast("JsonObject", value).get("_tag") == tag
