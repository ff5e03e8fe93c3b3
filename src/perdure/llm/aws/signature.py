"""The key pair that requests to AWS are signed with."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec.structs import replace

from perdure.net.transport import HttpRequest
from perdure.schema.value import Confidential, Value


class AwsKeys(Confidential):
    access_key_id: str
    secret_access_key: str
    session_token: str = ""
    """Of keys that were lent for a while."""


ALGORITHM: Final = "AWS4-HMAC-SHA256"
_USUAL_PORTS: Final = {"http": 80, "https": 443}


class Scope(Value):
    """Where a signature is good for."""

    region: str
    service: str


def bedrock_signer(
    keys: AwsKeys, region: str, now_millis: Callable[[], int]
) -> Callable[[HttpRequest], HttpRequest]:
    """What signs each request to Bedrock at the moment when it is made."""
    scope = Scope(region, "bedrock")

    def sign(request: HttpRequest) -> HttpRequest:
        return sign_request(request, keys, scope, now_millis())

    return sign


def sign_request(request: HttpRequest, keys: AwsKeys, scope: Scope, at_millis: int) -> HttpRequest:
    """The same request with its date and its authorization."""
    stamp = datetime.fromtimestamp(at_millis / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {name.lower(): value for name, value in request.headers.items()}
    headers.pop("authorization", None)
    headers["x-amz-date"] = stamp
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    proven = _signed_headers(request.url, headers)
    credential = f"{stamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    canonical = _canonical(request, proven)
    to_sign = "\n".join((ALGORITHM, stamp, credential, _digest(canonical.encode())))
    signature = hmac.new(_signing_key(keys, scope, stamp[:8]), to_sign.encode(), "sha256")
    headers["authorization"] = (
        f"{ALGORITHM} Credential={keys.access_key_id}/{credential},"
        f" SignedHeaders={';'.join(proven)}, Signature={signature.hexdigest()}"
    )
    return replace(request, headers=headers)


def _signed_headers(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are signed, in their order, with values in their one spelling."""
    chosen = {
        name: " ".join(value.split())
        for name, value in headers.items()
        if name == "content-type" or name.startswith("x-amz-")
    }
    return dict(sorted((chosen | {"host": _host(url)}).items()))


def _canonical(request: HttpRequest, proven: Mapping[str, str]) -> str:
    parts = urlsplit(request.url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    escaped = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in pairs)
    body = hashlib.sha256()
    for piece in request.body:
        body.update(piece)
    lines = (
        request.method,
        quote(parts.path or "/", safe="/-_.~"),
        "&".join(f"{name}={value}" for name, value in escaped),
        *(f"{name}:{value}" for name, value in proven.items()),
        "",
        ";".join(proven),
        body.hexdigest(),
    )
    return "\n".join(lines)


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = parts.port is None or parts.port == _USUAL_PORTS.get(parts.scheme)
    return host if usual else f"{host}:{parts.port}"


def _signing_key(keys: AwsKeys, scope: Scope, day: str) -> bytes:
    key = f"AWS4{keys.secret_access_key}".encode()
    for step in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.digest(key, step.encode(), "sha256")
    return key


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
