"""Where a model is asked, and with which of the user's secrets.

Most providers have one address and one key; those of AWS and Google Cloud have an address for each
region and credentials of their own (core.models.aws, core.models.vertex). Making calls is
location.models.catalog.
"""

from collections.abc import Callable, Mapping

from perdure.core.credentials import keys
from perdure.core.credentials.google import GoogleLoginLookup, GoogleToken
from perdure.core.credentials.keys import KeyLookup, KeyMissing, Stored
from perdure.core.models import aws as aws_access
from perdure.core.models import vertex as vertex_access
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.options import Overrides
from perdure.core.models.transport import Api, HttpProtocol, ModelTransport
from perdure.llm.aws.signature import AwsKeys
from perdure.schema.value import Confidential

AccessLookup = KeyLookup | AwsKeys | GoogleToken


class AccessSources(Confidential, kw_only=True):
    """What there is to reach models with."""

    variables: Mapping[str, str]
    origins: Mapping[str, frozenset[str]]
    """Where each variable may be sent."""
    google: Callable[[], GoogleLoginLookup]


def url_of(api: Api, reach: ModelTransport, variables: Mapping[str, str]) -> str | None:
    """The address below which a model answers, if it has one."""
    if not isinstance(reach, HttpProtocol):
        return api.url
    if reach.aws:
        return aws_access.url_of(api, variables)
    if reach.vertex is not None:
        return vertex_access.url_of(api, reach.vertex, variables)
    return api.url or reach.url


def find_access(
    provider: CatalogProvider,
    model: CatalogModel,
    request: Overrides,
    *,
    means: AccessSources,
    stored: Stored,
) -> AccessLookup:
    """What a request for a model is sent with, or what is missing."""
    variables, wire = means.variables, model.reach
    url = url_of(model.api, wire, variables)
    aws = isinstance(wire, HttpProtocol) and wire.aws
    vertex = vertex_access.is_vertex(url) or (
        isinstance(wire, HttpProtocol) and wire.vertex is not None
    )
    origins = aws_access.with_aws_origins(url, means.origins) if aws else means.origins
    names = provider.env
    if aws:
        names = aws_access.bearer_names(names, url)
    elif vertex:
        names = vertex_access.token_names(names)
    found = keys.find_key(
        api_key=request.api_key,
        api_settings=model.api.settings,
        names=names,
        url=url,
        variables=variables,
        origins=origins,
        optional=provider.key_optional,
        stored=stored,
    )
    if aws:
        return aws_access.find_keys(found, api=model.api, variables=variables, origins=origins)
    if not vertex:
        return found
    if url is None:
        return KeyMissing(vertex_access.find_fault(model.api, variables) or "it has no address")
    return vertex_access.find_token(found, url=url, origins=origins, login=means.google())
