"""The network client: Perdure's contract over HTTP, without the engine behind it."""

from perdure.client.client import PerdureClient
from perdure.client.errors import ClientError, DeclaredError
from perdure.client.sessions import History
from perdure.client.wire import CallOptions
from perdure.schema.page import Page

__all__ = ["CallOptions", "ClientError", "DeclaredError", "History", "Page", "PerdureClient"]
