"""`perdure run`: sends one prompt, in this process or to a server, and shows the work.

Permission requests and questions are asked at the terminal. Without a terminal they are refused,
or wait for another client for `--permission-timeout` seconds. Ctrl-C interrupts the Session; the
exit status is then 130.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol

from perdure.cli import options, permission_prompt, question_prompt, remote, terminal
from perdure.cli.commands import trust
from perdure.cli.follow import Answer, FollowTarget, follow
from perdure.cli.output import JsonOutput, TextOutput
from perdure.cli.problem import INTERRUPTED_STATUS, Problem
from perdure.client import WireClient
from perdure.core import limits
from perdure.embedded.host import open_wire_host
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.ports import DatabaseError
from perdure.schema import codec
from perdure.schema.approval.permission import Headless
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.generated import types

_EXAMPLES: Final = """\
perdure run "explain the failing test"
perdure run --model demo/demo "list the files here"
git diff | perdure run -
perdure run --session ses_... "now fix it"
"""


class _Arguments(Value, kw_only=True):
    prompt: str
    model: "types.ModelRef | None"
    agent: str | None
    session: str | None
    attach: str | None
    format: Literal["text", "json"]
    data_dir: str | None
    local_models: bool
    trusts: bool
    permission_timeout: float
    unattended: Headless


def main(argv: list[str]) -> int:
    arguments = _parse(argv)
    environment = options.read_environment(arguments.data_dir)
    try:
        with remote.errors_as_problems():
            return asyncio.run(_run(arguments, environment))
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error


def _parse(argv: list[str]) -> _Arguments:
    parser = options.make_parser(
        "run",
        "Send one prompt and show the work as it happens.\n"
        "The answer goes to stdout, everything else to stderr.",
        examples=_EXAMPLES,
    )
    options.add_attach(parser)
    options.add_local_models(parser)
    options.add_trust(parser)
    options.add_permission_timeout(parser)
    options.add_unattended(
        parser,
        help="what to do with a permission request or a question without a terminal to ask at",
        default="deny",
    )
    parser.add_argument("prompt", nargs="+", help="text of the prompt; `-` reads it from stdin")
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="use this model for the Session")
    parser.add_argument("--agent", metavar="NAME", help="use this agent for the Session")
    parser.add_argument(
        "--session", metavar="SESSION", help="continue this Session instead of starting one"
    )
    options.add_format(parser)
    given = parser.parse_args(argv)
    words = " ".join(given.prompt)
    prompt = sys.stdin.read() if words == "-" else words
    if not prompt.strip():
        parser.error("the prompt is empty; give it as arguments, or `-` to read it from stdin")
    return _Arguments(
        prompt=prompt,
        model=None if given.model is None else _parse_model(given.model),
        agent=given.agent,
        session=given.session,
        attach=given.attach,
        format=given.format,
        data_dir=given.data_dir,
        local_models=given.local_models,
        trusts=given.trust,
        permission_timeout=given.permission_timeout or limits.PERMISSION_WAIT_SECONDS,
        # A time for an answer is given to wait for one.
        unattended="wait" if given.permission_timeout is not None else given.unattended,
    )


def _parse_model(name: str) -> "types.ModelRef":
    try:
        return codec.to_json_value(ModelRef.parse(name))
    except ValueError as error:
        raise Problem(f"--model: {error}") from error


async def _run(arguments: _Arguments, environment: Environment) -> int:
    interactive = terminal.is_interactive()
    async with _open_client(arguments, environment, interactive=interactive) as client:
        session_id = await _prepare_session(client, arguments)
        if arguments.format == "text":
            terminal.print_note(f"session {terminal.one_line(session_id)}\n")
        output = JsonOutput() if arguments.format == "json" else TextOutput()
        target = FollowTarget(
            client=client,
            session_id=session_id,
            output=output,
            answer_permission=_choose_answer(permission_prompt, arguments, interactive=interactive),
            answer_question=_choose_answer(question_prompt, arguments, interactive=interactive),
        )
        status = await _until_interrupted(follow(target, arguments.prompt))
        if status is not None:
            return status
        output.finish()
        await client.sessions.interrupt(session_id)
        continuing = f"perdure run --session {terminal.one_line(session_id)}"
        terminal.print_note(f"interrupted; continue with: {continuing} PROMPT\n")
        return INTERRUPTED_STATUS


class _Prompt(Protocol):
    """A module that answers one kind of request: permission_prompt or question_prompt."""

    async def answer_at_terminal(self, event: JsonObject, client: WireClient, /) -> None: ...
    async def wait_for_other_client(self, event: JsonObject, client: WireClient, /) -> None: ...
    async def refuse(self, event: JsonObject, client: WireClient, /) -> None: ...
    async def stop(self, event: JsonObject, client: WireClient, /) -> None: ...


def _choose_answer(prompt: _Prompt, arguments: _Arguments, *, interactive: bool) -> Answer:
    if interactive:
        return prompt.answer_at_terminal
    match arguments.unattended:
        case "wait":
            return prompt.wait_for_other_client
        case "deny":
            return prompt.refuse
        case "fail":
            return prompt.stop


@asynccontextmanager
async def _open_client(
    arguments: _Arguments, environment: Environment, *, interactive: bool
) -> AsyncGenerator[WireClient]:
    if arguments.attach is not None:
        async with remote.make_client(arguments.attach, environment) as client:
            yield client
        return
    await trust.decide(environment, os.getcwd(), trusts=arguments.trusts)
    async with open_wire_host(
        headless="wait" if interactive else arguments.unattended,
        permission_timeout=arguments.permission_timeout,
        environment=environment,
        local_models=arguments.local_models,
        installed_plugins=True,
        finishes=True,
    ) as perdure:
        yield perdure


async def _prepare_session(client: WireClient, arguments: _Arguments) -> str:
    sessions = client.sessions
    if arguments.session is None:
        # A server on another machine has other directories and uses its default one.
        is_local = arguments.attach is None or is_loopback_url(arguments.attach)
        location: types.LocationRef | None = {"directory": os.getcwd()} if is_local else None
        created = await sessions.create(
            agent=arguments.agent, model=arguments.model, location=location
        )
        return created["id"]
    if arguments.agent is not None:
        await sessions.switch_agent(arguments.session, arguments.agent)
    if arguments.model is not None:
        await sessions.switch_model(arguments.session, arguments.model)
    return arguments.session


async def _until_interrupted(work: Coroutine[None, None, int]) -> int | None:
    """Await `work`; return None if Ctrl-C ended it. A second Ctrl-C ends the process."""
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
