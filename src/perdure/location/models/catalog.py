"""The Catalog of a Location: which models can be used here, and how each is called.

What the configuration says is core.models.catalog; this adds the stored credentials and the
environment's keys, as they are whenever a model is asked for. The calls themselves are made by
model_calls when a model is first resolved, so that opening a Location costs nothing.

Invariant: what cannot be used is a typed failure with a message for the person; a configured model
that fails is never quietly replaced by another.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec.structs import replace

from perdure.core.credentials.google import GoogleLoginLookup, NoGoogleLogin
from perdure.core.credentials.keys import KeyMissing, Stored, StoreUnreadable
from perdure.core.models import access, catalog, key_origins, public, selection
from perdure.core.models.access import AccessLookup, AccessSources
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.known_providers import KnownProviders
from perdure.core.models.options import NO_OVERRIDES, Overrides
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
from perdure.schema.errors import ProviderNotFoundError
from perdure.schema.models.credential import StoredCredential
from perdure.schema.models.model import (
    DEFAULT_VARIANT,
    ModelCost,
    ModelInfo,
    ModelLimit,
    ModelRef,
    ProviderInfo,
)
from perdure.schema.value import Confidential

_NO_GOOGLE_LOGIN: Final = NoGoogleLogin("there is no Google login here")
_MEANT_FOR_MODELS: Final = ("KEY", "_BEDROCK", "_VERTEX_PROJECT")
"""How variables end that nobody sets for anything else. A token for another use of a service, such
as GITHUB_TOKEN, makes its models usable, but does not choose them."""


class ResolvedModel(Confidential, kw_only=True):
    """A model that can be called now."""

    ref: ModelRef
    info: ModelInfo
    cost: tuple[ModelCost, ...]
    limit: ModelLimit
    generation: GenerationControls
    """What was configured for it, for models that no route reaches."""
    free: bool
    """Whether asking twice costs no more than asking once."""
    call: ModelCall
    media: MediaLimits


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
        self._settings = settings
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
    def everyone(self) -> Mapping[str, CatalogProvider]:
        """Every provider, usable or not, with its secrets."""
        self._look()
        return self._providers

    def without_project(self, provider_id: str) -> CatalogProvider | None:
        """A provider as it would be if no project had a say."""
        self._look()
        users_own = replace(self._settings, providers=self._settings.user_providers)
        return catalog.build(users_own, self._host_providers, self._known).get(provider_id)

    def providers(self) -> tuple[ProviderInfo, ...]:
        """The providers that can be used, as the public sees them."""
        self._look()
        return tuple(
            public.public_provider(provider)
            for provider in self._with_keys()
            if any(self._available_model(provider, model) for model in provider.models.values())
        )

    def provider(self, provider_id: str) -> ProviderInfo:
        """One provider, usable or not; raises ProviderNotFoundError."""
        provider = self.everyone.get(provider_id)
        if provider is None:
            raise ProviderNotFoundError(provider_id)
        return public.public_provider(provider)

    def models(self) -> tuple[ModelInfo, ...]:
        """The models that can be used, newest first, as the public sees them."""
        return tuple(public.public_model(model) for model in self._available())

    def default(self) -> ModelRef | None:
        """The model to use when none was chosen: the configured one, else the newest that works.

        The demo is last: it is chosen when there is nothing else.
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
        """A quick and cheap model of a provider, for work beside the conversation."""
        offered = [model for model in self._available() if model.provider_id == provider_id]
        return _ref(selection.small(offered, now_millis=self._clock.now_millis()))

    def resolve(self, ref: ModelRef | None, over: Overrides = NO_OVERRIDES) -> Resolution:
        """How to call the chosen model, or the default one; or why that is not possible.

        `over` lies over what the configuration adds to the model's requests.
        """
        self._look()
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
        request = over.merge_over(variant)
        if isinstance(model.transport, Unreachable):
            return UnsupportedApi(ref, model.transport.reason)
        key = self._key(provider, model, request)
        if isinstance(key, KeyMissing):
            return ModelUnavailable(ref, key.reason)
        return ResolvedModel(
            ref=ref,
            info=public.public_model(model),
            cost=model.cost,
            limit=model.limit,
            generation=request.generation,
            free=selection.is_free(model),
            call=self._calls.of(self._reached(provider, model, model.transport, request), key),
            media=_media(model),
        )

    def _reached(
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

    def _look(self) -> None:
        """See what is known and stored now; what was resolved with anything else is so anew."""
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
        settings = self._settings
        self._built, self._known = True, known
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
        self._look()
        found = [
            model
            for provider in self._with_keys()
            for model in provider.models.values()
            if self._available_model(provider, model)
        ]
        return sorted(found, key=lambda model: -model.released)

    def _with_keys(self) -> tuple[CatalogProvider, ...]:
        """The providers that may have a key; hundreds are known, and every turn asks."""
        if self._keyed is None:
            self._keyed = tuple(filter(self._may_have_key, self._providers.values()))
        return self._keyed

    def _may_have_key(self, provider: CatalogProvider, names: tuple[str, ...] = ("",)) -> bool:
        """Told without a look at the models. Variables count whose names end as one of `names`."""
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
            variables=self._variables, origins=self._origins, google=self._google_login
        )
        stored = self._stored_for(provider)
        return access.find_access(provider, model, request, sources=means, stored=stored)

    def _google_login(self) -> GoogleLoginLookup:
        return _NO_GOOGLE_LOGIN if self._clouds is None else self._clouds.google.look()


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


def _media(model: CatalogModel) -> MediaLimits:
    reach = model.transport
    family = reach.dialect if isinstance(reach, HttpProtocol) else "openai_compatible"
    return media_limits.limits_for(family, model.takes)
