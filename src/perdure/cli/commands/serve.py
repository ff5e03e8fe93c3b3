"""`perdure serve`: the HTTP server, closed to everybody who does not know the password.

Without a configured password one is made and kept in the data directory, where our own clients
find it. `--no-auth` is for this machine only. This module loads nothing that serving does not need.
"""

import asyncio
import logging
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from perdure import __version__
from perdure.cli import log_format as logs
from perdure.cli import options, terminal
from perdure.cli.problem import Problem
from perdure.core.models import facts_source
from perdure.host import data_directory
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.data_directory import DataDirectoryError
from perdure.host.environment import Environment
from perdure.ports import DatabaseError
from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.runtime.ops.metrics import Telemetry
from perdure.schema.value import Value
from perdure.server import auth, services
from perdure.server.serve import serve
from perdure.server.settings import ServerSettings

logger = logging.getLogger(__name__)

_TELEMETRY: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"


def main(argv: list[str]) -> int:
    asked = _parse(argv)
    surroundings = options.surroundings(asked.data_dir)
    try:
        data_directory.prepare(surroundings.data_dir)
        settings = _settings(asked, surroundings)
        known = () if settings.password is None else (settings.password,)
        logs.configure(form=asked.log_format, level=asked.log_level, secrets=known)
        with _telemetry(surroundings) as telemetry:
            problem = asyncio.run(_serve(asked, surroundings, settings, telemetry))
    except (DataDirectoryError, DatabaseError, SecretFileError) as error:
        raise Problem(str(error)) from error
    if problem is not None:
        raise Problem(problem)
    return 0


class _Asked(Value, kw_only=True):
    hostname: str
    port: int
    data_dir: str | None
    auth: bool
    origins: tuple[str, ...]
    hosts: tuple[str, ...]
    local_models: bool
    trusts: bool
    permission_timeout: float | None
    log_format: str
    log_level: str


def _parse(argv: list[str]) -> _Asked:
    parser = options.parser("serve", "Serve the HTTP contract.")
    parser.add_argument("--port", type=int, default=4096, help="0 takes any (default: 4096)")
    parser.add_argument("--hostname", default="127.0.0.1", help="default: 127.0.0.1")
    parser.add_argument(
        "--no-auth", action="store_true", help="ask nobody for a password; loopback only"
    )
    parser.add_argument(
        "--cors", metavar="ORIGIN", action="append", default=[], help="a web origin that may call"
    )
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[], help="a name to answer to"
    )
    parser.add_argument("--log-format", choices=logs.FORMATS, default="text")
    parser.add_argument("--log-level", choices=logs.LEVELS, default="info")
    options.add_local_models(parser)
    options.add_trust(parser)
    options.add_permission_timeout(parser)
    given = parser.parse_args(argv)
    if not 0 <= given.port <= 65_535:
        parser.error(f"there is no port {given.port}")
    return _Asked(
        hostname=given.hostname,
        port=given.port,
        data_dir=given.data_dir,
        auth=not given.no_auth,
        origins=tuple(given.cors),
        hosts=tuple(given.allow_host),
        local_models=given.local_models,
        trusts=given.trust,
        permission_timeout=given.permission_timeout,
        log_format=given.log_format,
        log_level=given.log_level,
    )


def _telemetry(surroundings: Environment) -> AbstractContextManager[Telemetry | None]:
    """Where spans and metrics go, if the environment says so."""
    if not surroundings.variables.get(_TELEMETRY):
        return nullcontext()
    try:
        return import_module("perdure.host.telemetry").exporting(__version__)
    except ImportError:
        logger.warning("%s is set, but perdure[telemetry] is not installed", _TELEMETRY)
        return nullcontext()


def _settings(asked: _Asked, surroundings: Environment) -> ServerSettings:
    if not asked.auth and not auth.is_loopback(asked.hostname):
        raise Problem(f"--no-auth is for loopback only; {asked.hostname} is reachable by others")
    variables = surroundings.variables
    password = variables.get("OPENCODE_SERVER_PASSWORD") if asked.auth else None
    if asked.auth and not password:
        password = secrets.load_server_password(surroundings.data_dir)
    return ServerSettings(
        default_directory=os.getcwd(),
        cursor_key=secrets.load_cursor_key(surroundings.data_dir),
        host=asked.hostname,
        port=asked.port,
        username=variables.get("OPENCODE_SERVER_USERNAME") or "opencode",
        password=password,
        allowed_hosts=frozenset(asked.hosts),
        allowed_origins=frozenset(asked.origins),
    )


async def _serve(
    asked: _Asked,
    surroundings: Environment,
    settings: ServerSettings,
    telemetry: Telemetry | None,
) -> str | None:
    """Serve until stopped; what prevented it, if something did."""
    if asked.trusts or terminal.is_attended():
        # Late: a server reads no configuration until somebody asks for a Location.
        trust = import_module("perdure.cli.commands.trust")
        await trust.settle(surroundings, settings.default_directory, trusts=asked.trusts)
    runtime_settings = RuntimeSettings(
        environment=surroundings,
        data_dir=surroundings.data_dir,
        default_directory=settings.default_directory,
        local_models=asked.local_models,
        permission_timeout=asked.permission_timeout,
        installed_plugins=True,
        telemetry=telemetry,
        models_url=facts_source.source_of(surroundings.variables),
    )
    async with open_runtime(runtime_settings) as runtime:
        try:
            await serve(
                services.of(runtime),
                settings,
                ready=lambda port: _announce(asked, surroundings, settings, port),
            )
        except OSError as error:
            reason = error.strerror or str(error)
            return f"cannot listen on {asked.hostname}:{asked.port}: {reason}"
    return None


def _announce(
    asked: _Asked, surroundings: Environment, settings: ServerSettings, port: int
) -> None:
    host = f"[{asked.hostname}]" if ":" in asked.hostname else asked.hostname
    terminal.say(
        f"perdure {__version__} listening on http://{host}:{port}\n"
        f"data      {surroundings.data_dir}\n"
        f"password  {_password_place(surroundings, settings)}\n"
        f"models    {_models_place(surroundings)}\n"
    )
    sys.stdout.flush()


def _models_place(surroundings: Environment) -> str:
    url = facts_source.source_of(surroundings.variables)
    if url is None:
        return "as they came with this version"
    # Only the host: the rest of an address may hold a key.
    host = urlsplit(url).hostname
    return f"looked up at {host} when they are used; {facts_source.DISABLE}=1 stops that"


def _password_place(surroundings: Environment, settings: ServerSettings) -> str:
    if settings.password is None:
        return "none: every program on this machine may call"
    if surroundings.variables.get("OPENCODE_SERVER_PASSWORD"):
        place = "OPENCODE_SERVER_PASSWORD"
    else:
        place = os.path.join(surroundings.data_dir, secrets.PASSWORD_NAME)
    return f"in {place}, user {settings.username}"
