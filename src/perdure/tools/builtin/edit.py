"""edit: replace an exact passage of a file.

An invalid request is refused before permission is asked; whether the passage exists is checked
afterwards, because the answer reveals something about the file.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core.files import exact_edit
from perdure.core.files.exact_edit import Ambiguous, Edited, NotFound
from perdure.core.limits import EDIT_FILE_BYTES_MAX
from perdure.ports.offload import offload
from perdure.schema.codec import Record
from perdure.schema.session.session import FileDiff
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, encode_text, reason
from perdure.tools.files.file_permissions import FileChange
from perdure.tools.files.mutation import StaleContentError
from perdure.tools.files.path_access import Target
from perdure.tools.files.post_edit import PostEditResult

DESCRIPTION: Final = """\
Replace an exact passage of a text file.

- `oldString` must occur in the file as given, whitespace included, and in one place only. Add \
lines around it until it is unique, or set `replaceAll` to change every occurrence.
- Read the file first. If it has changed since, the edit is refused: read it again.
- Line endings and a byte order mark are kept."""


class EditInput(Record, frozen=True):
    path: Annotated[
        str, Meta(description="The file, relative to the project or absolute.", min_length=1)
    ]
    old_string: Annotated[str, Meta(description="The passage to replace, exactly as it stands.")]
    new_string: Annotated[str, Meta(description="What to put in its place; may be empty.")]
    replace_all: (
        Annotated[bool, Meta(description="Replace every occurrence instead of the only one.")]
        | UnsetType
    ) = UNSET


class EditStructured(Record, frozen=True):
    files: tuple[FileDiff, ...]
    replacements: int


class EditOutput(Record, frozen=True):
    files: tuple[FileDiff, ...]
    replacements: int
    preview: str
    notes: str = ""
    """Notes of the After-edit programs."""


def make_edit(environment: ToolEnvironment) -> Tool[EditInput, EditOutput]:
    async def execute(input: EditInput, context: ToolCallContext) -> EditOutput:
        _check(input)
        target = await environment.path_access.claim_for_writing(input.path, context)
        try:
            approved = await environment.file_permissions.require_change(
                context,
                (target,),
                uses=(target,),
                preview=lambda: _preview(environment, target, input),
            )
            # Held from reading to writing, so that concurrent edits run one after another.
            async with environment.mutations.locked(target.path):
                return await _edit(environment, target, input, context, approved=approved)
        except StaleContentError as error:
            raise ToolFailure(
                f"{target.resource} has changed since it was read; read it again"
            ) from error
        except OSError as error:
            raise ToolFailure(f"Unable to edit {input.path}: {reason(error)}") from error

    return Tool(
        name="edit",
        effect="reconcilable",
        asks_first=True,
        description=DESCRIPTION,
        input=EditInput,
        output=EditOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
    )


def _content(output: EditOutput) -> tuple[ToolContent, ...]:
    name = output.files[0].path
    text = f"Edited file successfully: {name}\nReplacements: {output.replacements}\n"
    return (TextContent(text=text + output.preview + output.notes),)


def _structured(output: EditOutput) -> EditStructured:
    return EditStructured(files=output.files, replacements=output.replacements)


def _check(input: EditInput) -> None:
    match exact_edit.find_fault(old=input.old_string, new=input.new_string):
        case "empty":
            raise ToolFailure("oldString must not be empty; use write to create a file")
        case "identical":
            raise ToolFailure("oldString and newString are identical: nothing to change")
        case None:
            encode_text(input.old_string + input.new_string)


async def _preview(
    environment: ToolEnvironment, target: Target, input: EditInput
) -> tuple[FileChange, ...]:
    data = await _read(environment, target)
    edited = await offload(len(data), lambda: _apply(data, target, input))
    return (FileChange(target=target, before=data, after=edited.text.encode()),)


async def _edit(
    environment: ToolEnvironment,
    target: Target,
    input: EditInput,
    context: ToolCallContext,
    *,
    approved: Sequence[FileChange],
) -> EditOutput:
    data = await _read(environment, target)
    if any(change.before != data for change in approved):
        raise StaleContentError(target.path)
    await environment.mutations.require_current(context.session_id, target, data)
    edited = await offload(len(data), lambda: _apply(data, target, input))
    after = edited.text.encode()
    await environment.mutations.replace_if_unchanged(
        target, read=data, data=after, journal=context.journal
    )
    checked = await environment.after_edit.run(
        environment.files(target), target, after, context.journal
    )
    await environment.mutations.note(context.session_id, target, checked.data)
    return await offload(
        len(data) + len(checked.data),
        lambda: _output(target.resource, data, checked, input, replacements=edited.replacements),
    )


async def _read(environment: ToolEnvironment, target: Target) -> bytes:
    files = environment.files(target)
    status = await files.stat(target.path)
    if not status.is_file:
        raise ToolFailure(f"{target.resource} is not a regular file")
    data = await files.read(target.path, bytes_max=EDIT_FILE_BYTES_MAX + 1)
    if len(data) > EDIT_FILE_BYTES_MAX:
        raise ToolFailure(
            f"{target.resource} is too large to edit: {status.size} bytes,"
            f" at most {EDIT_FILE_BYTES_MAX}"
        )
    return data


def _apply(data: bytes, target: Target, input: EditInput) -> Edited:
    try:
        before = data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailure(f"{target.resource} is not valid UTF-8 text") from error
    _check_result_size(before, target, input)
    result = exact_edit.apply(
        before,
        old=input.old_string,
        new=input.new_string,
        replace_all=input.replace_all is True,
    )
    match result:
        case Edited():
            return result
        case NotFound():
            raise ToolFailure(
                f"oldString was not found in {target.resource};"
                " it must match exactly, including whitespace and indentation"
            )
        case Ambiguous(places=places):
            raise ToolFailure(
                f"oldString occurs {places} times in {target.resource};"
                " add surrounding lines to make it unique, or set replaceAll"
            )


def _check_result_size(before: str, target: Target, input: EditInput) -> None:
    """Replacing many short passages by a long one could exhaust the memory."""
    old, new = input.old_string, input.new_string
    places = before.count(old) + before.count(old.replace("\n", "\r\n"))
    if len(before) + places * len(new) > EDIT_FILE_BYTES_MAX:
        raise ToolFailure(
            f"{target.resource} would become too large: at most {EDIT_FILE_BYTES_MAX} bytes"
        )


def _output(
    resource: str, before: bytes, after: PostEditResult, input: EditInput, *, replacements: int
) -> EditOutput:
    diff = exact_edit.line_diff(
        resource, before=before.decode(), after=after.data.decode("utf-8", "replace")
    )
    return EditOutput(
        files=(
            FileDiff(
                path=resource,
                status="modified",
                additions=diff.additions,
                deletions=diff.deletions,
                patch=diff.patch,
            ),
        ),
        replacements=replacements,
        preview=exact_edit.preview(old=input.old_string, new=input.new_string),
        notes=after.notes_text,
    )
