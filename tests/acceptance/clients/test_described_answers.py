"""Requests drawn from our own description, sound and spoilt: every answer is one that it declares.

A seed makes the requests: fields of the schemas with values of their type, and the same with fields
missing, of another type, null, empty or huge. Nothing may be answered with a defect, and no status
may be one that the operation does not declare.
"""

import random
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import quote

import pytest

from perdure.protocol.api import API
from perdure.protocol.endpoint import Endpoint
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.inputs.contract_description import document
from tests.support.scripted_provider import ScriptedProvider, text

REQUESTS: Final = 12
"""For each operation and seed."""
SPOILT: Final[tuple[JsonValue, ...]] = (
    None, "", 0, -1, 1.5, True, [], {}, "x" * 5_000, "\u0000", "../..", 10**30, [[[]]], "ses_",
)  # fmt: skip
UNANSWERED: Final = frozenset({"durable_stream", "live_stream", "websocket"})


def drawn(schema: JsonObject, chance: random.Random, depth: int = 0) -> JsonValue:
    """A value that fits `schema`, or one that does not."""
    if chance.random() < 0.12 or depth > 6:
        return chance.choice(SPOILT)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return drawn(document()["components"]["schemas"][name], chance, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return drawn(chance.choice(schema[word]), chance, depth + 1)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    return _of_type(schema, chance, depth)


def _of_type(schema: JsonObject, chance: random.Random, depth: int) -> JsonValue:
    match schema.get("type"):
        case "object":
            needed = schema.get("required", ())
            return {
                name: drawn(field, chance, depth + 1)
                for name, field in schema.get("properties", {}).items()
                if name in needed or chance.random() < 0.6
            }
        case "array":
            return [drawn(schema.get("items", {}), chance, depth + 1) for _ in range(2)]
        case "integer" | "number":
            return chance.choice((0, 1, 2, 50, 10_000))
        case "boolean":
            return chance.random() < 0.5
        case _:
            prefix = str(schema.get("pattern", ""))[1:5]
            return f"{prefix if prefix.endswith('_') else ''}{chance.choice('abcdef')}"


def request(
    endpoint: Endpoint, chance: random.Random, known: Mapping[str, str]
) -> tuple[str, bytes | None]:
    operation = document()["paths"][endpoint.path][endpoint.method.lower()]
    path, fields = endpoint.path, list[str]()
    for parameter in operation["parameters"]:
        name, value = parameter["name"], drawn(parameter["schema"], chance)
        if parameter["in"] == "path":
            chosen = known.get(name) if chance.random() < 0.8 else None
            path = path.replace(f"{{{name}}}", quote(str(chosen or value or "x"), safe=""))
        elif isinstance(value, dict):
            parts = cast("JsonObject", value)
            fields += [f"{name}[{key}]={quote(str(one))}" for key, one in parts.items()]
        elif chance.random() < 0.5:
            fields.append(f"{name}={quote(str(value))}")
    body = None
    if endpoint.body is not None:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        body = codec.encode(_encodable(drawn(schema, chance)))
    return f"{path}?{'&'.join(fields)}" if fields else path, body


def _encodable(value: JsonValue) -> JsonValue:
    return "a large number" if isinstance(value, int) and abs(value) >= 2**63 else value


def is_fuzzed(endpoint: Endpoint) -> bool:
    # Terminals run what they are told, and to connect to one is no request with an answer.
    return endpoint.success.kind not in UNANSWERED and endpoint.group != "pty"


@requirement("S117")
@pytest.mark.parametrize("seed", range(3))
async def test_no_answer_is_undeclared_or_a_defect(
    api: Api, provider: ScriptedProvider, seed: int
) -> None:
    chance = random.Random(seed)
    provider.then(*(text("ok") for _ in range(200)))
    session = await api.create()
    known = {"sessionID": session, "messageID": (await api.ask(session, "hello"))[0]["id"]}
    wrong: list[str] = []
    for endpoint in filter(is_fuzzed, API):
        declared = document()["paths"][endpoint.path][endpoint.method.lower()]["responses"]
        for number in range(REQUESTS):
            if number == 0 or endpoint.method == "DELETE":
                # There again, if the last request has deleted it.
                await api.create(id=session)
            path, body = request(endpoint, chance, known)
            answer = await api.raw(api.message(endpoint.method, path, body))
            if str(answer.status) not in declared or answer.status == 500:
                wrong.append(f"{endpoint.method} {path[:120]} {(body or b'')[:200]!r}: {answer}")
            assert answer.status < 400 or answer.tag is not None
    assert wrong == []
