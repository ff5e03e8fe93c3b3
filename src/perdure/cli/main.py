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

from perdure.cli import command_table
from perdure.cli.problem import FAILED_STATUS, INTERRUPTED_STATUS, USAGE_STATUS, Problem
from perdure.version import __version__

_COLLECT_AFTER_OBJECTS: Final = 200_000
"""More than a plain run makes: one collection of all modules costs 12 ms."""
_EXAMPLES: Final = """\
Examples:
  perdure demo                                      (offline, needs no key)
  perdure auth login anthropic
  perdure run "explain the failing test"
  perdure run --continue "now fix it"
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
        case ["--help" | "-h" | "help", name, *_] if command_table.find_module(name) is not None:
            return _run_command(name, ["--help"])
        case ["--help" | "-h" | "help", *_]:
            sys.stdout.write(_usage())
            return 0
        case [name, *rest] if command_table.find_module(name) is not None:
            return _run_command(name, rest)
        case [name, *_]:
            return _refuse(name)
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
        _terminal().print_problem(str(problem))
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
    module = command_table.find_module(name)
    assert module is not None
    return int(import_module(module).main(argv))


def _refuse(name: str) -> int:
    # Imported late: only a mistake needs it.
    close = import_module("perdure.cli.suggestion").did_you_mean(name, command_table.list_names())
    _terminal().print_note(
        f"perdure: there is no command {name!r}{close or ';'} `perdure --help` lists the commands\n"
    )
    return USAGE_STATUS


def _terminal() -> ModuleType:
    # Imported late because `--version` and `--help` do not need it.
    return import_module("perdure.cli.terminal")


def _usage() -> str:
    groups = "".join(
        f"{title}:\n"
        + "".join(f"  {name:12}{summary}\n" for name, summary in commands.items())
        + "\n"
        for title, commands in command_table.GROUPS.items()
    )
    return (
        f"perdure {__version__}: a durable home for coding-agent conversations\n\n"
        f"Usage: perdure COMMAND [options]\n\n{groups}{_EXAMPLES}\n"
        "`perdure COMMAND --help` explains a command and its options.\n"
        "`perdure --version` shows the version.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
