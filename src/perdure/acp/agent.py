"""The methods of the protocol that need Sessions: opened, prompted, changed, listed, closed."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Final, TypeVar

from msgspec import UNSET

from perdure.acp.mcp_servers import read_servers
from perdure.acp.open_session import OpenSession, Speaker, load_snapshot
from perdure.acp.prompting import Prompting
from perdure.acp.schema import requests
from perdure.acp.schema.answers import Listed, Nothing, Opened, OptionsSet, SessionList
from perdure.acp.show.choices import AGENT, MODEL, VARIANT, Choices
from perdure.acp.show.timestamps import iso_time
from perdure.acp.wire.rpc import Answered, Method, read_params
from perdure.acp.wire.rpc_error import AUTH_REQUIRED, NOT_FOUND, RpcError, invalid
from perdure.client.client import Client
from perdure.client.errors import ClientError
from perdure.core.limits import ACP_SESSIONS_MAX
from perdure.schema.errors import DeclaredError, SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.live_event import CatalogChanged, McpChanged, ServerLagged
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session.session import SessionInfo
from perdure.schema.settings.session_mcp import GivenMcpServers

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PAGE_ITEMS: Final = 50
_RECONNECT_SECONDS: Final = 0.5
_NO_PROVIDER: Final = (
    "No provider is connected, so there is no model to ask. Run `perdure auth login` in a terminal,"
    " then try again."
)


class Agent:
    def __init__(self, client: Client, speaker: Speaker) -> None:
        self._client = client
        self._speaker = speaker
        self._open: dict[SessionID, OpenSession] = {}
        self._opening = asyncio.Lock()
        self._uses = 0
        prompting = Prompting(client, speaker, self.find)
        self.methods: Mapping[str, Method] = {
            "authenticate": self._method(requests.Authenticate, self.authenticate),
            "session/new": self._method(requests.NewSession, self.new),
            "session/load": self._method(requests.OpenSession, self.load),
            "session/resume": self._method(requests.OpenSession, self.resume),
            "session/fork": self._method(requests.OpenSession, self.fork),
            "session/list": self._method(requests.ListSessions, self.list),
            "session/close": self._method(requests.OfSession, self.close),
            "session/delete": self._method(requests.OfSession, self.delete),
            "session/set_mode": self._method(requests.SetMode, self.set_mode),
            "session/set_config_option": self._method(
                requests.SetConfigOption, self.set_config_option
            ),
            "session/cancel": self._method(requests.OfSession, prompting.cancel),
            "session/prompt": Method(
                handle=read_params(requests.Prompt, _declared(prompting.prompt)),
                cancel=read_params(requests.OfSession, _declared(prompting.cancel)),
                outlasts=True,
            ),
        }

    def _method(self, kind: type[T], handle: Callable[[T], Awaitable[object]]) -> Method:
        return Method(read_params(kind, _declared(handle)))

    # ---- opening --------------------------------------------------------------------------------

    async def authenticate(self, given: requests.Authenticate) -> Nothing:
        """Succeeds once a provider is connected; connecting one needs a terminal or a browser."""
        await self._require_model(os.getcwd())
        return Nothing()

    async def new(self, given: requests.NewSession) -> Answered:
        directory = _require_absolute(given.cwd)
        servers = read_servers(given.mcp_servers)
        _note_directories(given.additional_directories)
        await self._require_model(directory)
        session = await self._client.sessions.create(location=LocationRef(directory=directory))
        return await self._opened(session.id, servers or None, names_it=True)

    async def load(self, given: requests.OpenSession) -> Answered:
        return await self._reopen(given, replays=True)

    async def resume(self, given: requests.OpenSession) -> Answered:
        return await self._reopen(given, replays=given.replay_from is not None)

    async def fork(self, given: requests.OpenSession) -> Answered:
        _require_absolute(given.cwd)
        servers = read_servers(given.mcp_servers)
        session = await self._client.sessions.fork(given.session_id)
        return await self._opened(session.id, servers or None, names_it=True)

    async def _reopen(self, given: requests.OpenSession, *, replays: bool) -> Answered:
        _require_absolute(given.cwd)
        servers = read_servers(given.mcp_servers)
        _note_directories(given.additional_directories)
        if given.replay_from not in (None, {"type": "start"}):
            raise invalid("`replayFrom` can only be the start")
        kept = given.mcp_servers is None
        return await self._opened(given.session_id, None if kept else servers, replays=replays)

    async def _opened(
        self,
        session_id: SessionID,
        servers: GivenMcpServers | None,
        *,
        replays: bool = False,
        names_it: bool = False,
    ) -> Answered:
        """`servers` replace those that the Session had; None leaves them."""
        if servers is not None:
            await self._client.sessions.set_mcp_servers(session_id, servers)
        async with self._opening:
            session = await self._follow(session_id, replays=replays)
        info = session.feed.session
        dialect = self._speaker.dialect
        answer = Opened(
            modes=session.choices.modes(info) if dialect.has_modes else None,
            config_options=session.choices.options(info),
            session_id=session_id if names_it else None,
        )

        async def tell_rest() -> None:
            await session.tell_commands()
            await session.tell_usage()
            session.look()

        return Answered(answer, tell_rest)

    async def _follow(self, session_id: SessionID, *, replays: bool = False) -> OpenSession:
        """Open a Session, again if it is open, and follow it from now on."""
        if (known := self._open.pop(session_id, None)) is not None:
            await known.aclose()
        await self._make_room()
        snapshot = await load_snapshot(self._client, session_id)
        choices = await self._load_choices(snapshot.session.location.directory)
        session = OpenSession(self._client, self._speaker, snapshot, choices)
        session.cancels = 0 if known is None else known.cancels
        if replays:
            await session.replay(snapshot)
        await session.begin()
        self._open[session_id] = session
        self._touch(session)
        session.look()
        return session

    async def find(self, session_id: SessionID) -> OpenSession:
        """The open Session; one that exists and is not open is opened without its history."""
        async with self._opening:
            session = self._open.get(session_id)
            if session is None or session.feed.is_gone:
                session = await self._follow(session_id)
        self._touch(session)
        return session

    def _touch(self, session: OpenSession) -> None:
        self._uses += 1
        session.used = self._uses

    async def _make_room(self) -> None:
        """Leave the idle Session that was used longest ago, if there are too many."""
        idle = [each for each in self._open.values() if not each.works]
        if len(self._open) >= ACP_SESSIONS_MAX and idle:
            oldest = min(idle, key=lambda each: each.used)
            del self._open[oldest.id]
            await oldest.aclose()

    async def _load_choices(self, directory: str) -> Choices:
        return Choices(
            agents=tuple(await self._client.agents.list(directory=directory)),
            models=tuple(await self._client.models.list(directory=directory)),
            default=(await self._client.models.default(directory=directory)).model or None,
        )

    async def _require_model(self, directory: str) -> None:
        """Raises RpcError while there is no model that could answer."""
        models = self._client.models
        if (await models.default(directory=directory)).model is UNSET and not (
            await models.list(directory=directory)
        ):
            raise RpcError(AUTH_REQUIRED, _NO_PROVIDER)

    # ---- the rest -------------------------------------------------------------------------------

    async def list(self, given: requests.ListSessions) -> SessionList:
        if given.cursor is not None:
            page = await self._client.sessions.list(cursor=given.cursor)
        else:
            directory = None if given.cwd is None else _require_absolute(given.cwd)
            page = await self._client.sessions.list(limit=_PAGE_ITEMS, directory=directory)
        return SessionList([_listed(each) for each in page.items if not each.parent_id], page.next)

    async def close(self, given: requests.OfSession) -> Nothing:
        """End what runs, and leave the Session; it stays stored."""
        await self._client.sessions.interrupt(given.session_id)
        await self._leave(given.session_id)
        return Nothing()

    async def delete(self, given: requests.OfSession) -> Nothing:
        await self._client.sessions.delete(given.session_id)
        await self._leave(given.session_id)
        return Nothing()

    async def _leave(self, session_id: SessionID) -> None:
        async with self._opening:
            if (session := self._open.pop(session_id, None)) is not None:
                await session.aclose()

    async def set_mode(self, given: requests.SetMode) -> Nothing:
        session = await self.find(given.session_id)
        await self._switch_agent(session, given.mode_id)
        return Nothing()

    async def set_config_option(self, given: requests.SetConfigOption) -> OptionsSet:
        session = await self.find(given.session_id)
        value = str(given.value)
        match given.config_id:
            case id if id == AGENT:
                await self._switch_agent(session, value)
            case id if id == MODEL:
                model = session.choices.find_model(value)
                if model is None:
                    raise invalid(f"There is no model {value[:200]!r} here")
                chosen = ModelRef(id=model.id, provider_id=model.provider_id)
                await self._client.sessions.switch_model(given.session_id, chosen)
            case id if id == VARIANT:
                variant = session.choices.with_variant(session.feed.session, value)
                if variant is None:
                    raise invalid(f"The model of the Session has no variant {value[:200]!r}")
                await self._client.sessions.switch_model(given.session_id, variant)
            case id:
                raise invalid(f"There is no option {id[:200]!r}")
        now = await self._client.sessions.get(given.session_id)
        return OptionsSet(session.choices.options(now))

    async def _switch_agent(self, session: OpenSession, name: str) -> None:
        if session.choices.find_agent(name) is None:
            raise invalid(f"There is no agent {name[:200]!r} here")
        await self._client.sessions.switch_agent(session.id, name)

    # ---- while it runs --------------------------------------------------------------------------

    async def run(self) -> None:
        """Take the live events of the server until cancelled; a lost stream is opened again."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_all)
            while True:
                try:
                    await self._listen()
                except ClientError as error:
                    logger.warning("The live events were lost: %s", error)
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self) -> None:
        async with aclosing(self._client.events.subscribe()) as events:
            async for event in events:
                if isinstance(event.data, ServerLagged):
                    return
                session_id = (
                    event.durable.aggregate_id
                    if event.durable is not None
                    else getattr(event.data, "session_id", None)
                )
                if session_id is None:
                    await self._take_news(event.data)
                    continue
                if (session := self._open.get(session_id)) is not None:
                    session.take(event)
                if event.type in _OF_REQUESTS:
                    # A subagent of any open Session may have asked.
                    for each in self._open.values():
                        each.look()

    async def _take_news(self, data: object) -> None:
        if not isinstance(data, CatalogChanged | McpChanged):
            return
        for session in tuple(self._open.values()):
            session.choices = await self._load_choices(session.feed.directory)
            if isinstance(data, McpChanged):
                await session.tell_commands()
            else:
                await session.tell_choices(session.feed.session)

    async def _close_all(self) -> None:
        for session in self._open.values():
            await session.aclose()


_OF_REQUESTS: Final = frozenset(
    {
        "permission.v2.asked",
        "permission.v2.replied",
        "question.v2.asked",
        "question.v2.replied",
        "question.v2.rejected",
        "session.status",
    }
)


def _declared(handle: Callable[[T], Awaitable[object]]) -> Callable[[T], Awaitable[object]]:
    """The handler, with the failures of the contract as errors of the protocol."""

    async def call(given: T) -> object:
        try:
            return await handle(given)
        except SessionNotFoundError as error:
            raise RpcError(
                NOT_FOUND, error.message, {"sessionId": str(error.session_id)}
            ) from error
        except DeclaredError as error:
            raise invalid(error.message) from error
        except ClientError as error:
            raise RpcError(-32603, f"The server cannot be reached: {error}") from error

    return call


def _listed(session: SessionInfo) -> Listed:
    return Listed(
        session_id=session.id,
        cwd=session.location.directory,
        title=session.title,
        updated_at=iso_time(session.time.updated),
    )


def _require_absolute(directory: str) -> str:
    if not os.path.isabs(directory):
        raise invalid(f"`cwd` must be an absolute path, not {directory[:200]!r}")
    return directory


def _note_directories(directories: "list[str] | None") -> None:
    if directories:
        logger.warning(
            "Further directories of the editor are not opened for tools: %s", directories[:5]
        )
