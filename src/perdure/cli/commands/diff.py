"""`perdure diff`: shows the changes that a Session made to files, as unified diffs."""

from perdure.cli import options, session_choice, session_client, terminal
from perdure.cli.render import tool_calls
from perdure.client.generated.types import FileDiff
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "diff",
        "Show the changes that a Session made to files: for each file, what it was before the\n"
        "Session and what the Session made of it.",
        examples="perdure diff\nperdure diff ses_... --stat",
    )
    options.add_attach(parser)
    options.add_session(parser, default=session_choice.LAST)
    parser.add_argument("--stat", action="store_true", help="print one line for each file alone")
    options.add_format(parser, json="one JSON value: a list of files")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    files = session_client.run(_load(given.attach, environment, given.session))
    if given.format == "json":
        terminal.print_output(terminal.as_json(list(files)) + "\n")
        return 0
    if not files:
        terminal.print_note("this Session has changed no file\n")
    for file in files:
        if given.stat:
            counted = f"+{file['additions']} -{file['deletions']}"
            terminal.print_output(f"{file['status']} {terminal.one_line(file['path'])} {counted}\n")
        else:
            patch = file["patch"]
            terminal.print_spans(tool_calls.render_diff(patch, lines_max=len(patch), indent=""))
    return 0


async def _load(url: str | None, environment: Environment, name: str) -> tuple[FileDiff, ...]:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        return await client.sessions.diff(session_id)
