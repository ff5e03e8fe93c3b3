"""`perdure serve`: starts the HTTP server, protected by a password.

Without a configured password one is generated in the data directory, where `--attach` finds it.
`--no-auth` is refused for addresses that other machines can reach. To start quickly, this module
imports only what every server needs.
"""

import asyncio
import logging
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import chain
from typing import Final
from urllib.parse import urlsplit

from perdure.cli import options, terminal
from perdure.cli.commands.web import page_build
from perdure.cli.logs import log_format as logs
from perdure.cli.logs.request_log import RequestLog
from perdure.cli.problem import Problem
from perdure.core import limits
from perdure.core.models import facts_source
from perdure.host import data_directory
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.host.loop_watchdog import LoopWatchdog
from perdure.net import loopback
from perdure.ports import DatabaseError
from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.runtime.ops.metrics import Telemetry
from perdure.schema.approval.permission import Headless
from perdure.schema.value import Value
from perdure.server.serve import serve
from perdure.server.settings import WEB_DIRECTORY, ServerSettings
from perdure.version import __version__

logger = logging.getLogger(__name__)

_TELEMETRY: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
_WEB_DIRECTORY: Final = "PERDURE_WEB_DIRECTORY"
"""Names a web page that was built elsewhere."""
_OPENCODE: Final = "opencode"
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+(:\*)?")
OPENCODE_ORIGINS: Final = (
    "oc://renderer",
    "tauri://localhost",
    "https://app.opencode.ai",
    "http://localhost:*",
)
"""The pages of OpenCode's desktop and web app."""


def main(argv: list[str]) -> int:
    arguments = _parse(argv)
    environment = options.read_environment(arguments.data_dir)
    try:
        data_directory.prepare_directory(environment.data_dir)
        request_log = RequestLog(form=arguments.log_format, level=arguments.log_level)
        settings = _settings(arguments, environment, request_log)
        known = () if settings.password is None else (settings.password,)
        logs.configure(form=arguments.log_format, level=arguments.log_level, secrets=known)
        watchdog = LoopWatchdog()
        with (
            _telemetry(environment) as telemetry,
            asyncio.Runner(loop_factory=watchdog.make_loop) as runner,
        ):
            problem = runner.run(
                _serve(arguments, environment, settings, telemetry=telemetry, watchdog=watchdog)
            )
        request_log.flush()
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error
    if problem is not None:
        raise Problem(problem)
    return 0


class _Arguments(Value, kw_only=True):
    hostname: str
    port: int
    data_dir: str | None
    auth: bool
    origins: tuple[str, ...]
    hosts: tuple[str, ...]
    v1: bool
    opencode: bool
    """Whether the server is started as `opencode serve` is."""
    open_metrics: bool
    local_models: bool
    trusts: bool
    permission_timeout: float | None
    unattended: Headless
    log_format: str
    log_level: str


def _parse(argv: list[str]) -> _Arguments:
    parser = options.make_parser(
        "serve",
        "Start the HTTP server. It prints its address and where the password is.",
        examples="perdure serve\nperdure serve --port 0 --no-auth",
    )
    parser.add_argument(
        "--port", type=int, default=4096, help="listen on this port, 0 for any (default: 4096)"
    )
    parser.add_argument(
        "--hostname", default="127.0.0.1", help="listen on this address (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--no-auth", action="store_true", help="require no password; for loopback addresses only"
    )
    _add_senders(parser)
    parser.add_argument(
        "--no-v1", action="store_true", help="serve the V2 contract alone, without the V1 routes"
    )
    parser.add_argument(
        "--opencode",
        action="store_true",
        help="behave as `opencode serve` for programs that start it: print its line, and without"
        " OPENCODE_SERVER_PASSWORD require no password on loopback addresses",
    )
    parser.add_argument(
        "--open-metrics", action="store_true", help="answer GET /metrics without the password"
    )
    _add_log(parser)
    options.add_local_models(parser)
    options.add_trust(parser)
    options.add_permission_timeout(parser, default=limits.PERMISSION_WAIT_SECONDS)
    options.add_unattended(parser, when="while no client listens to events", default="wait")
    given = parser.parse_args(argv)
    if not 0 <= given.port <= 65_535:
        parser.error(f"--port {given.port} is not between 0 and 65535")
    return _Arguments(
        hostname=given.hostname,
        port=given.port,
        data_dir=given.data_dir,
        auth=not given.no_auth,
        origins=tuple(dict.fromkeys(chain.from_iterable(given.cors))),
        hosts=tuple(given.allow_host),
        v1=not given.no_v1,
        opencode=given.opencode or os.path.basename(sys.argv[0]) == _OPENCODE,
        open_metrics=given.open_metrics,
        local_models=given.local_models,
        trusts=given.trust,
        permission_timeout=given.permission_timeout,
        unattended=given.unattended,
        log_format=given.log_format,
        log_level=given.log_level,
    )


def _add_log(parser: ArgumentParser) -> None:
    parser.add_argument("--log-format", choices=logs.FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--log-level",
        choices=logs.LEVELS,
        type=_read_level,
        default="info",
        help="default: info",
    )


def _add_senders(parser: ArgumentParser) -> None:
    """The pages and the names of this server that requests are accepted from and for."""
    parser.add_argument(
        "--cors",
        metavar="ORIGIN",
        type=_read_origins,
        action="append",
        default=[],
        help="let web pages of ORIGIN call, such as http://localhost:3000 (port * for any);"
        " `opencode` stands for OpenCode's desktop and web app; may be repeated",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="accept requests with NAME in the Host header; may be repeated",
    )


def _read_origins(given: str) -> tuple[str, ...]:
    if given == _OPENCODE:
        return OPENCODE_ORIGINS
    if not _ORIGIN.fullmatch(given):
        raise ArgumentTypeError(f"{given} is no origin; an example is http://localhost:3000")
    return (given,)


def _read_level(given: str) -> str:
    """A level in the words of Python or of OpenCode, which says `WARN`."""
    return {"warn": "warning"}.get(given.lower(), given.lower())


def _telemetry(environment: Environment) -> AbstractContextManager[Telemetry | None]:
    """Export spans and metrics if OTEL_EXPORTER_OTLP_ENDPOINT is set."""
    if not environment.variables.get(_TELEMETRY):
        return nullcontext()
    try:
        return import_module("perdure.host.telemetry").exporting(__version__)
    except ImportError:
        logger.warning(
            "%s is set, but no telemetry is sent: install perdure[telemetry]", _TELEMETRY
        )
        return nullcontext()


def _settings(
    arguments: _Arguments, environment: Environment, request_log: RequestLog
) -> ServerSettings:
    if not arguments.auth and not loopback.is_loopback_name(arguments.hostname):
        raise Problem(
            f"--no-auth is refused: other machines can reach {arguments.hostname};"
            " leave it out, or use --hostname 127.0.0.1"
        )
    variables = environment.variables
    password = variables.get("OPENCODE_SERVER_PASSWORD") if arguments.auth else None
    # A program that starts `opencode serve` has no way to learn a password that is generated.
    is_open = arguments.opencode and loopback.is_loopback_name(arguments.hostname)
    if arguments.auth and not password and not is_open:
        password = secrets.load_server_password(environment.data_dir)
    return ServerSettings(
        default_directory=os.getcwd(),
        cursor_key=secrets.load_cursor_key(environment.data_dir),
        host=arguments.hostname,
        port=arguments.port,
        username=variables.get("OPENCODE_SERVER_USERNAME") or "opencode",
        password=password,
        allowed_hosts=frozenset(arguments.hosts),
        allowed_origins=frozenset(arguments.origins),
        v1=arguments.v1,
        open_metrics=arguments.open_metrics,
        web_directory=variables.get(_WEB_DIRECTORY) or WEB_DIRECTORY,
        observe_request=request_log,
    )


async def _serve(
    arguments: _Arguments,
    environment: Environment,
    settings: ServerSettings,
    *,
    telemetry: Telemetry | None,
    watchdog: LoopWatchdog,
) -> str | None:
    """Serve until stopped; return why the server could not listen, or None."""
    if arguments.trusts or terminal.is_interactive():
        # Imported late: a server reads no configuration until a client uses a Location.
        trust = import_module("perdure.cli.commands.trust")
        await trust.decide(environment, settings.default_directory, trusts=arguments.trusts)
    if terminal.is_interactive():
        page_build.build_if_missing(environment.variables)
    runtime_settings = RuntimeSettings(
        environment=environment,
        data_dir=environment.data_dir,
        default_directory=settings.default_directory,
        local_models=arguments.local_models,
        permission_timeout=arguments.permission_timeout,
        unattended=arguments.unattended,
        installed_plugins=True,
        telemetry=telemetry,
        grace_seconds=limits.SUSPEND_SECONDS_MAX,
        watchdog=watchdog,
        models_url=facts_source.source_of(environment.variables),
    )
    async with open_runtime(runtime_settings) as runtime:
        try:
            await serve(
                runtime,
                settings,
                ready=lambda port: _announce(arguments, environment, settings, port),
            )
        except OSError as error:
            reason = error.strerror or str(error)
            return (
                f"cannot listen on {arguments.hostname}:{arguments.port}: {reason}; choose another"
                " --port or --hostname"
            )
    return None


def _announce(
    arguments: _Arguments, environment: Environment, settings: ServerSettings, port: int
) -> None:
    host = f"[{arguments.hostname}]" if ":" in arguments.hostname else arguments.hostname
    terminal.print_output(
        f"perdure {__version__} listening on http://{host}:{port}\n"
        f"data      {environment.data_dir}\n"
        f"password  {_describe_password(environment, settings)}\n"
        f"models    {_describe_models(environment)}\n"
        + (f"opencode server listening on http://{host}:{port}\n" if arguments.opencode else "")
    )
    sys.stdout.flush()


def _describe_models(environment: Environment) -> str:
    url = facts_source.source_of(environment.variables)
    if url is None:
        return "facts as bundled with this version"
    # Only the host is printed because the rest of the URL may hold a key.
    host = urlsplit(url).hostname
    return f"facts are fetched from {host} when used; {facts_source.DISABLE}=1 turns that off"


def _describe_password(environment: Environment, settings: ServerSettings) -> str:
    if settings.password is None:
        return "none: every program on this machine can use this server"
    if environment.variables.get("OPENCODE_SERVER_PASSWORD"):
        source = "OPENCODE_SERVER_PASSWORD"
    else:
        source = os.path.join(environment.data_dir, secrets.PASSWORD_NAME)
    return f"in {source}, user {settings.username}"
