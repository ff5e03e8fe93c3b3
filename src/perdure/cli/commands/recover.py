"""`perdure recover`: see what a crash left of a Session, and decide what is done about it."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment
from perdure.schema.session.recovery import Decision


def main(argv: list[str]) -> int:
    parser = options.parser("recover", "See what a crash left of a Session, and decide about it.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--retry", action="store_true", help="send the request again")
    decision.add_argument("--abandon", action="store_true", help="make it a failed step")
    given = parser.parse_args(argv)
    wanted: Decision | None = "retry" if given.retry else "abandon" if given.abandon else None
    surroundings = options.surroundings(given.data_dir)
    told = session_client.run(_recover(given.attach, surroundings, given.session, wanted))
    terminal.say(f"{terminal.one_line(given.session)} {terminal.one_line(told)}\n")
    return 0


async def _recover(
    url: str | None, surroundings: Environment, session_id: str, wanted: Decision | None
) -> str:
    """What became of it, in words."""
    async with session_client.open_client(url, surroundings) as client:
        if wanted is not None:
            await client.sessions.recovery.decide(session_id, decision=wanted)
            # A server of our own ends with this command: what was decided is done before that.
            await client.sessions.wait(session_id)
            return "goes on" if wanted == "retry" else "has given it up"
        found = await client.sessions.recovery.get(session_id)
        if not found["waiting"]:
            return "waits for no decision"
        return f"waits for a decision (--retry or --abandon): {found.get('message')}"
