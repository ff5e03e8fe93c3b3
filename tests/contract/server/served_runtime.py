"""A runtime on temporary files with two Sessions in it, and servers of it with any settings."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Final

from perdure.runtime.app.runtime import Runtime, RuntimeSettings, open_runtime
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import AgentSwitched
from perdure.server.app import HANDLERS, App, make_app
from perdure.server.call import Call, Handlers
from perdure.server.settings import HttpLimits, ServerSettings
from tests.support.project import ProjectFolders, make_folders
from tests.support.raw_http import listening
from tests.support.scripted_provider import ScriptedProvider, scripted_provider

SESSION: Final = SessionID("ses_one")
OTHER: Final = SessionID("ses_two")
KEY: Final = b"k" * 32
QUICK: Final = HttpLimits(
    read_seconds_max=0.2, linger_seconds_max=0.2, stall_seconds_max=1, shutdown_seconds_max=0.5
)

Run = Callable[[Call[object, object]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Backend:
    """A runtime that has SESSION and OTHER, and the provider that its models are asked of."""

    runtime: Runtime
    folders: ProjectFolders
    provider: ScriptedProvider

    @property
    def here(self) -> str:
        """The directory of both Sessions, and of requests that name none."""
        return str(self.folders.project)

    def settings(
        self,
        *,
        password: str | None = None,
        origins: frozenset[str] = frozenset(),
        heartbeat_seconds: float = 15,
        body_bytes_max: int = 1024 * 1024,
        web_directory: str = "/nowhere",
    ) -> ServerSettings:
        return ServerSettings(
            default_directory=self.here,
            cursor_key=KEY,
            password=password,
            allowed_origins=origins,
            heartbeat_seconds=heartbeat_seconds,
            body_bytes_max=body_bytes_max,
            web_directory=web_directory,
        )

    def app(
        self,
        given: ServerSettings | None = None,
        handlers: Handlers = HANDLERS,
        v1_handlers: Handlers | None = None,
        ag_ui_handlers: Handlers | None = None,
    ) -> App:
        return make_app(
            self.runtime,
            given or self.settings(),
            handlers,
            v1_handlers,
            ag_ui_handlers=ag_ui_handlers,
        )

    @asynccontextmanager
    async def port(
        self,
        given: ServerSettings | None = None,
        limits: HttpLimits | None = None,
        handlers: Handlers = HANDLERS,
        v1_handlers: Handlers | None = None,
        ag_ui_handlers: Handlers | None = None,
    ) -> AsyncGenerator[int]:
        """The port of a server with these settings, limits and handlers."""
        async with listening(self.app(given, handlers, v1_handlers, ag_ui_handlers), limits) as (
            _,
            port,
        ):
            yield port

    async def add_messages(self, session_id: SessionID, count: int) -> None:
        """Messages msg_1, msg_2 and so on, each with one event of the log."""
        events = [
            AgentSwitched(
                timestamp=number,
                session_id=session_id,
                message_id=MessageID(f"msg_{number}"),
                agent=f"agent-{number}",
            )
            for number in range(1, count + 1)
        ]
        await self.runtime.store.append(session_id, events, location=LocationRef(self.here))

    async def count_events(self, session_id: SessionID) -> int:
        return await self.runtime.store.latest(session_id)


@asynccontextmanager
async def open_backend(root: Path, **configuration: object) -> AsyncGenerator[Backend]:
    """`configuration` is laid over the project's opencode.json."""
    async with scripted_provider() as provider:
        folders = make_folders(root, provider, **configuration)
        settings = RuntimeSettings(
            environment=folders.environment,
            data_dir=str(folders.data),
            default_directory=str(folders.project),
        )
        async with open_runtime(settings) as runtime:
            for session_id in (SESSION, OTHER):
                await runtime.sessions.create(id=session_id)
            yield Backend(runtime, folders, provider)


def with_handler(operation_id: str, run: Run) -> Handlers:
    """The table of handlers with another one for this operation, which declares the same types."""
    return {**HANDLERS, operation_id: wraps(HANDLERS[operation_id])(run)}
