"""A client for a server that runs elsewhere, with the password that belongs to it.

The password in the environment goes where the user points. The one that a server made for itself
goes to this machine only: it must not be told to others because of a mistyped URL.
"""

import base64
from collections.abc import Generator
from contextlib import contextmanager
from urllib.parse import urlsplit

from perdure.cli import terminal
from perdure.cli.problem import Problem
from perdure.client import ClientError, DeclaredError, PerdureClient
from perdure.client.http_transport import is_loopback
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.environment import Environment


def client_for(url: str, surroundings: Environment) -> PerdureClient:
    _check(url)
    password = surroundings.variables.get("OPENCODE_SERVER_PASSWORD")
    if not password and is_loopback(url):
        password = _made_by_the_server(surroundings)
    if not password:
        return PerdureClient(url)
    username = surroundings.variables.get("OPENCODE_SERVER_USERNAME") or "opencode"
    credential = base64.b64encode(f"{username}:{password}".encode()).decode()
    return PerdureClient(url, headers={"authorization": f"Basic {credential}"})


@contextmanager
def explained() -> Generator[None]:
    """Failures of calls as a person reads them."""
    try:
        yield
    except ClientError as error:
        raise Problem(f"the server could not be asked ({error.reason}): {error}") from error
    except DeclaredError as error:
        if error.tag == "UnauthorizedError":
            raise Problem(
                "the server asks for a password; set OPENCODE_SERVER_PASSWORD, and"
                " OPENCODE_SERVER_USERNAME unless it is `opencode`"
            ) from error
        raise Problem(terminal.one_line(error.message)) from error


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError as error:
        raise Problem(f"{url} is not a URL: {error}") from error
    if not known:
        raise Problem(f"{url} is not the URL of a server; one looks like http://127.0.0.1:4096")


def _made_by_the_server(surroundings: Environment) -> str | None:
    try:
        return secrets.find_server_password(surroundings.data_dir)
    except SecretFileError as error:
        raise Problem(str(error)) from error
