"""`perdure delete`: deletes Sessions with everything stored for them."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "delete",
        "Delete Sessions, their subagents' Sessions and everything stored for them.\n"
        "This cannot be undone; `perdure archive` keeps the data.",
        examples="perdure delete ses_...",
    )
    options.add_attach(parser)
    parser.add_argument(
        "sessions",
        metavar="SESSION",
        nargs="+",
        help="ids of Sessions; `perdure sessions` lists them",
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    session_client.run(_delete(given.attach, environment, given.sessions))
    return 0


async def _delete(url: str | None, environment: Environment, session_ids: list[str]) -> None:
    async with session_client.open_client(url, environment) as client:
        for session_id in session_ids:
            await client.sessions.delete(session_id)
            terminal.print_output(f"{terminal.one_line(session_id)} is deleted\n")
