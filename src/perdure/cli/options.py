"""Command-line options that several commands share, and the parser that reads them.

A mistake in an option or its value is answered with what the user may have meant.
"""

import argparse
import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NoReturn

from msgspec.structs import replace

from perdure.cli.problem import USAGE_STATUS
from perdure.core import limits
from perdure.host import environment
from perdure.host.environment import Environment
from perdure.schema.approval.permission import Headless

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from perdure.cli.completion_script import OptionWords

_describes: ContextVar[bool] = ContextVar("describes", default=False)
"""Whether the parser of a command is wanted, and not its help."""
_UNKNOWN: Final = "unrecognized arguments: "
"""How argparse begins the message about arguments that it does not know."""


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors name what was meant, and where the help is."""

    def list_options(self) -> list[str]:
        """The options of the command, in all their spellings."""
        return [name for action in self.actions for name in action.option_strings]

    def list_words(self) -> "Iterable[OptionWords]":
        """What can be completed: options with their values, and words that arguments take."""
        # Imported late: only `perdure completion` needs it.
        from perdure.cli.completion_script import OptionWords

        for action in self.actions:
            if action.option_strings or action.choices:
                yield OptionWords(
                    tuple(action.option_strings),
                    (action.help or "").partition("%")[0],
                    action.nargs != 0,
                    tuple(map(str, action.choices or ())),
                )

    @property
    def actions(self) -> Iterable[argparse.Action]:
        """The arguments and options of the command."""
        return tuple(self._actions)

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        if _describes.get():
            raise _Described(self)
        super().print_help(file)

    def error(self, message: str) -> NoReturn:
        # Imported late: a command without a mistake does not need it.
        from perdure.cli import suggestion, terminal

        words = message.removeprefix(_UNKNOWN).split()
        if message.startswith(_UNKNOWN) and words:
            name = words[0].partition("=")[0]
            is_option = name.startswith("-") and len(name) > 1
            close = suggestion.did_you_mean(name, self.list_options()) if is_option else ""
            kind = "option" if is_option else "further argument"
            message = f"there is no {kind} {words[0]}{close}"
        terminal.print_note(
            f"{self.prog}: {terminal.one_line(message)}\n"
            f"usage: {self.prog} [options]; `{self.prog} --help` explains them\n"
        )
        self.exit(USAGE_STATUS)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            from perdure.cli import suggestion

            known = [str(choice) for choice in action.choices]
            close = suggestion.did_you_mean(str(value), known)
            raise argparse.ArgumentError(action, f"{value} is none of {', '.join(known)}{close}")


class _Described(Exception):
    """Carries the parser of a command."""

    def __init__(self, parser: CommandParser) -> None:
        super().__init__()
        self.parser = parser


def describe(main: Callable[[list[str]], int]) -> CommandParser:
    """The parser of a command, without running the command."""
    token = _describes.set(True)
    try:
        main(["--help"])
    except _Described as found:
        return found.parser
    finally:
        _describes.reset(token)
    raise AssertionError("the command made no parser")


def make_parser(command: str, description: str, *, examples: str = "") -> CommandParser:
    """Make the parser of one command. `examples` holds one command line on each line."""
    lines = "".join(f"  {line}\n" for line in examples.splitlines())
    parser = CommandParser(
        prog=f"perdure {command}",
        description=description,
        epilog=f"examples:\n{lines}" if lines else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="keep data in DIR (default: $PERDURE_DATA_DIR, or ~/.local/share/perdure)",
    )
    return parser


def add_attach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attach",
        metavar="URL",
        help="use the server at URL instead of opening the data directory",
    )


def add_session(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    parser.add_argument(
        "session",
        nargs=None if default is None else "?",
        default=default,
        metavar="SESSION",
        help="id of the Session, the beginning of one, or `last` for the newest of this directory",
    )


def add_format(parser: argparse.ArgumentParser, *, json: str = "one JSON value") -> None:
    """`json` says what is printed: one JSON value, or one on each line."""
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help=f"print text for people or JSON for programs: {json} (default: text)",
    )


def add_local_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--local-models",
        action="store_true",
        help="also use model servers found running on this machine (Ollama, LM Studio, ...)",
    )


def add_permission_timeout(
    parser: argparse.ArgumentParser, *, default: float | None = None
) -> None:
    usual = "" if default is None else f" (default: {default:.0f})"
    parser.add_argument(
        "--permission-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=default,
        help="wait that long for an answer to a permission request or a question, then refuse"
        + usual,
    )


def add_unattended(parser: argparse.ArgumentParser, *, when: str, default: Headless) -> None:
    parser.add_argument(
        "--unattended",
        choices=("wait", "deny", "fail"),
        default=default,
        help=f"what to do with a permission request or a question {when}: wait for an answer, deny"
        f" it and let the model go on, or fail the run (default: {default})",
    )


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let all settings of this project's configuration count; see `perdure trust`",
    )


def read_environment(data_dir: str | None) -> Environment:
    """Return the environment of this process, with `--data-dir` applied to it."""
    found = environment.from_process()
    return found if data_dir is None else replace(found, data_dir=os.path.abspath(data_dir))


def _seconds(text: str) -> float:
    seconds = float(text)
    # The comparison is written so that NaN is refused too.
    if not 0 < seconds <= limits.PERMISSION_TIMEOUT_SECONDS_MAX:
        raise ValueError(text)
    return seconds
