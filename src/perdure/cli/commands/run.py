"""`perdure run`: one prompt in this directory, in this process or on a server, as it happens.

Permissions and questions are put to the person at a terminal. Without one they are refused, or
wait for another client as long as `--permission-timeout` says. Ctrl-C interrupts the Session and
leaves with 130.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, Protocol

from perdure.cli import options, permission_prompt, question_prompt, remote, terminal
from perdure.cli.commands import trust
from perdure.cli.follow import Answer, Followed, follow
from perdure.cli.output import JsonOutput, TextOutput
from perdure.cli.problem import INTERRUPTED_STATUS, Problem
from perdure.client import PerdureClient
from perdure.embedded import open_embedded_wire
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.ports import DatabaseError
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types


class _Asked(Value, kw_only=True):
    prompt: str
    model: "types.ModelRef | None"
    agent: str | None
    session: str | None
    attach: str | None
    format: Literal["text", "json"]
    data_dir: str | None
    local_models: bool
    trusts: bool
    permission_timeout: float | None


def main(argv: list[str]) -> int:
    asked = _parse(argv)
    surroundings = options.surroundings(asked.data_dir)
    try:
        with remote.explained():
            return asyncio.run(_run(asked, surroundings))
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error


def _parse(argv: list[str]) -> _Asked:
    parser = options.parser("run", "Send one prompt and show what happens.")
    options.add_attach(parser)
    options.add_local_models(parser)
    options.add_trust(parser)
    options.add_permission_timeout(parser)
    parser.add_argument("prompt", nargs="+", help="what to do; `-` reads it from stdin")
    parser.add_argument("--model", metavar="PROVIDER/MODEL")
    parser.add_argument("--agent", metavar="NAME")
    parser.add_argument("--session", metavar="ID", help="go on with this Session")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args(argv)
    words = " ".join(given.prompt)
    prompt = sys.stdin.read() if words == "-" else words
    if not prompt.strip():
        parser.error("the prompt is empty")
    return _Asked(
        prompt=prompt,
        model=None if given.model is None else _model(given.model),
        agent=given.agent,
        session=given.session,
        attach=given.attach,
        format=given.format,
        data_dir=given.data_dir,
        local_models=given.local_models,
        trusts=given.trust,
        permission_timeout=given.permission_timeout,
    )


def _model(name: str) -> "types.ModelRef":
    provider, slash, model = name.partition("/")
    if not (provider and slash and model):
        raise Problem(f"a model is named PROVIDER/MODEL, such as demo/demo; got {name!r}")
    return {"providerID": provider, "id": model}


async def _run(asked: _Asked, surroundings: Environment) -> int:
    attended = terminal.is_attended()
    async with _host(asked, surroundings, attended=attended) as client:
        session_id = await _session(client, asked)
        if asked.format == "text":
            terminal.note(f"session {terminal.one_line(session_id)}\n")
        output = JsonOutput() if asked.format == "json" else TextOutput()
        followed = Followed(
            client=client,
            session_id=session_id,
            output=output,
            answer_permission=_answer(permission_prompt, asked, attended=attended),
            answer_question=_answer(question_prompt, asked, attended=attended),
        )
        status = await _until_interrupted(follow(followed, asked.prompt))
        if status is not None:
            return status
        output.finish()
        await client.sessions.interrupt(session_id)
        terminal.note("interrupted\n")
        return INTERRUPTED_STATUS


class _Prompt(Protocol):
    """The module that answers one kind of request."""

    async def answer_at_terminal(self, event: JsonObject, client: PerdureClient, /) -> None: ...
    async def leave_to_others(self, event: JsonObject, client: PerdureClient, /) -> None: ...
    async def refuse(self, event: JsonObject, client: PerdureClient, /) -> None: ...


def _answer(prompt: _Prompt, asked: _Asked, *, attended: bool) -> Answer:
    if attended:
        return prompt.answer_at_terminal
    return prompt.refuse if asked.permission_timeout is None else prompt.leave_to_others


@asynccontextmanager
async def _host(
    asked: _Asked, surroundings: Environment, *, attended: bool
) -> AsyncGenerator[PerdureClient]:
    if asked.attach is not None:
        async with remote.client_for(asked.attach, surroundings) as client:
            yield client
        return
    await trust.settle(surroundings, os.getcwd(), trusts=asked.trusts)
    waits = attended or asked.permission_timeout is not None
    async with open_embedded_wire(
        headless="wait" if waits else "deny",
        permission_timeout=asked.permission_timeout,
        surroundings=surroundings,
        local_models=asked.local_models,
        installed_plugins=True,
    ) as perdure:
        yield perdure


async def _session(client: PerdureClient, asked: _Asked) -> str:
    sessions = client.sessions
    if asked.session is None:
        # A server elsewhere does not know our directories; it has one of its own.
        here = asked.attach is None or is_loopback_url(asked.attach)
        location: types.LocationRef | None = {"directory": os.getcwd()} if here else None
        made = await sessions.create(agent=asked.agent, model=asked.model, location=location)
        return made["id"]
    if asked.agent is not None:
        await sessions.switch_agent(asked.session, asked.agent)
    if asked.model is not None:
        await sessions.switch_model(asked.session, asked.model)
    return asked.session


async def _until_interrupted(work: Coroutine[None, None, int]) -> int | None:
    """What `work` returns; None when Ctrl-C ended it. A second Ctrl-C is not waited for."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        loop.remove_signal_handler(signal.SIGINT)
        task.cancel()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        return await work
    except asyncio.CancelledError:
        if not interrupted:
            raise
        task.uncancel()
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
