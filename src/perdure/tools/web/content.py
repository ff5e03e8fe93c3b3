"""What a page of the web is to a model: text, an image, a document, or nothing it can use.

What may be reached, and what a server may cost us, is decided in host.http.web_pages. A server's
word for the type counts for text; an image or a PDF is known by its first bytes.

Invariant: an image is decoded and within its bounds, and a document bounded, before anybody keeps
it: either would otherwise spoil each later request of its Session.
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


async def media_of(page: WebPage, bounds: ImageBounds) -> FileContent | None:
    """The image or document that the page is; None for any other. Raises ToolFailure."""
    mime = file_kind.image_mime(page.body)
    if mime is not None:
        try:
            shown = await asyncio.to_thread(images.shown, page.body, mime, bounds)
        except UnusableImageError as error:
            raise ToolFailure(f"Cannot show the image {page.url}: {error}") from error
        uri = data_uri.write_encoded(shown.mime, shown.base64)
        return FileContent(uri=uri, mime=shown.mime, name=_name(page.url))
    if not file_kind.is_pdf(page.body):
        return None
    if len(page.body) > limits.DOCUMENT_BYTES_MAX:
        most = limits.DOCUMENT_BYTES_MAX
        raise ToolFailure(f"{page.url} is a PDF of {len(page.body)} bytes; the most is {most}")
    uri = data_uri.write(file_kind.PDF, page.body)
    return FileContent(uri=uri, mime=file_kind.PDF, name=_name(page.url))


async def text_of(page: WebPage, wanted: Format) -> str:
    """The page as text. Raises ToolFailure when it is none."""
    kind = _kind(page)
    # In a thread: a large page takes a second, and everyone else would wait for it.
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
