"""Makes the client for a server at a URL, with its password.

The password in OPENCODE_SERVER_PASSWORD is sent to any URL that the user names. The password that
a server generated in the data directory is sent to loopback addresses only, so that a mistyped URL
does not disclose it.
"""

import base64
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from perdure.cli import terminal
from perdure.cli.problem import Problem
from perdure.client import ClientError, DeclaredError, WireClient
from perdure.host.credentials import secrets
from perdure.host.credentials.secrets import SecretFileError
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url

if TYPE_CHECKING:
    from perdure.client.client import Client


def make_client(url: str, environment: Environment) -> WireClient:
    """Make the client for the server at `url`; raise Problem if that is not an HTTP URL."""
    return WireClient(url, headers=_headers(url, environment))


def make_typed_client(url: str, environment: Environment) -> "Client":
    """The same with decoded values."""
    # Imported late: most commands show plain JSON.
    from perdure.client.client import Client

    return Client(url, headers=_headers(url, environment))


def _headers(url: str, environment: Environment) -> dict[str, str] | None:
    authorization = find_authorization(url, environment)
    return None if authorization is None else {"authorization": authorization}


def find_authorization(url: str, environment: Environment) -> str | None:
    """The header with the password for the server at `url`, if one is known."""
    _check_url(url)
    password = environment.variables.get("OPENCODE_SERVER_PASSWORD")
    if not password and is_loopback_url(url):
        password = _read_generated_password(environment)
    if not password:
        return None
    username = environment.variables.get("OPENCODE_SERVER_USERNAME") or "opencode"
    return f"Basic {base64.b64encode(f'{username}:{password}'.encode()).decode()}"


@contextmanager
def errors_as_problems() -> Generator[None]:
    """Turn errors of client calls into Problems with a text for the user."""
    try:
        yield
    except ClientError as error:
        raise Problem(f"the request to the server failed ({error.reason}): {error}") from error
    except DeclaredError as error:
        if error.tag == "UnauthorizedError":
            raise Problem(
                "the server requires a password; set OPENCODE_SERVER_PASSWORD, and"
                " OPENCODE_SERVER_USERNAME if the user name is not `opencode`"
            ) from error
        raise Problem(terminal.one_line(error.message)) from error


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError as error:
        raise Problem(
            f"--attach {url} is not a URL: {error}; use one like http://127.0.0.1:4096"
        ) from error
    if not is_http:
        raise Problem(
            f"--attach {url} is not the URL of a server; use one like http://127.0.0.1:4096"
        )


def _read_generated_password(environment: Environment) -> str | None:
    try:
        return secrets.find_server_password(environment.data_dir)
    except SecretFileError as error:
        raise Problem(str(error)) from error
