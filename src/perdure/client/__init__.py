"""The network client: Perdure's contract over HTTP, without the engine behind it.

Plain values here; the same with decoded values in `client.typed`, and for programs without an
event loop in `client.sync`. The shapes of the values are in `client.generated.types`, guards for
declared failures in `client.generated.failures`, and a stream that survives lost connections in
`client.reconnect`.
"""

from perdure.client.client import PerdureClient
from perdure.client.errors import ClientError, DeclaredError
from perdure.client.pages import History
from perdure.client.wire import CallOptions
from perdure.schema.page import Page

__all__ = ["CallOptions", "ClientError", "DeclaredError", "History", "Page", "PerdureClient"]
