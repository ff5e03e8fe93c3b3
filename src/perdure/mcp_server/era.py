"""The two eras of the protocol: a handshake first, or requests that stand for themselves.

A request of the newer era names its version and what its client can do in `_meta`; one of the older
era relies on `initialize`.
"""

from typing import Final

from perdure.core.text import jsonc
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value
from perdure.version import __version__

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"
_PREFIX: Final = "io.modelcontextprotocol/"
_VERSION: Final = f"{_PREFIX}protocolVersion"
_CAPABILITIES: Final = f"{_PREFIX}clientCapabilities"
_WITH_MODES: Final = "2025-11-25"
"""The first version whose elicitation has a `mode`."""

INFO: Final[JsonObject] = {"name": "perdure", "title": "Perdure", "version": __version__}
INSTRUCTIONS: Final = (
    "Sessions are coding agents that work by themselves. Start one with session_start and a key of"
    " yours, then call session_wait until its state is idle or failed. A session outlives you and"
    " this server: after a restart call session_start again with the same key."
)


class UnsupportedVersionError(Exception):
    def __init__(self, version: str) -> None:
        super().__init__("Unsupported protocol version")
        self.data: JsonObject = {"supported": [MODERN_VERSION], "requested": version[:100]}


class Era(Value):
    """How one request is to be answered."""

    version: str
    elicits: bool
    """Whether the client can ask a person."""

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN_VERSION

    @property
    def has_modes(self) -> bool:
        return self.version >= _WITH_MODES

    def complete(self, result: JsonObject, *, cached: bool = False) -> JsonObject:
        """The result with what this era wants."""
        if not self.is_modern:
            return result
        times: JsonObject = {"ttlMs": 0, "cacheScope": "private"} if cached else {}
        meta: JsonObject = {f"{_PREFIX}serverInfo": INFO}
        return {"resultType": "complete", **result, **times, "_meta": meta}


def read_modern(params: JsonObject) -> Era | None:
    """The era of a request that names its own; None for one of the older era.

    Raises UnsupportedVersionError.
    """
    meta: JsonValue = params.get("_meta")
    version: JsonValue = meta.get(_VERSION) if jsonc.is_object(meta) else None
    if not isinstance(version, str) or not jsonc.is_object(meta):
        return None
    if version != MODERN_VERSION:
        raise UnsupportedVersionError(version)
    return Era(version, _elicits(meta.get(_CAPABILITIES)))


def shake_hands(params: JsonObject) -> Era:
    """The era that `initialize` begins: the version of the client, or the newest of ours."""
    asked: JsonValue = params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return Era(str(version), _elicits(params.get("capabilities")))


def greeting(era: Era) -> JsonObject:
    """The answer to `initialize`."""
    return {
        "protocolVersion": era.version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": INFO,
        "instructions": INSTRUCTIONS,
    }


def discovery() -> JsonObject:
    """The answer to `server/discover`."""
    return {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": {"tools": {"listChanged": False}},
        "instructions": INSTRUCTIONS,
    }


def _elicits(capabilities: JsonValue) -> bool:
    elicitation: JsonValue = (
        capabilities.get("elicitation") if jsonc.is_object(capabilities) else None
    )
    # A client that only opens addresses cannot show a form.
    return jsonc.is_object(elicitation) and (not elicitation or "form" in elicitation)
