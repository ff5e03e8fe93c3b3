"""`perdure jobs`: lists the background commands of a Session, or cancels one."""

from datetime import UTC, datetime

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import JobInfo
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "jobs",
        "List the background commands of a Session, newest first, or cancel one.",
        examples="perdure jobs ses_...\nperdure jobs ses_... --cancel job_...",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument(
        "--cancel", metavar="JOB", help="cancel this job; the model is told at its next turn"
    )
    options.add_format(parser)
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    for job in session_client.run(_jobs(given.attach, environment, given.session, given.cancel)):
        line = terminal.as_json(job) if given.format == "json" else _line(job)
        terminal.print_output(line + "\n")
    return 0


async def _jobs(
    url: str | None, environment: Environment, session_id: str, cancelled: str | None
) -> tuple[JobInfo, ...]:
    async with session_client.open_client(url, environment) as client:
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
