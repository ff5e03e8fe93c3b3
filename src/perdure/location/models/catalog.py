"""The Catalog of a Location: which models can be used, and how each is called.

core.models.catalog builds it from the configuration; this module adds the current credentials and
keys whenever a model is resolved. `calls` makes the call when a model is first resolved, so that
opening a Location costs nothing.

Invariant: a model that cannot be used is a typed failure with a message for the user; a configured
model that fails is never silently replaced by another.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from perdure.core.credentials import keys
from perdure.core.credentials.google import GoogleLoginLookup, NoGoogleLogin
from perdure.core.credentials.keys import KeyMissing, Stored, StoreUnreadable
from perdure.core.models import (
    access,
    answer_prefix,
    aws,
    catalog,
    environment_addresses,
    key_origins,
    public,
    selection,
)
from perdure.core.models.access import AccessLookup, AccessSources
from perdure.core.models.aws import AwsLogin
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.known_providers import KnownProviders
from perdure.core.models.options import NO_OVERRIDES, Overrides
from perdure.core.models.provider_limits import NO_LIMITS, ProviderLimits
from perdure.core.models.transport import HttpProtocol, Unreachable
from perdure.core.request import media_limits
from perdure.core.request.media_limits import MediaLimits
from perdure.core.settings.settings import Settings
from perdure.llm.model_call import ModelCall
from perdure.llm.request import GenerationControls
from perdure.location.models.calls import CallableModel, ModelCalls, Reachable
from perdure.location.models.cloud_logins import CloudLogins
from perdure.location.models.credentials import Credentials
from perdure.location.models.facts_cache import ModelFactsCache
from perdure.location.models.failures import (
    ModelFailure,
    ModelNotSelected,
    ModelUnavailable,
    UnsupportedApi,
    VariantUnavailable,
)
from perdure.net.transport import HttpTransport
from perdure.ports import Clock
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.errors import ProviderNotFoundError
from perdure.schema.models.credential import StoredCredential
from perdure.schema.models.model import (
    DEFAULT_VARIANT,
    ModelCost,
    ModelInfo,
    ModelLimit,
    ModelRef,
    ProviderInfo,
    StepRoute,
)
from perdure.schema.value import Confidential

_NO_GOOGLE_LOGIN: Final = NoGoogleLogin("there is no Google login here")
_MEANT_FOR_MODELS: Final = ("KEY", "_BEDROCK", "_VERTEX_PROJECT")
"""Endings of variables that are only set for models. A token with other uses, such as
GITHUB_TOKEN, makes its models usable but does not make one the default."""


class ResolvedModel(Confidential, kw_only=True):
    """A model that can be called now."""

    ref: ModelRef
    info: ModelInfo
    cost: tuple[ModelCost, ...]
    limit: ModelLimit
    generation: GenerationControls
    """The configured controls, for models that are not called through a Route."""
    free: bool
    """Whether requests cost nothing."""
    call: ModelCall
    media: MediaLimits
    limits: ProviderLimits = NO_LIMITS
    """The most that all Sessions together may ask of its provider."""
    route: StepRoute | None = None
    """The way to it, if it is reached over a network."""
    prefix: JsonObject | None = None
    """How it is sent the beginning of an answer to go on with; None if it cannot."""


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
        credentials: Credentials | None = None,
        snapshot: ModelFactsCache | None = None,
        clouds: CloudLogins | None = None,
    ) -> None:
        self._given = settings
        self._settings = settings
        """With the addresses of the environment, once it is built."""
        self._host_providers = host_providers
        self._snapshot = snapshot
        self._known: KnownProviders | None = None
        self._providers: Mapping[str, CatalogProvider] = {}
        self._origins: Mapping[str, frozenset[str]] = {}
        self._built = False
        self._variables = variables
        self._clouds = clouds
        self._calls = ModelCalls(transport, clock, credentials=credentials, clouds=clouds)
        self._clock = clock
        self._credentials = credentials
        self._stored: Mapping[str, StoredCredential] | StoreUnreadable = {}
        self._resolved: dict[tuple[ModelRef, bytes], Resolution] = {}
        self._keyed: tuple[CatalogProvider, ...] | None = None

    @property
    def all_providers(self) -> Mapping[str, CatalogProvider]:
        """Every provider, usable or not, with its secrets."""
        self._refresh()
        return self._providers

    def without_project(self, provider_id: str) -> CatalogProvider | None:
        """A provider without the project's configuration."""
        self._refresh()
        users_own = replace(self._settings, providers=self._settings.user_providers)
        return catalog.build(users_own, self._host_providers, self._known).get(provider_id)

    def providers(self) -> tuple[ProviderInfo, ...]:
        """The public form of the providers that can be used."""
        self._refresh()
        return tuple(
            public.public_provider(provider)
            for provider in self._with_keys()
            if any(self._available_model(provider, model) for model in provider.models.values())
        )

    def provider(self, provider_id: str) -> ProviderInfo:
        """The public form of a provider, usable or not. Raises ProviderNotFoundError."""
        provider = self.all_providers.get(provider_id)
        if provider is None:
            raise ProviderNotFoundError(provider_id)
        return public.public_provider(provider)

    def models(self) -> tuple[ModelInfo, ...]:
        """The public form of the models that can be used, newest first."""
        return tuple(public.public_model(model) for model in self._available())

    def default(self) -> ModelRef | None:
        """The model to use when none was chosen: the configured one, else the newest usable one.

        The demo model is used when there is no other.
        """
        if self._settings.model is not None:
            return self._settings.model
        offered = [
            model
            for model in self._available()
            if self._may_have_key(self._providers[model.provider_id], names=_MEANT_FOR_MODELS)
        ]
        return _ref(selection.newest(offered))

    def small(self, provider_id: str) -> ModelRef | None:
        """A quick and cheap model of a provider, for titles and similar work."""
        offered = [model for model in self._available() if model.provider_id == provider_id]
        return _ref(selection.small(offered, now_millis=self._clock.now_millis()))

    def resolve(self, ref: ModelRef | None, over: Overrides = NO_OVERRIDES) -> Resolution:
        """How to call the chosen or default model, or why that is not possible.

        `over` overrides what the configuration adds to the model's requests.
        """
        self._refresh()
        chosen = ref or self.default()
        if chosen is None:
            return ModelNotSelected()
        call = chosen, codec.encode(over) if over != NO_OVERRIDES else b""
        resolution = self._resolved.get(call)
        if resolution is None:
            resolution = self._resolve(chosen, over)
            # Refs come from callers, so only those that exist are cached.
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
        request = over.merge_over(variant)
        if isinstance(model.transport, Unreachable):
            return UnsupportedApi(ref, model.transport.reason)
        key = self._key(provider, model, request)
        if isinstance(key, KeyMissing):
            return ModelUnavailable(ref, key.reason)
        target = self._callable_model(provider, model, model.transport, request)
        return ResolvedModel(
            ref=ref,
            info=public.public_model(model),
            cost=model.cost,
            limit=model.limit,
            generation=request.generation,
            free=selection.is_free(model),
            call=self._calls.make_call(target, key),
            media=_media(model),
            limits=provider.limits,
            route=_route(target),
            prefix=answer_prefix.prefix_form(provider.id, model.api, model.wire_name),
        )

    def _callable_model(
        self,
        provider: CatalogProvider,
        model: CatalogModel,
        reach: Reachable,
        request: Overrides,
    ) -> CallableModel:
        return CallableModel(
            model=model,
            reach=reach,
            request=request,
            timeouts=provider.timeouts,
            variables=self._variables,
        )

    def _refresh(self) -> None:
        """Load the current facts, variables and credentials; drop resolutions made with others."""
        known = None if self._snapshot is None else self._snapshot.known()
        if not self._built or known is not self._known:
            self._build(known)
        variables = self._variables if self._clouds is None else self._clouds.aws.variables()
        if variables is not self._variables:
            self._variables = variables
            self._forget()
        if self._credentials is None:
            return
        stored = self._credentials.stored()
        if stored is not self._stored:
            self._stored = stored
            self._forget()

    def _build(self, known: KnownProviders | None) -> None:
        settings = environment_addresses.with_addresses(self._given, self._variables, known)
        self._built, self._known, self._settings = True, known, settings
        self._origins = key_origins.variable_origins(settings, known)
        self._providers = catalog.build(settings, self._host_providers, known)
        self._forget()

    def _forget(self) -> None:
        self._resolved.clear()
        self._keyed = None

    def _stored_for(self, provider: CatalogProvider) -> Stored:
        if isinstance(self._stored, StoreUnreadable):
            return self._stored
        return key_origins.with_granted_origins(self._stored.get(provider.id), self._settings)

    def _available(self) -> list[CatalogModel]:
        self._refresh()
        found = [
            model
            for provider in self._with_keys()
            for model in provider.models.values()
            if self._available_model(provider, model)
        ]
        return sorted(found, key=lambda model: -model.released)

    def _with_keys(self) -> tuple[CatalogProvider, ...]:
        """The providers that may have a key; cached, as hundreds are known and every turn asks."""
        if self._keyed is None:
            self._keyed = tuple(filter(self._may_have_key, self._providers.values()))
        return self._keyed

    def _may_have_key(self, provider: CatalogProvider, names: tuple[str, ...] = ("",)) -> bool:
        """Decided without building models. Only variables that end with one of `names` count."""
        counted = (name for name in provider.env if name.endswith(names))
        set_here = any(self._variables.get(name) for name in counted)
        return provider.configured or set_here or provider.id in _stored_ids(self._stored)

    def _available_model(self, provider: CatalogProvider, model: CatalogModel) -> bool:
        enabled = model.enabled and not provider.disabled
        return enabled and not isinstance(self._key(provider, model, model.request), KeyMissing)

    def _key(
        self, provider: CatalogProvider, model: CatalogModel, request: Overrides
    ) -> AccessLookup:
        means = AccessSources(
            variables=self._variables,
            origins=self._origins,
            google=self._google_login,
            aws=self._aws_login,
        )
        stored = self._stored_for(provider)
        return access.find_access(provider, model, request, sources=means, stored=stored)

    def _google_login(self) -> GoogleLoginLookup:
        return _NO_GOOGLE_LOGIN if self._clouds is None else self._clouds.google.load()

    def _aws_login(self) -> AwsLogin | KeyMissing:
        return aws.MISSING if self._clouds is None else self._clouds.aws.login()


def _variant(model: CatalogModel, ref: ModelRef) -> Overrides | None:
    """The request overrides of the chosen variant; None when there is no such variant."""
    name = ref.variant_name
    if name == DEFAULT_VARIANT:
        name = model.default_variant or DEFAULT_VARIANT
        return model.variants.get(name, Overrides()).merge_over(model.request)
    variant = model.variants.get(name)
    return None if variant is None else variant.merge_over(model.request)


def _stored_ids(stored: Mapping[str, StoredCredential] | StoreUnreadable) -> Collection[str]:
    return () if isinstance(stored, StoreUnreadable) else stored.keys()


def _ref(model: CatalogModel | None) -> ModelRef | None:
    return None if model is None else ModelRef(id=model.id, provider_id=model.provider_id)


def _route(target: CallableModel) -> StepRoute | None:
    if not isinstance(target.reach, HttpProtocol):
        return None
    origin = keys.origin_of(target.url)
    return None if origin is None else StepRoute(origin=origin, model=target.model.wire_name)


def _media(model: CatalogModel) -> MediaLimits:
    reach = model.transport
    family = reach.dialect if isinstance(reach, HttpProtocol) else "openai_compatible"
    documents = family == "openai_compatible" and model.dialect.documents
    return media_limits.limits_for(family, model.takes, documents=documents)
