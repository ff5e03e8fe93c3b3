"""Checks the fields that a client chooses for a Session: title, metadata and permission rules."""

from typing import Final

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.session import title
from perdure.schema import codec
from perdure.schema.approval.permission import Ruleset
from perdure.schema.codec import JsonObject
from perdure.schema.errors import InvalidRequestError
from perdure.schema.value import Value


class OwnFields(Value):
    """What a client says of its Session beyond title, agent and model."""

    metadata: JsonObject | UnsetType = UNSET
    permissions: Ruleset | UnsetType = UNSET


NO_OWN_FIELDS: Final = OwnFields()


def require_title(asked: str) -> str:
    """The title as one line, without control characters."""
    chosen = title.clean_title(asked)
    if not chosen or len(chosen) > limits.TITLE_CHOSEN_CHARS_MAX:
        raise InvalidRequestError(
            f"A title has 1 to {limits.TITLE_CHOSEN_CHARS_MAX} characters that can be seen",
            kind="Payload",
            field="title",
        )
    return chosen


def require_metadata(given: JsonObject | None) -> JsonObject | UnsetType:
    if given is None:
        return UNSET
    if len(codec.encode(given)) > limits.METADATA_BYTES_MAX:
        raise InvalidRequestError(
            f"The metadata of a Session has at most {limits.METADATA_BYTES_MAX} bytes",
            kind="Payload",
            field="metadata",
        )
    return given


def require_permissions(given: Ruleset | None) -> Ruleset | UnsetType:
    """Only rules that take a tool away: a client cannot allow more than the user's rules do."""
    for rule in given or ():
        if rule.effect != "deny" or rule.resource != "*" or "*" in rule.action:
            raise InvalidRequestError(
                "A Session can only be denied whole tools: a permission rule names one action,"
                f' the resource "*" and the effect "deny"; not {rule.action!r},'
                f" {rule.resource!r}, {rule.effect!r}",
                kind="Payload",
                field="permissions",
            )
    if given and len(given) > limits.SESSION_RULES_MAX:
        raise InvalidRequestError(
            f"A Session has at most {limits.SESSION_RULES_MAX} permission rules",
            kind="Payload",
            field="permissions",
        )
    return given or UNSET
