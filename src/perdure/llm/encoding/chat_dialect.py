"""The dialect of a Chat Completions provider: which fields it takes, and in which form.

Providers that resemble OpenAI refuse what they do not know. core.models.chat_dialects says which
provider has which dialect; the default is for a provider of which nothing is known.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec.structs import replace

from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

ReasoningForm = Literal[
    "as_received",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "think_text",
    "thinking_parts",
    "none",
]
"""How earlier reasoning is sent back to the model that it came from.

`as_received`: in the field that it came in. `think_text`: in the text, between `<think>` tags.
`thinking_parts`: as parts of the content. `none`: not at all.
"""


class ChatDialect(Value, kw_only=True):
    accepts: frozenset[str] = frozenset({"stream_options"})
    """Optional fields that requests have although no configuration asks for them."""
    refuses: frozenset[str] = frozenset()
    """Fields that requests never have."""
    renames: tuple[tuple[str, str], ...] = ()
    """Fields with another name than OpenAI's, and that name."""
    reasoning: ReasoningForm = "as_received"
    empty_reasoning: bool = False
    """Whether an answer without reasoning has the field too, as an empty text."""
    documents: bool = False
    """Whether a PDF is sent, as a `file` part."""
    cache_control: bool = False
    """Whether content is marked for the provider's prompt cache."""
    short_call_ids: bool = False
    """Whether a call id must be nine letters or digits."""

    def shape(self, body: JsonObject) -> JsonObject:
        """The fields of a body that the provider takes, under its names for them."""
        names = dict(self.renames)
        return {
            names.get(name, name): value
            for name, value in body.items()
            if name not in self.refuses and names.get(name) not in self.refuses
        }

    def with_fields(self, fields: Mapping[str, bool | None]) -> "ChatDialect":
        """The dialect with fields switched on or off; None leaves it to the default."""
        accepts, refuses = set(self.accepts), set(self.refuses)
        for name, on in fields.items():
            accepts.discard(name)
            refuses.discard(name)
            if on is None:
                accepts |= DEFAULT_DIALECT.accepts & {name}
            else:
                (accepts if on else refuses).add(name)
        return replace(self, accepts=frozenset(accepts), refuses=frozenset(refuses))


DEFAULT_DIALECT: Final = ChatDialect()
