"""The Catalog of a Location: which models can be used here, and how each is called.

What the configuration says is core.catalog; this adds the environment's keys and makes the calls.
Protocols are imported when a model is first resolved, so that opening a Location costs nothing.

Invariant: what cannot be used is a typed failure with a message for the person; a configured model
that fails is never quietly replaced by another.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import cast

from perdure.core import catalog, credential, model_request
from perdure.core.catalog import (
    BuiltIn,
    CatalogModel,
    CatalogProvider,
    Supplied,
    Unreachable,
    Wire,
)
from perdure.core.credential import Key, KeyLookup, KeyMissing
from perdure.core.model_request import NO_OVERRIDES, Overrides
from perdure.core.settings import Settings
from perdure.llm.model_call import ModelCall
from perdure.llm.request import GenerationControls
from perdure.llm.route import Credential, Route
from perdure.llm.transport import HttpTransport
from perdure.llm.wire_protocol import ModelFacts, WireProtocol
from perdure.ports import Clock
from perdure.schema import codec
from perdure.schema.errors import ProviderNotFoundError
from perdure.schema.model import (
    DEFAULT_VARIANT,
    ModelCost,
    ModelInfo,
    ModelLimit,
    ModelRef,
    ProviderInfo,
)
from perdure.schema.value import Confidential, Value


class ResolvedModel(Confidential, kw_only=True):
    """A model that can be called now."""

    ref: ModelRef
    info: ModelInfo
    cost: tuple[ModelCost, ...]
    limit: ModelLimit
    generation: GenerationControls
    """What was configured for it, for models that no route reaches."""
    call: ModelCall


class ModelUnavailable(Value):
    ref: ModelRef
    reason: str

    @property
    def message(self) -> str:
        return f"Model {_name(self.ref)} cannot be used: {self.reason}."


class VariantUnavailable(Value):
    ref: ModelRef
    variants: tuple[str, ...]

    @property
    def message(self) -> str:
        known = ", ".join(self.variants) or "none"
        return (
            f"Model {_name(self.ref)} has no variant {self.ref.variant_name!r} (it has: {known})."
        )


class UnsupportedApi(Value):
    ref: ModelRef
    reason: str

    @property
    def message(self) -> str:
        return f"Model {_name(self.ref)} cannot be called: {self.reason}."


class ModelNotSelected(Value):
    message: str = "No model can be used here. Configure a provider, or choose a model."


ModelFailure = ModelUnavailable | VariantUnavailable | UnsupportedApi | ModelNotSelected
Resolution = ResolvedModel | ModelFailure


class Catalog:
    def __init__(
        self,
        settings: Settings,
        *,
        variables: Mapping[str, str],
        transport: HttpTransport,
        clock: Clock,
        host_providers: tuple[CatalogProvider, ...] = (),
    ) -> None:
        self._default = settings.model
        self._providers = catalog.build(settings, host_providers)
        self._user_origins = credential.user_origins(settings.user_providers)
        self._variables = variables
        self._transport = transport
        self._clock = clock
        self._resolved: dict[tuple[ModelRef, bytes], Resolution] = {}

    def providers(self) -> tuple[ProviderInfo, ...]:
        """The providers that can be used, as the public sees them."""
        available = (provider for provider in self._providers.values() if self._usable(provider))
        return tuple(catalog.public_provider(provider) for provider in available)

    def provider(self, provider_id: str) -> ProviderInfo:
        """One provider, usable or not; raises ProviderNotFoundError."""
        provider = self._providers.get(provider_id)
        if provider is None:
            raise ProviderNotFoundError(provider_id)
        return catalog.public_provider(provider)

    def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be used, newest first, as the public sees them."""
        return tuple(catalog.public_model(model) for model in self._available())

    def default(self) -> ModelRef | None:
        """The model to use when none was chosen: the configured one, else the newest that works.

        The demo is last: it is chosen when there is nothing else.
        """
        if self._default is not None:
            return self._default
        working = [model for model in self._available() if not isinstance(model.reach, Unreachable)]
        working.sort(key=lambda model: isinstance(model.reach, BuiltIn))
        return ModelRef(id=working[0].id, provider_id=working[0].provider_id) if working else None

    def resolve(self, ref: ModelRef | None, over: Overrides = NO_OVERRIDES) -> Resolution:
        """How to call the chosen model, or the default one; or why that is not possible.

        `over` lies over what the configuration adds to the model's requests.
        """
        chosen = ref or self.default()
        if chosen is None:
            return ModelNotSelected()
        call = chosen, codec.encode(over) if over != NO_OVERRIDES else b""
        resolution = self._resolved.get(call)
        if resolution is None:
            resolution = self._resolve(chosen, over)
            # Refs come from callers; only those that name something are worth keeping.
            if isinstance(resolution, ResolvedModel):
                self._resolved[call] = resolution
        return resolution

    def _resolve(self, ref: ModelRef, over: Overrides) -> Resolution:
        provider = self._providers.get(ref.provider_id)
        if provider is None:
            return ModelUnavailable(ref, f"there is no provider {ref.provider_id!r} here")
        model = provider.models.get(ref.id)
        if model is None:
            return ModelUnavailable(ref, f"provider {provider.id!r} has no model of that name")
        if provider.disabled or not model.enabled:
            return ModelUnavailable(ref, "it is disabled in the configuration")
        variant = _variant(model, ref)
        if variant is None:
            return VariantUnavailable(ref, tuple(model.variants))
        request = over.over(variant)
        if isinstance(model.reach, Unreachable):
            return UnsupportedApi(ref, model.reach.reason)
        key = self._key(provider, model, request)
        if isinstance(key, KeyMissing):
            return ModelUnavailable(ref, key.reason)
        return ResolvedModel(
            ref=ref,
            info=catalog.public_model(model),
            cost=model.cost,
            limit=model.limit,
            generation=model_request.split(request.body)[0],
            call=self._call(model, model.reach, request, key),
        )

    def _call(
        self,
        model: CatalogModel,
        reach: Wire | BuiltIn | Supplied,
        request: Overrides,
        key: KeyLookup,
    ) -> ModelCall:
        if isinstance(reach, Supplied):
            return reach.call
        if isinstance(reach, BuiltIn):
            return cast("ModelCall", _load(reach.call))
        generation, body = model_request.split(request.body)
        route = Route(
            protocol=cast("WireProtocol", _load(reach.protocol)),
            base_url=model.api.url or reach.url or "",
            model=ModelFacts(
                name=model.wire_name,
                output_limit=model.limit.output,
                system_role=reach.has_system_role(model.wire_name),
            ),
            credential=Credential(key.value, reach.scheme) if isinstance(key, Key) else None,
            headers=request.headers,
            body=body,
            generation=generation,
        )
        model_call = cast("_ModelCallOf", _load("perdure.llm.client:model_call"))
        return model_call(route, self._transport, self._clock)

    def _available(self) -> list[CatalogModel]:
        found = [
            model
            for provider in self._providers.values()
            for model in provider.models.values()
            if self._available_model(provider, model)
        ]
        return sorted(found, key=lambda model: -model.released)

    def _usable(self, provider: CatalogProvider) -> bool:
        return any(self._available_model(provider, model) for model in provider.models.values())

    def _available_model(self, provider: CatalogProvider, model: CatalogModel) -> bool:
        enabled = model.enabled and not provider.disabled
        return enabled and not isinstance(self._key(provider, model, model.request), KeyMissing)

    def _key(self, provider: CatalogProvider, model: CatalogModel, request: Overrides) -> KeyLookup:
        return credential.find_key(
            body=request.body,
            api_settings=model.api.settings,
            names=provider.env,
            url=model.api.url or (model.reach.url if isinstance(model.reach, Wire) else None),
            variables=self._variables,
            user_origins=self._user_origins,
        )


_ModelCallOf = Callable[[Route, HttpTransport, Clock], ModelCall]
"""The shape of llm.client.model_call, which is imported late."""


def _variant(model: CatalogModel, ref: ModelRef) -> Overrides | None:
    """The request overrides of the chosen variant; None when there is no such variant."""
    name = ref.variant_name
    if name == DEFAULT_VARIANT:
        name = model.default_variant or DEFAULT_VARIANT
        return model.variants.get(name, Overrides()).over(model.request)
    variant = model.variants.get(name)
    return None if variant is None else variant.over(model.request)


def _load(name: str) -> object:
    """The value that `module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _name(ref: ModelRef) -> str:
    return f"{ref.provider_id}/{ref.id}"
