"""Limits on the media of a request: which must shrink, and which are replaced by their name.

Stored history is never edited; the decision is made anew for each request, with the same result.
Decoding and scaling is runtime.turn.media.

Invariant: `left_out` never decreases while a conversation grows, so the beginning of a request
stays the same until a compaction. It grows in large steps, so that the provider's prompt cache is
lost once per half a limit and not with every new image.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import UNSET

from perdure.core import limits
from perdure.core.config_file.entries import AttachmentsEntry, ImageEntry, merge_entries
from perdure.llm.request import Dialect
from perdure.schema.value import Value

_MEBIBYTE: Final = 1024 * 1024


class ImageBounds(Value, kw_only=True):
    """Maximum size of one image."""

    width_max: int = limits.IMAGE_SIDE_MAX
    height_max: int = limits.IMAGE_SIDE_MAX
    chars_max: int = limits.IMAGE_BASE64_BYTES_MAX
    """In base64."""
    resize: bool = True
    """Whether a larger image may be scaled down."""

    def fit(self, *, width: int, height: int, chars: int) -> bool:
        return width <= self.width_max and height <= self.height_max and chars <= self.chars_max


class MediaLimits(Value, kw_only=True):
    """What one model accepts in one request."""

    image: ImageBounds
    parts_max: int
    chars_max: int
    """In base64, all of them together."""
    takes: frozenset[str] | None = None
    """The kinds of input according to the catalog; None if unknown."""
    documents: bool = False
    """Whether documents are sent if the kinds are unknown; images always are."""
    tool_documents: bool = False
    """Whether the wire protocol can carry a document in a tool result."""

    @property
    def reads_documents(self) -> bool:
        """Whether a tool may return a document to this model."""
        return self.tool_documents and self.refusal("pdf") is None

    def refusal(self, kind: Literal["image", "pdf"]) -> str | None:
        """Why input of this kind is not sent, or None; the model reads it."""
        if self.takes is not None:
            known = kind in self.takes
            return None if known else f"this model takes no input of the kind {kind}"
        if kind == "image" or self.documents:
            return None
        return "nobody has said that this model reads documents"


# Lower than the limits that providers document, because the text needs space too. Anthropic: 5 MB
# and 8,000 pixels per image, 2,000 pixels with more than 20 images, 100 images, 32 MB. Bedrock:
# 3.75 MB per image, 20 images. Google: 20 MB. OpenAI: 50 MB, 500 images. Limits of other servers
# are unknown.
_LIMITS: Final[Mapping[Dialect, tuple[int, int]]] = {
    "anthropic": (100, 20 * _MEBIBYTE),
    "bedrock": (20, 16 * _MEBIBYTE),
    "google": (250, 12 * _MEBIBYTE),
    "openai": (250, 32 * _MEBIBYTE),
    "openai_compatible": (50, 16 * _MEBIBYTE),
}


def limits_for(
    family: Dialect, takes: frozenset[str] | None = None, *, documents: bool = False
) -> MediaLimits:
    """The limits of providers that speak this dialect.

    `documents`: whether a Chat Completions provider takes documents.
    """
    parts_max, chars_max = _LIMITS[family]
    return MediaLimits(
        image=ImageBounds(),
        parts_max=parts_max,
        chars_max=chars_max,
        takes=takes,
        # Their wire protocols know which models read documents.
        documents=family in {"google", "bedrock"},
        tool_documents=documents or family in {"anthropic", "google", "openai"},
    )


def is_refused(media_type: str, takes: MediaLimits) -> bool:
    """Whether media of this type are replaced by their name for such a model."""
    if media_type.startswith("image/"):
        return takes.refusal("image") is not None
    return media_type == "application/pdf" and takes.refusal("pdf") is not None


def configured_bounds(entries: Iterable[AttachmentsEntry]) -> ImageBounds:
    """Maximum image size according to `attachments` in the configuration."""
    entry = ImageEntry()
    for above in entries:
        entry = merge_entries(entry, above.image or ImageEntry())
    default = ImageBounds()
    # Only smaller sizes apply: providers refuse larger images, and images are stored for good.
    return ImageBounds(
        width_max=min(entry.max_width or default.width_max, default.width_max),
        height_max=min(entry.max_height or default.height_max, default.height_max),
        chars_max=min(entry.max_base64_bytes or default.chars_max, default.chars_max),
        resize=default.resize if entry.auto_resize is UNSET else entry.auto_resize,
    )


def count_left_out(chars: Sequence[int], allowed: MediaLimits) -> int:
    """How many of the oldest media are replaced by their name. `chars`: sizes, oldest first."""
    dropped, total = 0, 0
    for newest, size in enumerate(chars):
        total += size
        remaining = newest + 1 - dropped
        if total <= allowed.chars_max and remaining <= allowed.parts_max:
            continue
        while dropped < newest and (
            total > allowed.chars_max // 2 or newest + 1 - dropped > allowed.parts_max // 2
        ):
            total -= chars[dropped]
            dropped += 1
    return dropped
