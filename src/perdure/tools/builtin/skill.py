"""skill: load the instructions of a skill.

A skill is looked up before the permission request, so that the user is not asked about a missing
one, and again afterwards, because it may have changed. The other files of a skill are listed, not
read.
"""

import posixpath
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core import limits
from perdure.core.files.paths import is_within, printable
from perdure.core.skills import skill
from perdure.core.text import xml_tags
from perdure.llm.encoding.shared import escape_markup
from perdure.ports import Filesystem
from perdure.ports.skills import SkillLookup
from perdure.schema.codec import Record
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.settings.skill import SkillInfo
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment

DESCRIPTION: Final = """\
Load a skill: instructions that were written for a particular kind of task.

- Call it before you begin a task that fits the description of an available skill.
- The answer holds the instructions, the directory they belong to, and some of the files there. \
Paths in the instructions are relative to that directory; read the files when you need them.
- Follow the instructions as far as they fit what the person asked for."""

_SKIPPED: Final = frozenset({".git", "node_modules"})


class SkillInput(Record, frozen=True):
    name: Annotated[str, Meta(description="Name of the skill, as it is listed.", min_length=1)]


class SkillOutput(Record, frozen=True):
    name: str
    output: str
    directory: str | UnsetType = UNSET
    """Unset for a built-in skill."""


def make_skill(environment: ToolEnvironment, skills: SkillLookup) -> Tool[SkillInput, SkillOutput]:
    async def execute(input: SkillInput, context: ToolCallContext) -> SkillOutput:
        _require_skill(skills, input.name, context)
        await environment.require(context, "skill", (input.name,), save=(input.name,))
        found = _require_skill(skills, input.name, context)
        directory = _directory(found)
        files: list[str] = []
        if directory is not None:
            real = await environment.filesystem.real_path(found.location)
            target = await environment.path_access.resolve(real)
            await environment.file_permissions.require_used(context, target)
            files = await _list_files(environment, found, context)
        return SkillOutput(
            name=found.name,
            output=_text(found, directory, files),
            directory=UNSET if directory is None else printable(directory),
        )

    return Tool(
        name="skill",
        effect="pure",
        asks_first=True,
        description=DESCRIPTION,
        input=SkillInput,
        output=SkillOutput,
        execute=execute,
        to_model_output=_content,
    )


def _content(output: SkillOutput) -> tuple[ToolContent, ...]:
    return (TextContent(text=output.output),)


def _require_skill(skills: SkillLookup, name: str, context: ToolCallContext) -> SkillInfo:
    found = skills.get(name)
    if found is not None:
        return found
    display_name = name[: limits.SKILL_NAME_CHARS_MAX]
    import difflib

    names = skills.names_for(context.agent)
    close = difflib.get_close_matches(display_name, names, limits.SKILL_MATCHES_SHOWN_MAX)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ToolFailure(f"There is no skill {display_name!r}.{hint}")


def _directory(found: SkillInfo) -> str | None:
    directory = posixpath.dirname(found.location)
    return None if directory == skill.BUILT_IN_DIRECTORY else directory


def _text(found: SkillInfo, directory: str | None, files: list[str]) -> str:
    name = escape_markup(found.name).replace('"', "&quot;")
    parts = [f'<skill_content name="{name}">', found.content]
    if directory is not None:
        parts += ["", f"Base directory of this skill: {printable(directory)}"]
        parts.append("Relative paths in its text begin there.")
    if files:
        listed = (xml_tags.element("file", printable(file)) for file in files)
        parts += ["Some of the files beside it:", "<skill_files>", *listed, "</skill_files>"]
    return "\n".join((*parts, "</skill_content>"))


async def _list_files(
    environment: ToolEnvironment, found: SkillInfo, context: ToolCallContext
) -> list[str]:
    """Some of the other files of a skill. Only a skill with its own directory has any."""
    if posixpath.basename(found.location) != skill.FILE_NAME:
        return []
    filesystem, path_access = environment.filesystem, environment.path_access
    base = posixpath.dirname(found.location)
    view = await environment.file_permissions.view(context, base)
    try:
        real_base = await filesystem.real_path(base)
        files = await _sample_files(filesystem, base, real_base)
        real = [await path_access.resolve(await filesystem.real_path(file)) for file in files]
        shown = zip(files, real, strict=True)
        return [file for file, target in shown if view.is_shown(target.resource)]
    except OSError:
        # The skill was removed meanwhile. Its text is loaded; the list is optional.
        return []


async def _sample_files(filesystem: Filesystem, base: str, real_base: str) -> list[str]:
    files: list[str] = []
    stack = [base]
    for _ in range(limits.SKILL_SHOWN_DIRECTORIES_MAX):
        if not stack or len(files) >= limits.SKILL_FILES_SHOWN_MAX:
            break
        directory = stack.pop()
        # A link may lead outside.
        if not is_within(await filesystem.real_path(directory), real_base):
            continue
        below: list[str] = []
        for name, status in await filesystem.list(directory):
            path = posixpath.join(directory, name)
            if status.is_directory and name not in _SKIPPED:
                below.append(path)
            elif status.is_file and path != posixpath.join(base, skill.FILE_NAME):
                files.append(path)
        stack += reversed(below)
    return sorted(files[: limits.SKILL_FILES_SHOWN_MAX])
