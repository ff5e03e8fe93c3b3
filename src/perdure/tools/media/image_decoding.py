"""Decode and encode images with Pillow. Loaded by tools.media.images if Pillow is installed.

Only the first frame of an animation is used. The caller decides which sizes are acceptable.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import Final

import PIL.Image
import PIL.ImageOps

from perdure.core.limits import IMAGE_PIXELS_MAX
from perdure.schema.value import Value
from perdure.tools.media.image_header import ImageSize
from perdure.tools.media.images import UnusableImageError

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_JPEG_QUALITIES: Final = (85, 70, 55, 40)
_BACKGROUND: Final = (255, 255, 255)


class DecodedPicture(Value):
    """Implements tools.media.images.Picture."""

    image: PIL.Image.Image

    def encodings(self, size: ImageSize) -> Iterator[tuple[str, bytes]]:
        scaled = PIL.ImageOps.fit(self.image, (size.width, size.height))
        yield "image/png", _png(scaled)
        flat = _flattened(scaled)
        for quality in _JPEG_QUALITIES:
            yield "image/jpeg", _jpeg(flat, quality)


def decode(data: bytes) -> DecodedPicture:
    """Decode an image. Raises UnusableImageError."""
    try:
        with PIL.Image.open(BytesIO(data), formats=_FORMATS) as image:
            # The header was checked before; this finds a file that states two sizes.
            if image.width * image.height > IMAGE_PIXELS_MAX:
                raise UnusableImageError("its header states more than one size")
            upright = PIL.ImageOps.exif_transpose(image)
            alpha = upright.has_transparency_data
            return DecodedPicture(upright.convert("RGBA" if alpha else "RGB"))
    except (OSError, SyntaxError, ValueError, PIL.Image.DecompressionBombError) as error:
        raise UnusableImageError(f"it cannot be decoded: {error}") from error


def _flattened(image: PIL.Image.Image) -> PIL.Image.Image:
    """The image without transparency, which JPEG does not support."""
    if image.mode == "RGB":
        return image
    flat = PIL.Image.new("RGB", image.size, _BACKGROUND)
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _png(image: PIL.Image.Image) -> bytes:
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _jpeg(image: PIL.Image.Image, quality: int) -> bytes:
    out = BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()
