"""The commands of a Location: named prompts for clients to offer. Nothing here runs them.

In rising precedence: the built-in ones; `commands` of the configuration; the Markdown files below
`command/` and `commands/` in the user's config directory and in each `.opencode` from the project's
root to the Location. A command's name is its path below that folder without `.md`; the front matter
holds the fields and the body is the template. A project's file must be inside the project by its
real path: a link could otherwise show any file of this machine. It counts once it is trusted, as
every configuration document of a project.

Invariant: folders are read on demand; a file that cannot be used is logged and left out.
"""

import itertools
import logging
import os
from collections.abc import Iterator
from typing import Final

import msgspec

from perdure.core import limits
from perdure.core.config_file.entries import CommandEntry
from perdure.core.config_file.substitution import Trust as Owner
from perdure.core.files.paths import is_within
from perdure.core.settings import document as config_document
from perdure.core.settings.document import Document
from perdure.core.settings.settings import Settings
from perdure.core.text import front_matter
from perdure.core.text.front_matter import FrontMatterError
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.location.config.trust import Trust
from perdure.location.project import parent_directories
from perdure.schema import codec
from perdure.schema.settings.command import CommandInfo
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

_SUFFIX: Final = ".md"
_FOLDERS: Final = ("command", "commands")
_CONFIG_DIRECTORY: Final = ".opencode"


class Commands:
    def __init__(
        self,
        settings: Settings,
        *,
        directory: str,
        root: str,
        environment: Environment,
        trust: Trust,
    ) -> None:
        self._settings = settings
        self._trust = trust
        self._directory = directory
        self._root = root
        self._environment = environment
        self._reported: set[str] = set()

    def list(self) -> tuple[CommandInfo, ...]:
        """The current commands, sorted by name. Reads files: do not call it on the event loop."""
        found = {command.name: command for command in COMMANDS}
        for name, entry in self._settings.commands:
            found[name] = _info(name, entry)
        for document in self._documents():
            if document.is_trusted:
                found |= {name: _info(name, entry) for name, entry in document.commands}
        return tuple(found[name] for name in sorted(found))

    def untrusted(self) -> tuple[Document, ...]:
        """The project's command files that do not count yet. Reads files, as `list`."""
        return tuple(document for document in self._documents() if not document.is_trusted)

    def _documents(self) -> Iterator[Document]:
        """The command files, in rising precedence."""
        for folder in _command_folders(self._directory, self._root, self._environment):
            yield from map(self._trust.with_grant, self._read_folder(folder))

    def _read_folder(self, folder: "_CommandFolder") -> Iterator[Document]:
        top, within = folder.path, folder.within
        for path in itertools.islice(_markdown(top), limits.COMMAND_FILES_MAX):
            try:
                if within is not None and not is_within(os.path.realpath(path), within):
                    raise _UnusableError("it is a link that leads out of the project")
                name = path[len(top) + 1 : -len(_SUFFIX)]
                yield _read(path, name, "user" if within is None else "project")
            except _UnusableError as error:
                if path not in self._reported:
                    self._reported.add(path)
                    logger.warning("commands: %s is ignored: %s", path, error)


class _CommandFolder(Value):
    """A folder of commands, and the directory that must contain its files, if any."""

    path: str
    within: str | None


class _UnusableError(Exception):
    """The file is not a command; the text says why."""


def _command_folders(
    directory: str, root: str, environment: Environment
) -> Iterator[_CommandFolder]:
    home = environment.config_dir
    for folder in _FOLDERS:
        yield _CommandFolder(f"{home}/{folder}", None)
    if directory == home or parent_directories.is_disabled(
        environment.variables.get(parent_directories.DISABLE)
    ):
        return
    try:
        for parent in parent_directories.list_downwards(directory, root):
            for folder in _FOLDERS:
                path = f"{parent.rstrip('/')}/{_CONFIG_DIRECTORY}/{folder}"
                yield _CommandFolder(path, parent_directories.link_bounds(parent, root))
    except OSError as error:
        logger.warning("commands: those of the project are not listed: %s", error)


def _markdown(top: str) -> Iterator[str]:
    """The Markdown files below `top`, sorted by name; a linked folder is visited once."""
    waiting, seen = [top], set[str]()
    for folder in waiting:
        real = os.path.realpath(folder)
        if real in seen or len(seen) >= limits.COMMAND_FOLDERS_MAX:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as listing:
                some = list(itertools.islice(listing, limits.COMMAND_ENTRIES_MAX))
        except (FileNotFoundError, NotADirectoryError):
            # Most of these folders do not exist.
            continue
        except OSError as error:
            logger.warning("commands: %s cannot be searched: %s", folder, error.strerror or error)
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


def _read(path: str, name: str, trust: Owner) -> Document:
    try:
        data = cached_files.read(path, bytes_max=limits.COMMAND_FILE_BYTES_MAX)
        if data is None:
            raise _UnusableError("it is not a file")
        name.encode()
        fields, body = front_matter.split(data.decode("utf-8-sig"))
        fields = {"template": body, **fields}
        entry = codec.convert(CommandEntry, fields)
    except UnicodeError as error:
        raise _UnusableError("it is not UTF-8 text") from error
    except OSError as error:
        raise _UnusableError(error.strerror or str(error)) from error
    except (FrontMatterError, msgspec.ValidationError) as error:
        raise _UnusableError(str(error)) from error
    if not entry.template.strip() or "\0" in entry.template:
        raise _UnusableError("it holds no text")
    written = {"commands": {name: fields}}
    return Document(path=path, trust=trust, commands=((name, entry),), written=written)


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


_INIT: Final = """\
Write the file AGENTS.md at the root of this project, or improve the one that is there.

It is read by coding agents before they start to work here. Tell them what they cannot see at once
and would otherwise get wrong:

- how to build, lint and test, with the exact commands, and how to run a single test;
- how the source is laid out, and which parts depend on which;
- habits of this code base: style, naming, error handling, what to avoid;
- anything surprising, such as generated files or steps that must come in some order.

First look at the build files, the continuous integration, the README and existing rules for agents,
and check the commands that you write down. Leave out what is true of every project. Keep it under
a hundred lines.

$ARGUMENTS"""

_REVIEW: Final = """\
Review a change of this project and report what is wrong with it. Do not edit anything.

What to review: $ARGUMENTS

- Nothing named: the uncommitted changes (`git diff`, `git diff --cached`, untracked files).
- A commit: that commit (`git show`).
- A branch: what it adds to the main branch (`git diff main...branch`).
- A pull request, by number or address: its description and its diff, with `gh` if there is one.

Read each changed file as a whole before you judge a line of it. Look for defects first: wrong
results, lost data, races, missing checks of input, broken callers, secrets. Then for code that does
what existing code does, and for tests that are missing. Leave matters of taste alone.

For each finding give the file and line, what happens and when, and how to mend it. The worst come
first. Say so plainly if there is nothing to report."""

COMMANDS: Final = (
    CommandInfo(name="init", template=_INIT, description="write or improve AGENTS.md"),
    CommandInfo(
        name="review",
        template=_REVIEW,
        description="review a commit, branch or pull request; uncommitted changes by default",
        subtask=True,
    ),
)
