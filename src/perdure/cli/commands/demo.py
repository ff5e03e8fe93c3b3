"""`perdure demo`: shows in 20 seconds what Perdure does, with the built-in model and real tools.

Each step is a command that a user could type, run as a process of its own. One of them is killed
with SIGKILL while it works, and the next one goes on. Everything happens in a directory that the
demo makes, with a data directory of its own, and stays there to be looked at.
"""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from perdure.cli import options, terminal
from perdure.cli.problem import FAILED_STATUS, Problem
from perdure.cli.session_source import open_source
from perdure.cli.style import Span, Style
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

_FILES: Final = {
    "cart.py": '''"""A shopping cart."""


def total(prices):
    sum = 0
    for price in prices:
        sum = sum - price
    return sum
''',
    "test_cart.py": """import time
import unittest

import cart


class CartTest(unittest.TestCase):
    def test_total(self):
        time.sleep(1.5)  # as slow as a real test
        self.assertEqual(cart.total([2, 3]), 5)
""",
    "README.md": "# A shopping cart\n\nIts test fails. Run it with: python3 -m unittest\n",
}
_BROKEN: Final = "sum - price"
_FIXED: Final = "sum + price"
_TEST: Final = "run `python3 -m unittest`"
_LOOK_PROMPT: Final = f"list the files, read cart.py, then {_TEST}"
_FIX_PROMPT: Final = f"replace `{_BROKEN}` with `{_FIXED}` in cart.py, then {_TEST}"
_PAUSE_SECONDS: Final = 2.5
_PATIENCE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "demo",
        "Show in 20 seconds what Perdure does, offline and without a key: an agent fixes a test,\n"
        "is killed while it works, goes on, and its change is undone. The model is a script; the\n"
        "runtime, the tools and the kill are real.",
        examples="perdure demo\nperdure demo --directory ./perdure-demo",
    )
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="make the small project in DIR (default: a new directory for temporary files)",
    )
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    return _Show(environment, given.directory, given.data_dir).run()


class _Stored(Value, kw_only=True):
    """What is durable at the end."""

    session_id: str
    events: int
    receipts: int
    interrupted: int
    cost: float


class _Show:
    """The steps of the demo, in order."""

    def __init__(
        self, environment: Environment, directory: str | None, data_dir: str | None
    ) -> None:
        root = Path(directory or tempfile.mkdtemp(prefix="perdure-demo-")).absolute()
        self._project = root / "project"
        self._data_dir = Path(data_dir).absolute() if data_dir is not None else root / "data"
        self._environment = replace(environment, data_dir=str(self._data_dir))

    def run(self) -> int:
        self._make_project()
        _say("1. An agent reads a small project and runs its test, which fails.")
        self._perdure("run", "-m", "demo/demo", _LOOK_PROMPT)
        _say("2. It fixes the code. In the middle of its turn the process is killed.")
        self._run_and_kill()
        _say("3. A new process goes on where the killed one stopped. No prompt is needed.")
        self._perdure("run", "--continue")
        fixed = _FIXED in self._read("cart.py")
        _say("4. The user undoes the change. The file is as it was.")
        self._perdure("undo")
        undone = _BROKEN in self._read("cart.py")
        self._tell_end(asyncio.run(self._load()))
        if not (fixed and undone):
            raise Problem(
                f"the demo did not do what it says: look at {self._project}, and report it please"
            )
        return 0

    def _make_project(self) -> None:
        try:
            self._project.mkdir(parents=True)
            for name, content in _FILES.items():
                (self._project / name).write_text(content, encoding="utf-8")
        except OSError as error:
            raise Problem(
                f"the demo needs a new directory: {self._project}: {error.strerror}"
            ) from error
        _say(f"A project with a failing test is in {self._project}")

    def _perdure(self, *arguments: str) -> None:
        """Run a command to its end, with its output on this terminal."""
        ran = self._start(*arguments).wait(_PATIENCE_SECONDS)
        if ran not in (0, FAILED_STATUS):
            raise Problem(f"the demo ends here: {_shown(arguments)} ended with status {ran}")
        _pause()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        terminal.print_spans([Span(f"$ {_shown(arguments)}\n", Style.GREEN)])
        sys.stdout.flush()
        return subprocess.Popen(
            [sys.executable, "-m", "perdure", *arguments],
            cwd=self._project,
            env=self._variables(),
            stdin=subprocess.DEVNULL,
        )

    def _variables(self) -> dict[str, str]:
        search = os.pathsep.join(
            [os.path.dirname(sys.executable), self._environment.variables.get("PATH", os.defpath)]
        )
        package = str(Path(__file__).parents[3])
        return {
            **self._environment.variables,
            "PATH": search,
            "PYTHONPATH": os.pathsep.join(
                filter(None, [package, self._environment.variables.get("PYTHONPATH")])
            ),
            "PERDURE_DATA_DIR": str(self._data_dir),
            # Bytecode of a file that is edited within the same second would be taken for current.
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _run_and_kill(self) -> None:
        """Kill the process once its log says that the second test run has begun."""
        process = self._start("run", "--continue", _FIX_PROMPT)
        try:
            asyncio.run(self._wait_for_calls("bash", 2, process))
        finally:
            process.kill()
            process.wait(_PATIENCE_SECONDS)
        terminal.print_spans(
            [
                Span(
                    f"*** kill -{signal.SIGKILL} {process.pid}: the process is dead ***\n",
                    Style.RED,
                )
            ]
        )
        _pause()

    async def _wait_for_calls(
        self, tool: str, count: int, process: subprocess.Popen[bytes]
    ) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            called = [
                event
                for event in await self._events()
                if event["type"] == "session.next.tool.called" and event["data"]["tool"] == tool
            ]
            if len(called) >= count:
                # The command is recorded before it runs; the kill comes while it does.
                await asyncio.sleep(4 * _LOOK_SECONDS)
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise Problem("the demo ends here: the agent did not run the tests")

    async def _events(self) -> list[JsonObject]:
        async with open_source(None, self._environment) as source:
            (session, *_) = await source.sessions(1)
            return [event async for event in source.events(session["id"])]

    async def _load(self) -> _Stored:
        async with open_source(None, self._environment) as source:
            (session, *_) = await source.sessions(1)
            events = [event async for event in source.events(session["id"])]
        kinds = [event["type"] for event in events]
        failed = [event for event in events if event["type"] == "session.next.tool.failed"]
        return _Stored(
            session_id=session["id"],
            events=len(events),
            receipts=kinds.count("session.next.prompt.admitted"),
            interrupted=len(failed),
            cost=session["cost"],
        )

    def _tell_end(self, stored: _Stored) -> None:
        _say("What was durable the whole time:")
        terminal.print_output(
            f"  {stored.events} events in the log of {stored.session_id}, none of them lost\n"
            f"  {stored.receipts} prompts with a receipt, each done exactly once\n"
            f"  {stored.interrupted} command was cut by the kill, recorded as such and run again\n"
            f"  ${stored.cost:.2f} spent: demo/demo is a script, not an AI\n"
        )
        _say("Type next:")
        found = _find_alias()
        alias = "" if found is None else f"  alias perdure={shlex.quote(found)}\n"
        terminal.print_output(
            f"  cd {shlex.quote(str(self._project))}\n"
            f"  export PERDURE_DATA_DIR={shlex.quote(str(self._data_dir))}\n"
            f"{alias}"
            "  perdure show                           read the whole conversation again\n"
            "  perdure redo                           take the fix back in\n"
            '  perdure run -c "run the tests"         go on with it\n'
            "  perdure auth login anthropic           work with a real model; then:\n"
            '  perdure run "explain this project"\n'
        )

    def _read(self, name: str) -> str:
        return (self._project / name).read_text(encoding="utf-8")


def _find_alias() -> str | None:
    """The way to this program, unless `perdure` is enough."""
    if shutil.which("perdure") is not None:
        return None
    called = os.path.abspath(sys.argv[0])
    return called if os.path.basename(called) == "perdure" else f"{sys.executable} -m perdure"


def _say(text: str) -> None:
    terminal.print_spans([Span(f"\n{text}\n", Style.BOLD)])
    sys.stdout.flush()


def _pause() -> None:
    """Leave a person time to read."""
    if terminal.is_output_terminal():
        time.sleep(_PAUSE_SECONDS)


def _shown(arguments: tuple[str, ...]) -> str:
    return shlex.join(["perdure", *arguments])
