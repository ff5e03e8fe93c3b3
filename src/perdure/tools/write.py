"""write: create a file, or replace all of it."""

import posixpath
from typing import Annotated, Final, Literal

from msgspec import Meta

from perdure.schema.codec import Record
from perdure.schema.tool import TextContent, ToolContent
from perdure.tools.authority import Target
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.tool import Tool, ToolCallContext, ToolFailure

DESCRIPTION: Final = """\
Write a whole text file, creating it and its parent directories when needed.

- An existing file is replaced completely; use `edit` to change a part of one.
- Read an existing file before you replace it.
- Paths are relative to the project. Absolute paths outside it need approval."""


class WriteInput(Record, frozen=True):
    path: Annotated[
        str, Meta(description="The file, relative to the project or absolute.", min_length=1)
    ]
    content: Annotated[str, Meta(description="The complete new text of the file.")]


class WriteOutput(Record, frozen=True):
    operation: Literal["write"]
    target: str
    resource: str
    existed: bool


def make_write(environment: ToolEnvironment) -> Tool[WriteInput, WriteOutput]:
    async def execute(input: WriteInput, context: ToolCallContext) -> WriteOutput:
        target = await environment.authority.claim_for_writing(input.path, context)
        await environment.require(context, "edit", (target.resource,), save=("*",))
        try:
            async with environment.mutations.locked(target.path):
                existed = await _write(environment, target, input.content)
        except OSError as error:
            raise ToolFailure(f"Unable to write {input.path}: {reason(error)}") from error
        return WriteOutput(
            operation="write", target=target.path, resource=target.resource, existed=existed
        )

    return Tool(
        name="write",
        description=DESCRIPTION,
        input=WriteInput,
        output=WriteOutput,
        execute=execute,
        to_model_output=_content,
        action="edit",
    )


def _content(output: WriteOutput) -> tuple[ToolContent, ...]:
    verb = "Wrote" if output.existed else "Created"
    return (TextContent(text=f"{verb} file successfully: {output.resource}"),)


async def _write(environment: ToolEnvironment, target: Target, content: str) -> bool:
    existed = await _is_existing_file(environment, target)
    if not existed:
        await environment.filesystem.make_directories(posixpath.dirname(target.path))
    await environment.authority.confirm(target)
    await environment.mutations.write_text(target.path, content, existing=existed)
    return existed


async def _is_existing_file(environment: ToolEnvironment, target: Target) -> bool:
    try:
        status = await environment.filesystem.stat(target.path)
    except FileNotFoundError:
        return False
    if status.is_directory:
        raise ToolFailure(f"{target.resource} is a directory")
    if not status.is_file:
        raise ToolFailure(f"{target.resource} is not a regular file")
    return True
