"""What is added to the requests of a model, its domains apart: what was configured, by whom ever.

Generation Controls, Model Request Options and fields for the provider alone never mix, and the key
is none of them. core.model_options makes these values; core.catalog lays them over each other.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import field

from perdure.core.settings import overlay
from perdure.llm.request import GenerationControls
from perdure.schema.codec import JsonObject
from perdure.schema.value import Confidential


class Overrides(Confidential, kw_only=True):
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    generation: GenerationControls = field(default_factory=GenerationControls)
    options: JsonObject = field(default_factory=dict[str, object])
    """Model Request Options by their own names, before any protocol is chosen."""
    body: JsonObject = field(default_factory=dict[str, object])
    """Compatibility fields, sent as they are."""
    api_key: str | None = None

    def over(self, lower: "Overrides") -> "Overrides":
        return Overrides(
            headers={**lower.headers, **self.headers},
            generation=self.generation.over(lower.generation),
            options=overlay(lower.options, self.options),
            body=overlay(lower.body, self.body),
            api_key=self.api_key or lower.api_key,
        )


NO_OVERRIDES: Final = Overrides()
