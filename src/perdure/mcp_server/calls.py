"""Calls of the tools: arguments are checked, Sessions asked, results written."""

import asyncio
from typing import Protocol

import msgspec
from msgspec import UNSET

from perdure.client import ClientError, DeclaredError
from perdure.mcp_server import requests
from perdure.mcp_server.arguments import (
    SHAPES,
    ListSessions,
    ReadResult,
    ReplyToRequest,
    SendPrompt,
    StartSession,
    WaitForSession,
)
from perdure.mcp_server.workers import Report, WorkerError, Workers
from perdure.schema import codec
from perdure.schema.approval.permission import Reply
from perdure.schema.codec import JsonObject, JsonValue


class Asker(Protocol):
    async def ask(self, id: str, form: JsonObject) -> JsonObject:
        """The answer of a person to this form. Raises InputNeeded."""
        ...


class InputNeeded(Exception):
    """The client has to ask a person, and to call again with the answers."""

    def __init__(self, requests: JsonObject) -> None:
        super().__init__("input is required")
        self.requests = requests


class Calls:
    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    async def call(
        self, name: str, given: JsonValue, report: Report, asker: Asker | None
    ) -> JsonObject:
        """The result of a tool. Raises InputNeeded."""
        try:
            asked = codec.convert(SHAPES[name], given)
            return _success(await self._run(asked, report, asker))
        except msgspec.ValidationError as error:
            return _failure(f"Invalid arguments: {error}")
        except UnicodeEncodeError:
            return _failure("Invalid arguments: a text holds half a character")
        except (WorkerError, DeclaredError) as error:
            return _failure(str(error))
        except ClientError as error:
            return _failure(
                f"The server of the sessions cannot be reached ({error.reason}). Sessions go on"
                " when it is back; try again."
            )

    async def _run(self, asked: object, report: Report, asker: Asker | None) -> JsonObject:
        workers = self._workers
        match asked:
            case StartSession():
                return await workers.start(asked)
            case SendPrompt():
                return await workers.send(asked)
            case ListSessions():
                return await workers.list(asked)
            case ReadResult():
                return await workers.result(asked)
            case ReplyToRequest():
                return await workers.reply(asked)
            case WaitForSession():
                return await self._wait(asked, report, asker)
            case _:
                raise AssertionError(asked)

    async def _wait(self, asked: WaitForSession, report: Report, asker: Asker | None) -> JsonObject:
        workers, loop = self._workers, asyncio.get_running_loop()
        ends, idle, declined = loop.time() + asked.seconds, False, frozenset[str]()
        # Before anything is waited for: there may be no such Session.
        await workers.require(asked.session)
        while not declined:
            left = max(ends - loop.time(), 0)
            if asker is not None:
                declined = await self._ask(asked.session, asker, left)
                if declined:
                    break
            idle = await workers.wait(asked.session, max(ends - loop.time(), 0), report)
            if idle or asker is None or loop.time() >= ends:
                break
        return await workers.result(ReadResult(session=asked.session), idle=idle)

    async def _ask(self, session_id: str, asker: Asker, seconds: float) -> frozenset[str]:
        """Ask a person about what the Session waits for; returns what got no answer."""
        pending = await self._workers.pending(session_id)
        missing: set[str] = set()
        try:
            async with asyncio.timeout(seconds or None):
                for one in pending.permissions:
                    answer = await asker.ask(str(one["id"]), requests.permission_form(one))
                    reply = requests.read_reply(answer)
                    if reply is None:
                        missing.add(str(one["id"]))
                    else:
                        await self._settle(session_id, str(one["id"]), reply=reply)
                for one in pending.questions:
                    answer = await asker.ask(str(one["id"]), requests.question_form(one))
                    answers = requests.read_answers(answer, one)
                    if answers is None:
                        missing.add(str(one["id"]))
                    else:
                        await self._settle(session_id, str(one["id"]), answers=answers)
        except TimeoutError:
            return pending.ids
        return frozenset(missing)

    async def _settle(
        self,
        session_id: str,
        request: str,
        *,
        reply: Reply | None = None,
        answers: list[list[str]] | None = None,
    ) -> None:
        given = ReplyToRequest(
            session_id,
            request,
            UNSET if reply is None else reply,
            UNSET if answers is None else tuple(tuple(labels) for labels in answers),
        )
        try:
            await self._workers.reply(given)
        except DeclaredError as error:
            # Another client was faster.
            if error.tag not in {"PermissionNotFoundError", "QuestionNotFoundError"}:
                raise


def _success(shown: JsonObject) -> JsonObject:
    text = codec.encode(shown).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": shown,
        "isError": False,
    }


def _failure(message: str) -> JsonObject:
    content: JsonObject = {"type": "text", "text": message}
    return {"content": [content], "isError": True}
