"""`perdure undo`: takes back the last prompt of a Session with its changes to files."""

from typing import cast

from perdure.cli import options, session_choice, session_client, terminal
from perdure.cli.problem import Problem
from perdure.cli.remote_source import RemoteSource
from perdure.cli.render import revert_report
from perdure.client import WireClient
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "undo",
        "Take back the last prompt: its files are as before, and the model forgets it with the\n"
        "next prompt. Again takes back the prompt before. `perdure redo` restores it.",
        examples="perdure undo\nperdure undo ses_...",
    )
    options.add_attach(parser)
    options.add_session(parser, default=session_choice.LAST)
    options.add_format(parser, json="one JSON value: the state of the revert")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    prompt, state = session_client.run(_undo(given.attach, environment, given.session))
    if given.format == "json":
        terminal.print_output(terminal.as_json(state) + "\n")
        return 0
    terminal.print_output(f"undone: {terminal.one_line(prompt)}\n")
    revert_report.print_files(state, verb="restored")
    terminal.print_note("`perdure redo` brings it back\n")
    return 0


async def _undo(url: str | None, environment: Environment, name: str) -> tuple[str, JsonObject]:
    """Undo the last prompt that is not undone; return its text and the state of the revert."""
    async with session_client.open_session(url, environment, name) as (client, session_id):
        session = await client.sessions.get(session_id)
        prompts = await list_prompts(client, session_id)
        staged = session.get("revert")
        if staged is not None:
            ids = [prompt["id"] for prompt in prompts]
            prompts = (
                prompts[: ids.index(staged["messageID"])] if staged["messageID"] in ids else []
            )
        if not prompts:
            raise Problem(f"{session_id} has no prompt to undo")
        state = await client.sessions.revert.stage(session_id, message_id=prompts[-1]["id"])
        return prompts[-1]["text"], cast("JsonObject", state)


async def list_prompts(client: WireClient, session_id: str) -> list[JsonObject]:
    """The prompts of a Session, the oldest first."""
    messages = RemoteSource(client).messages(session_id)
    return [message async for message in messages if message["type"] == "user"]
