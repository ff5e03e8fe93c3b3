"""read: a file as text, image or document, or one page of a directory.

A small file is returned whole; a large one, or a requested part, as a page of lines. Files that
cannot be shown to a model are refused, and so are documents that the current model cannot read.
"""

import asyncio
import posixpath
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from perdure.core.files.paths import is_within, printable
from perdure.core.limits import (
    DIRECTORY_ENTRIES_MAX,
    DOCUMENT_BYTES_MAX,
    IMAGE_FILE_BYTES_MAX,
    READ_BYTES_MAX,
    READ_CHUNK_BYTES,
    READ_LINES_MAX,
    READ_SNIFF_BYTES,
)
from perdure.core.request.media_limits import ImageBounds
from perdure.net import data_uri
from perdure.ports import FileStat, Filesystem
from perdure.schema.codec import Record
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment, reason
from perdure.tools.files import read_tracking
from perdure.tools.files.file_permissions import FileView, Omitted
from perdure.tools.files.line_pager import LinePager
from perdure.tools.files.path_access import Target
from perdure.tools.files.read_tracking import ReadTracker
from perdure.tools.media import file_kind, images
from perdure.tools.media.images import PreparedImage, UnusableImageError

DESCRIPTION: Final = f"""\
Read a file or list a directory.

- A file of up to {READ_BYTES_MAX // 1024} KiB comes whole. A larger one comes in pages of lines: \
pass the `next` of the answer as `offset` to go on.
- Images (PNG, JPEG, GIF, WebP) are shown to you as images, large ones scaled down. \
A PDF is shown to you as a document, if you can read one.
- A directory gives its direct entries, directories first; their names end in a slash.
- Paths are relative to the project. Absolute paths outside it need approval. `@name/path` is in \
the reference of that name."""


class ReadInput(Record, frozen=True):
    path: Annotated[
        str,
        Meta(description="File or directory, relative to the project or absolute.", min_length=1),
    ]
    offset: (
        Annotated[int, Meta(description="First line or entry, counted from 1.", ge=1)] | UnsetType
    ) = UNSET
    limit: (
        Annotated[
            int, Meta(description="Most lines or entries to return.", ge=1, le=READ_LINES_MAX)
        ]
        | UnsetType
    ) = UNSET


class WholeFile(Record, frozen=True):
    uri: str
    name: str
    content: str
    encoding: Literal["utf8"]
    mime: str


class TextPage(Record, frozen=True):
    type: Literal["text-page"]
    content: str
    mime: str
    offset: int
    truncated: bool
    next: int | UnsetType = UNSET


class DirectoryEntry(Record, frozen=True):
    path: str
    type: Literal["file", "directory"]


class DirectoryPage(Record, frozen=True):
    entries: tuple[DirectoryEntry, ...]
    truncated: bool
    next: int | UnsetType = UNSET
    omitted: Omitted | UnsetType = UNSET


class Image(Record, frozen=True):
    type: Literal["image"]
    uri: str
    name: str
    mime: str
    size: int
    width: int
    height: int


class Document(Record, frozen=True):
    type: Literal["document"]
    uri: str
    name: str
    mime: str
    size: int


class ReadOutput(Record, frozen=True):
    """Exactly one of the shapes; `data` belongs to image and document, `path` to a text file."""

    file: WholeFile | UnsetType = UNSET
    page: TextPage | UnsetType = UNSET
    directory: DirectoryPage | UnsetType = UNSET
    image: Image | UnsetType = UNSET
    document: Document | UnsetType = UNSET
    data: str | UnsetType = UNSET
    path: str | UnsetType = UNSET


def make_read(environment: ToolEnvironment) -> Tool[ReadInput, ReadOutput]:
    # One at a time, because decoding needs a lot of memory.
    one_image = asyncio.Lock()

    async def execute(input: ReadInput, context: ToolCallContext) -> ReadOutput:
        target = await environment.path_access.claim(input.path, "directory", context)
        files, permissions = environment.files(target), environment.file_permissions
        await permissions.refuse_denied(context, target)
        try:
            status = await files.stat(target.path)
            await permissions.require_shown(context, target)
            if status.is_directory:
                view = await permissions.view(context, target.path)
                return ReadOutput(directory=await _directory_page(environment, target, input, view))
            tracker = environment.mutations.read_tracker
            reading = _Reading(files, target, tracker, context, environment.images)
            return await _file(reading, status, input, one_image)
        except OSError as error:
            raise ToolFailure(f"Unable to read {input.path}: {reason(error)}") from error

    return Tool(
        name="read",
        effect="pure",
        asks_first=True,
        description=DESCRIPTION,
        input=ReadInput,
        output=ReadOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
        reads=lambda output: () if isinstance(output.path, UnsetType) else (output.path,),
    )


def extract_media(output: ReadOutput) -> FileContent | None:
    """The image or document that was read; None for anything else."""
    media = output.image or output.document
    if isinstance(media, UnsetType) or isinstance(output.data, UnsetType):
        return None
    return FileContent(uri=output.data, mime=media.mime, name=media.name)


def _content(output: ReadOutput) -> tuple[ToolContent, ...]:
    media = extract_media(output)
    if media is None:
        return ()
    image, document = output.image, output.document
    shape = f" {image.width}x{image.height}," if image else ""
    size = image.size if image else document.size if document else 0
    note = TextContent(text=f"{media.name}: {media.mime},{shape} {size} bytes")
    return (note, media)


def _structured(output: ReadOutput) -> Record:
    shapes = (output.file, output.page, output.directory, output.image, output.document)
    return next(shape for shape in shapes if not isinstance(shape, UnsetType))


class _Reading(Value):
    """One file that is being read, and the tracker that records it."""

    files: Filesystem
    target: Target
    tracker: ReadTracker
    context: ToolCallContext
    bounds: ImageBounds

    def note(self, version: str) -> None:
        self.tracker.note(self.context.session_id, self.target.path, version)


async def _file(
    reading: _Reading, status: FileStat, input: ReadInput, one_image: asyncio.Lock
) -> ReadOutput:
    target = reading.target
    if not status.is_file:
        raise ToolFailure(f"{target.resource} is not a regular file")
    wanted = READ_BYTES_MAX + 1 if status.size <= READ_BYTES_MAX else READ_SNIFF_BYTES
    head = await reading.files.read(target.path, bytes_max=wanted)
    mime = file_kind.image_mime(head)
    if mime is not None:
        async with one_image:
            return await _image(reading, status, mime)
    if reading.context.reads_documents and file_kind.is_pdf(head):
        return await _document(reading, status)
    name = posixpath.basename(target.path)
    if file_kind.is_binary(name, head[:READ_SNIFF_BYTES]):
        raise ToolFailure(f"Cannot read binary file: {target.resource}")
    paged = not isinstance(input.offset, UnsetType) or not isinstance(input.limit, UnsetType)
    try:
        if paged or status.size > READ_BYTES_MAX or len(head) > READ_BYTES_MAX:
            # Before the page is read: a change meanwhile must count as unread.
            version = await read_tracking.version_at(reading.files, target.path)
            page = await _text_page(reading.files, target, input)
            reading.note(version)
            return ReadOutput(page=page, path=target.path)
        whole = _whole(target.path, head)
        reading.note(read_tracking.version_of(head))
        return ReadOutput(file=whole, path=target.path)
    except UnicodeDecodeError as error:
        raise ToolFailure(f"{target.resource} is not valid UTF-8 text") from error


def _whole(path: str, data: bytes) -> WholeFile:
    name = posixpath.basename(path)
    return WholeFile(
        uri=_file_uri(path),
        name=printable(name),
        content=data.decode("utf-8-sig"),
        encoding="utf8",
        mime=file_kind.text_mime(name),
    )


async def _text_page(files: Filesystem, target: Target, input: ReadInput) -> TextPage:
    offset = 1 if isinstance(input.offset, UnsetType) else input.offset
    limit = READ_LINES_MAX if isinstance(input.limit, UnsetType) else input.limit
    pager = LinePager(offset=offset, limit=limit)
    position = 0
    while not pager.full:
        chunk = await files.read(target.path, offset=position, bytes_max=READ_CHUNK_BYTES)
        if not chunk:
            break
        pager.feed(chunk)
        position += len(chunk)
    page = pager.page()
    if not page.lines and offset > 1:
        raise ToolFailure(
            f"Offset {offset} is past the end of {target.resource} ({pager.lines_seen} lines)"
        )
    return TextPage(
        type="text-page",
        content=page.text.removeprefix("\ufeff") if offset == 1 else page.text,
        mime=file_kind.text_mime(target.path),
        offset=offset,
        truncated=page.more,
        next=offset + page.lines if page.more else UNSET,
    )


async def _image(reading: _Reading, status: FileStat, mime: str) -> ReadOutput:
    target = reading.target
    data = await reading.files.read(target.path, bytes_max=IMAGE_FILE_BYTES_MAX + 1)
    if len(data) > IMAGE_FILE_BYTES_MAX:
        raise ToolFailure(
            f"{target.resource} is an image of {status.size} bytes;"
            f" the most that can be shown is {IMAGE_FILE_BYTES_MAX}"
        )
    try:
        prepared = await asyncio.to_thread(images.prepare_image, data, mime, reading.bounds)
    except UnusableImageError as error:
        raise ToolFailure(f"Cannot show the image {target.resource}: {error}") from error
    reading.note(await read_tracking.version_in(data))
    return ReadOutput(
        image=_describe_image(target.path, prepared),
        data=data_uri.write_encoded(prepared.mime, prepared.base64),
    )


async def _document(reading: _Reading, status: FileStat) -> ReadOutput:
    target = reading.target
    data = await reading.files.read(target.path, bytes_max=DOCUMENT_BYTES_MAX + 1)
    if len(data) > DOCUMENT_BYTES_MAX:
        raise ToolFailure(
            f"{target.resource} is a PDF of {status.size} bytes;"
            f" the most that can be shown is {DOCUMENT_BYTES_MAX}"
        )
    reading.note(await read_tracking.version_in(data))
    document = Document(
        type="document",
        uri=_file_uri(target.path),
        name=printable(posixpath.basename(target.path)),
        mime=file_kind.PDF,
        size=len(data),
    )
    return ReadOutput(document=document, data=data_uri.write(file_kind.PDF, data))


def _describe_image(path: str, image: PreparedImage) -> Image:
    return Image(
        type="image",
        uri=_file_uri(path),
        name=printable(posixpath.basename(path)),
        mime=image.mime,
        size=len(image.base64) * 3 // 4,
        width=image.size.width,
        height=image.size.height,
    )


async def _directory_page(
    environment: ToolEnvironment, target: Target, input: ReadInput, view: FileView
) -> DirectoryPage:
    start = 0 if isinstance(input.offset, UnsetType) else input.offset - 1
    limit = DIRECTORY_ENTRIES_MAX if isinstance(input.limit, UnsetType) else input.limit
    listed = await environment.files(target).list(target.path)
    folder = target.resource
    children = await asyncio.to_thread(
        lambda: [child for child in listed if view.shows(_below(folder, child[0]))]
    )
    ordered = sorted(children, key=lambda child: (not child[1].is_directory, child[0]))
    if start and start >= len(ordered):
        raise ToolFailure(
            f"Offset {start + 1} is past the end of {target.resource} ({len(ordered)} entries)"
        )
    end = start + limit
    more = end < len(ordered)
    return DirectoryPage(
        entries=await _entries(environment, target, ordered[start:end], view),
        truncated=more,
        next=end + 1 if more else UNSET,
        omitted=view.omitted or UNSET,
    )


async def _entries(
    environment: ToolEnvironment,
    target: Target,
    children: Sequence[tuple[str, FileStat]],
    view: FileView,
) -> tuple[DirectoryEntry, ...]:
    entries: list[DirectoryEntry] = []
    for name, status in children:
        path = posixpath.join(target.path, name)
        real = await environment.filesystem.real_path(path)
        if real != path and not await _may_follow(environment, target, real, view):
            continue
        if status.is_directory:
            entries.append(DirectoryEntry(path=f"{printable(name)}/", type="directory"))
        elif status.is_file:
            entries.append(DirectoryEntry(path=printable(name), type="file"))
    return tuple(entries)


async def _may_follow(
    environment: ToolEnvironment, target: Target, real: str, view: FileView
) -> bool:
    """Whether a link is listed: not if it leads to what may not be shown, or outside."""
    if await environment.path_access.contains(real):
        return view.shows(posixpath.relpath(real, await environment.path_access.root()))
    return is_within(real, target.path) and view.shows(real)


def _below(folder: str, name: str) -> str:
    return name if folder == "." else posixpath.join(folder, name)


def _file_uri(path: str) -> str:
    from pathlib import Path

    return Path(path).as_uri()
