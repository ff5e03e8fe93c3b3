"""One request, checked and decoded, on its way to a handler.

A handler is a plain async function from a Call to the value that its endpoint promises; `bind`
puts the value into its envelope. Handlers never see HTTP.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from perdure.schema.codec import JsonValue
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.server import location_context
from perdure.server.request import Request
from perdure.server.services import Services
from perdure.server.settings import ServerSettings

QueryT = TypeVar("QueryT")
BodyT = TypeVar("BodyT")


class Call(Value, Generic[QueryT, BodyT], kw_only=True):
    """`query` and `body` have the endpoint's types; None where it takes none."""

    services: Services
    settings: ServerSettings
    request: Request
    params: Mapping[str, str]
    query: QueryT
    body: BodyT

    @property
    def session_id(self) -> SessionID:
        return SessionID(self.params["sessionID"])

    def location(self) -> LocationRef:
        return location_context.of(self.request, default_directory=self.settings.default_directory)

    def asked_location(self) -> LocationRef | None:
        return location_context.asked(
            self.request, default_directory=self.settings.default_directory
        )


Handler = Callable[[Call[JsonValue, JsonValue]], Awaitable[object]]
Handlers = Mapping[str, Handler]
"""By operation id."""
