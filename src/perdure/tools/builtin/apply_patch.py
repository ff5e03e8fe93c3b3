"""apply_patch: change several files with one patch.

Everything is checked before anything is written: the patch is parsed, every target is resolved and
approved, every new text is made. Then the changes are applied in order. If one fails even so, the
answer says which were applied.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from perdure.core.files import exact_edit, patch
from perdure.core.files.patch import AddFile, Change, DeleteFile, PatchError, UpdateFile
from perdure.core.limits import EDIT_FILE_BYTES_MAX, PATCH_BYTES_MAX, PATCH_FILES_MAX
from perdure.ports.offload import offload
from perdure.schema.codec import Record
from perdure.schema.session.session import FileDiff
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, encode_text, reason
from perdure.tools.files.file_permissions import FileChange
from perdure.tools.files.mutation import FileMutations, StaleContentError
from perdure.tools.files.path_access import Target

DESCRIPTION: Final = """\
Change several files at once with a patch of this form:

*** Begin Patch
*** Add File: notes/new.txt
+its first line
*** Update File: src/app.py
@@ def main():
 a line that stays
-a line that goes
+a line that comes
*** Update File: old/name.py
*** Move to: new/name.py
@@
-one
+two
*** Delete File: obsolete.txt
*** End Patch

- Lines that stay begin with a space, lines that go with '-', lines that come with '+'. Give \
enough lines that stay to make the place clear; `@@ some line` names a line to look for first.
- `*** End of File` after a change says that it is at the end of the file.
- Read a file before you change it. Either the whole patch is fit to be applied, or nothing is."""


ChangeType = Literal["add", "update", "delete", "move"]
_STATUS: Final[Mapping[ChangeType, Literal["added", "modified", "deleted"]]] = {
    "add": "added",
    "update": "modified",
    "delete": "deleted",
    "move": "modified",
}


class ApplyPatchInput(Record, frozen=True):
    patch_text: Annotated[str, Meta(description="The whole patch.", min_length=1)]


class Applied(Record, frozen=True):
    type: ChangeType
    resource: str
    target: str


class ApplyPatchOutput(Record, frozen=True):
    applied: tuple[Applied, ...]
    files: tuple[FileDiff, ...]
    notes: str | UnsetType = UNSET
    """Notes of the After-edit programs."""


def make_apply_patch(environment: ToolEnvironment) -> Tool[ApplyPatchInput, ApplyPatchOutput]:
    async def execute(input: ApplyPatchInput, context: ToolCallContext) -> ApplyPatchOutput:
        text = input.patch_text
        changes = await offload(len(text), lambda: _parse(text))
        targets = await _claim_targets(environment, changes, context)
        approved = await environment.file_permissions.require_change(
            context,
            targets.values(),
            uses=[targets[it.path] for it in changes if isinstance(it, UpdateFile)],
            preview=lambda: _preview(environment, changes, targets),
        )
        async with AsyncExitStack() as stack:
            # In sorted order, so that two patches cannot deadlock.
            for path in sorted({target.path for target in targets.values()}):
                await stack.enter_async_context(environment.mutations.locked(path))
            prepared = [await _prepare(environment, change, targets) for change in changes]
            _require_as_approved(prepared, approved)
            for change in prepared:
                await _require_current(environment, change, context)
            return await _commit(environment, prepared, context)

    return Tool(
        name="apply_patch",
        effect="reconcilable",
        asks_first=True,
        description=DESCRIPTION,
        input=ApplyPatchInput,
        output=ApplyPatchOutput,
        execute=execute,
        to_model_output=_content,
        action="edit",
    )


class _Prepared(Value, kw_only=True):
    """One change, ready to be applied: the bytes that were read and the new ones."""

    type: ChangeType
    target: Target
    destination: Target
    read: bytes | None
    data: bytes | None

    @property
    def size(self) -> int:
        return len(self.read or b"") + len(self.data or b"")

    def file_changes(self) -> tuple[FileChange, ...]:
        """What happens to each path: a move removes one file and creates another."""
        if self.type != "move":
            return (FileChange(target=self.target, before=self.read, after=self.data),)
        return (
            FileChange(target=self.target, before=self.read, after=None),
            FileChange(target=self.destination, before=None, after=self.data),
        )

    def diff(self) -> FileDiff:
        before, after = _text(self.read), _text(self.data)
        lines = exact_edit.line_diff(self.destination.resource, before=before, after=after)
        return FileDiff(
            path=self.destination.resource,
            status=_STATUS[self.type],
            additions=lines.additions,
            deletions=lines.deletions,
            patch=lines.patch,
        )


def _content(output: ApplyPatchOutput) -> tuple[ToolContent, ...]:
    lines = [f"{_VERBS[item.type]} {item.resource}" for item in output.applied]
    text = "Applied the patch:\n" + "\n".join(lines) + (output.notes or "")
    return (TextContent(text=text),)


_VERBS: Final = {"add": "Added", "update": "Updated", "delete": "Deleted", "move": "Moved to"}


def _parse(text: str) -> tuple[Change, ...]:
    if len(encode_text(text)) > PATCH_BYTES_MAX:
        raise ToolFailure(f"The patch is too large: at most {PATCH_BYTES_MAX} bytes")
    try:
        changes = patch.parse(text)
    except PatchError as error:
        raise ToolFailure(f"The patch is malformed: {error}") from error
    if not changes:
        raise ToolFailure("The patch is rejected: it changes no file")
    if len(changes) > PATCH_FILES_MAX:
        raise ToolFailure(f"The patch changes {len(changes)} files; at most {PATCH_FILES_MAX}")
    return changes


async def _claim_targets(
    environment: ToolEnvironment, changes: Sequence[Change], context: ToolCallContext
) -> dict[str, Target]:
    """Resolve each path of the patch, with approval if it is outside."""
    paths = [change.path for change in changes]
    paths += [path for change in changes for path in _paths(change)[1:]]
    targets = await environment.path_access.claim_all_for_writing(paths, context)
    seen: set[str] = set()
    for path in paths:
        if targets[path].path in seen:
            raise ToolFailure(f"The patch is rejected: it changes {targets[path].resource} twice")
        seen.add(targets[path].path)
    return targets


async def _preview(
    environment: ToolEnvironment, changes: Sequence[Change], targets: dict[str, Target]
) -> list[FileChange]:
    prepared = [await _prepare(environment, change, targets) for change in changes]
    return [change for it in prepared for change in it.file_changes()]


def _require_as_approved(prepared: Sequence[_Prepared], approved: Sequence[FileChange]) -> None:
    now = [change for it in prepared for change in it.file_changes()]
    for change in approved:
        if change not in now:
            raise ToolFailure(
                f"{change.target.resource} has changed since the change was approved; read it"
                " again. Nothing was changed."
            )


def _paths(change: Change) -> tuple[str, ...]:
    moved = change.move_to if isinstance(change, UpdateFile) else None
    return (change.path,) if moved is None else (change.path, moved)


async def _prepare(
    environment: ToolEnvironment, change: Change, targets: dict[str, Target]
) -> _Prepared:
    target = targets[change.path]
    if isinstance(change, AddFile):
        await _require_free(environment, target)
        data = change.content.encode()
        return _Prepared(type="add", target=target, destination=target, read=None, data=data)
    read = await _read(environment, target)
    if isinstance(change, DeleteFile):
        return _Prepared(type="delete", target=target, destination=target, read=read, data=None)
    lines = sum(len(chunk.old) + len(chunk.new) for chunk in change.chunks)
    data = await offload(len(read) + lines, lambda: _apply_chunks(target, read, change))
    if change.move_to is None:
        return _Prepared(type="update", target=target, destination=target, read=read, data=data)
    destination = targets[change.move_to]
    await _require_free(environment, destination)
    return _Prepared(type="move", target=target, destination=destination, read=read, data=data)


def _apply_chunks(target: Target, read: bytes, change: UpdateFile) -> bytes:
    if not change.chunks:
        return read
    try:
        return patch.apply(read.decode(), change.chunks).encode()
    except UnicodeDecodeError as error:
        raise ToolFailure(f"{target.resource} is not valid UTF-8 text") from error
    except PatchError as error:
        raise ToolFailure(f"The patch does not fit {target.resource}: {error}") from error


async def _require_free(environment: ToolEnvironment, target: Target) -> None:
    try:
        await environment.files(target).stat(target.path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unable(target, error) from error
    raise ToolFailure(f"The patch is rejected: {target.resource} exists already")


async def _read(environment: ToolEnvironment, target: Target) -> bytes:
    try:
        files = environment.files(target)
        data = await files.read(target.path, bytes_max=EDIT_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _unable(target, error) from error
    if len(data) > EDIT_FILE_BYTES_MAX:
        raise ToolFailure(f"{target.resource} is too large to change: over {EDIT_FILE_BYTES_MAX}")
    return data


async def _require_current(
    environment: ToolEnvironment, change: _Prepared, context: ToolCallContext
) -> None:
    if change.read is None:
        return
    try:
        await environment.mutations.require_current(context.session_id, change.target, change.read)
    except StaleContentError as error:
        raise ToolFailure(
            f"{change.target.resource} has changed since it was read; read it again."
            " Nothing was changed."
        ) from error


async def _commit(
    environment: ToolEnvironment, prepared: Sequence[_Prepared], context: ToolCallContext
) -> ApplyPatchOutput:
    applied: list[Applied] = []
    for change in prepared:
        try:
            await _apply_change(environment.mutations, change, context)
        except (OSError, StaleContentError) as error:
            raise ToolFailure(_partial_failure(change, error, applied)) from error
        target = change.destination
        applied.append(Applied(type=change.type, resource=target.resource, target=target.path))
    settled, notes = await _run_after_edit(environment, prepared, context)
    size = sum(change.size for change in settled)
    return ApplyPatchOutput(
        applied=tuple(applied),
        files=await offload(size, lambda: tuple(change.diff() for change in settled)),
        notes="".join(f"\n\n{note}" for note in notes) or UNSET,
    )


async def _run_after_edit(
    environment: ToolEnvironment, prepared: Sequence[_Prepared], context: ToolCallContext
) -> tuple[list[_Prepared], list[str]]:
    """Format and check the files; returns the changes with the final contents, and notes."""
    after_edit, settled = environment.after_edit, list[_Prepared]()
    notes: list[str] = []
    for change in prepared:
        target, data = change.destination, change.data
        if data is not None:
            files = environment.files(target)
            formatted = await after_edit.format(files, target, data, context.journal)
            await environment.mutations.note(context.session_id, target, formatted.data)
            notes += formatted.notes
            data = formatted.data
        if change.type in {"delete", "move"}:
            after_edit.edited(change.target.path)
        if data is not None:
            after_edit.edited(target.path)
        settled.append(replace(change, data=data))
    written = [change.destination for change in settled if change.data is not None]
    return settled, [*notes, *await after_edit.check(written, files=environment.files)]


async def _apply_change(
    mutations: FileMutations, change: _Prepared, context: ToolCallContext
) -> None:
    session_id, journal = context.session_id, context.journal
    if change.type == "update":
        assert change.read is not None
        assert change.data is not None
        await mutations.replace_if_unchanged(
            change.target, read=change.read, data=change.data, journal=journal
        )
    elif change.data is not None:
        await mutations.create(change.destination, change.data, journal=journal)
    if change.data is None or change.type == "move":
        assert change.read is not None
        await mutations.remove_if_unchanged(change.target, read=change.read, journal=journal)
        mutations.read_tracker.forget(session_id, change.target.path)
    if change.data is not None:
        await mutations.note(session_id, change.destination, change.data)


def _partial_failure(
    change: _Prepared, error: OSError | StaleContentError, applied: Sequence[Applied]
) -> str:
    changed = "it changed after it was approved; read it again"
    why = reason(error) if isinstance(error, OSError) else changed
    message = f"Unable to apply the patch at {change.target.resource}: {why}."
    if not applied:
        return f"{message} Nothing was changed."
    done = ", ".join(item.resource for item in applied)
    return f"{message} Already changed: {done}."


def _unable(target: Target, error: OSError) -> ToolFailure:
    return ToolFailure(f"Unable to read {target.resource}: {reason(error)}")


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")
