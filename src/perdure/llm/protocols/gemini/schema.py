"""A tool's input schema in the OpenAPI subset that Gemini accepts.

The provider refuses other keys, so they are dropped; some constraints move into the description.
References are resolved to a bounded depth. The tool validates inputs against the original schema.

Invariant: any JSON object gives a schema whose keys and formats are all on the provider's list.
"""

from collections.abc import Mapping
from typing import Final

from perdure.llm.encoding import shared
from perdure.llm.protocols.shared import tool_schema
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State, Value

NODES_MAX: Final = 2_000
"""Maximum nested schemas: references could expand a small schema without end."""

_NESTING_MAX: Final = 16
_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})
_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
    "string": frozenset({"date-time", "enum"}),
}
_COUNTS: Final = (
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
)
_BOUNDS: Final = ("maximum", "minimum")
_CHOICES: Final = ("anyOf", "oneOf")


def parameters(schema: JsonObject) -> JsonObject | None:
    """The schema of a tool's input; None if the tool has no parameters."""
    whole = tool_schema.flattened(schema)
    projected = _Projection(schema).convert(whole, _Depth())
    return projected if projected.get("properties") else None


class _Depth(Value):
    """The depth of a nested schema, and the references that enclose it."""

    nesting: int = 0
    within: frozenset[str] = frozenset()

    def below(self) -> "_Depth":
        return _Depth(self.nesting + 1, self.within)


class _Projection(State):
    root: JsonObject
    nodes_left: int = NODES_MAX

    def convert(self, value: JsonValue, depth: _Depth) -> JsonObject:
        self.nodes_left -= 1
        if depth.nesting > _NESTING_MAX or self.nodes_left < 0:
            return {"type": "string"}
        schema, depth = self._resolved(value, depth)
        kinds, nullable = _kinds(schema)
        result: JsonObject = _described(schema)
        if nullable:
            result["nullable"] = True
        choices = [choice for name in _CHOICES for choice in _objects(schema.get(name))]
        if choices and not kinds:
            return result | _either([self.convert(choice, depth.below()) for choice in choices])
        if len(kinds) > 1:
            return result | {"anyOf": [self._typed(schema, kind, depth) for kind in kinds]}
        kind = kinds[0] if kinds else _implied(schema)
        return result | self._typed(schema, kind, depth)

    def _resolved(self, value: JsonValue, depth: _Depth) -> tuple[JsonObject, _Depth]:
        """The target of a chain of references, merged with keys beside them and in `allOf`."""
        schema: JsonObject = value if shared.is_object(value) else {}
        while isinstance(reference := schema.get("$ref"), str):
            siblings = {key: item for key, item in schema.items() if key != "$ref"}
            if reference in depth.within:
                # A recursive schema has no finite form.
                return {"type": "object"} | siblings, depth
            depth = _Depth(depth.nesting, depth.within | {reference})
            schema = _pointed_at(self.root, reference) | siblings
        for part in _objects(schema.get("allOf")):
            self.nodes_left -= 1
            if depth.nesting <= _NESTING_MAX and self.nodes_left > 0:
                inner, _ = self._resolved(part, depth.below())
                schema = _merged(inner, schema)
        return schema, depth

    def _typed(self, schema: JsonObject, kind: str, depth: _Depth) -> JsonObject:
        result: JsonObject = {"type": kind}
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS.get(kind, ()):
            result["format"] = form
        result |= {key: schema[key] for key in _COUNTS if _is_count(schema.get(key))}
        if kind in ("integer", "number"):
            result |= {key: schema[key] for key in _BOUNDS if _is_number(schema.get(key))}
        if kind == "string" and (values := _strings(_values(schema))):
            result["enum"] = values
        if kind == "array":
            items = schema.get("items")
            first = _objects(items)
            result["items"] = self.convert(first[0] if first else items, depth.below())
        if kind == "object":
            result |= self._members(schema, depth)
        return result

    def _members(self, schema: JsonObject, depth: _Depth) -> JsonObject:
        given = schema.get("properties")
        properties: JsonObject = given if shared.is_object(given) else {}
        if not properties:
            return {}
        members = {name: self.convert(member, depth.below()) for name, member in properties.items()}
        required = [name for name in _strings(schema.get("required")) if name in members]
        return {"properties": members} | ({"required": required} if required else {})


_NULL: Final[JsonObject] = {"type": "string", "nullable": True}
"""The schema for type null."""


def _either(choices: list[JsonObject]) -> JsonObject:
    real = [choice for choice in choices if choice != _NULL]
    if not real:
        return _NULL
    alternatives = real[0] if len(real) == 1 else {"anyOf": real}
    return alternatives if len(real) == len(choices) else alternatives | {"nullable": True}


def _kinds(schema: JsonObject) -> tuple[list[str], bool]:
    """The types that a value may have, and whether it may be null."""
    given = schema.get("type")
    named = [given] if isinstance(given, str) else _strings(given)
    kinds = [name for name in dict.fromkeys(named) if name in _TYPES]
    nullable = "null" in named or schema.get("nullable") is True
    return kinds or (["string"] if named else []), nullable


def _implied(schema: JsonObject) -> str:
    if shared.is_object(schema.get("properties")):
        return "object"
    if "items" in schema:
        return "array"
    values = _values(schema)
    if values and all(_is_number(value) for value in values):
        return "number"
    return "string"


def _described(schema: JsonObject) -> JsonObject:
    given = schema.get("description")
    texts = [given] if isinstance(given, str) and given else []
    values = _values(schema)
    if values and len(_strings(values)) != len(values):
        # The provider allows enums only for strings.
        texts.append("One of: " + ", ".join(shared.json_text(value) for value in values))
    return {"description": " ".join(texts)} if texts else {}


def _values(schema: JsonObject) -> list[JsonValue]:
    return [schema["const"]] if "const" in schema else shared.elements(schema.get("enum"))


def _merged(part: JsonObject, schema: JsonObject) -> JsonObject:
    merged = part | schema
    for name in ("properties", "required"):
        below, above = part.get(name), schema.get(name)
        if shared.is_object(below) and shared.is_object(above):
            merged[name] = below | above
        elif shared.elements(below) and shared.elements(above):
            merged[name] = [*shared.elements(below), *shared.elements(above)]
    merged.pop("allOf", None)
    return merged


def _pointed_at(root: JsonObject, reference: str) -> JsonObject:
    found: JsonValue = root if reference.startswith("#") else None
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if shared.is_object(found) else None
    return found if shared.is_object(found) else {}


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in shared.elements(value) if shared.is_object(item)]


def _strings(value: JsonValue) -> list[str]:
    return [item for item in shared.elements(value) if isinstance(item, str) and item]


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
