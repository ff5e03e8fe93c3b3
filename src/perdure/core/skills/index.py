"""The index of a skill source on the network: its skills and their files.

An index is untrusted, and its names become local paths and URLs. A skill with a name that could
leave its directory is refused; the others stay. Fetching is location.skills.downloads.

Invariant: the URL of a file is below that of its source, and its path below its skill's.
"""

from typing import Annotated, Final
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.core import limits
from perdure.core.skills import skill
from perdure.lazy_pattern import lazy_pattern
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

_REFUSED: Final = lazy_pattern(r"[\\:?#%*]")
"""Separators of other systems, URL delimiters, wildcards; `%` could encode any of them."""
_DEPTH_MAX: Final = 16


class SkillIndexError(ValueError):
    """The document is not an index, or the URL cannot be fetched from."""


class IndexedSkill(Value, kw_only=True):
    name: str
    files: tuple[str, ...]
    version: str | None


class SkillIndex(Value):
    skills: tuple[IndexedSkill, ...]
    refused: tuple[str, ...]
    """One sentence for each refused skill."""


class _Item(msgspec.Struct):
    name: str
    files: Annotated[tuple[str, ...], Meta(max_length=limits.SKILL_DOWNLOAD_FILES_MAX)]
    version: str | int | UnsetType = UNSET


class _Index(msgspec.Struct):
    skills: Annotated[tuple[JsonObject, ...], Meta(max_length=limits.SKILLS_MAX)]


def base_url(url: str) -> str:
    """The base URL of a skill source. Raises SkillIndexError."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise SkillIndexError(f"is not an address: {error}") from error
    if split.scheme not in ("http", "https") or not split.hostname or port == 0:
        raise SkillIndexError("must begin with http:// or https:// and name a host")
    if split.query or split.fragment or split.username is not None:
        raise SkillIndexError("must not have a query, a fragment or a user name")
    return url.strip().rstrip("/")


def index_url(base: str) -> str:
    return f"{base}/index.json"


def file_url(base: str, offered: IndexedSkill, file: str) -> str:
    path = "/".join(quote(part, safe="") for part in (offered.name, *file.split("/")))
    return f"{base}/{path}"


def read(data: bytes) -> SkillIndex:
    """Decode an index. Raises SkillIndexError."""
    try:
        items = codec.decode(_Index, data).skills
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SkillIndexError(f"is not an index of skills: {error}") from error
    sound: dict[str, IndexedSkill] = {}
    refused: list[str] = []
    for number, item in enumerate(items):
        try:
            offered = _skill(item)
        except SkillIndexError as error:
            refused.append(f"skill {number} of the index is refused: {error}")
        else:
            sound[offered.name] = offered
    return SkillIndex(tuple(sound.values()), tuple(refused))


def _skill(item: JsonObject) -> IndexedSkill:
    try:
        given = codec.convert(_Item, item)
    except msgspec.ValidationError as error:
        raise SkillIndexError(str(error)) from error
    if not _is_safe(given.name) or given.name.startswith("."):
        raise SkillIndexError(f"{_quoted(given.name)} cannot be the name of a skill")
    if len(given.name) > limits.SKILL_NAME_CHARS_MAX:
        raise SkillIndexError("its name is too long")
    files = tuple(dict.fromkeys(given.files))
    for file in files:
        parts = file.split("/")
        if len(parts) > _DEPTH_MAX or not all(map(_is_safe, parts)):
            raise SkillIndexError(f"{_quoted(file)} cannot be one of its files")
    if not set(files) & set(own_files(given.name)):
        raise SkillIndexError(f"{_quoted(given.name)} has no {skill.FILE_NAME}")
    version = None if given.version is UNSET else str(given.version)
    return IndexedSkill(name=given.name, files=files, version=version)


def own_files(name: str) -> tuple[str, str]:
    """The file names that may hold the text of a skill."""
    return skill.FILE_NAME, f"{name}.md"


def _is_safe(part: str) -> bool:
    """Whether `part` is a single file or directory name, in a path and in a URL."""
    short = 0 < len(part.encode(errors="replace")) <= 255
    named = part not in (".", "..") and "/" not in part and part == part.strip()
    return short and named and part.isprintable() and _REFUSED.search(part) is None


def _quoted(text: str) -> str:
    return repr(text[:80])
