"""Prepares images for a model: within limits of pixels and bytes.

An image that fits is passed on unchanged; a larger one is scaled down and re-encoded until it fits.
Scaling needs Pillow (the extra `images`), which is imported on first use. If it is installed, every
image is decoded once: a broken one would make every later request of its Session fail.

Invariant: no image is decoded whose header states more pixels than the limit.
"""

import base64
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Final, Protocol

from perdure.core.limits import IMAGE_PIXELS_MAX, IMAGE_SHRINK
from perdure.core.request.media_limits import ImageBounds
from perdure.schema.value import Value
from perdure.tools.media import image_header
from perdure.tools.media.image_header import ImageSize


class UnusableImageError(Exception):
    """The image cannot be shown to a model; the message says why."""


class PreparedImage(Value, kw_only=True):
    mime: str
    base64: str
    size: ImageSize
    original: ImageSize


class Picture(Protocol):
    """A decoded image."""

    def encodings(self, size: ImageSize) -> Iterator[tuple[str, bytes]]:
        """Encodings in this size, as media type and bytes, the best quality first."""
        ...


Decode = Callable[[bytes], Picture]
"""Decodes an image; raises UnusableImageError."""

DEFAULT_BOUNDS: Final = ImageBounds()


def load_decoder() -> Decode | None:
    """The decoder that uses Pillow, if it is installed."""
    try:
        decode: Decode = import_module("perdure.tools.media.image_decoding").decode
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "PIL":
            raise
        return None
    return decode


def prepare_image(
    data: bytes,
    mime: str,
    bounds: ImageBounds = DEFAULT_BOUNDS,
    *,
    decoding: Callable[[], Decode | None] = load_decoder,
) -> PreparedImage:
    """The image for the model. Slow: do not call it on the event loop."""
    original = _stated_size(data, mime)
    encoded = base64.b64encode(data).decode()
    fits = _fits(original, encoded, bounds)
    if not fits and not bounds.resize:
        raise UnusableImageError(f"it is {original} and {len(data)} bytes, which is too large")
    decode = decoding()
    if decode is None and not fits:
        raise UnusableImageError(
            f"it is {original} and {len(data)} bytes, and to scale it down Pillow is needed:"
            " install perdure[images], or make the image smaller"
        )
    picture = None if decode is None else decode(data)
    if fits or picture is None:
        return PreparedImage(mime=mime, base64=encoded, size=original, original=original)
    return _scale(picture, original, bounds)


def _stated_size(data: bytes, mime: str) -> ImageSize:
    size = image_header.read_size(data, mime)
    if size is None:
        raise UnusableImageError(f"it is not a valid {mime} file")
    if size.pixels > IMAGE_PIXELS_MAX:
        most = IMAGE_PIXELS_MAX // 1_000_000
        raise UnusableImageError(f"it is {size}, and the most is {most} million pixels")
    return size


def _scale(picture: Picture, original: ImageSize, bounds: ImageBounds) -> PreparedImage:
    ratio = min(1.0, bounds.width_max / original.width, bounds.height_max / original.height)
    while True:
        size = ImageSize(max(1, int(original.width * ratio)), max(1, int(original.height * ratio)))
        for mime, data in picture.encodings(size):
            encoded = base64.b64encode(data).decode()
            if _fits(size, encoded, bounds):
                return PreparedImage(mime=mime, base64=encoded, size=size, original=original)
        if size.pixels == 1:
            raise UnusableImageError(f"even a single pixel is over {bounds.chars_max} bytes")
        ratio *= IMAGE_SHRINK


def _fits(size: ImageSize, encoded: str, bounds: ImageBounds) -> bool:
    return bounds.fit(width=size.width, height=size.height, chars=len(encoded))
