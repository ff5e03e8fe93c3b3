"""The `perdure` command: finds the subcommand and loads only that module.

`--version` and `--help` load no command. A command raises `Problem` for every failure that it
expects. Any other exception is a defect and keeps its traceback.
"""

import atexit
import gc
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Final

from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, USAGE_STATUS, Problem
from perdure.version import __version__

_COLLECT_AFTER_OBJECTS: Final = 50_000
_GROUPS: Final = {
    "Everyday": {
        "run": "Send one prompt and show the work as it happens",
        "sessions": "List Sessions, newest first",
        "context": "Show what the model is told, and the size of the next request",
        "usage": "Show what a Session has used: money, tokens and turns",
        "jobs": "List the background commands of a Session, or cancel one",
    },
    "Sessions": {
        "compact": "Prune or summarise older messages to free context",
        "budget": "Limit what a Session and its subagents may use",
        "recover": "Decide about a request that a crash interrupted",
        "move": "Move a Session to another directory of its project",
        "fork": "Copy a Session into a new one",
        "rename": "Give a Session another title",
        "archive": "Archive a Session, or restore it",
        "export": "Print a Session with its messages and events as JSON",
        "delete": "Delete Sessions and everything stored for them",
    },
    "Setup": {
        "auth": "List, store and remove the credentials of providers",
        "config": "Show the configuration of this directory and its sources",
        "trust": "Let all settings of a project's configuration count",
        "doctor": "Check versions, paths, the database and the configuration",
        "storage": "Show what takes up disk space, and free some of it",
    },
    "Server": {
        "serve": "Start the HTTP server",
    },
}
_COMMANDS: Final = frozenset(name for group in _GROUPS.values() for name in group)
_EXAMPLES: Final = """\
Examples:
  perdure auth login anthropic
  perdure run "explain the failing test"
  perdure run --model demo/demo "list the files here"     (offline, needs no key)
"""
_NOT_ON_WINDOWS: Final = (
    "perdure: Perdure does not run on Windows itself: it needs the file locks, process groups and"
    " terminals of a POSIX system. Install it inside the Windows Subsystem for Linux (`wsl"
    " --install`), or connect to a server on another machine with `perdure.connect(url)`.\n"
)


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit status. Without `argv`: that of this process."""
    if os.name == "nt":
        sys.stderr.write(_NOT_ON_WINDOWS)
        return FAILED_STATUS
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
            return _run_command(name, rest)
        case [name, *_]:
            sys.stderr.write(
                f"perdure: there is no command {name!r}; `perdure --help` lists the commands\n"
            )
            return USAGE_STATUS
        case _:
            sys.stderr.write(_usage())
            return USAGE_STATUS


def _collect_rarely() -> None:
    """Avoid garbage collections while modules load and when the process exits.

    Modules are not garbage, yet traversing them took a third of the CPU time of `perdure run`.
    """
    gc.set_threshold(_COLLECT_AFTER_OBJECTS)
    atexit.register(gc.freeze)


def _run_command(name: str, argv: list[str]) -> int:
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A character that the terminal's encoding lacks must not end the command.
        reconfigure(errors="replace")
    _terminal().clean_warnings()
    try:
        status = _load_and_run(name, argv)
        sys.stdout.flush()
    except Problem as problem:
        _terminal().print_note(f"perdure: {problem}\n")
        return FAILED_STATUS
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # The reader of our output has closed the pipe. Python flushes stdout once more at exit;
        # /dev/null makes that succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED_STATUS
    return status


def _load_and_run(name: str, argv: list[str]) -> int:
    assert name in _COMMANDS
    return int(import_module(f"perdure.cli.commands.{name}").main(argv))


def _terminal() -> ModuleType:
    # Imported late because `--version` and `--help` do not need it.
    return import_module("perdure.cli.terminal")


def _usage() -> str:
    groups = "".join(
        f"{title}:\n"
        + "".join(f"  {name:10}{summary}\n" for name, summary in commands.items())
        + "\n"
        for title, commands in _GROUPS.items()
    )
    return (
        f"perdure {__version__}: a durable home for coding-agent conversations\n\n"
        f"Usage: perdure COMMAND [options]\n\n{groups}{_EXAMPLES}\n"
        "`perdure COMMAND --help` shows the options of a command.\n"
        "`perdure --version` shows the version.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
