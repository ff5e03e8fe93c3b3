"""`perdure recover`: shows a request that a crash interrupted, and retries or abandons it."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment
from perdure.schema.session.recovery import Decision


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "recover",
        "Show whether a Session waits for a decision about a request that a crash interrupted,\n"
        "and make that decision.",
        examples="perdure recover ses_...\nperdure recover ses_... --retry",
    )
    options.add_attach(parser)
    options.add_session(parser)
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument(
        "--retry", action="store_true", help="send the request again; it may be charged twice"
    )
    decision.add_argument("--abandon", action="store_true", help="record the request as failed")
    given = parser.parse_args(argv)
    wanted: Decision | None = "retry" if given.retry else "abandon" if given.abandon else None
    environment = options.read_environment(given.data_dir)
    outcome = session_client.run(_recover(given.attach, environment, given.session, wanted))
    terminal.print_output(f"{terminal.one_line(given.session)} {terminal.one_line(outcome)}\n")
    return 0


async def _recover(
    url: str | None, environment: Environment, name: str, wanted: Decision | None
) -> str:
    """Apply the decision, if one was given, and describe the state of the Session."""
    async with session_client.open_session(url, environment, name) as (client, session_id):
        if wanted is not None:
            await client.sessions.recovery.decide(session_id, decision=wanted)
            # An embedded host ends with this command, so the retried work must end before it.
            await client.sessions.wait(session_id)
            return (
                "sent the request again" if wanted == "retry" else "recorded the request as failed"
            )
        found = await client.sessions.recovery.get(session_id)
        if not found["waiting"]:
            return "does not wait for a decision"
        return f"waits for a decision: {found.get('message')}; use --retry or --abandon"
