"""The URL of a model, and the credentials to send.

Most providers have one URL and one key; AWS and Google Cloud have one URL per region and their own
credentials (core.models.aws, core.models.vertex). Making calls is location.models.catalog.
"""

from collections.abc import Callable, Mapping

from perdure.core.credentials import keys
from perdure.core.credentials.google import GoogleLoginLookup, GoogleToken
from perdure.core.credentials.keys import KeyLookup, KeyMissing, Stored
from perdure.core.models import aws as aws_access
from perdure.core.models import vertex as vertex_access
from perdure.core.models.aws import AwsLogin
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.options import Overrides
from perdure.core.models.transport import Api, HttpProtocol, ModelTransport
from perdure.llm.aws.signature import AwsKeys
from perdure.schema.value import Confidential

AccessLookup = KeyLookup | AwsKeys | AwsLogin | GoogleToken


class AccessSources(Confidential, kw_only=True):
    """Where credentials for model requests come from."""

    variables: Mapping[str, str]
    origins: Mapping[str, frozenset[str]]
    """Where each variable may be sent."""
    google: Callable[[], GoogleLoginLookup]
    aws: Callable[[], AwsLogin | KeyMissing]


def url_of(api: Api, transport: ModelTransport, variables: Mapping[str, str]) -> str | None:
    """The base URL of a model, if it has one."""
    if not isinstance(transport, HttpProtocol):
        return api.url
    if transport.aws:
        return aws_access.url_of(api, variables)
    if transport.vertex is not None:
        return vertex_access.url_of(api, transport.vertex, variables)
    return api.url or transport.url


def find_access(
    provider: CatalogProvider,
    model: CatalogModel,
    request: Overrides,
    *,
    sources: AccessSources,
    stored: Stored,
) -> AccessLookup:
    """The credentials for requests to a model, or what is missing."""
    variables, transport = sources.variables, model.transport
    url = url_of(model.api, transport, variables)
    aws = isinstance(transport, HttpProtocol) and transport.aws
    vertex = vertex_access.is_vertex(url) or (
        isinstance(transport, HttpProtocol) and transport.vertex is not None
    )
    origins = (
        aws_access.with_aws_origins(url, sources.origins, variables) if aws else sources.origins
    )
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
        return aws_access.find_keys(
            found, api=model.api, variables=variables, origins=origins, login=sources.aws
        )
    if not vertex:
        return found
    if url is None:
        return KeyMissing(vertex_access.find_fault(model.api, variables) or "it has no address")
    return vertex_access.find_token(found, url=url, origins=origins, login=sources.google())
