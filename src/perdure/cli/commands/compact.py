"""`perdure compact`: condense what the model of a Session is shown. People still see everything."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("compact", "Condense what the model of a Session is shown.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--instruction", help="what the summary should heed in particular")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    compacted = session_client.run(
        _compact(given.attach, surroundings, given.session, given.instruction)
    )
    outcome = "is compacted" if compacted else "is short enough as it is"
    terminal.say(f"{terminal.one_line(given.session)} {outcome}\n")
    return 0


async def _compact(
    url: str | None, surroundings: Environment, session_id: str, instruction: str | None
) -> bool:
    """Whether there is a new checkpoint."""
    async with session_client.open_client(url, surroundings) as client:
        before = await client.sessions.context(session_id)
        await client.sessions.compact(session_id, instruction=instruction)
        after = await client.sessions.context(session_id)
        return bool(after) and after[0]["type"] == "compaction" and after[:1] != before[:1]
