"""The web page: files that `make web` builds, served without credentials because they hold none.

The page asks for the password itself and sends it with each request. Files below `/assets/` are
named after their content and never change; `/` names those that are current.
"""

import os
import stat
from pathlib import Path
from typing import Final

from perdure.schema.value import Value
from perdure.server.http.asgi import Header
from perdure.server.response import Response

START_PATH: Final = b"/"
ASSETS: Final = b"/assets/"
INDEX: Final = "index.html"
SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data: blob:; font-src 'self'; worker-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
    " trusted-types perdure"
)
FILES_MAX: Final = 200
"""More than a build makes. Another directory was named by mistake if there are more."""
FILE_BYTES_MAX: Final = 4 * 1024 * 1024

_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}
_COMMON: Final[tuple[Header, ...]] = (
    (b"content-security-policy", SECURITY_POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_FOREVER: Final[Header] = (b"cache-control", b"public, max-age=31536000, immutable")
_CHECKED: Final[Header] = (b"cache-control", b"no-cache")
_GZIP: Final[Header] = (b"content-encoding", b"gzip")


class _File(Value):
    plain: Response
    packed: Response | None
    """As gzip, if the build made that."""


class WebPage:
    """The files of one directory, read on the first request and again when it was built anew."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._files: dict[bytes, _File] = {}
        self._built: int | None = None

    @property
    def is_built(self) -> bool:
        self._read_again()
        return START_PATH in self._files

    def find(self, path: bytes, *, accepts_gzip: bool) -> Response | None:
        """The file at this path of a URL; None if it is none of the page's."""
        if path != START_PATH and not path.startswith(ASSETS):
            return None
        if path == START_PATH or path not in self._files:
            self._read_again()
        found = self._files.get(path)
        if found is None:
            return None
        return found.packed if accepts_gzip and found.packed is not None else found.plain

    def _read_again(self) -> None:
        try:
            built = os.stat(self._directory / INDEX).st_mtime_ns
        except OSError:
            self._built, self._files = None, {}
            return
        if built != self._built:
            # Names are taken from the directory, never from a request.
            self._files = dict(self._read_all())
            self._built = built

    def _read_all(self) -> list[tuple[bytes, _File]]:
        names = [name for name in sorted(os.listdir(self._directory)) if not name.endswith(".gz")]
        found: list[tuple[bytes, _File]] = []
        for name in names[:FILES_MAX]:
            content_type = _TYPES.get(os.path.splitext(name)[1])
            if content_type is None:
                continue
            path = START_PATH if name == INDEX else ASSETS + os.fsencode(name)
            headers: tuple[Header, ...] = (
                (b"content-type", content_type),
                _CHECKED if name == INDEX else _FOREVER,
                *_COMMON,
            )
            body = _read(self._directory / name)
            packed = _read(self._directory / f"{name}.gz")
            if body is not None:
                zipped = None if packed is None else Response(200, packed, (*headers, _GZIP))
                found.append((path, _File(Response(200, body, headers), zipped)))
        return found


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > FILE_BYTES_MAX:
                return None
            return file.read(FILE_BYTES_MAX)
    except OSError:
        return None
