"""What the configuration adds to the requests of a model: headers, and fields of the body.

Configured bodies mix three domains. Here they are taken apart: Generation Controls, fields for
the provider alone, and the key and address, which are not part of any body.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import field

from perdure.llm.request import GenerationControls
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential

_NOT_SENT: Final = frozenset({"apiKey", "baseURL"})
_CONTROLS: Final[Mapping[str, str]] = {
    "frequencyPenalty": "frequency_penalty",
    "frequency_penalty": "frequency_penalty",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_tokens": "max_tokens",
    "presencePenalty": "presence_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop",
    "temperature": "temperature",
    "topK": "top_k",
    "topP": "top_p",
    "top_k": "top_k",
    "top_p": "top_p",
}
"""The spellings of Generation Controls in configured bodies -> ours."""


class Overrides(Confidential, kw_only=True):
    """Headers and body fields of a request, the key still among them."""

    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: JsonObject = field(default_factory=dict[str, object])

    def over(self, lower: "Overrides") -> "Overrides":
        return Overrides(
            headers={**lower.headers, **self.headers}, body={**lower.body, **self.body}
        )


NO_OVERRIDES: Final = Overrides()


def split(body: JsonObject) -> tuple[GenerationControls, JsonObject]:
    """Take the Generation Controls out of a configured body.

    What remains is for the provider alone; keys that only say where to send are left out.
    """
    controls: JsonObject = {}
    rest: JsonObject = {}
    for key, value in body.items():
        if key in _CONTROLS:
            controls[_CONTROLS[key]] = value
        elif key not in _NOT_SENT:
            rest[key] = value
    try:
        known = codec.convert(GenerationControls, controls)
    except msgspec.ValidationError:
        # One bad value must not take the good ones with it; they are few.
        sound = {key: value for key, value in controls.items() if _sound(key, value)}
        known = codec.convert(GenerationControls, sound)
    return known, rest


def _sound(control: str, value: JsonValue) -> bool:
    try:
        codec.convert(GenerationControls, {control: value})
    except msgspec.ValidationError:
        return False
    return True
