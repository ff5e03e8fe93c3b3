"""A server as the recorded one was, and one Session of it with both of its streams.

Invariant: what was seen live is everything from before the first prompt to after the last one.
"""

import json
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.support.api import Api, Stream
from tests.support.instance import Instance, running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, ScriptedProvider

FOLDER: Final = Path(__file__).parent
EVERYTHING: Final[Sequence[JsonObject]] = [{"action": "*", "resource": "*", "effect": "allow"}]
MODEL: Final[JsonObject] = {"providerID": "fake", "id": "fake-model"}
SMALL: Final[JsonObject] = {"providerID": "fake", "id": "small"}
"""A model that has room for two long prompts."""
RELEASED: Final = "released"
WAITING: Final = Call(
    "bash",
    {"command": f"until [ -e {RELEASED} ]; do sleep 0.05; done", "description": "wait"},
)
"""Ends when there is a file of that name in the project."""
_SMALL_LIMIT: Final[JsonObject] = {"context": 14_000, "output": 2_000}


@asynccontextmanager
async def serving(
    root: Path,
    provider: ScriptedProvider,
    *,
    permissions: Sequence[JsonObject] = (),
    heartbeat_seconds: float = limits.HEARTBEAT_SECONDS,
) -> AsyncGenerator[Instance]:
    """A server on two repositories with a few files, as the recorded one had."""
    folders = make_folders(root, provider, permissions=permissions)
    _furnish(folders.project)
    async with running(folders, heartbeat_seconds=heartbeat_seconds) as opened:
        yield opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    api: Api
    project: Path
    provider: ScriptedProvider
    session: str
    live: Stream
    seen: list[JsonObject] = field(default_factory=list[JsonObject])
    looks: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What was told of the Session while it ran, by the name of the look."""

    async def prompted(self, text: str = "go on", **fields: JsonValue) -> str:
        """Prompt without waiting; the id of the message."""
        return (await self.api.prompt(self.session, text, **fields))["id"]

    async def asked(self, text: str = "go on") -> str:
        """Prompt and wait until all is done; the id of the message."""
        message = await self.prompted(text)
        await self.api.wait(self.session)
        return message

    async def until(self, type: str) -> JsonObject:
        """The next live event of that type."""
        self.seen.extend(await self.live.until(type))
        return self.seen[-1]

    async def post(self, path: str, body: JsonValue = None) -> None:
        """To a path below the Session's own."""
        await self.api.post(f"/api/session/{self.session}/{path}", body)

    async def streams(self) -> dict[str, list[JsonObject]]:
        """All that happened in the Session, once it is idle."""
        await self.api.wait(self.session)
        other = await self.api.create()
        self.seen.extend(await self.live.until("session.created", sessionID=other))
        live = [event for event in self.seen if event["data"].get("sessionID") == self.session]
        return {"durable": await self.api.history(self.session), "live": live}

    async def settled(self) -> JsonObject:
        """What is told of the Session now, and was told before."""
        path = f"/api/session/{self.session}"
        return {
            **self.looks,
            "session": await self.api.get(path),
            "messages": await self.api.get(f"{path}/message?order=asc&limit=200"),
            "context": await self.api.get(f"{path}/context"),
        }


@asynccontextmanager
async def staged(
    root: Path,
    provider: ScriptedProvider,
    chosen: JsonObject,
    *,
    permissions: Sequence[JsonObject] = (),
) -> AsyncGenerator[Stage]:
    async with serving(root, provider, permissions=permissions) as instance:
        api, project = instance.api, instance.folders.project
        _offer_small(project)
        session = await api.create(**chosen)
        async with api.stream("/api/event") as live:
            await live.until("server.connected")
            yield Stage(api=api, project=project, provider=provider, session=session, live=live)


def recorded(name: str) -> JsonValue:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def _furnish(project: Path) -> None:
    for folder, file in (("", "hello.txt"), ("sub", "inner.txt"), ("../project2", "two.txt")):
        (project / folder).mkdir(exist_ok=True)
        (project / folder / file).write_text("hello\n", encoding="utf-8")
    for repository in (project, project.parent / "project2"):
        subprocess.run(["git", "init", "-q", str(repository)], check=True)


def _offer_small(project: Path) -> None:
    path = project / "opencode.json"
    configuration = codec.decode_any(path.read_bytes())
    configuration["providers"]["fake"]["models"]["small"] = {"limit": _SMALL_LIMIT}
    path.write_bytes(codec.encode(configuration))
