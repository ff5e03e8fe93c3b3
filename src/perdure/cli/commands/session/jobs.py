"""`perdure jobs`: lists the background commands of a Session, or cancels one."""

from perdure.cli import options, session_client, terminal
from perdure.cli.render.tables import local_time, print_table
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
    options.add_format(parser, json="one job on each line")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    jobs = session_client.run(_jobs(given.attach, environment, given.session, given.cancel))
    if given.format == "json":
        for job in jobs:
            terminal.print_output(terminal.as_json(job) + "\n")
        return 0
    print_table(("JOB", "STARTED", "STATE", "COMMAND"), [_row(job) for job in jobs])
    return 0


async def _jobs(
    url: str | None, environment: Environment, name: str, cancelled: str | None
) -> tuple[JobInfo, ...]:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        if cancelled is not None:
            return (await client.sessions.jobs.cancel(session_id, cancelled),)
        return await client.sessions.jobs.list(session_id)


def _row(job: JobInfo) -> tuple[str, ...]:
    ending = f" {job['exitCode']}" if "exitCode" in job else ""
    return job["id"], local_time(job["time"]["started"]), f"{job['state']}{ending}", job["command"]
