"""Adds an MCP server to the user's own configuration file.

A file with comments is not rewritten, because they would be lost: the user is shown what to add.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from perdure.cli.problem import Problem
from perdure.core.settings import document as config_document
from perdure.core.settings import mcp_servers
from perdure.core.text import jsonc
from perdure.schema.codec import JsonObject, JsonValue

_NAMES: Final = ("opencode.jsonc", "opencode.json")


def make_entry(
    *, url: str | None, headers: Sequence[str], variables: Sequence[str], command: Sequence[str]
) -> JsonObject:
    """The entry of a server. Raises Problem if the arguments do not describe one."""
    if (url is None) == (not command):
        raise Problem("give either --url URL, or -- and the command of the server")
    if url is not None:
        if variables:
            raise Problem("--env is for a program; a remote server takes --header")
        given = dict(_pair(header, ":", "--header") for header in headers)
        return {"type": "remote", "url": url, **({"headers": given} if given else {})}
    if headers:
        raise Problem("--header is for a remote server; a program takes --env")
    given = dict(_pair(variable, "=", "--env") for variable in variables)
    return {
        "type": "local",
        "command": list(command),
        **({"environment": given} if given else {}),
    }


def add_server(config_dir: str, name: str, entry: JsonObject) -> str:
    """Write the server into the user's configuration; returns the path. Raises Problem."""
    path = _find_file(config_dir)
    document = _read(path, name, entry)
    section: JsonValue = document.setdefault("mcp", {})
    if not jsonc.is_object(section):
        raise Problem(f"`mcp` in {path} is not an object; correct it first")
    current: JsonValue = section.get("servers")
    servers = current if jsonc.is_object(current) and "type" not in current else section
    if name in servers:
        raise Problem(f"{path} has a server {name!r} already; remove it there first")
    servers[name] = entry
    _check(path, document, name)
    try:
        os.makedirs(config_dir, mode=0o700, exist_ok=True)
        _replace(os.path.realpath(path), (json.dumps(document, indent=2) + "\n").encode())
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror}") from error
    return path


def _find_file(config_dir: str) -> str:
    paths = [os.path.join(config_dir, name) for name in _NAMES]
    return next(filter(os.path.exists, paths), paths[-1])


def _read(path: str, name: str, entry: JsonObject) -> JsonObject:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}") from error
    try:
        value = json.loads(data)
    except ValueError as error:
        added = json.dumps({"mcp": {name: entry}}, indent=2)
        raise Problem(
            f"{path} has comments, or is not valid JSON, and is left alone; add this to it:\n"
            f"{added}"
        ) from error
    if not jsonc.is_object(value):
        raise Problem(f"{path} does not hold an object; correct it first")
    return value


def _replace(path: str, data: bytes) -> None:
    """Write the file as a whole, or leave it as it was."""
    draft = f"{path}.{os.getpid()}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise


def _check(path: str, document: JsonObject, name: str) -> None:
    """Refuse a server that would be left out when the configuration is read."""
    read = config_document.read(path, "user", document)
    found = mcp_servers.configured_servers((read,))
    about = [
        problem.message
        for problem in (*read.problems, *found.problems)
        if problem.at[:1] == ("mcp",) and name in problem.at
    ]
    if about:
        raise Problem(f"the server cannot be added: {about[0]}")


def _pair(text: str, separator: str, option: str) -> tuple[str, str]:
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise Problem(f"{option} {text!r} is not written NAME{separator}VALUE")
    return name.strip(), value.strip() if separator == ":" else value
