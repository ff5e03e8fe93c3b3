"""Converts a web page to content for a model: text, an image or a document.

host.http.web_pages decides which hosts may be reached and bounds the transfer. The server's
content type is used for text; an image or a PDF is recognised by its first bytes.

Invariant: an image is decoded and within its bounds, and a document bounded, before it is stored:
otherwise it would make every later request of its Session fail.
"""

import asyncio
import posixpath
from typing import Literal
from urllib.parse import unquote, urlsplit

from perdure.core import limits
from perdure.core.request.media_limits import ImageBounds
from perdure.core.web import page_text
from perdure.core.web.page_text import ContentType
from perdure.net import data_uri
from perdure.ports import WebPage
from perdure.schema.session.tool import FileContent
from perdure.tools.api.tool import ToolFailure
from perdure.tools.media import file_kind, images
from perdure.tools.media.images import UnusableImageError

Format = Literal["text", "markdown", "html"]


async def extract_media(page: WebPage, bounds: ImageBounds) -> FileContent | None:
    """The page as an image or document; None if it is neither. Raises ToolFailure."""
    mime = file_kind.image_mime(page.body)
    if mime is not None:
        try:
            prepared = await asyncio.to_thread(images.prepare_image, page.body, mime, bounds)
        except UnusableImageError as error:
            raise ToolFailure(f"Cannot show the image {page.url}: {error}") from error
        uri = data_uri.write_encoded(prepared.mime, prepared.base64)
        return FileContent(uri=uri, mime=prepared.mime, name=_name(page.url))
    if not file_kind.is_pdf(page.body):
        return None
    if len(page.body) > limits.DOCUMENT_BYTES_MAX:
        most = limits.DOCUMENT_BYTES_MAX
        raise ToolFailure(f"{page.url} is a PDF of {len(page.body)} bytes; the most is {most}")
    uri = data_uri.write(file_kind.PDF, page.body)
    return FileContent(uri=uri, mime=file_kind.PDF, name=_name(page.url))


async def extract_text(page: WebPage, wanted: Format) -> str:
    """The page as text. Raises ToolFailure when it is not text."""
    kind = _kind(page)
    # On a thread: a large page takes a second, which would block the event loop.
    return await asyncio.to_thread(_text, page.body, kind, wanted)


def _kind(page: WebPage) -> ContentType:
    kind = page_text.content_type(page.content_type)
    sniffed = kind if kind.media_type else page_text.sniff(page.body)
    if sniffed is None or not sniffed.is_text:
        named = kind.media_type or "binary data"
        raise ToolFailure(f"{page.url} is {named[:100]}, which cannot be read as text")
    return sniffed


def _text(body: bytes, kind: ContentType, wanted: Format) -> str:
    page = page_text.decode(body, kind)
    if wanted == "html" or not kind.is_html:
        return page
    # Only a page of HTML needs the readers of HTML.
    from perdure.core.web import html_markdown, html_text

    return html_text.to_text(page) if wanted == "text" else html_markdown.to_markdown(page)


def _name(url: str) -> str:
    parts = urlsplit(url)
    return unquote(posixpath.basename(parts.path), errors="replace") or parts.netloc
