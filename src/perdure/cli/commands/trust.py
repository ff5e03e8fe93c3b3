"""`perdure trust`: let the configuration of a project start programs and use keys, or stop that.

Also asked for by `run` and `serve`, once for each state of the files: at a terminal as a question,
otherwise by `--trust`. A no is remembered until a file changes. What is granted is what was shown,
not what the files say by then.
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
from perdure.location.config.config import Configuration
from perdure.location.config.trust import TrustFileError
from perdure.location.project import project


def main(argv: list[str]) -> int:
    parser = options.parser("trust", "Trust the configuration of a project.")
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--revoke", action="store_true", help="trust it no longer")
    what.add_argument("--list", action="store_true", help="the files that are trusted, anywhere")
    given = parser.parse_args(argv)
    directory = os.path.abspath(given.directory)
    configuration = Configuration(options.surroundings(given.data_dir))
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


async def settle(surroundings: Environment, directory: str, *, trusts: bool) -> None:
    """Grant or ask for what the project of `directory` wants and nobody has decided on.

    Without a terminal and without `trusts` it stays off, which the log says.
    """
    configuration = Configuration(surroundings)
    try:
        found = _settings(configuration, directory)
        open_documents = _asking(found)
        if trusts and open_documents:
            _grant(configuration, surroundings, open_documents)
        elif terminal.is_attended():
            book = configuration.trust
            new = [each for each in open_documents if not book.was_declined(each)]
            if new:
                await _ask(configuration, surroundings, new)
    except (TrustFileError, DataDirectoryError) as error:
        raise Problem(str(error)) from error


async def _ask(
    configuration: Configuration, surroundings: Environment, documents: Sequence[Document]
) -> None:
    terminal.note("The configuration of this project wants to:\n" + _shown(documents))
    answer = await terminal.ask("Do you trust it? [y]es, [N]o: ")
    if answer.lower() in {"y", "yes"}:
        _grant(configuration, surroundings, documents)
    else:
        data_directory.prepare(surroundings.data_dir)
        configuration.trust.decline(documents)
        terminal.note("That stays off; `perdure trust` allows it.\n")


def _trust(configuration: Configuration, directory: str, data_dir: str | None) -> None:
    documents = _asking(_settings(configuration, directory))
    if not documents:
        terminal.say("there is nothing to trust: no file of this project asks for anything\n")
        return
    _grant(configuration, options.surroundings(data_dir), documents)
    terminal.say("trusted, until the files change, to:\n" + _shown(documents))


def _revoke(configuration: Configuration, directory: str) -> None:
    dropped = configuration.trust.revoke(directory, _settings(configuration, directory).documents)
    for grant in dropped:
        terminal.say(f"no longer trusted: {terminal.one_line(grant.display_path)}\n")
    if not dropped:
        terminal.say("nothing here was trusted\n")


def _list(configuration: Configuration) -> None:
    for grant in sorted(configuration.trust.grants(), key=lambda grant: grant.path):
        terminal.say(f"{terminal.one_line(grant.display_path)}\n")


def _grant(
    configuration: Configuration, surroundings: Environment, documents: Sequence[Document]
) -> None:
    data_directory.prepare(surroundings.data_dir)
    configuration.trust.grant(documents)


def _settings(configuration: Configuration, directory: str) -> Settings:
    if not os.path.isdir(directory):
        raise Problem(f"{terminal.one_line(directory)} is not a directory")
    return configuration.read(directory, root=project.find_root(directory))


def _asking(found: Settings) -> list[Document]:
    """The documents that ask for something and were not granted it."""
    return [each for each in found.documents if not each.is_trusted and trust.list_requests(each)]


def _shown(documents: Sequence[Document]) -> str:
    wishes = [wish for document in documents for wish in trust.list_requests(document)]
    return "".join(
        f"  {terminal.clean(wish.says)}\n      {terminal.one_line(wish.path)}\n" for wish in wishes
    )
