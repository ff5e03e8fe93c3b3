"""References in the configuration: a directory, or a repository.

`"./docs"`, `"/srv/x"` and `"~/x"` are directories; any other text is a repository. An object has
`path` or `repository`, and may have a description for the model. The directory of a repository's
copy is derived from its name; fetching it is location.project.repositories.
"""

from typing import Annotated, Final
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.core.text import jsonc
from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonValue
from perdure.schema.settings.reference import GitReference, LocalReference, ReferenceSource
from perdure.schema.value import Value

_NAME_REFUSED: Final = lazy_pattern(r"[/\s`,]")
_LOCAL_STARTS: Final = (".", "/", "~")
_URL: Final = lazy_pattern(
    r"[a-z][a-z0-9+.-]*://(?:(?P<user>[^/@]*)@)?(?P<host>[^/:@]+)(?::\d+)?/(?P<path>.+)"
)
_REMOTE: Final = lazy_pattern(r"(?:[^/@:]+@)(?P<host>[^/:@]+):(?P<path>[^/].*)")
_HOST: Final = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_SEGMENT: Final = lazy_pattern(r"(?!\.{1,2}$)[A-Za-z0-9._~+-]+")
_HOST_DEFAULT: Final = "github.com"

Text = Annotated[str, Meta(min_length=1)]


class ReferenceEntry(Value, kw_only=True):
    name: str
    source: ReferenceSource
    directory: str = ""
    """Base of a relative path; empty means the Location."""


class ReferenceEntryError(ValueError):
    """The value is not a valid reference. The message says why."""


class _Written(msgspec.Struct, frozen=True):
    path: Text | UnsetType = UNSET
    repository: Text | UnsetType = UNSET
    branch: Text | UnsetType = UNSET
    description: str | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


def read(name: str, value: JsonValue, *, directory: str = "") -> ReferenceEntry:
    """Parse one entry of a document's `references`. Raises ReferenceEntryError."""
    if not name or _NAME_REFUSED.search(name) or not name.isprintable():
        raise ReferenceEntryError("a name has no slash, blank, backtick or comma")
    if isinstance(value, str):
        key = "path" if value.startswith(_LOCAL_STARTS) else "repository"
        value = {key: value}
    if not jsonc.is_object(value):
        raise ReferenceEntryError("it must be a text or an object")
    try:
        written = codec.convert(_Written, value)
    except msgspec.ValidationError as error:
        raise ReferenceEntryError(str(error)) from error
    return ReferenceEntry(name=name, source=_source(written), directory=directory)


def repository_directory(source: GitReference) -> str:
    """The directory of the repository's copy, relative to the directory of all copies."""
    below = _repository(source.repository)
    branch = "" if source.branch is UNSET else f"@{quote(source.branch, safe='')}"
    return f"{below}{branch}"


def address(source: GitReference) -> str:
    """The URL for git: the repository as written, or the https URL of a short name."""
    written = source.repository
    if _URL.fullmatch(written) or _REMOTE.fullmatch(written):
        return written
    host, path = _short(written)
    return f"https://{host}/{path}"


def _source(written: _Written) -> ReferenceSource:
    description = written.description or UNSET
    if written.path is not UNSET and written.repository is UNSET:
        if "\0" in written.path:
            raise ReferenceEntryError("a path cannot contain a NUL character")
        return LocalReference(path=written.path, description=description, hidden=written.hidden)
    if written.repository is not UNSET and written.path is UNSET:
        _repository(written.repository)
        return GitReference(
            repository=written.repository,
            branch=written.branch,
            description=description,
            hidden=written.hidden,
        )
    raise ReferenceEntryError("it must have either a `path` or a `repository`")


def _repository(text: str) -> str:
    """The repository as `host/owner/name`, from any of its forms."""
    if text.startswith("-"):
        raise ReferenceEntryError("a repository does not begin with a dash")
    url = _URL.fullmatch(text)
    if url is not None and ":" in (url["user"] or ""):
        raise ReferenceEntryError("a repository must not hold a password")
    found = url or _REMOTE.fullmatch(text)
    host, path = (found["host"], found["path"]) if found else _short(text)
    segments = path.strip("/").removesuffix(".git").split("/")
    if not _HOST.fullmatch(host) or not all(map(_SEGMENT.fullmatch, segments)):
        raise ReferenceEntryError("it must be a path, `owner/name`, or the address of a repository")
    return "/".join((host.lower(), *segments))


def _short(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("/")
    if "." in first and "/" in rest:
        return first, rest
    # A single word is not a repository; the caller refuses an empty path.
    return _HOST_DEFAULT, text if rest else ""
