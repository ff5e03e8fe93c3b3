"""`perdure acp`: makes Perdure an agent of editors, over standard input and output.

Only protocol lines are written to standard output: it is set aside before anything is loaded, and
what would be printed there goes to standard error, as the log does. To answer the first request of
an editor quickly, this module imports only what that needs.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

from perdure.acp.server import EditorServer, OpenError
from perdure.acp.wire.stdio import StdioLines
from perdure.cli import options
from perdure.cli.problem import Problem
from perdure.host.environment import Environment
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.client.client import Client

_EXAMPLES: Final = """\
perdure acp                                    as the command of an agent in an editor
perdure acp --attach http://127.0.0.1:4096
perdure acp --login"""


class _Arguments(Value, kw_only=True):
    attach: str | None
    data_dir: str | None
    local_models: bool
    trusts: bool
    logs_in: bool
    log_level: str


def main(argv: list[str]) -> int:
    given = _parse(argv)
    if given.logs_in:
        return _log_in(given.data_dir)
    environment = options.read_environment(given.data_dir)
    with _claimed_output() as target:
        # Imported late: a parser that only prints its help needs no log.
        from perdure.cli.logs import log_format

        log_format.configure(level=given.log_level)
        asyncio.run(_serve(given, environment, target))
    return 0


def _parse(argv: list[str]) -> _Arguments:
    parser = options.make_parser(
        "acp",
        "Be an agent of an editor: speak the Agent Client Protocol over stdin and stdout.\n"
        "Editors start it; docs/howto/editors.md has the configuration for each.",
        examples=_EXAMPLES,
    )
    options.add_attach(parser)
    options.add_local_models(parser)
    options.add_trust(parser)
    parser.add_argument(
        "--login",
        action="store_true",
        help="connect a provider at the terminal, and end; editors offer this",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="log records of this level and above to stderr (default: warning)",
    )
    given = parser.parse_args(argv)
    return _Arguments(
        attach=given.attach,
        data_dir=given.data_dir,
        local_models=given.local_models,
        trusts=given.trust,
        logs_in=given.login,
        log_level=given.log_level,
    )


@contextmanager
def _claimed_output() -> Generator[int]:
    """A descriptor of standard output that nothing else writes to: the rest goes to stderr."""
    sys.stdout.flush()
    own = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield own
    finally:
        # Not the other way round: what is printed while the process ends is no message either.
        os.close(own)


async def _serve(arguments: _Arguments, environment: Environment, target: int) -> None:
    """Serve until the editor closes its end, or the process is asked to end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    stream = StdioLines(sys.stdin.fileno(), target)
    server = EditorServer(stream, partial(_open_client, arguments, environment))
    try:
        await server.serve()
        await stream.flush()
    except asyncio.CancelledError:
        # Work that runs goes on in the next process.
        return


@asynccontextmanager
async def _open_client(arguments: _Arguments, environment: Environment) -> "AsyncGenerator[Client]":
    """The client of a server, or of a host in this process, which is loaded beside the loop."""
    try:
        if arguments.attach is not None:
            await asyncio.to_thread(import_module, "perdure.cli.remote")
            from perdure.cli import remote

            async with remote.make_typed_client(arguments.attach, environment) as client:
                yield client
            return
        await asyncio.to_thread(import_module, "perdure.embedded.host")
        from perdure.embedded.host import open_host

        if arguments.trusts:
            # Imported late: it is decided rarely.
            from perdure.cli.commands import trust

            await trust.decide(environment, os.getcwd(), trusts=True)
        async with open_host(
            environment=environment,
            local_models=arguments.local_models,
            installed_plugins=True,
            resumes="directory",
        ) as host:
            yield host
    except Problem as problem:
        raise OpenError(str(problem)) from problem
    except _failures() as error:
        raise OpenError(str(error)) from error


def _failures() -> tuple[type[Exception], ...]:
    # Imported late: only a failure needs them.
    from perdure.host.credentials.secrets import SecretFileError
    from perdure.host.data_directory import DataDirectoryError
    from perdure.ports import DatabaseError

    return (DataDirectoryError, DatabaseError, SecretFileError)


def _log_in(data_dir: str | None) -> int:
    """Ask for a provider and its key at the terminal."""
    # Imported late: an editor that starts the agent does not log in.
    from perdure.cli import terminal
    from perdure.cli.commands import auth

    named = [] if data_dir is None else ["--data-dir", data_dir]
    auth.main([*named, "list"])
    terminal.print_note("`perdure auth list --all` in a terminal lists all providers.\n")
    provider = asyncio.run(terminal.ask("Provider (anthropic, openai, ...): "))
    if not provider:
        raise Problem("no provider was named; type its id, such as anthropic")
    return auth.main([*named, "login", provider])
