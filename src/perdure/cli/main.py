"""The `perdure` command: finds the subcommand, and loads that one alone.

`--version` and the list of commands load nothing. Whatever a command expects to go wrong it says
as a Problem; anything else is a defect and keeps its traceback.
"""

import atexit
import gc
import os
import sys
from importlib import import_module
from types import ModuleType

from perdure import __version__
from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, USAGE_STATUS, Problem

_COLLECT_AFTER_OBJECTS = 50_000
_COMMANDS = {
    "run": "one prompt in this directory, streamed as it happens",
    "serve": "the HTTP server",
    "sessions": "the Sessions there are",
    "export": "one Session as JSON",
    "usage": "what a Session has used: money, tokens and turns, by model",
    "budget": "what a Session may use, with all below it",
    "context": "what the model of a Session is told, and the next request to it",
    "compact": "what the model of a Session is shown, into a summary",
    "jobs": "the commands that a Session runs in the background, and ending one",
    "recover": "what a crash left of a Session: see it, send it again, or give it up",
    "move": "a Session to another directory of its project",
    "rename": "a Session, by giving it another title",
    "archive": "a Session, or take it out of the archive",
    "fork": "a Session into a new one, up to a message or a sequence",
    "delete": "Sessions for good, with everything that is kept of them",
    "auth": "the credentials of providers: list, login, logout",
    "trust": "what a project's configuration asks for: programs, and keys for its addresses",
    "config": "the configuration in force here, and where each key comes from",
    "storage": "what is kept here, how much room it takes, and getting some of it back",
    "doctor": "paths, versions, and the health of the database and the configuration",
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; the status to exit with. Without `argv`: that of this process."""
    if argv is None:
        _collect_rarely()
    match sys.argv[1:] if argv is None else argv:
        case ["--version" | "-V", *_]:
            sys.stdout.write(f"perdure {__version__}\n")
            return 0
        case ["--help" | "-h" | "help", *_]:
            sys.stdout.write(_usage())
            return 0
        case [name, *rest] if name in _COMMANDS:
            return _guarded(name, rest)
        case [name, *_]:
            sys.stderr.write(f"perdure: there is no command {name!r}\n\n{_usage()}")
            return USAGE_STATUS
        case _:
            sys.stderr.write(_usage())
            return USAGE_STATUS


def _collect_rarely() -> None:
    """Spare a command the garbage collections of its start and of its exit.

    Modules are not garbage, yet looking through them as they load, and once more as the process
    exits, took a third of the processor time of `perdure run`.
    """
    gc.set_threshold(_COLLECT_AFTER_OBJECTS)
    atexit.register(gc.freeze)


def _guarded(name: str, argv: list[str]) -> int:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A character that the terminal's encoding lacks must not end the command.
        reconfigure(errors="replace")
    _terminal().clean_warnings()
    try:
        status = _run(name, argv)
        sys.stdout.flush()
    except Problem as problem:
        _terminal().note(f"perdure: {problem}\n")
        return FAILED_STATUS
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # Whoever read our output has gone. Nothing is left to flush, and nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED_STATUS
    return status


def _run(name: str, argv: list[str]) -> int:
    assert name in _COMMANDS
    return int(import_module(f"perdure.cli.commands.{name}").main(argv))


def _terminal() -> ModuleType:
    # Late: whoever asks for the version needs none of it.
    return import_module("perdure.cli.terminal")


def _usage() -> str:
    commands = "".join(f"  {name:10}{summary}\n" for name, summary in _COMMANDS.items())
    return (
        f"perdure {__version__}: a durable home for coding-agent conversations\n\n"
        f"usage: perdure COMMAND [options]\n\n{commands}\n"
        "perdure COMMAND --help tells the options of a command; perdure --version the version.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
