"""`perdure trust`: lets the settings of a project count that act.

`run` and `serve` decide about trust too, once for what the files ask for: they ask at a terminal,
or grant it with `--trust`. A no is stored until that changes. The grant covers what was shown to
the user, even if a file changes meanwhile.
"""

import os
from collections.abc import Sequence

from perdure.cli import options, terminal
from perdure.cli.problem import Problem
from perdure.core.settings import trust
from perdure.core.settings.document import Document
from perdure.core.settings.settings import Settings
from perdure.host import data_directory
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.location.agents.command_files import CommandFiles
from perdure.location.agents.commands import Commands
from perdure.location.config.config import Configuration
from perdure.location.config.trust import TrustFileError
from perdure.location.project import project


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "trust",
        "Let a project's configuration choose programs, models, addresses and agents, until it"
        " asks for something else.",
        examples="perdure trust\nperdure trust --list\nperdure trust --revoke",
    )
    parser.add_argument(
        "directory",
        nargs="?",
        default=".",
        metavar="DIR",
        help="directory of the project (default: this one)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--revoke", action="store_true", help="withdraw the trust")
    what.add_argument("--list", action="store_true", help="list the trusted files of all projects")
    given = parser.parse_args(argv)
    directory = os.path.abspath(given.directory)
    configuration = Configuration(options.read_environment(given.data_dir))
    try:
        if given.list:
            _list(configuration)
        elif given.revoke:
            _revoke(configuration, directory)
        else:
            _trust(configuration, directory, given.data_dir)
    except (TrustFileError, DataDirectoryError) as error:
        raise Problem(str(error)) from error
    return 0


async def decide(environment: Environment, directory: str, *, trusts: bool) -> None:
    """Grant trust to the project of `directory`, or ask for it, where it is undecided.

    `trusts` grants it. Without `trusts` and without a terminal it stays refused, which is logged.
    """
    configuration = Configuration(environment)
    try:
        undecided = _untrusted_documents(configuration, environment, directory)
        if trusts and undecided:
            _grant(configuration, environment, undecided)
        elif terminal.is_interactive():
            store = configuration.trust
            new = [each for each in undecided if not store.was_declined(each)]
            if new:
                await _ask(configuration, environment, new)
    except (TrustFileError, DataDirectoryError) as error:
        raise Problem(str(error)) from error


async def _ask(
    configuration: Configuration, environment: Environment, documents: Sequence[Document]
) -> None:
    terminal.print_note("The configuration of this project wants to:\n" + _describe(documents))
    answer = await terminal.ask("Do you trust it? [y]es, [N]o: ")
    if answer.lower() in {"y", "yes"}:
        _grant(configuration, environment, documents)
    else:
        data_directory.prepare_directory(environment.data_dir)
        configuration.trust.decline(documents)
        terminal.print_note(
            "Not trusted: these settings stay off. `perdure trust` turns them on.\n"
        )


def _trust(configuration: Configuration, directory: str, data_dir: str | None) -> None:
    environment = options.read_environment(data_dir)
    documents = _untrusted_documents(configuration, environment, directory)
    if not documents:
        terminal.print_output(
            "nothing to trust: no file of this project asks for anything, apart from trusted ones\n"
        )
        return
    _grant(configuration, environment, documents)
    terminal.print_output(
        "trusted until that changes; this project may now:\n" + _describe(documents)
    )


def _revoke(configuration: Configuration, directory: str) -> None:
    dropped = configuration.trust.revoke(
        directory, _read_settings(configuration, directory).documents
    )
    for grant in dropped:
        terminal.print_output(f"no longer trusted: {terminal.one_line(grant.display_path)}\n")
    if not dropped:
        terminal.print_output("nothing was trusted here\n")


def _list(configuration: Configuration) -> None:
    for grant in sorted(configuration.trust.grants(), key=lambda grant: grant.path):
        terminal.print_output(f"{terminal.one_line(grant.display_path)}\n")


def _grant(
    configuration: Configuration, environment: Environment, documents: Sequence[Document]
) -> None:
    data_directory.prepare_directory(environment.data_dir)
    configuration.trust.grant(documents)


def _read_settings(configuration: Configuration, directory: str) -> Settings:
    if not os.path.isdir(directory):
        raise Problem(f"{terminal.one_line(directory)} is not a directory")
    return configuration.read(directory, root=project.find_root(directory))


def _untrusted_documents(
    configuration: Configuration, environment: Environment, directory: str
) -> list[Document]:
    """Return the documents that ask for something and are not trusted."""
    found = _read_settings(configuration, directory)
    commands = Commands(
        found,
        directory=directory,
        root=project.find_root(directory),
        environment=environment,
        trust=configuration.trust,
        files=CommandFiles(),
    )
    documents = (*found.documents, *commands.untrusted())
    return [each for each in documents if not each.is_trusted and trust.list_requests(each)]


def _describe(documents: Sequence[Document]) -> str:
    wishes = [wish for document in documents for wish in trust.list_requests(document)]
    return "".join(
        f"  {terminal.clean(wish.description)}\n      {terminal.one_line(wish.path)}\n"
        for wish in wishes
    )
