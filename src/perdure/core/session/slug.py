"""A Session's slug: two plain words, the same for the same id."""

import hashlib
from typing import Final

_ADJECTIVES: Final = (
    "amber", "bold", "brisk", "calm", "clear", "cosy", "crisp", "deep", "eager", "early", "fair",
    "fine", "firm", "fond", "fresh", "gentle", "glad", "golden", "grand", "green", "happy", "keen",
    "kind", "late", "light", "lucky", "mellow", "merry", "mild", "neat", "noble", "plain",
)  # fmt: skip
_NOUNS: Final = (
    "acorn", "anchor", "bay", "birch", "bridge", "brook", "cedar", "cliff", "cloud", "comet",
    "cove", "dawn", "delta", "ember", "fern", "field", "forest", "garden", "glade", "harbour",
    "heron", "hill", "island", "lake", "lantern", "maple", "meadow", "moon", "oak", "orchard",
    "otter", "river",
)  # fmt: skip


def make_slug(id: str) -> str:
    first, second = hashlib.sha256(id.encode()).digest()[:2]
    return f"{_ADJECTIVES[first % len(_ADJECTIVES)]}-{_NOUNS[second % len(_NOUNS)]}"
