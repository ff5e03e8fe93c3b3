"""The commands of a Location: prompts with a name, for clients to offer. Nothing here runs them.

From low to high: the built-in ones; `commands` of the configuration; the Markdown files below
`command/` and `commands/` in the user's config directory and in each `.opencode` from the project's
root to the Location. A file is named by its path below that folder without `.md`; its front matter
holds the fields and its body is the template. In a project a file must lie in the project by its
real path: a link could otherwise show any file of this machine.

Invariant: folders are read when somebody asks; a file that cannot be used is reported and left out.
"""

import itertools
import logging
import os
from collections.abc import Iterator
from typing import Final

import msgspec

from perdure.core import config_document, front_matter, limits
from perdure.core.config_entry import CommandEntry
from perdure.core.containment import is_within
from perdure.core.front_matter import FrontMatterError
from perdure.core.settings import Settings
from perdure.host import small_files
from perdure.host.environment import Environment
from perdure.location import ancestry, built_in_commands
from perdure.schema import codec
from perdure.schema.command import CommandInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".md"
_FOLDERS: Final = ("command", "commands")
_CONFIG_DIRECTORY: Final = ".opencode"


class Commands:
    def __init__(
        self, settings: Settings, *, directory: str, root: str, environment: Environment
    ) -> None:
        self._settings = settings
        self._directory = directory
        self._root = root
        self._environment = environment
        self._reported: set[str] = set()

    def list(self) -> tuple[CommandInfo, ...]:
        """Those that are there now, in the order of their names. Reads files: not on the loop."""
        found = {command.name: command for command in built_in_commands.COMMANDS}
        for name, entry in self._settings.commands:
            found[name] = _info(name, entry)
        for top in _tops(self._directory, self._root, self._environment):
            found |= {command.name: command for command in self._in_files(top)}
        return tuple(found[name] for name in sorted(found))

    def _in_files(self, top: "_Top") -> Iterator[CommandInfo]:
        for path in itertools.islice(_markdown(top.path), limits.COMMAND_FILES_MAX):
            try:
                if top.within is not None and not is_within(os.path.realpath(path), top.within):
                    raise _UnusableError("it is a link that leads out of the project")
                yield _read(path, path[len(top.path) + 1 : -len(_SUFFIX)])
            except _UnusableError as error:
                if path not in self._reported:
                    self._reported.add(path)
                    logger.warning("commands: %s is ignored: %s", path, error)


class _Top(Value):
    """A folder of commands, and where its files must lie, if that matters."""

    path: str
    within: str | None


class _UnusableError(Exception):
    """The file is no command; the text says why."""


def _tops(directory: str, root: str, environment: Environment) -> Iterator[_Top]:
    home = environment.config_dir
    for folder in _FOLDERS:
        yield _Top(f"{home}/{folder}", None)
    if directory == home or ancestry.is_disabled(environment.variables.get(ancestry.DISABLE)):
        return
    for at in ancestry.downwards(directory, root):
        for folder in _FOLDERS:
            path = f"{at.rstrip('/')}/{_CONFIG_DIRECTORY}/{folder}"
            yield _Top(path, ancestry.bounds(at, root))


def _markdown(top: str) -> Iterator[str]:
    """The files below `top` in the order of their names, each folder once however it is linked."""
    waiting, seen = [top], set[str]()
    for folder in waiting:
        real = os.path.realpath(folder)
        if real in seen or len(seen) >= limits.COMMAND_FOLDERS_MAX:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as listing:
                some = list(itertools.islice(listing, limits.COMMAND_ENTRIES_MAX))
        except OSError:
            # Most are not there.
            continue
        for entry in sorted(some, key=lambda entry: entry.name):
            if entry.name.endswith(_SUFFIX) and entry.name != _SUFFIX:
                yield entry.path
            elif _is_folder(entry):
                waiting.append(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself.
        return False


def _read(path: str, name: str) -> CommandInfo:
    try:
        data = small_files.read(path, bytes_max=limits.COMMAND_FILE_BYTES_MAX)
        if data is None:
            raise _UnusableError("it is not a file")
        name.encode()
        fields, body = front_matter.split(data.decode("utf-8-sig"))
        entry = codec.convert(CommandEntry, {"template": body, **fields})
    except UnicodeError as error:
        raise _UnusableError("it is not UTF-8 text") from error
    except OSError as error:
        raise _UnusableError(error.strerror or str(error)) from error
    except (FrontMatterError, msgspec.ValidationError) as error:
        raise _UnusableError(str(error)) from error
    if not entry.template.strip() or "\0" in entry.template:
        raise _UnusableError("it holds no text")
    return _info(name, entry)


def _info(name: str, entry: CommandEntry) -> CommandInfo:
    model = config_document.parse_model(entry.model) if entry.model else None
    return CommandInfo(
        name=name,
        template=entry.template,
        description=entry.description,
        agent=entry.agent,
        model=msgspec.UNSET if model is None else model,
        subtask=entry.subtask,
    )
