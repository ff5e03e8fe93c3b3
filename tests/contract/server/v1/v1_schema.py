"""The published V1 schema: whether an answer or an event fits it."""

from functools import cache
from pathlib import Path
from typing import Final

import jsonschema_rs

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

_FILE: Final = Path(__file__).parent / "recorded" / "v1_schema.json"


@cache
def document() -> JsonObject:
    return codec.decode_any(_FILE.read_bytes())


def operations() -> dict[str, JsonObject]:
    """By `METHOD /path`: the status of success, and the schema of its body if it has one."""
    return document()["operations"]


def faults(operation: str, answer: JsonValue) -> list[str]:
    """Why a body does not fit the operation; empty if it does."""
    return _faults(operations()[operation]["schema"], answer)


def event_faults(event: JsonObject) -> list[str]:
    name = document()["events"].get(event["type"])
    if name is None:
        return []
    return _faults({"$ref": f"#/components/schemas/{name}"}, event)


def _faults(schema: JsonObject, value: JsonValue) -> list[str]:
    validator = _validator(codec.encode(schema))
    return [
        f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"
        for error in validator.iter_errors(value)
    ]


@cache
def _validator(schema: bytes) -> jsonschema_rs.Draft202012Validator:
    whole = {**codec.decode_any(schema), "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(whole)
