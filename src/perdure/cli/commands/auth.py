"""`perdure auth`: which providers have a credential, giving them one, and taking it back.

A key is typed at a terminal, where it is not shown, or read from standard input. It is never an
argument: other users can read those, and shells remember them.
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
from perdure.client import PerdureClient
from perdure.core import limits
from perdure.embedded import open_embedded_wire
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject

_POLL_SECONDS: Final = 0.5


class _Visit:
    """Whom to ask: a server, or the data directory."""

    def __init__(self, url: str | None, surroundings: Environment) -> None:
        self._url = url
        self._surroundings = surroundings
        if url is not None and not is_loopback_url(url) and urlsplit(url).scheme != "https":
            raise Problem(f"credentials are not sent to {url} in the clear; use https")

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[PerdureClient]:
        opened = (
            open_embedded_wire(surroundings=self._surroundings, resumes=False)
            if self._url is None
            else remote.client_for(self._url, self._surroundings)
        )
        async with opened as client:
            yield client


def main(argv: list[str]) -> int:
    given = _parser().parse_args(argv)
    at = _Visit(given.attach, options.surroundings(given.data_dir))
    match given.action:
        case "list":
            _show(session_client.run(_integrations(at)), everything=given.all, form=given.format)
        case "login":
            _login(at, given.provider, method_id=given.method, label=given.label)
        case _:
            session_client.run(_logout(at, given.provider))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = options.parser("auth", "Show, store and remove the credentials of providers.")
    options.add_attach(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="the providers that are connected")
    listed.add_argument("--all", action="store_true", help="also those that are not")
    listed.add_argument("--format", choices=("text", "json"), default="text")
    login = actions.add_parser("login", help="store a key, or log in")
    login.add_argument("provider", metavar="PROVIDER")
    login.add_argument("--method", metavar="ID", help="log in this way instead of giving a key")
    login.add_argument("--label", metavar="TEXT", help="what to call the credential")
    logout = actions.add_parser("logout", help="forget a credential")
    logout.add_argument("provider", metavar="PROVIDER")
    return parser


# ---- list and logout ----------------------------------------------------------------------------


async def _integrations(at: _Visit) -> tuple[JsonObject, ...]:
    async with at.client() as client:
        return cast("tuple[JsonObject, ...]", await client.integrations.list())


def _show(found: tuple[JsonObject, ...], *, everything: bool, form: str) -> None:
    shown = [each for each in found if everything or each["connections"]]
    if form == "json":
        terminal.say(terminal.as_json(shown, indent=2) + "\n")
        return
    if not shown:
        terminal.say("no provider is connected; `perdure auth login PROVIDER` connects one\n")
    for each in shown:
        connections = ", ".join(map(_connection, each["connections"])) or "not connected"
        terminal.say(f"{terminal.one_line(each['id'])}  {connections}\n")


def _connection(connection: JsonObject) -> str:
    if connection["type"] == "env":
        return f"{terminal.one_line(connection['name'])} of the environment"
    return f"{terminal.one_line(connection['label'])} (stored)"


async def _logout(at: _Visit, provider: str) -> None:
    async with at.client() as client:
        connections = (await client.integrations.get(provider))["connections"]
        stored = [each for each in connections if each["type"] == "credential"]
        if not stored:
            raise Problem(f"nothing is stored for {terminal.one_line(provider)}")
        for each in stored:
            await client.credentials.remove(each["id"])


# ---- login --------------------------------------------------------------------------------------


def _login(at: _Visit, provider: str, *, method_id: str | None, label: str | None) -> None:
    # Asked before a person types a secret that nobody wants.
    found = session_client.run(_integration(at, provider))
    if method_id is None:
        session_client.run(_connect(at, provider, _read_key(provider), label))
    else:
        methods = [each for each in found["methods"] if each.get("id") == method_id]
        if not methods:
            known = ", ".join(terminal.one_line(m["id"]) for m in found["methods"] if "id" in m)
            raise Problem(f"{provider} has no login {method_id!r} (it has: {known or 'none'})")
        session_client.run(_log_in(at, provider, methods[0], label))
    terminal.say(f"{terminal.one_line(provider)} is connected\n")


async def _integration(at: _Visit, provider: str) -> JsonObject:
    async with at.client() as client:
        return cast("JsonObject", await client.integrations.get(provider))


def _read_key(provider: str) -> str:
    if terminal.is_attended():
        try:
            return getpass.getpass(f"Key for {terminal.one_line(provider)} (not shown): ").strip()
        except EOFError as error:
            raise Problem("no key was given") from error
    # One character more than is allowed, so that a longer one is refused and not cut.
    data = sys.stdin.buffer.read(limits.CREDENTIAL_CHARS_MAX + 2)
    return data.decode(errors="replace").strip()


async def _connect(at: _Visit, provider: str, key: str, label: str | None) -> None:
    async with at.client() as client:
        await client.integrations.connect_key(provider, key, label=label)


async def _log_in(at: _Visit, provider: str, method: JsonObject, label: str | None) -> None:
    inputs = await _answers(method)
    async with at.client() as client:
        attempt = await client.integrations.connect_oauth(
            provider, method["id"], inputs=inputs, label=label
        )
        terminal.note(f"{terminal.clean(attempt['instructions'])}\n{attempt['url']}\n")
        if attempt["mode"] == "code":
            code = await terminal.ask("Code: ")
            await client.integrations.complete_attempt(attempt["attemptID"], code)
        await _completed(client, attempt["attemptID"])


async def _completed(client: PerdureClient, attempt_id: str) -> None:
    while True:
        found = await client.integrations.attempt(attempt_id)
        match found["status"]:
            case "complete":
                return
            case "pending":
                await asyncio.sleep(_POLL_SECONDS)
            case status:
                raise Problem(terminal.one_line(found.get("message") or f"the login {status}"))


async def _answers(method: JsonObject) -> dict[str, str]:
    answers: dict[str, str] = {}
    for prompt in method.get("prompts", ()):
        when = prompt.get("when")
        asked = when is None or (answers.get(when["key"]) == when["value"]) == (when["op"] == "eq")
        if asked:
            options_of = [terminal.one_line(each["value"]) for each in prompt.get("options", ())]
            choice = f" ({', '.join(options_of)})" if options_of else ""
            answers[prompt["key"]] = await terminal.ask(
                f"{terminal.one_line(prompt['message'])}{choice}: "
            )
    return answers
