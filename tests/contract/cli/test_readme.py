"""README.md from top to bottom, in an empty home and a fresh environment of the built wheel.

Every command of its shell blocks is run in order, and does what the text says. A command that this
test does not know fails it.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.skipping import cannot_run
from tests.tidy.source_tree import ROOT

COMMAND_SECONDS_MAX: Final = 60
BLOCK: Final = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMENT: Final = re.compile(r"\s{2,}#.*$", re.MULTILINE)
PASSED_ON: Final = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy", "UV_")


class Walk:
    """A new user's machine: an empty home, an empty project, and what was installed so far."""

    def __init__(self, root: Path) -> None:
        self.venv = root / "venv"
        self.home, self.project, self.wheels = root / "home", root / "project", root / "wheels"
        temporary = root / "tmp"
        for folder in (self.home, self.project, self.wheels, temporary):
            folder.mkdir()
        self.port = _free_port()
        self.session = ""
        self.server: subprocess.Popen[bytes] | None = None
        self.variables = {
            "HOME": str(self.home),
            "PATH": f"{self.venv / 'bin'}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TMPDIR": str(temporary),
        }

    def run(self, command: str, input: str | None = None) -> str:
        """Run a command line as a shell would; what it printed."""
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=self.project,
            env=self.variables,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            check=False,
        )
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        assert "Traceback" not in ran.stderr
        return ran.stdout + ran.stderr

    def close(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(COMMAND_SECONDS_MAX)


def install(walk: Walk, _: str) -> None:
    """Install the wheel of this checkout where the text names the package of the index."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(walk.wheels), versions=["standard"])
    subprocess.run([sys.executable, "-m", "venv", str(walk.venv)], check=True)
    machine = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)}
    pip = [str(walk.venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    lock = ["--require-hashes", "--requirement", str(ROOT / "requirements-run.lock")]
    for arguments in (lock, ["--no-deps", wheel]):
        ran = subprocess.run(
            [*pip, *arguments],
            env={**walk.variables, **machine},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            cannot_run(f"the packages cannot be installed: {ran.stderr[-500:]}")


def tells(*texts: str) -> Callable[[Walk, str], None]:
    """Run the command; it prints these texts."""

    def check(walk: Walk, command: str) -> None:
        told = walk.run(command)
        assert [text for text in texts if text not in told] == [], told

    return check


def log_in(walk: Walk, command: str) -> None:
    assert "sk-" not in walk.run(command, input="sk-test-0000000000\n")


def export(walk: Walk, command: str) -> None:
    walk.run(command)
    exported = json.loads((walk.project / "session.json").read_text(encoding="utf-8"))
    assert {"session", "messages", "events"} <= exported.keys()
    assert "is imported" in walk.run("perdure import --data-dir elsewhere session.json")


def serve(walk: Walk, command: str) -> None:
    # Without the stored key no model of a provider is asked.
    walk.run("perdure auth logout openai")
    walk.server = subprocess.Popen(
        command.split(),
        cwd=walk.project,
        env=walk.variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + COMMAND_SECONDS_MAX
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", walk.port)) == 0:
                return
        assert walk.server.poll() is None
    pytest.fail("the server does not listen")


def create(walk: Walk, command: str) -> None:
    walk.session = json.loads(walk.run(f"{command} -sS"))["data"]["id"]


def listen(walk: Walk, command: str) -> None:
    told = subprocess.run(
        ["sh", "-c", f"{command} -sS --max-time 2"],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    ).stdout
    assert "session.next.prompt.admitted" in told
    assert "hello" in told


STEPS: Final[dict[str, Callable[[Walk, str], None]]] = {
    r"pip install perdure": install,
    r"perdure demo": tells("the process is dead", "restored cart.py", "events in the log"),
    r"perdure run -m demo/demo .*": tells("notes.txt was written", "build · demo/demo"),
    r"perdure run --continue .*": tells("Written by the demo model."),
    r"echo .* \| perdure run -c": tells("notes.txt"),
    r"perdure show": tells("> write notes.txt", "turns · "),
    r"perdure diff": tells("+Written by the demo model."),
    r"perdure undo": tells("undone: find the word demo"),
    r"perdure redo": tells("restored: find the word demo"),
    r"perdure sessions": tells("ses_"),
    r"perdure search notes": tells("ses_", "notes"),
    r"perdure export last > session.json": export,
    r"perdure auth login openai": log_in,
    r"perdure models openai": tells("openai/gpt"),
    r"perdure agents": tells("build", "explore"),
    r"perdure doctor": tells("database"),
    r"perdure --help": tells("Everyday:", "demo"),
    r"perdure serve --port \d+ --no-auth": serve,
    r"curl -X POST localhost:\d+/api/session -H .*": create,
    r"curl -X POST localhost:\d+/api/session/ses_\w+/prompt .*": tells("admittedSeq"),
    r"curl -N localhost:\d+/api/session/ses_\w+/event": listen,
}


@pytest.mark.timeout(300)
def test_every_command_of_the_readme_does_what_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The page has tests of its own, and takes a while to build.
    monkeypatch.setenv("PERDURE_WITHOUT_PAGE", "1")
    walk = Walk(tmp_path)
    walked: list[str] = []
    try:
        for language, block in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
            if language == "python":
                (walk.project / "example.py").write_text(block, encoding="utf-8")
                assert "example.py" in walk.run("python example.py")
                (walk.project / "example.py").unlink()
                continue
            for line in COMMENT.sub("", block).replace("\\\n", " ").splitlines():
                command = line.replace("4096", str(walk.port)).replace("ses_...", walk.session)
                (step,) = [each for each in STEPS if re.fullmatch(each, command)]
                STEPS[step](walk, command)
                walked.append(step)
    finally:
        walk.close()
    assert walked == list(STEPS)


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
