"""Recorded requests, sent again with the ids of another server, and how its answers differ."""

import re
from typing import Final
from urllib.parse import quote

from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.recorded.before import BEFORE
from tests.support.api import Answer
from tests.support.instance import Instance
from tests.support.scripted_provider import ScriptedProvider

_NAME: Final = re.compile(r"<[a-z]+\d+>")
_MODEL: Final[JsonObject] = {"providerID": "fake", "id": "fake-model"}


class Replay:
    """One recording, from its first request on."""

    def __init__(self, instance: Instance, provider: ScriptedProvider) -> None:
        self._instance = instance
        self._provider = provider
        self._api = instance.api
        self._parent = str(instance.folders.project.parent)
        self._known: dict[str, str] = {}

    async def differences(self, recorded: JsonObject) -> list[str]:
        """How our answer differs from the recorded one."""
        shape: JsonValue = recorded.get("shape")
        await self._before(recorded["name"])
        plain = {key: value for key, value in recorded.items() if key != "shape"}
        line = codec.encode(plain).decode().replace("/project", f"{self._parent}/project")
        line = line.replace("%2Fproject", f"{quote(self._parent, safe='')}%2Fproject")
        for name in dict.fromkeys(_NAME.findall(line)):
            line = line.replace(name, await self.id_of(name))
        request: JsonObject = codec.decode_any(line)
        answer = await self._sent(request)
        await self._after(request, answer)
        if answer.status != recorded["status"]:
            return [f"status {answer.status} instead of {recorded['status']}"]
        if shape is None:
            return []
        self._learn(shape, answer.json)
        return self.compared(shape, answer.json)

    async def id_of(self, name: str) -> str:
        """Ours for that of the record; a Session is made when it is first needed."""
        if name not in self._known and name.startswith("<ses"):
            self._known[name] = await self._api.create(model=_MODEL)
        return self._known[name]

    @classmethod
    def compared(cls, shape: JsonValue, ours: JsonValue, at: str = "") -> list[str]:
        """Where a value does not have the shape."""
        if jsonc.is_object(shape):
            return cls._objects(shape, ours, at)
        if jsonc.is_list(shape):
            return cls._lists(shape[0], ours, at)
        wanted = "string" if _NAME.fullmatch(shape) else shape
        kind = _kind(ours)
        return [] if wanted in {kind, "any"} else [f"{at}: {kind} instead of {wanted}"]

    @classmethod
    def _objects(cls, shape: JsonObject, ours: JsonValue, at: str) -> list[str]:
        if not jsonc.is_object(ours):
            return [f"{at}: {_kind(ours)} instead of object"]
        plain = {key.rstrip("?"): item for key, item in shape.items()}
        found = [f"{at}.{key} is missing" for key in shape if key[-1:] != "?" and key not in ours]
        found += [f"{at}.{key} is new" for key in ours if key not in plain]
        for key in [key for key in plain if key in ours]:
            found += cls.compared(plain[key], ours[key], f"{at}.{key}")
        return found

    @classmethod
    def _lists(cls, kinds: JsonObject, ours: JsonValue, at: str) -> list[str]:
        if not jsonc.is_list(ours):
            return [f"{at}: {_kind(ours)} instead of list"]
        found: list[str] = []
        for item in ours:
            kind = item.get("type", "") if jsonc.is_object(item) else ""
            if kind in kinds:
                found += cls.compared(kinds[kind], item, f"{at}[{kind}]")
            elif kinds:
                found.append(f"{at}[{kind}] is new")
        return list(dict.fromkeys(found))

    async def _before(self, exchange: str) -> None:
        if exchange in BEFORE:
            session, made, before = BEFORE[exchange]
            known = await self.id_of(session)
            self._known[made] = await before(self._instance, self._provider, known)

    async def _sent(self, request: JsonObject) -> Answer:
        given = {name.lower(): value for name, value in request.get("headers", {}).items()}
        if "body" in request:
            data, headers = codec.encode(request["body"]), given
        else:
            raw = request.get("raw")
            # Nothing is added to what was recorded as it was sent.
            data, headers = (None if raw is None else raw.encode()), {"content-type": "", **given}
        message = self._api.message(request["method"], request["path"], data, headers)
        return await self._api.raw(message)

    async def _after(self, request: JsonObject, answer: Answer) -> None:
        """What goes on now is waited for, and a Session that was deleted is another one."""
        gone = request["path"].rpartition("/")[2]
        if request["method"] == "DELETE" and gone.startswith("ses_") and answer.status == 204:
            self._known = {name: known for name, known in self._known.items() if known != gone}
        prompted = request["path"].endswith("/prompt") and answer.status == 200
        if prompted and request["body"].get("resume") is not False:
            await self._api.wait(request["path"].split("/")[3])
        if request["path"].endswith(("/reply", "/reject")) and answer.status == 204:
            await self._api.wait(request["path"].split("/")[3])

    def _learn(self, shape: JsonValue, ours: JsonValue) -> None:
        """Which id of ours stands for which of the record."""
        if jsonc.is_object(shape) and jsonc.is_object(ours):
            for key, item in shape.items():
                self._learn(item, ours.get(key.rstrip("?")))
        elif jsonc.is_list(shape) and jsonc.is_list(ours) and len(ours) == 1:
            for item in shape[0].values():
                self._learn(item, ours[0])
        elif isinstance(shape, str) and isinstance(ours, str) and _NAME.fullmatch(shape):
            self._known.setdefault(shape, ours)


def _kind(value: JsonValue) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case None:
            return "null"
        case int() | float():
            return "number"
        case _:
            return "list" if jsonc.is_list(value) else "object"
