"""`perdure delete`: Sessions go for good, with everything that is kept of them."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("delete", "Delete Sessions for good, and those that they started.")
    options.add_attach(parser)
    parser.add_argument("sessions", metavar="SESSION", nargs="+")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    session_client.run(_delete(given.attach, surroundings, given.sessions))
    return 0


async def _delete(url: str | None, surroundings: Environment, session_ids: list[str]) -> None:
    async with session_client.open_client(url, surroundings) as client:
        for session_id in session_ids:
            await client.sessions.delete(session_id)
            terminal.say(f"{terminal.one_line(session_id)} is deleted\n")
