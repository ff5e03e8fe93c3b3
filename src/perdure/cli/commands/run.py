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
from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, Problem
from perdure.cli.render.session_text import SessionText, describe_totals
from perdure.cli.runs.follow import FollowTarget, follow
from perdure.cli.runs.output import JsonOutput
from perdure.cli.runs.progress import Outcome
from perdure.cli.runs.request_queue import Answer
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

_LAST: Final = "last"
"""As session_choice.LAST, which a new Session does not load."""
_EXAMPLES: Final = """\
perdure run "explain the failing test"
perdure run --continue "now fix it"
perdure run -m demo/demo -f notes.txt "list the files here"
git diff | perdure run "review this change"
perdure run --session last           go on with work that was killed
"""


class _Arguments(Value, kw_only=True):
    prompt: str
    files: tuple[str, ...]
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

    @property
    def is_local(self) -> bool:
        """Whether the server sees the directories of this machine."""
        return self.attach is None or is_loopback_url(self.attach)


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
        "The answer goes to stdout, everything else to stderr. Text that is piped in is added to\n"
        "the prompt. Without a prompt, a Session goes on with work that was killed.",
        examples=_EXAMPLES,
    )
    _add_options(parser)
    given = parser.parse_args(argv)
    session = _LAST if given.continues else given.session
    prompt = _read_prompt(given.prompt)
    if not prompt.strip() and (session is None or given.files or "-" in given.prompt):
        parser.error("the prompt is empty; give it as arguments, or `-` to read it from stdin")
    return _Arguments(
        prompt=prompt,
        files=tuple(given.files),
        model=None if given.model is None else _parse_model(given.model),
        agent=given.agent,
        session=session,
        attach=given.attach,
        format=given.format,
        data_dir=given.data_dir,
        local_models=given.local_models,
        trusts=given.trust,
        permission_timeout=given.permission_timeout or limits.PERMISSION_WAIT_SECONDS,
        # A time for an answer is given to wait for one.
        unattended="wait" if given.permission_timeout is not None else given.unattended,
    )


def _add_options(parser: options.CommandParser) -> None:
    parser.add_argument(
        "prompt", nargs="*", metavar="PROMPT", help="text of the prompt; `-` reads it from stdin"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c",
        "--continue",
        dest="continues",
        action="store_true",
        help="continue the last Session of this directory",
    )
    which.add_argument(
        "-s",
        "--session",
        metavar="SESSION",
        help="continue this Session: its id, the beginning of one, or `last`",
    )
    parser.add_argument(
        "-m",
        "--model",
        metavar="PROVIDER/MODEL",
        help="use this model for the Session; `perdure models` lists them",
    )
    parser.add_argument(
        "-a",
        "--agent",
        metavar="NAME",
        help="use this agent for the Session; `perdure agents` lists them",
    )
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        metavar="FILE",
        action="append",
        default=[],
        help="attach this file to the prompt; may be repeated",
    )
    options.add_format(parser, json="one event on each line")
    options.add_attach(parser)
    options.add_local_models(parser)
    options.add_trust(parser)
    options.add_permission_timeout(parser)
    options.add_unattended(parser, when="without a terminal to ask at", default="deny")


def _read_prompt(words: list[str]) -> str:
    """The words of the command line, and below them the text that was piped in."""
    spoken = " ".join(word for word in words if word != "-")
    piped = sys.stdin.read() if "-" in words or terminal.is_input_piped() else ""
    return "\n\n".join(text for text in (spoken, piped) if text.strip())


def _parse_model(name: str) -> "types.ModelRef":
    try:
        return codec.to_json_value(ModelRef.parse(name))
    except ValueError as error:
        raise Problem(f"--model: {error}") from error


async def _run(arguments: _Arguments, environment: Environment) -> int:
    interactive = terminal.is_interactive()
    started = asyncio.get_running_loop().time()
    async with _open_client(arguments, environment, interactive=interactive) as client:
        session_id = await _prepare_session(client, arguments)
        text = SessionText() if arguments.format == "text" else None
        if text is not None:
            terminal.print_note(f"session {terminal.one_line(session_id)}\n")
        target = FollowTarget(
            client=client,
            session_id=session_id,
            output=text or JsonOutput(),
            answer_permission=_choose_answer(permission_prompt, arguments, interactive=interactive),
            answer_question=_choose_answer(question_prompt, arguments, interactive=interactive),
            continues=arguments.session is not None,
        )
        outcome = await _until_interrupted(follow(target, _make_prompt(arguments)))
        if outcome is None:
            target.output.finish()
            await client.sessions.interrupt(session_id)
            continuing = f"perdure run --session {terminal.one_line(session_id)}"
            terminal.print_note(f"interrupted; continue with: {continuing} PROMPT\n")
            return INTERRUPTED_STATUS
        if text is not None and text.totals.turns:
            seconds = asyncio.get_running_loop().time() - started
            terminal.print_note(f"{describe_totals(text.totals, seconds)}\n")
        if outcome.status == FAILED_STATUS and arguments.model is not None:
            await _suggest_model(client, arguments)
        if outcome.reason is not None:
            terminal.print_note(f"{outcome.reason}\n")
        return outcome.status


def _make_prompt(arguments: _Arguments) -> "types.PromptInput | None":
    if not arguments.prompt:
        return None
    if not arguments.files:
        return {"text": arguments.prompt}
    # Imported late: most prompts have no attachment.
    from perdure.cli.runs import attachments

    files = [attachments.make_file(path, is_local=arguments.is_local) for path in arguments.files]
    return {"text": arguments.prompt, "files": files}


async def _suggest_model(client: WireClient, arguments: _Arguments) -> None:
    """Say what was meant by a model that does not exist."""
    assert arguments.model is not None
    wanted = f"{arguments.model['providerID']}/{arguments.model['id']}"
    directory = os.getcwd() if arguments.is_local else None
    found = await client.models.list(directory=directory)
    names = [f"{model['providerID']}/{model['id']}" for model in found]
    if wanted not in names:
        # Imported late: only a mistake needs it.
        from perdure.cli import suggestion

        close = suggestion.did_you_mean(wanted, names)
        terminal.print_note(
            f"there is no model {terminal.one_line(wanted)} here{close or ';'}"
            " `perdure models` lists them\n"
        )


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
        resumes="directory",
        finishes=True,
    ) as perdure:
        yield perdure


async def _prepare_session(client: WireClient, arguments: _Arguments) -> str:
    sessions = client.sessions
    if arguments.session is None:
        # A server on another machine has other directories and uses its default one.
        location: types.LocationRef | None = (
            {"directory": os.getcwd()} if arguments.is_local else None
        )
        created = await sessions.create(
            agent=arguments.agent, model=arguments.model, location=location
        )
        return created["id"]
    # Imported late: a new Session does not need them.
    from perdure.cli import session_choice
    from perdure.cli.remote_source import RemoteSource

    session_id = await session_choice.find_session(
        RemoteSource(client), arguments.session, is_local=arguments.is_local
    )
    if arguments.agent is not None:
        await sessions.switch_agent(session_id, arguments.agent)
    if arguments.model is not None:
        await sessions.switch_model(session_id, arguments.model)
    return session_id


async def _until_interrupted(work: Coroutine[None, None, Outcome]) -> Outcome | None:
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
