"""`perdure export`: prints a Session with its messages and durable events as JSON, and signs it.

Items are printed as they are read, so a long Session does not have to fit into memory. Only the
hashes of its records are kept until the end.
"""

import asyncio
import base64
from collections.abc import AsyncIterator

from perdure.cli import options, remote, session_choice, terminal
from perdure.cli.problem import Problem
from perdure.cli.session_source import open_source
from perdure.core.export import ed25519
from perdure.core.export.writer import ExportWriter
from perdure.host import data_directory
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "export",
        "Print a Session with its messages and durable events as JSON. The end of the file is\n"
        "signed with a key of this data directory: `perdure verify` finds any change of it.",
        examples="perdure export ses_... > session.json\nperdure export --public-key",
    )
    options.add_attach(parser)
    parser.add_argument(
        "--public-key",
        action="store_true",
        help="print the public key of exports, for those who verify them, and no Session",
    )
    options.add_session(parser, default=session_choice.LAST)
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    if given.public_key:
        key = base64.b64encode(ed25519.public_key(_load_key(environment))).decode()
        terminal.print_output(f"{key}\n")
        return 0
    with remote.errors_as_problems():
        asyncio.run(_export(given.attach, environment, given.session))
    return 0


async def _export(url: str | None, environment: Environment, name: str) -> None:
    async with open_source(url, environment) as source:
        is_local = url is None or is_loopback_url(url)
        session_id = await session_choice.find_session(source, name, is_local=is_local)
        key = _load_key(environment)
        writer = ExportWriter()
        terminal.print_output(writer.begin(await source.session(session_id)))
        await _write_list(writer, "messages", source.messages(session_id))
        await _write_list(writer, "events", source.events(session_id))
        terminal.print_output(writer.end(writer.seal(key)))


async def _write_list(writer: ExportWriter, name: str, items: AsyncIterator[JsonObject]) -> None:
    terminal.print_output(writer.begin_list(name))
    async for item in items:
        terminal.print_output(writer.add(name, item))
    terminal.print_output(writer.end_list())


def _load_key(environment: Environment) -> bytes:
    try:
        data_directory.prepare(environment.data_dir)
        return secrets.load_export_key(environment.data_dir)
    except (SecretFileError, DataDirectoryError) as error:
        raise Problem(str(error)) from error
