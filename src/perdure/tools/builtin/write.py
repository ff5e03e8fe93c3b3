"""write: create a file, or replace all of it.

Replacing loses what is not said again, so an existing file must have been read, as it is now.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from perdure.core.files import exact_edit
from perdure.core.limits import WRITE_FILE_BYTES_MAX
from perdure.schema.codec import Record
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, encoded, reason
from perdure.tools.files import read_tracking
from perdure.tools.files.path_access import Target
from perdure.tools.files.post_edit import Looked

DESCRIPTION: Final = """\
Write a whole text file, creating it and its parent directories when needed.

- An existing file is replaced completely; use `edit` to change a part of one.
- Read an existing file before you replace it; otherwise, or if it has changed since, it is refused.
- Paths are relative to the project. Absolute paths outside it need approval."""

_BOM: Final = exact_edit.BOM.encode()
_EMPTY: Final = read_tracking.version_of(b"")


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
    notes: str | UnsetType = UNSET
    """What came of looking after the file."""


def make_write(environment: ToolEnvironment) -> Tool[WriteInput, WriteOutput]:
    async def execute(input: WriteInput, context: ToolCallContext) -> WriteOutput:
        _check(input.content)
        target = await environment.authority.claim_for_writing(input.path, context)
        await environment.require_edit(context, (target,))
        try:
            async with environment.mutations.locked(target.path):
                existed, looked = await _write(environment, target, input.content, context)
        except OSError as error:
            raise ToolFailure(f"Unable to write {input.path}: {reason(error)}") from error
        return WriteOutput(
            operation="write",
            target=target.path,
            resource=target.resource,
            existed=existed,
            notes=looked.told or UNSET,
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
    return (TextContent(text=f"{verb} file successfully: {output.resource}{output.notes or ''}"),)


def _check(content: str) -> None:
    size = len(encoded(content))
    if size > WRITE_FILE_BYTES_MAX:
        raise ToolFailure(f"The text is too large: {size} bytes, at most {WRITE_FILE_BYTES_MAX}")


async def _write(
    environment: ToolEnvironment, target: Target, content: str, context: ToolCallContext
) -> tuple[bool, Looked]:
    existed = await _is_existing_file(environment, target)
    if existed:
        await _require_seen(environment, target, context)
        data = _marked(content, was_marked=await _has_mark(environment, target))
        await environment.mutations.replace(target, data, journal=context.journal)
    else:
        data = _marked(content, was_marked=False)
        await environment.mutations.create(target, data, journal=context.journal)
    looked = await environment.after_edit.look(
        environment.files(target), target, data, context.journal
    )
    environment.mutations.note(context.session_id, target, looked.data)
    return existed, looked


async def _is_existing_file(environment: ToolEnvironment, target: Target) -> bool:
    try:
        status = await environment.files(target).stat(target.path)
    except FileNotFoundError:
        return False
    if status.is_directory:
        raise ToolFailure(f"{target.resource} is a directory")
    if not status.is_file:
        raise ToolFailure(f"{target.resource} is not a regular file")
    return True


async def _require_seen(
    environment: ToolEnvironment, target: Target, context: ToolCallContext
) -> None:
    """What is replaced without being named must have been read, as it is now."""
    current = await read_tracking.version_at(environment.files(target), target.path)
    if current == _EMPTY:
        return
    seen = environment.mutations.seen.version(context.session_id, target.path)
    if seen is None:
        raise ToolFailure(f"{target.resource} exists; read it before you replace all of it")
    if seen != current:
        raise ToolFailure(f"{target.resource} has changed since you read it; read it again")


async def _has_mark(environment: ToolEnvironment, target: Target) -> bool:
    head = await environment.files(target).read(target.path, bytes_max=len(_BOM))
    return head == _BOM


def _marked(content: str, *, was_marked: bool) -> bytes:
    """A byte order mark that was there stays, and is there once."""
    body = content.lstrip(exact_edit.BOM)
    return (_BOM if was_marked or body != content else b"") + body.encode()
