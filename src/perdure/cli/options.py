"""Options that several commands share, and what they mean."""

import argparse
import os

from msgspec.structs import replace

from perdure.core import limits
from perdure.host import environment
from perdure.host.environment import Environment


def parser(command: str, description: str) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog=f"perdure {command}", description=description, allow_abbrev=False
    )
    made.add_argument(
        "--data-dir",
        metavar="DIR",
        help="where Perdure keeps its data (default: PERDURE_DATA_DIR or the user's own)",
    )
    return made


def add_attach(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--attach", metavar="URL", help="ask the server at URL instead of opening the data here"
    )


def add_local_models(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--local-models",
        action="store_true",
        help="also use model servers found running on this machine (Ollama, LM Studio, ...)",
    )


def add_permission_timeout(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--permission-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="wait that long for somebody to answer a permission or a question, then refuse",
    )


def add_trust(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--trust",
        action="store_true",
        help="let this project's configuration start programs and use keys; see perdure trust",
    )


def surroundings(data_dir: str | None) -> Environment:
    """The environment of this process, with `--data-dir` in force."""
    found = environment.from_process()
    return found if data_dir is None else replace(found, data_dir=os.path.abspath(data_dir))


def _seconds(text: str) -> float:
    seconds = float(text)
    # Written so that what is not a number is refused too.
    if not 0 < seconds <= limits.PERMISSION_TIMEOUT_SECONDS_MAX:
        raise ValueError(text)
    return seconds
