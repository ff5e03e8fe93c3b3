"""Fits the media of a request to the limits of its provider. The stored history does not change.

core.request.media_limits decides; here images are measured and scaled, each once. What does not
fit, or is not for this model, is replaced by a line of text that names it. Encoded segments of
earlier requests are dropped when more of the oldest media are left out.

Invariant: the same conversation and limits give the same request, in any process.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeGuard

from msgspec.structs import replace

from perdure.core import limits
from perdure.core.request import attachments, media_limits, message_media
from perdure.core.request.media_limits import MediaLimits
from perdure.llm.message import MediaPart, Segment, TextPart
from perdure.net import data_uri
from perdure.runtime.turn.history_cache import History
from perdure.tools.media import file_kind, image_header, images
from perdure.tools.media.images import UnusableImageError

_TOO_MUCH: Final = "there are newer ones, and a request takes no more; ask for it, or read it again"


class RequestMedia:
    def __init__(self, *, chars_max: int = limits.MEDIA_CACHE_CHARS_MAX) -> None:
        self._chars_max = chars_max
        self._chars = 0
        self._fitted: OrderedDict[tuple[str, MediaLimits], MediaPart | TextPart] = OrderedDict()

    async def within(self, history: History, takes: MediaLimits) -> History:
        """The history as it is sent to a model that takes so much."""
        if not history.media.there:
            return history
        parts = [part for run in history.runs for part in message_media.media_of(run.messages)]
        runs, gone = replaced(history.runs, [await self._fit(part, takes) for part in parts], takes)
        if history.media.changed(takes, gone):
            history.kept.clear()
        sent = [part for run in runs for part in message_media.media_of(run.messages)]
        unsent = (len(parts) - len(sent)) * limits.MEDIA_TOKENS
        estimated = max(0, history.tokens.estimated - unsent)
        return replace(history, runs=runs, tokens=replace(history.tokens, estimated=estimated))

    async def _fit(self, part: MediaPart, takes: MediaLimits) -> MediaPart | TextPart:
        key = (part.data, takes)
        known = self._fitted.get(key)
        if known is None:
            known = await asyncio.to_thread(fitted, part, takes)
            self._remember(key, known)
        else:
            self._fitted.move_to_end(key)
        if isinstance(known, TextPart) or known.filename == part.filename:
            return known
        return replace(known, filename=part.filename)

    def _remember(self, key: tuple[str, MediaLimits], part: MediaPart | TextPart) -> None:
        self._fitted[key] = part
        self._chars += len(key[0])
        while self._chars > self._chars_max and len(self._fitted) > 1:
            (data, _), _ = self._fitted.popitem(last=False)
            self._chars -= len(data)


def replaced(
    runs: tuple[Segment, ...], instead: Sequence[MediaPart | TextPart], takes: MediaLimits
) -> tuple[tuple[Segment, ...], int]:
    """The conversation with its media in their place, and how many of the oldest it only names."""
    counted = [at for at, part in enumerate(instead) if _is_counted(part)]
    sizes = [len(part.data) for part in instead if _is_counted(part)]
    gone = media_limits.count_left_out(sizes, takes)
    shown = list(instead)
    for at in counted[:gone]:
        shown[at] = _note(instead[at], _TOO_MUCH)
    parts = iter(shown)
    return tuple(message_media.replace_media(run, parts) for run in runs), gone


def fitted(part: MediaPart, takes: MediaLimits) -> MediaPart | TextPart:
    """One part as it may be sent. Takes a while: not for the event loop.

    Of what is no image and no PDF, the wire protocol knows what to do.
    """
    if part.media_type.startswith("text/"):
        return part
    given = data_uri.read(part.data)
    if given is None:
        return part
    mime = file_kind.image_mime(given.data)
    if mime is None:
        is_pdf = file_kind.is_pdf(given.data)
        refused = takes.refusal("pdf") if is_pdf else None
        return part if refused is None else _note(part, refused)
    refused = takes.refusal("image")
    if refused is not None:
        return _note(part, refused)
    return _image(part, given.data, mime, takes)


def _image(part: MediaPart, data: bytes, mime: str, takes: MediaLimits) -> MediaPart | TextPart:
    size = image_header.read_size(data, mime)
    if size is None:
        return _note(part, f"it is not a valid {mime} file")
    chars = (len(data) + 2) // 3 * 4
    if takes.image.fit(width=size.width, height=size.height, chars=chars):
        return MediaPart(mime, data_uri.write(mime, data), part.filename)
    try:
        shown = images.prepare_image(data, mime, takes.image)
    except UnusableImageError as error:
        return _note(part, str(error))
    uri = data_uri.write_encoded(shown.mime, shown.base64)
    return MediaPart(shown.mime, uri, part.filename)


def _is_counted(part: MediaPart | TextPart) -> TypeGuard[MediaPart]:
    return isinstance(part, MediaPart) and part.data.startswith("data:")


def _note(part: MediaPart | TextPart, why: str) -> TextPart:
    named = (part.filename or part.media_type) if isinstance(part, MediaPart) else ""
    return TextPart(attachments.omitted_note(named, why))
