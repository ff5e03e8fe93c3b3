"""Which content type a file is served with, by its name.

What a browser would run as a page, such as HTML or SVG, is served as plain text: it comes from the
same origin as the API, and a file of some project must not act there.
"""

from typing import Final

UNKNOWN: Final = "application/octet-stream"
TEXT: Final = "text/plain"
_IMAGES: Final = {
    "gif": "image/gif",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
_TEXT_SUFFIXES: Final = """
    c cc cfg clj conf cpp cs css csv cts dart diff env erl ex exs go gradle graphql h hpp hs htm
    html ini java jl js json jsonc jsx kt less lock log lua m make markdown md mdx mjs ml mts nix
    patch php pl proto ps1 py pyi r rb rs rst sass scala scss sh sql svelte svg swift tex tf toml
    ts tsv tsx txt vue xml yaml yml zig
"""
_TEXTS: Final = frozenset(_TEXT_SUFFIXES.split())


def served_type(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    if not (stem and dot):
        return UNKNOWN
    suffix = suffix.lower()
    return TEXT if suffix in _TEXTS else _IMAGES.get(suffix, UNKNOWN)
