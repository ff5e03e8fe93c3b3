"""`perdure jobs`: the commands that a Session runs in the background, and ending one."""

from datetime import UTC, datetime

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import JobInfo
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("jobs", "List the background jobs of a Session, the newest first.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--cancel", metavar="JOB", help="end this one; the Session is told")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    for job in session_client.run(_jobs(given.attach, surroundings, given.session, given.cancel)):
        line = terminal.as_json(job) if given.format == "json" else _line(job)
        terminal.say(line + "\n")
    return 0


async def _jobs(
    url: str | None, surroundings: Environment, session_id: str, cancelled: str | None
) -> tuple[JobInfo, ...]:
    async with session_client.open_client(url, surroundings) as client:
        if cancelled is not None:
            return (await client.sessions.jobs.cancel(session_id, cancelled),)
        return await client.sessions.jobs.list(session_id)


def _line(job: JobInfo) -> str:
    started = datetime.fromtimestamp(job["time"]["started"] / 1000, UTC)
    ending = f" {job['exitCode']}" if "exitCode" in job else ""
    command = terminal.one_line(job["command"])
    return (
        f"{terminal.one_line(job['id'])}  {started:%Y-%m-%d %H:%M:%S}Z  "
        f"{job['state']}{ending}  {command}"
    )
