"""Makes the prompt of a slash command: its template, with arguments and outputs put in.

The shell commands of a template come from the configuration, which the user wrote or trusted. They
run inside the sandbox, as those of the model do, and get the arguments as their own parameters.
"""

from collections.abc import Mapping

from perdure.core import limits
from perdure.core.text import command_template
from perdure.core.text.command_template import ShellPart
from perdure.location.location import Location
from perdure.location.registry import LocationRegistry
from perdure.schema.errors import InvalidRequestError
from perdure.schema.location import LocationRef
from perdure.tools.builtin import bash_sandbox
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.shell import command_output


class TemplateCommands:
    def __init__(self, locations: LocationRegistry) -> None:
        self._locations = locations

    async def fill(self, ref: LocationRef, template: str, arguments: str) -> str:
        """The text of the prompt. Raises InvalidRequestError when too much would have to be run."""
        parts = command_template.fill(template, arguments)
        wanted = [part for part in parts if isinstance(part, ShellPart)]
        if len(wanted) > limits.TEMPLATE_COMMANDS_MAX:
            most = limits.TEMPLATE_COMMANDS_MAX
            raise InvalidRequestError(f"The template runs {len(wanted)} commands; at most {most}")
        if not wanted:
            return "".join(part for part in parts if isinstance(part, str))
        async with self._locations.hold(ref) as location:
            texts = [
                part if isinstance(part, str) else await _run(location, part.command, arguments)
                for part in parts
            ]
        return "".join(texts)


async def _run(location: Location, command: str, arguments: str) -> str:
    environment, directory = location.files.environment, location.ref.directory
    launch = await bash_sandbox.contain(environment, directory)
    words = command_template.split_arguments(arguments)
    try:
        result = await environment.processes.run(
            (*launch.wrapper, environment.shell, "-c", command, environment.shell, *words),
            directory=directory,
            environment=_with_arguments(launch.variables, environment, arguments),
            timeout_seconds=limits.TEMPLATE_COMMAND_SECONDS_MAX,
            output_bytes_max=limits.TEMPLATE_OUTPUT_BYTES_MAX,
        )
    except OSError as error:
        return f"(the command could not be run: {reason(error)})"
    text = command_output.readable(result.output).strip()
    if result.timed_out:
        return f"{text}\n(ended after {limits.TEMPLATE_COMMAND_SECONDS_MAX} seconds)".lstrip()
    return f"{text}\n(cut here)" if result.truncated else text


def _with_arguments(
    variables: Mapping[str, str] | None, environment: ToolEnvironment, arguments: str
) -> dict[str, str]:
    return {**(variables or environment.variables or {}), "ARGUMENTS": arguments}
