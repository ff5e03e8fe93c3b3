"""Media types by file name: the one table, and the two uses of it.

An attachment has the type that its name says. What the server serves is narrower: what a browser
would run as a page, such as HTML or SVG, is served as plain text, because it comes from the same
origin as the API, and a file of some project must not act there.
"""

from typing import Final
from urllib.parse import urlsplit

UNKNOWN: Final = "application/octet-stream"
TEXT: Final = "text/plain"
DIRECTORY: Final = "application/x-directory"

_IMAGES: Final = {
    "gif": "image/gif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
_BY_EXTENSION: Final = {
    **_IMAGES,
    "avif": "image/avif", "bmp": "image/bmp", "svg": "image/svg+xml",
    "txt": TEXT, "md": "text/markdown", "csv": "text/csv", "html": "text/html",
    "htm": "text/html", "css": "text/css", "xml": "text/xml", "js": "text/javascript",
    "mjs": "text/javascript", "ts": "text/x-typescript", "tsx": "text/x-typescript",
    "jsx": "text/javascript", "py": "text/x-python", "rs": "text/x-rust", "go": "text/x-go",
    "c": "text/x-c", "h": "text/x-c", "cpp": "text/x-c++", "java": "text/x-java",
    "sh": "text/x-shellscript", "toml": "text/x-toml", "ini": TEXT, "log": TEXT,
    "yaml": "text/yaml", "yml": "text/yaml", "sql": "text/x-sql", "json": "application/json",
    "jsonc": "application/json", "pdf": "application/pdf", "zip": "application/zip",
    "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4", "webm": "video/webm",
}  # fmt: skip
_SERVED_IMAGES: Final = {**_IMAGES, "ico": "image/x-icon"}
_SERVED_TEXT_SUFFIXES: Final = """
    c cc cfg clj conf cpp cs css csv cts dart diff env erl ex exs go gradle graphql h hpp hs htm
    html ini java jl js json jsonc jsx kt less lock log lua m make markdown md mdx mjs ml mts nix
    patch php pl proto ps1 py pyi r rb rs rst sass scala scss sh sql svelte svg swift tex tf toml
    ts tsv tsx txt vue xml yaml yml zig
"""
_SERVED_TEXTS: Final = frozenset(_SERVED_TEXT_SUFFIXES.split())


def attachment_type(uri: str, name: str | None) -> str:
    """Return the type that a data URI states, or that a trailing slash or the extension says."""
    if uri.startswith("data:"):
        head = uri[5:].partition(",")[0].partition(";")[0].strip().lower()
        return head or TEXT
    path = _path(uri)
    if path.endswith("/"):
        return DIRECTORY
    for candidate in (path, name or ""):
        _, dot, extension = candidate.rpartition("/")[2].rpartition(".")
        if dot and extension.lower() in _BY_EXTENSION:
            return _BY_EXTENSION[extension.lower()]
    return UNKNOWN


def served_type(path: str) -> str:
    """Return the content type that the server sends for a file."""
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    if not (stem and dot):
        return UNKNOWN
    extension = extension.lower()
    return TEXT if extension in _SERVED_TEXTS else _SERVED_IMAGES.get(extension, UNKNOWN)


def _path(uri: str) -> str:
    try:
        return urlsplit(uri).path or uri
    except ValueError:
        return uri
