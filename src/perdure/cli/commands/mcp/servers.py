"""`perdure mcp`: lists, adds and tests MCP servers, and logs in to remote ones."""

import argparse
import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

from perdure.cli import mcp_config_file, options, remote, session_client, terminal
from perdure.cli.problem import Problem
from perdure.client import WireClient
from perdure.embedded.host import open_wire_host
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject

_POLL_SECONDS: Final = 0.2
_EXAMPLES: Final = """\
perdure mcp list
perdure mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
perdure mcp add issues --url https://mcp.example/mcp --header "X-Team: core"
perdure mcp test files
perdure mcp login issues"""


def main(argv: list[str]) -> int:
    # What follows `--` belongs to the server, whatever it looks like.
    end = argv.index("--") if "--" in argv else len(argv)
    given = _parser().parse_args(argv[:end])
    environment = options.read_environment(given.data_dir)
    if given.action == "add":
        return _add(given, environment, command=argv[end + 1 :])
    if end < len(argv):
        raise Problem("only `perdure mcp add` takes a command after --")
    target = _Target(given.attach, environment)
    match given.action:
        case "list":
            _show(session_client.run(_list(target)), form=given.format)
        case "test":
            return session_client.run(_test(target, given.name))
        case "login":
            session_client.run(_log_in(target, given.name))
            terminal.print_output(f"{terminal.one_line(given.name)} is logged in\n")
        case _:
            session_client.run(_log_out(target, given.name))
    return 0


class _Target:
    """Opens clients for the server at a URL, or for this directory and its data directory."""

    def __init__(self, url: str | None, environment: Environment) -> None:
        self._url = url
        self._environment = environment

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[WireClient]:
        opened = (
            open_wire_host(os.getcwd(), environment=self._environment, resumes=False)
            if self._url is None
            else remote.make_client(self._url, self._environment)
        )
        async with opened as client:
            yield client


def _parser() -> argparse.ArgumentParser:
    parser = options.make_parser(
        "mcp",
        "List, add and test MCP servers of this directory, and log in to remote ones.",
        examples=_EXAMPLES,
    )
    options.add_attach(parser)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", help="what to do"
    )
    listed = actions.add_parser("list", help="list the servers and their states; starts nothing")
    options.add_format(listed)
    added = actions.add_parser("add", help="write a server into your own configuration")
    added.add_argument("name", metavar="NAME", help="name of the server; its tools begin with it")
    added.add_argument("--url", metavar="URL", help="address of a remote server")
    added.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="send this header"
    )
    added.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="set this variable"
    )
    added.epilog = "After --: the program of a local server and its arguments."
    for action, text in (
        ("test", "start a server and list its tools"),
        ("login", "log in to a remote server in a browser"),
        ("logout", "remove the stored login of a remote server"),
    ):
        one = actions.add_parser(action, help=text)
        one.add_argument("name", metavar="NAME", help="name of the server; see `perdure mcp list`")
    return parser


def _add(given: argparse.Namespace, environment: Environment, *, command: list[str]) -> int:
    entry = mcp_config_file.make_entry(
        url=given.url, headers=given.header, variables=given.env, command=command
    )
    path = mcp_config_file.add_server(environment.config_dir, given.name, entry)
    name = terminal.one_line(given.name)
    terminal.print_output(f"added {name} to {path}; to try it: perdure mcp test {name}\n")
    return 0


async def _list(target: _Target) -> tuple[JsonObject, ...]:
    async with target.client() as client:
        return cast("tuple[JsonObject, ...]", await client.mcp.list(directory=os.getcwd()))


def _show(servers: tuple[JsonObject, ...], *, form: str) -> None:
    if form == "json":
        terminal.print_output(terminal.as_json(list(servers), indent=2) + "\n")
        return
    if not servers:
        terminal.print_output("no MCP server is configured here; run `perdure mcp add NAME ...`\n")
    for server in servers:
        terminal.print_output(_line(server))


def _line(server: JsonObject) -> str:
    tools = server.get("tools", ())
    counted = f"  {len(tools)} tools" if tools else ""
    why = f"  {terminal.one_line(server['error'])}" if "error" in server else ""
    return f"{terminal.one_line(server['name'])}  {server['status']}{counted}{why}\n"


async def _test(target: _Target, name: str) -> int:
    """Start the server, wait until it is connected or failed, and say what it offers."""
    async with target.client() as client:
        here = os.getcwd()
        await client.mcp.restart(name, directory=here)
        while True:
            servers = cast("tuple[JsonObject, ...]", await client.mcp.list(directory=here))
            found = next(server for server in servers if server["name"] == name)
            if found["status"] != "starting":
                break
            await asyncio.sleep(_POLL_SECONDS)
    terminal.print_output(_line(found))
    for tool in found.get("tools", ()):
        terminal.print_output(f"  {terminal.one_line(tool)}\n")
    for problem in found.get("problems", ()):
        terminal.print_note(f"not offered: {terminal.one_line(problem)}\n")
    return 0 if found["status"] == "connected" else 1


async def _log_in(target: _Target, name: str) -> None:
    async with target.client() as client:
        attempt = await client.mcp.login(name, directory=os.getcwd())
        terminal.print_note(f"{terminal.clean(attempt['instructions'])}\n{attempt['url']}\n")
        if attempt["mode"] == "code":
            code = await terminal.ask("Code: ")
            await client.integrations.complete_attempt(attempt["attemptID"], code)
        while True:
            found = cast("JsonObject", await client.integrations.attempt(attempt["attemptID"]))
            match found["status"]:
                case "complete":
                    return
                case "pending":
                    await asyncio.sleep(_POLL_SECONDS)
                case status:
                    raise Problem(terminal.one_line(found.get("message") or f"it is {status}"))


async def _log_out(target: _Target, name: str) -> None:
    async with target.client() as client:
        await client.mcp.logout(name, directory=os.getcwd())
