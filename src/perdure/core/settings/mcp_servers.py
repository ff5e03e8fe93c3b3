"""MCP servers: the programs and addresses that the documents of a Location name under `mcp`.

Later documents complete and override the entries of earlier ones, field by field. A server that a
project's document has a part in is the project's: it needs a person's trust and runs in the
sandbox. One of the user's own documents runs as the user configured it. Nothing is started here.

Invariant: merging never fails; a server that cannot be used is left out and reported.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import UNSET, field

from perdure.core import limits
from perdure.core.config_file.entries import merge_entries
from perdure.core.config_file.mcp_entries import (
    McpOauthEntry,
    McpServerEntry,
    McpTimeout,
    McpTimeoutEntry,
)
from perdure.core.config_file.problem import Problem, format_address
from perdure.core.settings.document import Document
from perdure.schema import codec
from perdure.schema.value import Confidential, Value

_MILLIS: Final = 1000
_NUL: Final = "\0"


class McpProgram(Confidential, kw_only=True):
    """A local server: a program that is spoken with over its input and output."""

    command: tuple[str, ...]
    directory: str | None = None
    """As written; relative to the Location."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


class McpAddress(Confidential, kw_only=True):
    """A remote server: an address that is spoken with over HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    oauth: McpOauthEntry | None = field(default_factory=McpOauthEntry)
    """How to log in; None if that is switched off."""


class McpServer(Confidential, kw_only=True):
    name: str
    target: McpProgram | McpAddress
    disabled: bool = False
    of_project: bool = False
    """Whether a document of the project has a part in it."""
    startup_seconds: float = limits.MCP_STARTUP_SECONDS
    request_seconds: float = limits.MCP_REQUEST_SECONDS

    @property
    def digest(self) -> str:
        """Identifies what is started or connected to, in every process. Holds no secret value."""
        match self.target:
            case McpProgram() as program:
                facts = [*program.command, program.directory, sorted(program.environment)]
            case McpAddress() as address:
                facts = [address.url, sorted(address.headers)]
        return hashlib.sha256(codec.encode([self.name, *facts])).hexdigest()


class McpSettings(Confidential, kw_only=True):
    servers: tuple[McpServer, ...] = ()
    """Sorted by name; also those that are disabled."""
    untrusted: tuple[str, ...] = ()
    """Names of servers that a project asks for and a person has not granted."""
    search_above: int = limits.MCP_TOOLS_OFFERED_MAX
    """With more tools than this, they are offered by search."""
    problems: tuple[Problem, ...] = ()


def configured_servers(documents: Sequence[Document]) -> McpSettings:
    """The servers of the documents, given in order of increasing precedence."""
    parts: dict[str, _Parts] = {}
    timeouts: list[McpTimeout] = []
    for document in documents:
        if not document.is_trusted:
            continue
        if document.mcp.timeout is not UNSET:
            timeouts.append(document.mcp.timeout)
        for name, entry in (document.mcp.servers or {}).items():
            parts.setdefault(name, _Parts()).add(document, entry)
    servers: list[McpServer] = []
    problems: list[Problem] = []
    for name in sorted(parts):
        made = _make_server(name, parts[name], timeouts)
        if isinstance(made, McpServer):
            servers.append(made)
        elif made is not None:
            problems.append(made)
    for extra in servers[limits.MCP_SERVERS_MAX :]:
        reason = f"is ignored: there are more than {limits.MCP_SERVERS_MAX} servers"
        problems.append(_problem(extra.name, parts[extra.name], reason))
    searches = [document.mcp_search for document in documents if document.mcp_search is not None]
    return McpSettings(
        servers=tuple(servers[: limits.MCP_SERVERS_MAX]),
        untrusted=_untrusted(documents, parts),
        search_above=searches[-1] if searches else limits.MCP_TOOLS_OFFERED_MAX,
        problems=tuple(problems),
    )


def make_server(
    name: str,
    entry: McpServerEntry,
    *,
    of_project: bool = False,
    timeouts: Iterable[McpTimeout] = (),
) -> McpServer | str:
    """The server of an entry, or why it cannot be used, in words that repeat no value."""
    reason = _name_problem(name)
    target = _target(entry)
    if reason is not None or isinstance(target, str):
        return reason or str(target)
    times = _times((*timeouts, *(() if entry.timeout is UNSET else (entry.timeout,))))
    return McpServer(
        name=name,
        target=target,
        disabled=entry.disabled is True,
        of_project=of_project,
        startup_seconds=times.startup,
        request_seconds=times.request,
    )


class _Parts:
    """What the documents say about one server, merged."""

    def __init__(self) -> None:
        self.entry = McpServerEntry()
        self.paths: list[str] = []
        self.of_project = False

    def add(self, document: Document, entry: McpServerEntry) -> None:
        another = entry.type is not UNSET and self.entry.type not in (UNSET, entry.type)
        moved = entry.command is not UNSET or entry.url is not UNSET
        if another or (moved and document.trust == "project" and not self.of_project):
            # What the user says to a server is not for another one under its name.
            self.entry = McpServerEntry(disabled=self.entry.disabled)
            self.of_project = False
        self.entry = merge_entries(self.entry, entry)
        self.paths.append(document.path)
        # Switching a server of the user off and on again changes nothing of what runs.
        says_more = entry != McpServerEntry(disabled=entry.disabled)
        self.of_project = self.of_project or (document.trust == "project" and says_more)


def _make_server(
    name: str, parts: _Parts, timeouts: Iterable[McpTimeout]
) -> McpServer | Problem | None:
    entry = parts.entry
    if entry == McpServerEntry(disabled=entry.disabled):
        # It switches a server that no document names here.
        return None
    made = make_server(name, entry, of_project=parts.of_project, timeouts=timeouts)
    return _problem(name, parts, f"is ignored: {made}") if isinstance(made, str) else made


def _target(entry: McpServerEntry) -> McpProgram | McpAddress | str:
    """What the entry names, or what is wrong with it, in words."""
    if entry.type == "local":
        return _program(entry)
    if entry.type == "remote":
        return _address(entry)
    return 'it has no `type`; write "local" for a program or "remote" for an address'


def _program(entry: McpServerEntry) -> McpProgram | str:
    if not entry.command or not entry.command[0]:
        return "it has no `command`; write the program and its arguments as a list"
    environment = entry.environment or {}
    if any(not name or "=" in name for name in environment):
        return "a name in `environment` is empty or holds an equals sign"
    directory = entry.cwd or None
    words = (*entry.command, directory or "", *environment, *environment.values())
    if any(map(_cannot_be_passed, words)):
        return "a word of it holds a NUL character or half a character"
    return McpProgram(command=entry.command, directory=directory, environment=environment)


def _address(entry: McpServerEntry) -> McpAddress | str:
    url = entry.url or ""
    parts = _split_url(url)
    if parts is None:
        return "its `url` is not an address that begins with http:// or https://"
    if parts.username is not None or parts.password is not None:
        return "its `url` holds a user name or a password; write them into `headers`"
    headers = entry.headers or {}
    if not all(map(_is_header, headers.items())):
        return "a name or a value in `headers` cannot be sent"
    oauth = McpOauthEntry() if entry.oauth is UNSET else entry.oauth or None
    return McpAddress(url=url, headers=headers, oauth=oauth)


def _split_url(url: str) -> SplitResult | None:
    """The parts of an address; None if it is none."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if known else None


def _is_header(header: tuple[str, str]) -> bool:
    name, value = header
    token = bool(name) and all(each.isalnum() or each in "!#$%&'*+-.^_`|~" for each in name)
    return token and name.isascii() and value.isascii() and (value.isprintable() or not value)


def _cannot_be_passed(word: str) -> bool:
    """Whether a program cannot be given this word."""
    if _NUL in word:
        return True
    try:
        word.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return True
    return False


def _name_problem(name: str) -> str | None:
    if not name or len(name) > limits.MCP_NAME_CHARS_MAX or not name.isprintable():
        return f"the name of a server has 1 to {limits.MCP_NAME_CHARS_MAX} printable characters"
    return None


class _Times(Value):
    startup: float
    request: float


def _times(given: Iterable[McpTimeout]) -> _Times:
    startup, request = limits.MCP_STARTUP_SECONDS, limits.MCP_REQUEST_SECONDS
    for timeout in given:
        if isinstance(timeout, McpTimeoutEntry):
            startup = startup if timeout.startup is UNSET else timeout.startup / _MILLIS
            request = request if timeout.request is UNSET else timeout.request / _MILLIS
        else:
            startup = request = timeout / _MILLIS
    longest = limits.MCP_TIMEOUT_SECONDS_MAX
    return _Times(min(startup, longest), min(request, longest))


def _untrusted(documents: Iterable[Document], known: Mapping[str, _Parts]) -> tuple[str, ...]:
    asked = {
        name
        for document in documents
        if not document.is_trusted
        for name, entry in (document.mcp.servers or {}).items()
        if entry != McpServerEntry(disabled=entry.disabled)
    }
    return tuple(sorted(asked - known.keys()))[: limits.MCP_SERVERS_MAX]


def _problem(name: str, parts: _Parts, message: str) -> Problem:
    at = ("mcp", "servers", name)
    return Problem(parts.paths[-1], f"`{format_address(at)}` {message}", at=at)
