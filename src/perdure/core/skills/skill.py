"""Parses skill files. Finding and reading files is location.skills.files.

The name comes from the front matter, else from the file's location. It appears in permission rules
and in texts for the model, so it is one short line without wildcards.
"""

from typing import Final

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.core.text import front_matter
from perdure.core.text.front_matter import FrontMatterError
from perdure.schema.codec import JsonObject
from perdure.schema.settings.skill import SkillInfo

FILE_NAME: Final = "SKILL.md"
BUILT_IN_DIRECTORY: Final = "/builtin"
"""Reported location of built-in skills. There is no such directory."""
_WILDCARDS: Final = frozenset("*?")


class SkillError(ValueError):
    """The file is not a skill. The message says why and is appended to the file's path."""


def read(path: str, data: bytes, *, name: str | None) -> SkillInfo:
    """Parse a skill file. `name` is the name by its location. Raises SkillError."""
    try:
        fields, content = front_matter.split(_text(data))
    except FrontMatterError as error:
        raise SkillError(f"its front matter cannot be read: {error}") from error
    if not content.strip():
        raise SkillError("it has no text")
    slash = fields.get("slash")
    return SkillInfo(
        name=_name(fields, name),
        location=path,
        content=content,
        description=_description(fields),
        slash=slash if isinstance(slash, bool) else UNSET,
    )


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SkillError("it is not UTF-8 text") from error
    if "\0" in text:
        raise SkillError("it is not text")
    return text


def _name(fields: JsonObject, given: str | None) -> str:
    named = fields.get("name")
    name = given if named is None else named
    if name is None:
        raise SkillError("its front matter gives it no name")
    if not isinstance(name, str):
        raise SkillError("its name must be a text")
    name = name.strip()
    if not name or len(name) > limits.SKILL_NAME_CHARS_MAX:
        raise SkillError(f"its name must have 1 to {limits.SKILL_NAME_CHARS_MAX} characters")
    if not name.isprintable() or _WILDCARDS & set(name):
        raise SkillError("its name must be one line without `*` and `?`")
    return name


def _description(fields: JsonObject) -> str | UnsetType:
    description = fields.get("description")
    return description.strip() or UNSET if isinstance(description, str) else UNSET
