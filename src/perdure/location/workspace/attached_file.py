"""One attached file as the content that a model is told: a text, a listing, an image, a document.

Files on disk go through the read tool, so that its boundary, permissions and bounds hold, and a
file that was told counts as seen. Bytes that a prompt brings along are checked in the same way.
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
    make_read,
    media_of,
)
from perdure.tools.environment import ToolEnvironment
from perdure.tools.media import file_kind, images
from perdure.tools.media.images import UnusableImageError

_CALL: Final = ToolCallID("attachment")


class Reference(Value):
    """A place on disk that a prompt names, perhaps with lines of it."""

    path: str
    first: int | None = None
    last: int | None = None

    @property
    def lines(self) -> int | None:
        """How many are asked for, as far as one page goes; None is as many as there are."""
        if self.last is None:
            return None
        return min(max(self.last - (self.first or 1) + 1, 1), limits.READ_LINES_MAX)


def reference(uri: str) -> Reference | None:
    """The place that an attachment's address means; None for addresses of another kind."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return Reference(uri)
    if parts.scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            return None
        asked = parse_qs(parts.query)
        first, last = (_line(asked.get(key, [""])[0]) for key in ("start", "end"))
        return Reference(unquote(parts.path, errors="surrogateescape"), first, last)
    # A single letter is the start of a path of another system, not a scheme.
    return None if len(parts.scheme) > 1 and "://" in uri else Reference(uri)


class AttachedFiles:
    def __init__(self, environment: ToolEnvironment) -> None:
        self._environment = environment
        self._read = make_read(environment)

    async def at(
        self, where: Reference, *, session_id: SessionID, message_id: MessageID, agent: str
    ) -> tuple[ToolContent, ...]:
        """What lies there. Raises ToolFailure and the permission errors, as the read tool does."""
        context = ToolCallContext(
            session_id=session_id,
            agent=agent,
            assistant_message_id=message_id,
            call_id=_CALL,
            # Which model will be asked is not known yet; what it cannot read is named when sent.
            reads_documents=True,
        )
        asked = ReadInput(path=where.path, offset=_given(where.first), limit=_given(where.lines))
        return _content(where.path, await self._read.execute(asked, context))

    async def inline(self, file: FileAttachment, name: str) -> tuple[ToolContent, ...] | None:
        """What a data URI brings; None when it is fine as it is."""
        given = await asyncio.to_thread(data_uri.read, file.uri)
        if given is None:
            return _note(name, "its data URI is malformed")
        mime = file_kind.image_mime(given.data)
        if mime is not None:
            return await self._image(file, name, given.data, mime)
        if file_kind.is_pdf(given.data):
            return _document_given(file, name, given.data)
        if file_kind.is_binary(name, given.data[: limits.READ_SNIFF_BYTES]):
            return _note(name, f"a model cannot read {attachments.one_line(file.mime)}")
        try:
            text = given.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return _note(name, "it is not UTF-8 text")
        told = attachments.with_heading("file", name, attachments.truncate(text))
        return (TextContent(text=told),)

    async def _image(
        self, file: FileAttachment, name: str, data: bytes, mime: str
    ) -> tuple[ToolContent, ...] | None:
        if len(data) > limits.IMAGE_FILE_BYTES_MAX:
            return _note(name, f"an image may have {limits.IMAGE_FILE_BYTES_MAX} bytes")
        try:
            shown = await asyncio.to_thread(images.shown, data, mime, self._environment.images)
        except UnusableImageError as error:
            return _note(name, str(error))
        uri = data_uri.write_encoded(shown.mime, shown.base64)
        if uri == file.uri and file.mime == shown.mime:
            return None
        return (FileContent(uri=uri, mime=shown.mime, name=file.name),)


def _content(path: str, output: ReadOutput) -> tuple[ToolContent, ...]:
    if not isinstance(output.file, UnsetType):
        return _titled("file", path, output.file.content)
    if not isinstance(output.page, UnsetType):
        return _titled("file", path, _page(output.page))
    if not isinstance(output.directory, UnsetType):
        return _titled("directory", path, _listing(output.directory))
    media = media_of(output)
    assert media is not None
    return (media,)


def _page(page: TextPage) -> str:
    shown = page.content if page.offset == 1 else f"[From line {page.offset}]\n{page.content}"
    if page.next is UNSET:
        return shown
    return f"{shown}\n[Cut here: read it from line {page.next} on for more]"


def _listing(page: DirectoryPage) -> str:
    lines = [entry.path for entry in page.entries] or ["(empty)"]
    return "\n".join([*lines, "[There are more entries]"] if page.truncated else lines)


def _document_given(file: FileAttachment, name: str, data: bytes) -> tuple[ToolContent, ...] | None:
    if len(data) > limits.DOCUMENT_BYTES_MAX:
        return _note(name, f"a PDF may have {limits.DOCUMENT_BYTES_MAX} bytes")
    uri = data_uri.write(file_kind.PDF, data)
    return None if uri == file.uri else (FileContent(uri=uri, mime=file_kind.PDF, name=file.name),)


def _titled(kind: str, path: str, text: str) -> tuple[ToolContent, ...]:
    return (TextContent(text=attachments.with_heading(kind, path, text)),)


def _note(name: str, why: str) -> tuple[ToolContent, ...]:
    return (TextContent(text=attachments.omitted_note(name, why)),)


def _given(number: int | None) -> int | UnsetType:
    return UNSET if number is None else number


def _line(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 8 else None
