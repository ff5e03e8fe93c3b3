"""The published schema of the protocol, from the package of its own SDK."""

import json
from functools import cached_property
from pathlib import Path
from typing import Final

from jsonschema import Draft202012Validator

from perdure.schema.codec import JsonObject, JsonValue

_SDK: Final = Path("node_modules", "@agentclientprotocol", "sdk", "schema")


class PublishedSchema:
    """Checks what an agent sends, each message by the definition of its method."""

    def __init__(self, folder: Path, version: str, *, unstable: bool = False) -> None:
        name = "schema.unstable.json" if unstable else "schema.json"
        self._document: JsonObject = json.loads((folder / _SDK / version / name).read_text())
        self._validators: dict[str, JsonValue] = {}

    @cached_property
    def _names(self) -> dict[tuple[str, str], str]:
        """The definitions of requests, answers and notifications, by method and side."""
        return {
            (found["x-method"], _kind(name)): name
            for name, found in self._document["$defs"].items()
            if "x-method" in found
        }

    def check_answer(self, method: str, result: JsonValue) -> None:
        self._check(self._names[method, "answer"], result)

    def check_sent(self, method: str, params: JsonValue) -> None:
        """A request or a notification of the agent."""
        self._check(self._names[method, "request"], params)

    def check_error(self, error: JsonValue) -> None:
        self._check("Error", error)

    def _check(self, name: str, value: JsonValue) -> None:
        if name not in self._validators:
            schema = {"$defs": self._document["$defs"], "$ref": f"#/$defs/{name}"}
            self._validators[name] = Draft202012Validator(schema)
        faults = [
            f"{error.json_path}: {error.message[:300]}"
            for error in self._validators[name].iter_errors(value)
        ]
        assert faults == [], f"{name}: {faults}: {json.dumps(value)[:500]}"


def _kind(name: str) -> str:
    return "answer" if name.endswith("Response") else "request"
