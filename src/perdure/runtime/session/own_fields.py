"""Checks the fields that a client chooses for a Session: title, metadata and permission rules."""

from typing import Final

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.session import title
from perdure.runtime.session import rules
from perdure.schema import codec
from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject
from perdure.schema.errors import InvalidRequestError
from perdure.schema.value import Value


class OwnFields(Value):
    """What a client says of its Session beyond title, agent and model."""

    metadata: JsonObject | UnsetType = UNSET
    permissions: SessionRules | UnsetType = UNSET


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


def require_permissions(given: SessionRules | None) -> SessionRules | UnsetType:
    rules.check_rules(given or ())
    return given or UNSET
