"""The commands of a Location: named prompts for clients to offer. Nothing here runs them.

In rising precedence: the built-in ones; `commands` of the configuration; the Markdown files below
`command/` and `commands/` in the user's config directory and in each `.opencode` from the project's
root to the Location. A command's name is its path below that folder without `.md`; the front matter
holds the fields and the body is the template. A project's file must be inside the project by its
real path: a link could otherwise show any file of this machine. It counts once it is trusted, as
every configuration document of a project.

Folders are read on demand (location.agents.command_files).
"""

import logging
from collections.abc import Iterator
from typing import Final

import msgspec

from perdure.core.config_file.entries import CommandEntry
from perdure.core.settings import document as config_document
from perdure.core.settings.document import Document
from perdure.core.settings.settings import Settings
from perdure.host.environment import Environment
from perdure.location.agents.command_files import CommandFiles, CommandFolder
from perdure.location.config.trust import Trust
from perdure.location.project import parent_directories
from perdure.schema.settings.command import CommandInfo

logger = logging.getLogger(__name__)

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
        files: CommandFiles,
    ) -> None:
        self._settings = settings
        self._trust = trust
        self._directory = directory
        self._root = root
        self._environment = environment
        self._files = files

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
            yield from map(self._trust.with_grant, self._files.documents_in(folder))


def _command_folders(
    directory: str, root: str, environment: Environment
) -> Iterator[CommandFolder]:
    home = environment.config_dir
    for folder in _FOLDERS:
        yield CommandFolder(f"{home}/{folder}", None)
    if directory == home or parent_directories.is_disabled(
        environment.variables.get(parent_directories.DISABLE)
    ):
        return
    try:
        for parent in parent_directories.list_downwards(directory, root):
            for folder in _FOLDERS:
                path = f"{parent.rstrip('/')}/{_CONFIG_DIRECTORY}/{folder}"
                yield CommandFolder(path, parent_directories.link_bounds(parent, root))
    except OSError as error:
        logger.warning("commands: those of the project are not listed: %s", error)


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
