"""`perdure redo`: restores what `perdure undo` took back, one prompt at a time."""

from typing import cast

from perdure.cli import options, session_choice, session_client, terminal
from perdure.cli.commands.undo import list_prompts
from perdure.cli.problem import Problem
from perdure.cli.render import revert_report
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "redo",
        "Restore what `perdure undo` took back, one prompt at a time, until the next prompt.",
        examples="perdure redo\nperdure redo ses_...",
    )
    options.add_attach(parser)
    options.add_session(parser, default=session_choice.LAST)
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    prompt, undone = session_client.run(_redo(given.attach, environment, given.session))
    terminal.print_output(f"restored: {terminal.one_line(prompt)}\n")
    revert_report.print_files(undone, verb="changed again")
    return 0


async def _redo(url: str | None, environment: Environment, name: str) -> tuple[str, JsonObject]:
    """Restore the first undone prompt; return its text and what had been undone."""
    async with session_client.open_session(url, environment, name) as (client, session_id):
        staged = (await client.sessions.get(session_id)).get("revert")
        if staged is None:
            raise Problem(f"nothing is undone in {session_id}")
        prompts = await list_prompts(client, session_id)
        ids = [prompt["id"] for prompt in prompts]
        first = ids.index(staged["messageID"]) if staged["messageID"] in ids else len(ids)
        if first + 1 < len(ids):
            await client.sessions.revert.stage(session_id, message_id=ids[first + 1])
        else:
            await client.sessions.revert.clear(session_id)
        text = prompts[first]["text"] if first < len(prompts) else "everything"
        return text, cast("JsonObject", staged)
