"""`perdure web`: opens the web page, logged in by a ticket, and starts a server if none runs."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from perdure.cli import options, remote, terminal
from perdure.cli.commands.web import page_build
from perdure.cli.problem import Problem
from perdure.host.environment import Environment
from perdure.schema.value import Value

_PORT: Final = 4096
_START_SECONDS_MAX: Final = 30
_ANSWER_SECONDS_MAX: Final = 10
_LISTENING: Final = " listening on "


class _Arguments(Value, kw_only=True):
    url: str | None
    port: int
    opens: bool
    data_dir: str | None


def main(argv: list[str]) -> int:
    arguments = _parse(argv)
    environment = options.read_environment(arguments.data_dir)
    url = arguments.url or f"http://127.0.0.1:{arguments.port}"
    ticket = _ask_ticket(url, environment)
    if ticket is not None:
        _open(url, ticket, opens=arguments.opens)
        return 0
    if arguments.url is not None:
        raise Problem(f"no server answers at {url}; start one with `perdure serve`")
    page_build.build_if_missing(environment.variables)
    with _server(arguments) as (child, found):
        ticket = _ask_ticket(found, environment)
        if ticket is None:
            raise Problem(f"the server at {found} was started and does not answer")
        _open(found, ticket, opens=arguments.opens)
        with suppress(KeyboardInterrupt):
            return child.wait()
    return 0


def _parse(argv: list[str]) -> _Arguments:
    parser = options.make_parser(
        "web",
        "Open the web page in a browser, logged in. A server is started if none runs, and ends\n"
        "with this command.",
        examples="perdure web\nperdure web --attach http://127.0.0.1:4096 --no-open",
    )
    options.add_attach(parser)
    parser.add_argument(
        "--port", type=int, default=_PORT, help=f"the port of the server (default: {_PORT})"
    )
    parser.add_argument(
        "--no-open", action="store_true", help="print the address, and open no browser"
    )
    given = parser.parse_args(argv)
    if not 0 <= given.port <= 65_535:
        parser.error(f"--port {given.port} is not between 0 and 65535")
    return _Arguments(
        url=None if given.attach is None else given.attach.rstrip("/"),
        port=given.port,
        opens=not given.no_open,
        data_dir=given.data_dir,
    )


def _ask_ticket(url: str, environment: Environment) -> str | None:
    """A ticket of the server at `url`; None if no server is there."""
    headers = {"content-type": "application/json"}
    if (credentials := remote.find_authorization(url, environment)) is not None:
        headers["authorization"] = credentials
    request = urllib.request.Request(f"{url}/web/ticket", b"{}", headers, method="POST")
    # Not through a proxy: the ticket is for this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_ANSWER_SECONDS_MAX) as answer:
            return str(json.loads(answer.read())["ticket"])
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise Problem(
                f"the server at {url} requires another password; set OPENCODE_SERVER_PASSWORD"
            ) from error
        raise Problem(f"what answers at {url} has no web page; choose another --port") from error
    except (ValueError, KeyError) as error:
        raise Problem(f"what answers at {url} is no Perdure; choose another --port") from error
    except OSError:
        return None


@contextmanager
def _server(arguments: _Arguments) -> Generator[tuple[subprocess.Popen[str], str]]:
    """A server that ends with this command, and its address."""
    command = [sys.executable, "-m", "perdure", "serve", "--port", str(arguments.port)]
    if arguments.data_dir is not None:
        command += ["--data-dir", arguments.data_dir]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    try:
        assert child.stdout is not None
        first = child.stdout.readline()
        if _LISTENING not in first:
            raise Problem("the server could not be started; the reason stands above")
        yield child, first.partition(_LISTENING)[2].strip()
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_START_SECONDS_MAX)


def _open(url: str, ticket: str, *, opens: bool) -> None:
    address = f"{url}/#ticket={ticket}"
    if opens and webbrowser.open(address):
        terminal.print_note(f"opened {url}")
        return
    terminal.print_output(f"{address}\n")
    terminal.print_note("the address works once, for a minute")
    sys.stdout.flush()
