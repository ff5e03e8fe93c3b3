"""`perdure compact`: frees context of a Session: prunes old tool results or summarises messages.

The stored messages stay as they are; only the model is sent less.
"""

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import CompactionReport
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "compact",
        "Free context: prune old large tool results, or summarise older messages. The stored"
        " messages stay as they are.",
        examples='perdure compact ses_... --instruction "keep the failing test names"',
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument(
        "--instruction", metavar="TEXT", help="tell the model what to keep in the summary"
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    report = session_client.run(
        _compact(given.attach, environment, given.session, given.instruction)
    )
    terminal.print_output(f"{terminal.one_line(given.session)} {describe(report)}\n")
    return 0


def describe(report: CompactionReport) -> str:
    """Return what a compaction freed, or why it was nothing, in one line."""
    reason = terminal.one_line(report.get("reason", ""))
    if report["outcome"] == "nothing":
        return f"needs no compaction: {reason}"
    freed = f"from about {report['tokensBefore']:,} to {report['tokensAfter']:,} tokens"
    if report["outcome"] == "summarised":
        return f"is compacted, {freed}: older messages are summarised"
    note = f"; they are not summarised: {reason}" if reason else ""
    return f"is compacted, {freed}: {report.get('results', 0)} old tool results are pruned{note}"


async def _compact(
    url: str | None, environment: Environment, name: str, instruction: str | None
) -> CompactionReport:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        return await client.sessions.compact_with_report(session_id, instruction=instruction)
