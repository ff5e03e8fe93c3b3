"""Converts one attached file to content for the model: text, listing, image or document.

Files on disk go through the read tool, so that its boundary, permissions and bounds apply and the
file counts as read. Inline bytes of a prompt are checked in the same way.
"""

import asyncio
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.request import attachments
from perdure.net import data_uri
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.prompt import FileAttachment
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolCallContext
from perdure.tools.builtin.read import (
    DirectoryPage,
    ReadInput,
    ReadOutput,
    TextPage,
    extract_media,
    make_read,
)
from perdure.tools.environment import ToolEnvironment
from perdure.tools.media import file_kind, images
from perdure.tools.media.images import UnusableImageError

_CALL: Final = ToolCallID("attachment")


class FileReference(Value):
    """A path that a prompt names, perhaps with a range of lines."""

    path: str
    first: int | None = None
    last: int | None = None

    @property
    def lines(self) -> int | None:
        """The number of lines to read, at most one page; None for all."""
        if self.last is None:
            return None
        return min(max(self.last - (self.first or 1) + 1, 1), limits.READ_LINES_MAX)


def parse_reference(uri: str) -> FileReference | None:
    """The path that an attachment's URI names; None for another kind of URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return FileReference(uri)
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            return None
        query = parse_qs(parts.query)
        first, last = (_line(query.get(key, [""])[0]) for key in ("start", "end"))
        return FileReference(unquote(parts.path, errors="surrogateescape"), first, last)
    # A single letter is a Windows drive, not a scheme.
    return None if len(parts.scheme) > 1 and "://" in uri else FileReference(uri)


class AttachedFiles:
    def __init__(self, environment: ToolEnvironment) -> None:
        self._environment = environment
        self._read = make_read(environment)

    async def read(
        self,
        reference: FileReference,
        *,
        session_id: SessionID,
        message_id: MessageID,
        agent: str,
        above: tuple[str, ...] = (),
    ) -> tuple[ToolContent, ...]:
        """Read a path. Raises ToolFailure and the permission errors, as the read tool does."""
        context = ToolCallContext(
            session_id=session_id,
            agent=agent,
            above=above,
            assistant_message_id=message_id,
            call_id=_CALL,
            # The model is not known yet; media that it cannot read is replaced when sent.
            reads_documents=True,
        )
        read_input = ReadInput(
            path=reference.path, offset=_or_unset(reference.first), limit=_or_unset(reference.lines)
        )
        return _content(reference.path, await self._read.execute(read_input, context))

    async def inline(self, file: FileAttachment, name: str) -> tuple[ToolContent, ...] | None:
        """The content of a data URI; None when it can be sent unchanged."""
        inline = await asyncio.to_thread(data_uri.read, file.uri)
        if inline is None:
            return _note(name, "its data URI is malformed")
        mime = file_kind.image_mime(inline.data)
        if mime is not None:
            return await self._image(file, name, inline.data, mime)
        if file_kind.is_pdf(inline.data):
            return _document(file, name, inline.data)
        if file_kind.is_binary(name, inline.data[: limits.READ_SNIFF_BYTES]):
            return _note(name, f"a model cannot read {attachments.one_line(file.mime)}")
        try:
            text = inline.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return _note(name, "it is not UTF-8 text")
        return _titled("file", name, attachments.truncate(text))

    async def _image(
        self, file: FileAttachment, name: str, data: bytes, mime: str
    ) -> tuple[ToolContent, ...] | None:
        if len(data) > limits.IMAGE_FILE_BYTES_MAX:
            return _note(name, f"an image may have {limits.IMAGE_FILE_BYTES_MAX} bytes")
        try:
            prepared = await asyncio.to_thread(
                images.prepare_image, data, mime, self._environment.images
            )
        except UnusableImageError as error:
            return _note(name, str(error))
        uri = data_uri.write_encoded(prepared.mime, prepared.base64)
        if uri == file.uri and file.mime == prepared.mime:
            return None
        return (FileContent(uri=uri, mime=prepared.mime, name=file.name),)


def _content(path: str, output: ReadOutput) -> tuple[ToolContent, ...]:
    if not isinstance(output.file, UnsetType):
        return _titled("file", path, output.file.content)
    if not isinstance(output.page, UnsetType):
        return _titled("file", path, _page(output.page))
    if not isinstance(output.directory, UnsetType):
        return _titled("directory", path, _listing(output.directory))
    media = extract_media(output)
    assert media is not None
    return (media,)


def _page(page: TextPage) -> str:
    text = page.content if page.offset == 1 else f"[From line {page.offset}]\n{page.content}"
    if page.next is UNSET:
        return text
    return f"{text}\n[Cut here: read it from line {page.next} on for more]"


def _listing(page: DirectoryPage) -> str:
    omitted = page.omitted.describe() if page.omitted else []
    lines = [entry.path for entry in page.entries] or ([] if omitted else ["(empty)"])
    more = ["[There are more entries]"] if page.truncated else []
    return "\n".join([*lines, *more, *omitted])


def _document(file: FileAttachment, name: str, data: bytes) -> tuple[ToolContent, ...] | None:
    if len(data) > limits.DOCUMENT_BYTES_MAX:
        return _note(name, f"a PDF may have {limits.DOCUMENT_BYTES_MAX} bytes")
    uri = data_uri.write(file_kind.PDF, data)
    return None if uri == file.uri else (FileContent(uri=uri, mime=file_kind.PDF, name=file.name),)


def _titled(kind: str, path: str, text: str) -> tuple[ToolContent, ...]:
    return (TextContent(text=attachments.with_heading(kind, path, text)),)


def _note(name: str, why: str) -> tuple[ToolContent, ...]:
    return (TextContent(text=attachments.omitted_note(name, why)),)


def _or_unset(number: int | None) -> int | UnsetType:
    return UNSET if number is None else number


def _line(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 8 else None
