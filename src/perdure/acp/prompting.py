"""A prompt of a client: admitted at once, answered when the work that it joins has ended.

A prompt that comes while another one runs joins that work at the next boundary, and both are
answered when it ends.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import UNSET

from perdure.acp.open_session import COMPACT, OpenSession, Speaker
from perdure.acp.schema import requests
from perdure.acp.schema.answers import Nothing, PromptDone
from perdure.acp.schema.content import TextBlock
from perdure.acp.schema.updates import AgentChunk
from perdure.acp.show.prompt_blocks import CommandLine, find_command, read_prompt
from perdure.acp.turn_end import Failed, NotBegun, Stopped, find_end
from perdure.acp.wire.rpc_error import INTERNAL_ERROR, RpcError
from perdure.client.client import Client
from perdure.client.conversation.event_stream import patiently
from perdure.schema.ids import MessageID, SessionID, message_from_external
from perdure.schema.session.prompt import PromptInput

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.1
_LOOKS_MAX: Final = 50


class Prompting:
    def __init__(
        self,
        client: Client,
        speaker: Speaker,
        find: Callable[[SessionID], Awaitable[OpenSession]],
    ) -> None:
        self._client = client
        self._speaker = speaker
        self._find = find

    async def prompt(self, given: requests.Prompt) -> object:
        prompt = read_prompt(given.prompt)
        session = await self._find(given.session_id)
        async with session.order:
            cancels = session.cancels
            if (line := await self._find_command(session, prompt)) is None:
                message_id = await self._admit(session, prompt)
            elif line.name == COMPACT.name:
                return await self._compact(session, line)
            else:
                message_id = await self._run_command(session, line, prompt)
        return await self._await_end(session, message_id, cancels)

    async def cancel(self, given: requests.OfSession) -> Nothing:
        """End the work; prompts that it had not taken up stay for the next one."""
        session = await self._find(given.session_id)
        session.cancels += 1
        async with session.order:
            await self._client.sessions.interrupt(session.id)
        session.look()
        return Nothing()

    async def _find_command(self, session: OpenSession, prompt: PromptInput) -> CommandLine | None:
        line = find_command(prompt)
        if line is None or line.name == COMPACT.name:
            return line
        listed = await self._client.commands.list(directory=session.feed.directory)
        return line if any(command.name == line.name for command in listed) else None

    async def _admit(self, session: OpenSession, prompt: PromptInput) -> MessageID:
        # With an id of its own, a prompt that is sent again is admitted once.
        message_id = message_from_external(secrets.token_hex(16))
        session.feed.expect(message_id)
        await patiently(
            lambda: self._client.sessions.prompt(session.id, prompt=prompt, id=message_id)
        )
        return message_id

    async def _run_command(
        self, session: OpenSession, line: CommandLine, prompt: PromptInput
    ) -> MessageID:
        """The server makes the prompt of the command's template."""
        message_id = message_from_external(secrets.token_hex(16))
        session.feed.expect(message_id)
        await patiently(
            lambda: self._client.sessions.command(
                session.id,
                line.name,
                arguments=line.arguments or None,
                id=message_id,
                files=None if prompt.files is UNSET else prompt.files,
            )
        )
        return message_id

    async def _compact(self, session: OpenSession, line: CommandLine) -> PromptDone:
        report = await self._client.sessions.compact_with_report(
            session.id, instruction=line.arguments or None
        )
        freed = report.tokens_before - report.tokens_after
        reason = "" if report.reason is UNSET else f" {report.reason}"
        text = f"Freed {freed} tokens of context.{reason}"
        await session.tell(AgentChunk(TextBlock(text), f"compact-{secrets.token_hex(8)}"))
        return PromptDone("end_turn")

    async def _await_end(
        self, session: OpenSession, message_id: MessageID, cancels: int
    ) -> PromptDone:
        session.feed.prompts += 1
        session.look()
        try:
            end = await self._find_end(session, message_id, cancels)
        finally:
            session.feed.prompts -= 1
        session.look()
        if session.cancels != cancels:
            return PromptDone("cancelled")
        match end:
            case Stopped(reason=reason):
                return PromptDone(reason)
            case Failed(message=message):
                raise RpcError(INTERNAL_ERROR, message)
            case NotBegun():
                return await self._explain(session)

    async def _find_end(
        self, session: OpenSession, message_id: MessageID, cancels: int
    ) -> Stopped | Failed | NotBegun:
        sessions = self._client.sessions
        looks = 0
        while True:
            await patiently(partial(sessions.wait, session.id))
            last = await patiently(partial(sessions.snapshot, session.id, limit=1))
            # It may have been loaded again meanwhile.
            now = await self._find(session.id)
            await now.feed.reach(last.seq)
            end = find_end(now.feed.messages, message_id)
            session.cancels = now.cancels
            is_over = not isinstance(end, NotBegun) or session.cancels != cancels
            if is_over or looks == _LOOKS_MAX:
                return end
            # The process that has the Session may have left, and the next has yet to take it over.
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _explain(self, session: OpenSession) -> PromptDone:
        """Why a stored prompt has not begun: a decision is waited for, or it was interrupted."""
        found = await self._client.sessions.recovery.get(session.id)
        if not found.waiting:
            return PromptDone("cancelled")
        why = "a request is unclear" if found.message is UNSET else found.message
        raise RpcError(
            INTERNAL_ERROR,
            f"{why}. Decide about it with `perdure recover {session.id}`, or send another prompt.",
        )
