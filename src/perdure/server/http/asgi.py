"""The words of ASGI 3 that this server and this app speak to each other."""

from collections.abc import Awaitable, Callable

from perdure.schema.codec import JsonObject

Scope = JsonObject
Message = JsonObject
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]
