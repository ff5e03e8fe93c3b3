"""Metadata of OpenAI items, so that they can be sent back to the same model.

Stored under `openai`. An item that the provider stored is referenced by its id; others are sent
again, reasoning in its encrypted form.

Invariant: `read` accepts any metadata, and the API accepts every id that is `referable`.
"""

import re
from collections.abc import Mapping
from typing import Final

from perdure.schema.session.tool import ProviderMetadata
from perdure.schema.value import Value

NAMESPACE: Final = "openai"
HOSTED: Final[Mapping[str, str]] = {
    "code_interpreter_call": "code_interpreter",
    "compaction": "compaction",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcp_list_tools",
    "tool_search_call": "tool_search",
    "tool_search_output": "tool_search_output",
    "web_search_call": "web_search",
}
"""Types of hosted items -> the tool's name."""

_REFERABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NativeItem(Value, kw_only=True):
    id: str
    stored: bool = False
    encrypted: str | None = None

    @property
    def referable(self) -> bool:
        """Whether a request may reference the item instead of repeating it."""
        return self.stored and is_item_id(self.id)


def is_item_id(text: str) -> bool:
    return _REFERABLE.fullmatch(text) is not None


def write(item: NativeItem) -> ProviderMetadata:
    fields: dict[str, object] = {"itemId": item.id}
    if item.stored:
        fields["stored"] = True
    if item.encrypted:
        fields["reasoningEncryptedContent"] = item.encrypted
    return {NAMESPACE: fields}


def read(metadata: ProviderMetadata | None) -> NativeItem | None:
    """The item of this provider; None if the metadata names none."""
    fields = (metadata or {}).get(NAMESPACE, {})
    item_id = fields.get("itemId")
    if not isinstance(item_id, str) or not item_id:
        return None
    encrypted = fields.get("reasoningEncryptedContent")
    return NativeItem(
        id=item_id,
        stored=fields.get("stored") is True,
        encrypted=encrypted if isinstance(encrypted, str) and encrypted else None,
    )
