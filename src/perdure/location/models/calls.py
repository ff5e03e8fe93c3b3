"""Makes the call of a Catalog model: its Route, from the configuration and its key.

The Catalog finds the model and the key. Protocols and HTTP code are imported when a model first
needs them.
"""

import importlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from perdure.core import limits
from perdure.core.credentials.google import GoogleToken
from perdure.core.credentials.keys import Key, Login
from perdure.core.models import access as model_access
from perdure.core.models import aws, options, tool_call_mode
from perdure.core.models.access import AccessLookup
from perdure.core.models.aws import AwsLogin
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

T = TypeVar("T")

Reachable = HttpProtocol | BuiltIn | HostProvided


class CallableModel(Confidential, kw_only=True):
    """A model with its transport and its request options."""

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

    def make_call(self, target: CallableModel, key: AccessLookup) -> ModelCall:
        match target.reach:
            case HostProvided(call=call):
                return call
            case BuiltIn(call=name):
                return cast("ModelCall", _load(name))
            case HttpProtocol() as wire:
                return self._make_http_call(target, wire, key)

    def _make_http_call(
        self, target: CallableModel, wire: HttpProtocol, key: AccessLookup
    ) -> ModelCall:
        if (get_token := self._token_source(key)) is not None:
            return with_fresh_key(
                get_token, lambda token: self._make_http_call(target, wire, Key(token))
            )
        if isinstance(key, AwsLogin) and self._clouds is not None:
            return with_fresh_key(
                self._clouds.aws.get_keys, lambda keys: self._make_http_call(target, wire, keys)
            )
        model, request = target.model, target.request
        route = Route(
            protocol=cast("WireProtocol", _load(wire.protocol)),
            base_url=target.url or "",
            model=ModelFacts(
                name=model.wire_name,
                output_limit=model.limit.output,
                system_role=wire.has_system_role(model.wire_name),
                dialect=model.dialect,
            ),
            credential=Credential(key.value, wire.scheme) if isinstance(key, Key) else None,
            headers=request.headers,
            body=request.body,
            removed=request.removed,
            generation=request.generation,
            options=options.for_dialect(request.options, wire.dialect),
            sign=self._signer(target, key) if isinstance(key, AwsKeys) else None,
            tool_calls=_tool_calls(target, wire),
        )
        model_call = cast("_ModelCallFactory", _load("perdure.llm.http.model_call:model_call"))
        return model_call(route, self._transport, self._clock, limits=_limits(target.timeouts))

    def _token_source(self, key: AccessLookup) -> Callable[[], Awaitable[str]] | None:
        """The function that gets a token for each request, if the key is one that expires."""
        if isinstance(key, Login) and self._credentials is not None:
            return partial(self._credentials.get_access_token, key.stored.integration_id)
        if isinstance(key, GoogleToken) and self._clouds is not None:
            return self._clouds.google.get_access_token
        return None

    def _signer(self, target: CallableModel, keys: AwsKeys) -> Callable[[HttpRequest], HttpRequest]:
        bedrock_signer = cast("_SignerFactory", _load("perdure.llm.aws.signature:bedrock_signer"))
        region = aws.region_of(target.model.api, target.variables)
        return bedrock_signer(keys, region, self._clock.now_millis)


class _ModelCallFactory(Protocol):
    """The type of llm.http.model_call.model_call, which is imported late."""

    def __call__(
        self, route: Route, transport: HttpTransport, clock: Clock, *, limits: "CallLimits"
    ) -> ModelCall: ...


_SignerFactory = Callable[[AwsKeys, str, Callable[[], int]], Callable[[HttpRequest], HttpRequest]]
"""The type of llm.aws.signature.bedrock_signer, which is imported late."""


def _tool_calls(target: CallableModel, wire: HttpProtocol) -> ToolCallMode:
    if wire.protocol != NATIVE.protocol:
        return "native"
    wanted = target.request.options.get(tool_call_mode.OPTION)
    has_tools = target.model.capabilities.tools
    return tool_call_mode.choose_mode(wanted, url=target.url, calls_tools=has_tools)


def _limits(timeouts: Timeouts) -> "CallLimits":
    call_limits = cast("type[CallLimits]", _load("perdure.llm.http.model_call:CallLimits"))
    return call_limits(
        frame_bytes_max=limits.ANSWER_FRAME_BYTES_MAX,
        answer_bytes_max=limits.ANSWER_BYTES_MAX,
        quiet_bytes_max=limits.ANSWER_QUIET_BYTES_MAX,
        connect_seconds_max=timeouts.connect,
        first_byte_seconds_max=timeouts.first_byte,
        total_seconds_max=timeouts.total,
        idle_seconds_max=timeouts.idle,
    )


def _load(name: str) -> object:
    """Import the value that `module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def with_fresh_key(
    get_key: Callable[[], Awaitable[T]], make_call: Callable[[T], ModelCall]
) -> ModelCall:
    """A call that gets a token or keys for each request and passes them to `make_call`."""

    async def call(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        stream = make_call(await get_key())(request)
        try:
            async for batch in stream:
                yield batch
        finally:
            await close_stream(stream)

    return call
