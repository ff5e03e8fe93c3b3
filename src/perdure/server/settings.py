"""The settings of a server, as plain values. The program that starts it decides them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from perdure.core import limits
from perdure.schema.value import Confidential, Value

WEB_DIRECTORY: Final = str(Path(__file__).parents[1] / "data" / "web")
"""Where `make web` and the wheel put the web page."""


class HttpLimits(Value, kw_only=True):
    """Limits on connections and on what one of them may cost."""

    connections_max: int = limits.CONNECTIONS_MAX
    pipelined_max: int = limits.PIPELINED_REQUESTS_MAX
    head_bytes_max: int = limits.REQUEST_HEAD_BYTES_MAX
    body_window_bytes: int = limits.REQUEST_BODY_WINDOW_BYTES
    first_request_seconds_max: float = limits.FIRST_REQUEST_SECONDS_MAX
    read_seconds_max: float = limits.REQUEST_READ_SECONDS_MAX
    keep_alive_seconds_max: float = limits.KEEP_ALIVE_SECONDS_MAX
    unsent_bytes_max: int = limits.RESPONSE_UNSENT_BYTES_MAX
    stall_seconds_max: float = limits.RESPONSE_STALL_SECONDS_MAX
    linger_seconds_max: float = limits.LINGER_SECONDS_MAX
    shutdown_seconds_max: float = limits.SHUTDOWN_SECONDS_MAX


ObserveRequest = Callable[[str, bytes, int, float], None]
"""Is told the method, the path without its query, the status and the seconds of a request."""


class ServerSettings(Confidential, kw_only=True):
    default_directory: str
    """The Location of a request that names none."""
    cursor_key: bytes
    host: str = "127.0.0.1"
    port: int = 0
    username: str = "opencode"
    password: str | None = None
    """None asks for no credentials, which is only for loopback and for callers in the process."""
    allowed_hosts: frozenset[str] = frozenset()
    """Host names that are accepted beside the loopback names and the one that is listened on."""
    allowed_origins: frozenset[str] = frozenset()
    """Web origins that may call, exactly as a browser writes them; `:*` stands for any port."""
    v1: bool = True
    """Serves the V1 routes beside V2 if true."""
    open_metrics: bool = False
    """Whether `GET /metrics` is answered without credentials."""
    observe_request: ObserveRequest | None = None
    """Called after each answer, or when a stream has ended."""
    body_bytes_max: int = limits.REQUEST_BODY_BYTES_MAX
    web_directory: str = WEB_DIRECTORY
    """Where the built web page is."""
    heartbeat_seconds: float = limits.HEARTBEAT_SECONDS
    requests_per_client_max: int = limits.REQUESTS_PER_CLIENT_MAX
    streams_max: int = limits.STREAMS_MAX
    http: HttpLimits = HttpLimits()
