"""`perdure compact`: summarises the older messages of a Session for its model.

The stored messages stay as they are; only the model sees the summary in their place.
"""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "compact",
        "Summarise older messages to free context. The stored messages stay as they are.",
        examples='perdure compact ses_... --instruction "keep the failing test names"',
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument(
        "--instruction", metavar="TEXT", help="tell the model what to keep in the summary"
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    compacted = session_client.run(
        _compact(given.attach, environment, given.session, given.instruction)
    )
    outcome = (
        "is compacted" if compacted else "needs no compaction: there is too little to summarise"
    )
    terminal.print_output(f"{terminal.one_line(given.session)} {outcome}\n")
    return 0


async def _compact(
    url: str | None, environment: Environment, session_id: str, instruction: str | None
) -> bool:
    """Compact the Session and return whether there is a new checkpoint."""
    async with session_client.open_client(url, environment) as client:
        before = await client.sessions.context(session_id)
        await client.sessions.compact(session_id, instruction=instruction)
        after = await client.sessions.context(session_id)
        return bool(after) and after[0]["type"] == "compaction" and after[:1] != before[:1]
