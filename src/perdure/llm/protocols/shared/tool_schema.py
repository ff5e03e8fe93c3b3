"""A tool's input schema in the form that OpenAI accepts: one object at the top.

Alternatives at the top (`anyOf`, `oneOf`, `allOf`) are merged into one object: every property of
any of them, required if all of them require it. Nested schemas are not changed. The tool validates
inputs against the original schema.

Invariant: any JSON object gives a schema of type `object` without a combinator at its top.
"""

from typing import Final

from perdure.llm.encoding import shared
from perdure.schema.codec import JsonObject, JsonValue

_CHOICES: Final = ("anyOf", "oneOf")
_REPLACED: Final = frozenset(
    {
        "$ref",
        "allOf",
        "anyOf",
        "const",
        "else",
        "enum",
        "if",
        "not",
        "oneOf",
        "properties",
        "required",
        "then",
        "type",
    }
)
_NESTING_MAX: Final = 16
_PARTS_MAX: Final = 500
"""Maximum parts to merge; recursive references could go on without end."""


def flattened(schema: JsonObject) -> JsonObject:
    """`schema` as one object."""
    kept = {key: value for key, value in schema.items() if key not in _REPLACED}
    return kept | {"type": "object"} | _Merge(schema).object(schema, _NESTING_MAX)


class _Merge:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._left = _PARTS_MAX

    def object(self, schema: JsonObject, nesting: int) -> JsonObject:
        """`properties` and `required` of a schema, merged with its alternatives."""
        properties = _properties(schema)
        required = _required(schema)
        for inner in self._inner([*self._resolved(schema), *_listed(schema, "allOf")], nesting):
            _take_in(properties, inner["properties"])
            required += inner.get("required", [])
        for name in _CHOICES:
            choices = [c for c in _listed(schema, name) if c.get("type") != "null"]
            inners = self._inner(choices, nesting)
            for inner in inners:
                _take_in(properties, inner["properties"])
            required += _in_all([inner.get("required", []) for inner in inners])
        unique = [name for name in dict.fromkeys(required) if name in properties]
        return {"properties": properties} | ({"required": unique} if unique else {})

    def _inner(self, parts: list[JsonObject], nesting: int) -> list[JsonObject]:
        found: list[JsonObject] = []
        for part in parts:
            if nesting > 0 and self._left > 0:
                self._left -= 1
                found.append(self.object(part, nesting - 1))
        return found

    def _resolved(self, schema: JsonObject) -> list[JsonObject]:
        """The target of a reference within the document."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return []
        found: JsonValue = self._root
        for step in reference[2:].split("/"):
            found = found.get(step) if shared.is_object(found) else None
        return [found] if shared.is_object(found) else []


def _take_in(properties: JsonObject, more: JsonObject) -> None:
    """Add properties; one with two schemas may be either."""
    for name, schema in more.items():
        if name not in properties:
            properties[name] = schema
        elif properties[name] != schema:
            known = properties[name]
            either = known["anyOf"] if _is_either(known) else [known]
            properties[name] = {"anyOf": [*either, schema] if schema not in either else either}


def _is_either(schema: JsonValue) -> bool:
    return shared.is_object(schema) and [*schema] == ["anyOf"]


def _listed(schema: JsonObject, name: str) -> list[JsonObject]:
    return [item for item in shared.elements(schema.get(name)) if shared.is_object(item)]


def _properties(schema: JsonObject) -> JsonObject:
    value = schema.get("properties")
    return dict(value) if shared.is_object(value) else {}


def _required(schema: JsonObject) -> list[str]:
    return [item for item in shared.elements(schema.get("required")) if isinstance(item, str)]


def _in_all(lists: list[list[str]]) -> list[str]:
    if not lists:
        return []
    first, *others = lists
    return [name for name in first if all(name in other for other in others)]
