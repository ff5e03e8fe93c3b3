"""An OpenAPI document reduced to lines that can be compared: one for each thing a client notices.

A line says how an operation is spelled, what it takes or gives: `answer .data[].id: string`.
Names of schemas, descriptions and order do not count, nor does `integer` differ from `number`.
A `?` marks what may be left out; `<x>` the member of a union whose `type` is `x`.
"""

from collections.abc import Iterator
from typing import Final, cast

from perdure.schema.codec import JsonObject

_METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
_JSON: Final = "application/json"


def shape(document: JsonObject) -> dict[str, list[str]]:
    """Operation id -> its lines, sorted."""
    return {
        operation["operationId"]: sorted(_lines(document, method, path, operation))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in _METHODS
    }


def _lines(document: JsonObject, method: str, path: str, operation: JsonObject) -> Iterator[str]:
    yield f"route {method.upper()} {path}"
    for parameter in operation.get("parameters", []):
        optional = "" if parameter.get("required") else "?"
        yield f"parameter {parameter['in']} {parameter['name']}{optional}"
    if body := operation.get("requestBody"):
        yield from _fields(document, body["content"][_JSON]["schema"], "body ")
    for status, answer in operation["responses"].items():
        yield f"status {status}"
        if status.startswith("2"):
            yield from _answer(document, answer.get("content", {}))


def _answer(document: JsonObject, content: JsonObject) -> Iterator[str]:
    for media, item in content.items():
        yield f"media {media}"
        if media == _JSON:
            yield from _fields(document, item["schema"], "answer ")


def _fields(document: JsonObject, schema: JsonObject, root: str) -> list[str]:
    found: dict[str, set[str]] = {}
    _walk(document, schema, root, found, frozenset(), required=True)
    return [f"{path}: {'|'.join(sorted(types))}" for path, types in found.items()]


def _walk(
    document: JsonObject,
    schema: JsonObject,
    path: str,
    found: dict[str, set[str]],
    seen: frozenset[str],
    *,
    required: bool,
) -> None:
    if (ref := schema.get("$ref")) is not None:
        if ref in seen:
            return
        seen = seen | {ref}
        schema = _resolved(document, schema)
    if members := schema.get("anyOf") or schema.get("oneOf"):
        for member in members:
            at = path + _variant(document, member)
            _walk(document, member, at, found, seen, required=required)
        return
    kind = _kind(schema)
    found.setdefault(path if required else f"{path}?", set()).add(kind)
    for name, field in schema.get("properties", {}).items():
        needed = name in schema.get("required", ())
        _walk(document, field, f"{path}.{name}", found, seen, required=needed)
    if kind == "array" and schema.get("items"):
        _walk(document, schema["items"], f"{path}[]", found, seen, required=True)


def _resolved(document: JsonObject, schema: JsonObject) -> JsonObject:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _variant(document: JsonObject, member: JsonObject) -> str:
    tag = _resolved(document, member).get("properties", {}).get("type")
    if tag is None:
        return ""
    tag = _resolved(document, tag)
    name = tag.get("const") or next(iter(tag.get("enum", ())), None)
    return "" if name is None else f"<{name}>"


def _kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    if kind is None:
        return "string" if "const" in schema or "enum" in schema else "any"
    if isinstance(kind, list):
        return "|".join(sorted(cast("list[str]", kind)))
    return "number" if kind == "integer" else str(kind)
