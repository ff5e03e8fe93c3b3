"""Media of a request within what its provider takes: which must shrink, which are only named.

Stored history is never edited; what is decided here holds for one request and is decided alike for
the next. Nothing is decoded or scaled here (runtime.turn.media does).

Invariant: `left_out` never falls while a conversation grows, so what was replaced stays replaced
and the beginning of a request stays the same, until a compaction begins it anew. It grows in large
steps: a provider's cache is lost once for half a budget, not with every new image.
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
    """How large one image may be."""

    width_max: int = limits.IMAGE_SIDE_MAX
    height_max: int = limits.IMAGE_SIDE_MAX
    chars_max: int = limits.IMAGE_BASE64_BYTES_MAX
    """In base64."""
    resize: bool = True
    """Whether a larger one may be scaled down."""

    def fit(self, *, width: int, height: int, chars: int) -> bool:
        return width <= self.width_max and height <= self.height_max and chars <= self.chars_max


class MediaLimits(Value, kw_only=True):
    """What one model takes in one request."""

    image: ImageBounds
    parts_max: int
    chars_max: int
    """In base64, all of them together."""
    takes: frozenset[str] | None = None
    """The kinds of input that the catalog names; None where nobody has said."""
    documents: bool = False
    """Whether a document is sent where nobody has said; images always are."""
    tool_documents: bool = False
    """Whether the wire protocol has a form for a document in the result of a tool."""

    @property
    def reads_documents(self) -> bool:
        """Whether a tool may show this model a document."""
        return self.tool_documents and self.refusal("pdf") is None

    def refusal(self, kind: Literal["image", "pdf"]) -> str | None:
        """Why a model is not shown what is of this kind."""
        if self.takes is not None:
            known = kind in self.takes
            return None if known else f"this model takes no input of the kind {kind}"
        if kind == "image" or self.documents:
            return None
        return "nobody has said that this model reads documents"


# Less than what providers document that they take: the text has to go along. Anthropic: 5 MB and
# 8,000 pixels an image, 2,000 pixels where there are more than 20 of them, 100 images, 32 MB.
# Bedrock: 3.75 MB an image, 20 images. Google: 20 MB. OpenAI: 50 MB, 500 images. Of other servers
# nobody knows.
_LIMITS: Final[Mapping[Dialect, tuple[int, int]]] = {
    "anthropic": (100, 20 * _MEBIBYTE),
    "bedrock": (20, 16 * _MEBIBYTE),
    "google": (250, 12 * _MEBIBYTE),
    "openai": (250, 32 * _MEBIBYTE),
    "openai_compatible": (50, 16 * _MEBIBYTE),
}


def limits_for(family: Dialect, takes: frozenset[str] | None = None) -> MediaLimits:
    """The limits of the providers that are reached in this way."""
    parts_max, chars_max = _LIMITS[family]
    return MediaLimits(
        image=ImageBounds(),
        parts_max=parts_max,
        chars_max=chars_max,
        takes=takes,
        # Their wire protocols tell by the model whether it reads them.
        documents=family in {"google", "bedrock"},
        tool_documents=family in {"anthropic", "google", "openai"},
    )


def configured_bounds(entries: Iterable[AttachmentsEntry]) -> ImageBounds:
    """How large an image may be that is shown, as `attachments` of the documents say."""
    entry = ImageEntry()
    for above in entries:
        entry = merge_entries(entry, above.image or ImageEntry())
    default = ImageBounds()
    # Less is fine. More would be refused by providers, and it is stored for good.
    return ImageBounds(
        width_max=min(entry.max_width or default.width_max, default.width_max),
        height_max=min(entry.max_height or default.height_max, default.height_max),
        chars_max=min(entry.max_base64_bytes or default.chars_max, default.chars_max),
        resize=default.resize if entry.auto_resize is UNSET else entry.auto_resize,
    )


def count_left_out(chars: Sequence[int], within: MediaLimits) -> int:
    """How many of the oldest are only named, given the size of each, the oldest first."""
    gone, total = 0, 0
    for newest, size in enumerate(chars):
        total += size
        shown = newest + 1 - gone
        if total <= within.chars_max and shown <= within.parts_max:
            continue
        while gone < newest and (
            total > within.chars_max // 2 or newest + 1 - gone > within.parts_max // 2
        ):
            total -= chars[gone]
            gone += 1
    return gone
