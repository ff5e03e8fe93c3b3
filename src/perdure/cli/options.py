"""Command-line options that several commands share."""

import argparse
import os

from msgspec.structs import replace

from perdure.core import limits
from perdure.host import environment
from perdure.host.environment import Environment
from perdure.schema.approval.permission import Headless


def make_parser(command: str, description: str, *, examples: str = "") -> argparse.ArgumentParser:
    """Make the parser of one command. `examples` holds one command line on each line."""
    lines = "".join(f"  {line}\n" for line in examples.splitlines())
    parser = argparse.ArgumentParser(
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


def add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "session", metavar="SESSION", help="id of the Session; `perdure sessions` lists them"
    )


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="print text for people or JSON for programs (default: text)",
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


def add_unattended(parser: argparse.ArgumentParser, *, help: str, default: Headless) -> None:
    parser.add_argument(
        "--unattended",
        choices=("wait", "deny", "fail"),
        default=default,
        help=f"{help}: wait for an answer, deny and let the model go on, or fail the run"
        f" (default: {default})",
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
