"""The network client: Perdure's contract over HTTP, without the engine behind it.

Programs use `perdure.connect` or `perdure.connect_blocking`: decoded values, declared failures by
their class. `WireClient` has the same methods over JSON as it came, for programs that pass it on;
its types are in `client.generated.types`, guards for its failures in `client.generated.failures`.
"""

from perdure.client.errors import ClientError, WireError
from perdure.client.pages import History
from perdure.client.wire import CallOptions
from perdure.client.wire_client import WireClient
from perdure.deprecation import moved_names
from perdure.schema.errors import DeclaredError
from perdure.schema.page import Page

__all__ = [
    "CallOptions",
    "ClientError",
    "DeclaredError",
    "History",
    "Page",
    "WireClient",
    "WireError",
]

__getattr__ = moved_names(__name__, {"PerdureClient": "perdure.client.WireClient"})
