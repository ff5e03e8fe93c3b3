"""write: create a file, or replace all of it.

Replacing loses the old content, so the Session must have read the current version of the file.
"""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from perdure.core.files import exact_edit
from perdure.core.limits import EDIT_FILE_BYTES_MAX, WRITE_FILE_BYTES_MAX
from perdure.ports.offload import offload
from perdure.schema.codec import Record
from perdure.schema.session.session import FileDiff
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, encode_text, reason
from perdure.tools.files import read_tracking
from perdure.tools.files.file_permissions import FileChange
from perdure.tools.files.path_access import Target
from perdure.tools.files.post_edit import PostEditResult

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
    files: tuple[FileDiff, ...] = ()
    """What the write changed, as clients show it."""
    notes: str | UnsetType = UNSET
    """Notes of the After-edit programs."""


def make_write(environment: ToolEnvironment) -> Tool[WriteInput, WriteOutput]:
    async def execute(input: WriteInput, context: ToolCallContext) -> WriteOutput:
        _check(input.content)
        target = await environment.path_access.claim_for_writing(input.path, context)
        try:
            await environment.file_permissions.require_change(
                context, (target,), preview=lambda: _preview(environment, target, input.content)
            )
            async with environment.mutations.locked(target.path):
                written = await _write(environment, target, input.content, context)
        except OSError as error:
            raise ToolFailure(f"Unable to write {input.path}: {reason(error)}") from error
        return WriteOutput(
            operation="write",
            target=target.path,
            resource=target.resource,
            existed=written.before is not None,
            files=(await _diff(target, written),),
            notes=written.checked.notes_text or UNSET,
        )

    return Tool(
        name="write",
        effect="reconcilable",
        asks_first=True,
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
    size = len(encode_text(content))
    if size > WRITE_FILE_BYTES_MAX:
        raise ToolFailure(f"The text is too large: {size} bytes, at most {WRITE_FILE_BYTES_MAX}")


class _Written(Value):
    before: bytes | None
    """The content that was replaced; None for a new file."""
    checked: PostEditResult


async def _write(
    environment: ToolEnvironment, target: Target, content: str, context: ToolCallContext
) -> _Written:
    before = None
    if await _is_existing_file(environment, target):
        await _require_read(environment, target, context)
        files = environment.files(target)
        before = await files.read(target.path, bytes_max=EDIT_FILE_BYTES_MAX)
        data = _with_bom(content, had_bom=before.startswith(_BOM))
        await environment.mutations.replace(target, data, journal=context.journal)
    else:
        data = _with_bom(content, had_bom=False)
        await environment.mutations.create(target, data, journal=context.journal)
    checked = await environment.after_edit.run(
        environment.files(target), target, data, context.journal
    )
    await environment.mutations.note(context.session_id, target, checked.data)
    return _Written(before, checked)


async def _diff(target: Target, written: _Written) -> FileDiff:
    before, after = written.before or b"", written.checked.data
    lines = await offload(
        len(before) + len(after),
        lambda: exact_edit.line_diff(
            target.resource,
            before=before.decode(errors="replace"),
            after=after.decode(errors="replace"),
        ),
    )
    return FileDiff(
        path=target.resource,
        status="added" if written.before is None else "modified",
        additions=lines.additions,
        deletions=lines.deletions,
        patch=lines.patch,
    )


async def _preview(
    environment: ToolEnvironment, target: Target, content: str
) -> tuple[FileChange, ...]:
    files, before = environment.files(target), None
    if await _is_existing_file(environment, target):
        # What is larger cannot be replaced either, because it cannot have been read.
        before = await files.read(target.path, bytes_max=EDIT_FILE_BYTES_MAX)
    return (FileChange(target=target, before=before, after=content.encode()),)


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


async def _require_read(
    environment: ToolEnvironment, target: Target, context: ToolCallContext
) -> None:
    """Raises ToolFailure unless the Session has read the current version."""
    current = await read_tracking.version_at(environment.files(target), target.path)
    if current == _EMPTY:
        return
    known = environment.mutations.read_tracker.version(context.session_id, target.path)
    if known is None:
        raise ToolFailure(f"{target.resource} exists; read it before you replace all of it")
    if known != current:
        raise ToolFailure(f"{target.resource} has changed since you read it; read it again")


def _with_bom(content: str, *, had_bom: bool) -> bytes:
    """The bytes to write, with one byte order mark if the file or the text has one."""
    body = content.lstrip(exact_edit.BOM)
    return (_BOM if had_bom or body != content else b"") + body.encode()
