"""`perdure auth`: lists, stores and removes the credentials of providers.

A key is typed at the terminal without echo, or read from standard input. It is never an argument:
other users can see arguments in the process list, and shells keep them in their history.
"""

import argparse
import asyncio
import getpass
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast
from urllib.parse import urlsplit

from perdure.cli import options, remote, session_client, terminal
from perdure.cli.problem import Problem
from perdure.client import WireClient
from perdure.core import limits
from perdure.embedded.host import open_wire_host
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject

_POLL_SECONDS: Final = 0.5


class _Target:
    """Opens clients for the server at a URL, or for the data directory."""

    def __init__(self, url: str | None, environment: Environment) -> None:
        self._url = url
        self._environment = environment
        if url is not None and not is_loopback_url(url) and urlsplit(url).scheme != "https":
            raise Problem(f"--attach {url} would send credentials in the clear; use an https URL")

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[WireClient]:
        opened = (
            open_wire_host(environment=self._environment, resumes=False)
            if self._url is None
            else remote.make_client(self._url, self._environment)
        )
        async with opened as client:
            yield client


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    target = _Target(given.attach, options.read_environment(given.data_dir))
    match given.action:
        case "list":
            _show(
                session_client.run(_list_integrations(target)),
                everything=given.all,
                form=given.format,
            )
        case "login":
            _login(target, given.provider, method_id=given.method, label=given.label)
        case _:
            session_client.run(_logout(target, given.provider))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = options.make_parser(
        "auth",
        "List, store and remove the credentials of providers.",
        examples="perdure auth list\nperdure auth login anthropic\nperdure auth logout anthropic",
    )
    options.add_attach(parser)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", help="what to do"
    )
    listed = actions.add_parser("list", help="list the connected providers")
    listed.add_argument("--all", action="store_true", help="list the other providers too")
    options.add_format(listed)
    login = actions.add_parser("login", help="store a key, or log in with --method")
    login.add_argument("provider", metavar="PROVIDER", help="id of the provider: anthropic, ...")
    login.add_argument("--method", metavar="ID", help="log in with this method instead of a key")
    login.add_argument("--label", metavar="TEXT", help="name the stored credential")
    logout = actions.add_parser("logout", help="remove the stored credentials of a provider")
    logout.add_argument("provider", metavar="PROVIDER", help="id of the provider")
    return parser


# ---- list and logout ----------------------------------------------------------------------------


async def _list_integrations(target: _Target) -> tuple[JsonObject, ...]:
    async with target.client() as client:
        return cast("tuple[JsonObject, ...]", await client.integrations.list())


def _show(found: tuple[JsonObject, ...], *, everything: bool, form: str) -> None:
    shown = [each for each in found if everything or each["connections"]]
    if form == "json":
        terminal.print_output(terminal.as_json(shown, indent=2) + "\n")
        return
    if not shown:
        terminal.print_output("no provider is connected; run `perdure auth login PROVIDER`\n")
    for each in shown:
        connections = ", ".join(map(_describe_connection, each["connections"])) or "not connected"
        terminal.print_output(f"{terminal.one_line(each['id'])}  {connections}\n")


def _describe_connection(connection: JsonObject) -> str:
    if connection["type"] == "env":
        return f"{terminal.one_line(connection['name'])} from the environment"
    return f"{terminal.one_line(connection['label'])} (stored)"


async def _logout(target: _Target, provider: str) -> None:
    async with target.client() as client:
        connections = (await client.integrations.get(provider))["connections"]
        stored = [each for each in connections if each["type"] == "credential"]
        if not stored:
            raise Problem(
                f"no credential is stored for {terminal.one_line(provider)};"
                " `perdure auth list` shows those that are"
            )
        for each in stored:
            await client.credentials.remove(each["id"])


# ---- login --------------------------------------------------------------------------------------


def _login(target: _Target, provider: str, *, method_id: str | None, label: str | None) -> None:
    # Checked first, so that the user does not type a secret for an unknown provider.
    found = session_client.run(_get_integration(target, provider))
    if method_id is None:
        session_client.run(_connect_key(target, provider, _read_key(provider), label))
    else:
        methods = [each for each in found["methods"] if each.get("id") == method_id]
        if not methods:
            known = ", ".join(terminal.one_line(m["id"]) for m in found["methods"] if "id" in m)
            raise Problem(
                f"{provider} has no login method {method_id!r} (its methods: {known or 'none'})"
            )
        session_client.run(_log_in_with_oauth(target, provider, methods[0], label))
    terminal.print_output(f"{terminal.one_line(provider)} is connected\n")


async def _get_integration(target: _Target, provider: str) -> JsonObject:
    async with target.client() as client:
        return cast("JsonObject", await client.integrations.get(provider))


def _read_key(provider: str) -> str:
    if terminal.is_interactive():
        try:
            return getpass.getpass(f"Key for {terminal.one_line(provider)} (not shown): ").strip()
        except EOFError as error:
            raise Problem("no key was given; type it at the prompt, or pipe it to stdin") from error
    # Reads more than the limit, so that a longer key is refused and not truncated.
    data = sys.stdin.buffer.read(limits.CREDENTIAL_CHARS_MAX + 2)
    return data.decode(errors="replace").strip()


async def _connect_key(target: _Target, provider: str, key: str, label: str | None) -> None:
    async with target.client() as client:
        await client.integrations.connect_key(provider, key, label=label)


async def _log_in_with_oauth(
    target: _Target, provider: str, method: JsonObject, label: str | None
) -> None:
    inputs = await _ask_for_inputs(method)
    async with target.client() as client:
        attempt = await client.integrations.connect_oauth(
            provider, method["id"], inputs=inputs, label=label
        )
        terminal.print_note(f"{terminal.clean(attempt['instructions'])}\n{attempt['url']}\n")
        if attempt["mode"] == "code":
            code = await terminal.ask("Code: ")
            await client.integrations.complete_attempt(attempt["attemptID"], code)
        await _wait_until_complete(client, attempt["attemptID"])


async def _wait_until_complete(client: WireClient, attempt_id: str) -> None:
    while True:
        found = await client.integrations.attempt(attempt_id)
        match found["status"]:
            case "complete":
                return
            case "pending":
                await asyncio.sleep(_POLL_SECONDS)
            case status:
                raise Problem(
                    terminal.one_line(found.get("message") or f"the login is {status}; try again")
                )


async def _ask_for_inputs(method: JsonObject) -> dict[str, str]:
    answers: dict[str, str] = {}
    for prompt in method.get("prompts", ()):
        when = prompt.get("when")
        applies = when is None or (answers.get(when["key"]) == when["value"]) == (
            when["op"] == "eq"
        )
        if applies:
            values = [terminal.one_line(each["value"]) for each in prompt.get("options", ())]
            choice = f" ({', '.join(values)})" if values else ""
            answers[prompt["key"]] = await terminal.ask(
                f"{terminal.one_line(prompt['message'])}{choice}: "
            )
    return answers
