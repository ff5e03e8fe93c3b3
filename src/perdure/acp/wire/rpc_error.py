"""Errors of JSON-RPC: what is answered to a request that fails."""

from typing import Final

from perdure.acp.wire.wire_value import WireValue
from perdure.schema.codec import JsonValue

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
UNSUPPORTED_VERSION: Final = -32022
"""Of the second version of the protocol."""


class RpcError(Exception):
    """A request fails, with what its client is told."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ErrorValue(WireValue):
    code: int
    message: str
    data: JsonValue = None


def invalid(message: str) -> RpcError:
    return RpcError(INVALID_PARAMS, message)
