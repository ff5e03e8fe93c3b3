"""`perdure config permissions`: shows and removes saved approvals, and the rules of a Session."""

import time

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import SavedRule, SessionInfo, SessionRule
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "config permissions",
        'Show what was allowed for good in this project ("always"), or the rules of a Session.\n'
        "An approval counts for one Session, one agent, this project, or everywhere.",
        examples="perdure config permissions\nperdure config permissions --remove psv_...\n"
        "perdure config permissions --session ses_... --clear",
    )
    options.add_attach(parser)
    parser.add_argument("--remove", metavar="ID", help="remove the approval with this id")
    parser.add_argument("--session", metavar="SESSION", help="show the rules of this Session")
    parser.add_argument(
        "--clear", action="store_true", help="remove all rules of the Session and those below it"
    )
    given = parser.parse_args(argv)
    if given.clear and given.session is None:
        parser.error("--clear needs --session: approvals are removed one by one, with --remove ID")
    if given.remove is not None and given.session is not None:
        parser.error("--remove is for approvals and --session for rules; give one of them")
    environment = options.read_environment(given.data_dir)
    if given.session is not None:
        session = session_client.run(
            _load_session(given.attach, environment, given.session, clear=given.clear)
        )
        rules = session.get("permissions", [])
        lines = [_describe_rule(rule) for rule in rules] or ["no rules of its own"]
    else:
        saved = session_client.run(_list_saved(given.attach, environment, given.remove))
        lines = [_describe_saved(rule) for rule in saved] or ["nothing was allowed for good here"]
    terminal.print_output("".join(f"{line}\n" for line in lines))
    return 0


async def _load_session(
    url: str | None, environment: Environment, session_id: str, *, clear: bool
) -> SessionInfo:
    async with session_client.open_client(url, environment) as client:
        if clear:
            return await client.sessions.set_rules(session_id, [])
        return await client.sessions.get(session_id)


async def _list_saved(
    url: str | None, environment: Environment, removed: str | None
) -> tuple[SavedRule, ...]:
    async with session_client.open_client(url, environment) as client:
        if removed is not None:
            await client.permissions.remove_saved(removed)
        return await client.permissions.saved()


def _describe_saved(rule: SavedRule) -> str:
    scope = rule.get("scope")
    reach = {
        "session": f"in the Session {rule.get('sessionID')}",
        "agent": f"for the agent {rule.get('agent')}",
        "project": "in this project",
        "global": "everywhere",
    }
    where = reach[scope] if scope is not None else "nowhere: it is of an older version"
    what = f"{rule['action']} {rule['resource']}"
    return terminal.one_line(f"{rule['id']} {what} {where}{_describe_end(rule.get('expires'))}")


def _describe_rule(rule: SessionRule) -> str:
    what = f"{rule['effect']} {rule['action']} {rule['resource']}"
    return terminal.one_line(f"{what}{_describe_end(rule.get('expires'))}")


def _describe_end(expires: int | None) -> str:
    if expires is None:
        return ""
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(expires / 1000))
    return f" until {moment}"
