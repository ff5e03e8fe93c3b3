"""`perdure mcp-server`: offers Sessions to other agents as durable workers, over MCP."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

from perdure.cli import options, remote, session_client
from perdure.cli.problem import Problem
from perdure.client import WireClient
from perdure.embedded.host import open_wire_host
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.host.mcp.result_marks import ResultMarks
from perdure.mcp_server.calls import Calls
from perdure.mcp_server.lines import Lines
from perdure.mcp_server.server import Server
from perdure.mcp_server.workers import Workers
from perdure.net.loopback import is_loopback_url
from perdure.ports import DatabaseError
from perdure.schema.errors import PerdureError

_EXAMPLES: Final = """\
perdure mcp-server
perdure mcp-server --attach http://127.0.0.1:4096
claude mcp add perdure -- perdure mcp-server"""


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "mcp-server",
        "Serve the Model Context Protocol on standard input and output: other agents start"
        " Sessions, and get their results, also after restarts.",
        examples=_EXAMPLES,
    )
    options.add_attach(parser)
    given = parser.parse_args(argv)
    session_client.run(_serve(given.attach, options.read_environment(given.data_dir)))
    return 0


async def _serve(url: str | None, environment: Environment) -> None:
    try:
        await _serve_lines(url, environment)
    except* BrokenPipeError:
        # The client is gone; the Sessions stay.
        pass
    except* (Problem, DataDirectoryError, DatabaseError, SecretFileError, PerdureError) as failed:
        raise _first(failed) from failed


def _first(failed: Exception) -> Exception:
    if isinstance(failed, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", failed)
        return _first(group.exceptions[0])
    return failed


async def _serve_lines(url: str | None, environment: Environment) -> None:
    lines = Lines()
    opened: asyncio.Future[Calls] = asyncio.get_running_loop().create_future()

    async def calls() -> Calls:
        return await asyncio.shield(opened)

    async with asyncio.TaskGroup() as group:
        # The handshake is answered while the data directory is still being opened.
        serving = group.create_task(Server(lines, calls).run(), name="MCP server")
        async with _open_client(url, environment) as client:
            is_local = url is None or is_loopback_url(url)
            directory = os.getcwd() if is_local else None
            opened.set_result(Calls(Workers(client, ResultMarks(environment.data_dir), directory)))
            await serving


@asynccontextmanager
async def _open_client(url: str | None, environment: Environment) -> AsyncGenerator[WireClient]:
    if url is not None:
        async with remote.make_client(url, environment) as client:
            yield client
        return
    async with open_wire_host(
        os.getcwd(), environment=environment, local_models=True, installed_plugins=True
    ) as client:
        yield client
