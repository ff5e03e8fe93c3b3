"""How a model of the Catalog is called: its route, from what is configured and the key for it.

Which models there are, and whose key is whose, is the Catalog's concern. Protocols, and all that
speaks to a provider, are imported when a model first needs them.
"""

import importlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from perdure.core.credentials.google import GoogleToken
from perdure.core.credentials.keys import Key, Login
from perdure.core.models import access as model_access
from perdure.core.models import aws, options, tool_call_mode
from perdure.core.models.access import AccessLookup
from perdure.core.models.catalog import CatalogModel, Timeouts
from perdure.core.models.options import Overrides
from perdure.core.models.transport import NATIVE, BuiltIn, HostProvided, HttpProtocol
from perdure.llm.aws.signature import AwsKeys
from perdure.llm.encoding.wire_protocol import ModelFacts, WireProtocol
from perdure.llm.model_call import ModelCall
from perdure.llm.route import Credential, Route, ToolCallMode
from perdure.location.models.cloud_logins import CloudLogins
from perdure.location.models.credentials import Credentials
from perdure.net.streams import close_stream
from perdure.net.transport import HttpRequest, HttpTransport
from perdure.ports import Clock
from perdure.schema.value import Confidential

if TYPE_CHECKING:
    from perdure.llm.http.model_call import CallLimits

from collections.abc import AsyncGenerator

from perdure.llm.event import LLMEvent
from perdure.llm.request import LLMRequest

Reachable = HttpProtocol | BuiltIn | HostProvided


class CallableModel(Confidential, kw_only=True):
    """A model, the way to it, and what its requests carry."""

    model: CatalogModel
    reach: Reachable
    request: Overrides
    timeouts: Timeouts
    variables: Mapping[str, str]

    @property
    def url(self) -> str | None:
        return model_access.url_of(self.model.api, self.model.transport, self.variables)


class ModelCalls:
    def __init__(
        self,
        transport: HttpTransport,
        clock: Clock,
        *,
        credentials: Credentials | None,
        clouds: CloudLogins | None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._credentials = credentials
        self._clouds = clouds

    def of(self, reached: CallableModel, key: AccessLookup) -> ModelCall:
        match reached.reach:
            case HostProvided(call=call):
                return call
            case BuiltIn(call=name):
                return cast("ModelCall", _load(name))
            case HttpProtocol() as wire:
                return self._over_the_wire(reached, wire, key)

    def _over_the_wire(
        self, reached: CallableModel, wire: HttpProtocol, key: AccessLookup
    ) -> ModelCall:
        if (access := self._access(key)) is not None:
            return renewed(access, lambda token: self._over_the_wire(reached, wire, Key(token)))
        model, request = reached.model, reached.request
        route = Route(
            protocol=cast("WireProtocol", _load(wire.protocol)),
            base_url=reached.url or "",
            model=ModelFacts(
                name=model.wire_name,
                output_limit=model.limit.output,
                system_role=wire.has_system_role(model.wire_name),
            ),
            credential=Credential(key.value, wire.scheme) if isinstance(key, Key) else None,
            headers=request.headers,
            body=request.body,
            generation=request.generation,
            options=options.for_dialect(request.options, wire.dialect),
            sign=self._signer(reached, key) if isinstance(key, AwsKeys) else None,
            tool_calls=_tool_calls(reached, wire),
        )
        model_call = cast("_ModelCallOf", _load("perdure.llm.http.model_call:model_call"))
        return model_call(route, self._transport, self._clock, limits=_limits(reached.timeouts))

    def _access(self, key: AccessLookup) -> Callable[[], Awaitable[str]] | None:
        """Where the token comes from when a request is made, if it runs out."""
        if isinstance(key, Login) and self._credentials is not None:
            return partial(self._credentials.access, key.stored.integration_id)
        if isinstance(key, GoogleToken) and self._clouds is not None:
            return self._clouds.google.access
        return None

    def _signer(
        self, reached: CallableModel, keys: AwsKeys
    ) -> Callable[[HttpRequest], HttpRequest]:
        bedrock_signer = cast("_SignerOf", _load("perdure.llm.aws.signature:bedrock_signer"))
        region = aws.region_of(reached.model.api, reached.variables)
        return bedrock_signer(keys, region, self._clock.now_millis)


class _ModelCallOf(Protocol):
    """The shape of llm.http.model_call.model_call, which is imported late."""

    def __call__(
        self, route: Route, transport: HttpTransport, clock: Clock, *, limits: "CallLimits"
    ) -> ModelCall: ...


_SignerOf = Callable[[AwsKeys, str, Callable[[], int]], Callable[[HttpRequest], HttpRequest]]
"""The shape of llm.aws.signature.bedrock_signer, likewise."""


def _tool_calls(reached: CallableModel, wire: HttpProtocol) -> ToolCallMode:
    if wire.protocol != NATIVE.protocol:
        return "native"
    wanted = reached.request.options.get(tool_call_mode.OPTION)
    able = reached.model.capabilities.tools
    return tool_call_mode.choose_mode(wanted, url=reached.url, calls_tools=able)


def _limits(timeouts: Timeouts) -> "CallLimits":
    call_limits = cast("type[CallLimits]", _load("perdure.llm.http.model_call:CallLimits"))
    return call_limits(
        connect_seconds_max=timeouts.connect,
        first_byte_seconds_max=timeouts.first_byte,
        idle_seconds_max=timeouts.idle,
    )


def _load(name: str) -> object:
    """The value that `module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def renewed(access: Callable[[], Awaitable[str]], make: Callable[[str], ModelCall]) -> ModelCall:
    """The call that `make` makes of the token of the moment."""

    async def call(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        stream = make(await access())(request)
        try:
            async for batch in stream:
                yield batch
        finally:
            await close_stream(stream)

    return call
