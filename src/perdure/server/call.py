"""One request, checked and decoded, as a handler gets it.

A handler is an async function from a Call to the result that its Endpoint declares; `dispatch`
encodes the result. A handler does not write HTTP.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Generic, Never, TypeVar

from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.value import Value
from perdure.server import location_context
from perdure.server.request import Request
from perdure.server.settings import ServerSettings

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

QueryT_co = TypeVar("QueryT_co", covariant=True)
BodyT_co = TypeVar("BodyT_co", covariant=True)
ResultT_co = TypeVar("ResultT_co", covariant=True)


class Call(Value, Generic[QueryT_co, BodyT_co], kw_only=True):
    """`query` and `body` have the Endpoint's types; None where it takes none."""

    runtime: "Runtime"
    settings: ServerSettings
    request: Request
    params: Mapping[str, str]
    query: QueryT_co
    body: BodyT_co
    found: LocationRef | None = None
    """What dispatch looked up: where the path's Session works, or the Location the answer names."""

    @property
    def session_id(self) -> SessionID:
        return SessionID(self.params["sessionID"])

    @property
    def session_location(self) -> LocationRef:
        """Where the Session of the path works."""
        assert self.found is not None, "only an Endpoint of scope `session` has a Session"
        return self.found

    def location(self) -> LocationRef:
        """The Location that the request names, else the server's default."""
        return self.found or location_context.resolve(
            self.request, default_directory=self.settings.default_directory
        )

    def named_location(self) -> LocationRef | None:
        """The Location that the request names; None when it names none."""
        return location_context.find_named(
            self.request, default_directory=self.settings.default_directory
        )


Handler = Callable[[Call[QueryT_co, BodyT_co]], Awaitable[ResultT_co]]
Handlers = Mapping[str, Handler[Never, Never, object]]
"""Handlers of any types, by operation id. `binding` checks each against its Endpoint."""
