"""OAuth 2.0 logins: authorization code with PKCE, token requests, and when to renew.

No provider is built in: a LoginMethod describes one, and comes from the user's configuration.
location.models.credentials and runtime.locations.integrations send requests and keep tokens;
randomness and time are arguments.

Invariant: no message contains a code, a token or a verifier. Of a token server's answer, only the
standard error code is passed on.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, cast
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.config_file.entries import LoginEntry
from perdure.core.credentials import keys
from perdure.lazy_pattern import lazy_pattern
from perdure.net import loopback
from perdure.net.transport import HttpRequest
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.credential import SecretPlace, StoredLogin
from perdure.schema.models.integration import LoginPrompt, SelectPrompt
from perdure.schema.value import Confidential, Value

_OWN_PARAMETERS: Final = frozenset(
    {
        "client_id",
        "code_challenge",
        "code_challenge_method",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
    }
)
_ERROR_CODE: Final = lazy_pattern(r"[a-z][a-z_]{1,63}")
_UNFIT: Final = lazy_pattern(r"[^\x21-\x7e]")
_FINAL: Final = frozenset(
    {"access_denied", "expired_token", "invalid_client", "invalid_grant", "unauthorized_client"}
)
_CODES_CHARS_MAX: Final = 8 * 1024


class LoginMethodError(Exception):
    """A configured login method cannot be used. The message is for its author."""


class LoginMethod(Confidential, kw_only=True):
    """One way to log in to a provider."""

    id: str
    label: str
    authorize_url: str = ""
    """The page at which a browser of this machine begins; empty if the login has a device code."""
    device_url: str = ""
    """The address that gives device codes; core.credentials.device_login."""
    token_url: str
    client_id: str
    client_secret: str = ""
    secret_place: SecretPlace = "header"
    scopes: tuple[str, ...] = ()
    redirect_url: str | None = None
    """Where the browser is redirected; None means a free port on this machine."""
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Further parameters of the authorize request."""
    prompts: tuple[LoginPrompt, ...] = ()
    """Questions asked first. Each answer becomes a parameter of the same name."""

    @property
    def returns_here(self) -> bool:
        """Whether the browser is redirected to this machine, so that no code must be copied."""
        if self.redirect_url is None:
            return True
        split = urlsplit(self.redirect_url)
        here = split.hostname in loopback.NAMES
        return split.scheme == "http" and here and split.port is not None


class Tokens(Confidential, kw_only=True):
    access: str
    refresh: str | None
    expires: int | None
    due: int | None
    """When to renew them: minutes before they expire, or halfway if they are short-lived."""


class TokensRefused(Value):
    reason: str
    final: bool
    """Whether a retry with the same grant cannot succeed."""


class Code(Confidential):
    value: str


class NoCode(Value):
    """The returned text contains no usable code."""

    reason: str
    ours: bool
    """Whether it provably belongs to the login attempt; only then may it end the attempt."""


def read_method(id: str, entry: LoginEntry) -> LoginMethod:
    """The login method of a configuration entry. Raises LoginMethodError."""
    described = LoginMethod(
        id=id,
        label=entry.label or id,
        authorize_url=entry.authorize_url or "",
        device_url=entry.device_url or "",
        token_url=entry.token_url,
        client_id=entry.client_id,
        scopes=entry.scopes,
        redirect_url=entry.redirect_url or None,
        parameters=entry.parameters or {},
        prompts=entry.prompts,
    )
    if bool(described.authorize_url) == bool(described.device_url):
        raise LoginMethodError("one of `authorize_url` and `device_url` is needed")
    begins = "authorize_url" if described.authorize_url else "device_url"
    urls = {begins: described.authorize_url or described.device_url}
    urls["token_url"] = described.token_url
    if described.redirect_url is not None:
        urls["redirect_url"] = described.redirect_url
    for name, url in urls.items():
        if not _is_safe(url):
            raise LoginMethodError(f"`{name}` must be an https address, or http on this machine")
    asked = {prompt.key for prompt in described.prompts}
    if taken := sorted(_OWN_PARAMETERS & (asked | described.parameters.keys())):
        raise LoginMethodError(f"`{taken[0]}` is set by the login itself")
    return described


def methods_by_provider(
    documents: Iterable[Iterable[tuple[str, LoginMethod]]],
) -> dict[str, tuple[LoginMethod, ...]]:
    """The login methods of each provider; a later document replaces methods of the same id."""
    found: dict[str, dict[str, LoginMethod]] = {}
    for document in documents:
        for provider, method in document:
            found.setdefault(provider, {})[method.id] = method
    return {provider: tuple(methods.values()) for provider, methods in found.items()}


def asked_parameters(method: LoginMethod, inputs: Mapping[str, str]) -> dict[str, str]:
    """The configured parameters of a login, and the answers to its prompts."""
    asked = {prompt.key for prompt in method.prompts if _applies(prompt, inputs)}
    given = {key: value for key, value in inputs.items() if key in asked}
    return {**method.parameters, **given}


def check_inputs(method: LoginMethod, inputs: Mapping[str, str]) -> str | None:
    """What is wrong with the answers to the prompts of a method; None if nothing."""
    prompts = {prompt.key: prompt for prompt in method.prompts}
    if unknown := sorted(inputs.keys() - prompts.keys()):
        return f"nothing called {unknown[0][:60]!r} was asked"
    for key, prompt in prompts.items():
        if not _applies(prompt, inputs):
            continue
        answer = inputs.get(key)
        if answer is None:
            return f"an answer to {key!r} is needed"
        if len(answer) > limits.LOGIN_INPUT_CHARS_MAX or not answer.isprintable():
            return f"the answer to {key!r} is too long or not plain text"
        if isinstance(prompt, SelectPrompt) and answer not in {o.value for o in prompt.options}:
            return f"the answer to {key!r} is not one of its options"
    return None


def secret_text(entropy: bytes) -> str:
    """A code verifier or a state: unguessable URL-safe text."""
    return base64.urlsafe_b64encode(entropy).rstrip(b"=").decode()


def challenge(verifier: str) -> str:
    """The S256 challenge of a verifier."""
    return secret_text(hashlib.sha256(verifier.encode()).digest())


def authorize_url(
    method: LoginMethod, *, state: str, verifier: str, redirect: str, inputs: Mapping[str, str]
) -> str:
    """The URL to open in the browser."""
    split = urlsplit(method.authorize_url)
    parameters = {
        **dict(parse_qsl(split.query, keep_blank_values=True)),
        **asked_parameters(method, inputs),
        "response_type": "code",
        "client_id": method.client_id,
        "redirect_uri": redirect,
        **({"scope": " ".join(method.scopes)} if method.scopes else {}),
        "state": state,
        "code_challenge": challenge(verifier),
        "code_challenge_method": "S256",
    }
    return urlunsplit((split.scheme, split.netloc, split.path, urlencode(parameters), ""))


def read_redirect(parameters: Mapping[str, str], state: str) -> Code | NoCode:
    """The code in the parameters of the redirect."""
    if not hmac.compare_digest(parameters.get("state", "").encode(), state.encode()):
        return NoCode("it does not belong to this login", ours=False)
    if error := parameters.get("error"):
        detail = error if _ERROR_CODE.fullmatch(error) else "an error"
        return NoCode(f"the provider answered {detail}", ours=True)
    return _code(parameters.get("code", ""))


def read_pasted(text: str, state: str) -> Code | NoCode:
    """The code that a person pasted: alone, as `code#state`, or as the whole redirect URL."""
    text = text.strip()
    if len(text) > _CODES_CHARS_MAX:
        return NoCode("it is too long for a code", ours=False)
    if text.startswith(("http://", "https://")):
        _, _, behind = text.partition("?")
        parameters = behind or text.partition("#")[2]
        return read_redirect(dict(parse_qsl(parameters.partition("#")[0])), state)
    value, mark, proof = text.partition("#")
    if mark and not hmac.compare_digest(proof.encode(), state.encode()):
        return NoCode("it does not belong to this login", ours=False)
    return _code(value)


def exchange_request(
    method: LoginMethod, *, code: Code, verifier: str, redirect: str
) -> HttpRequest:
    """The request that exchanges a code for tokens."""
    request = token_request(
        method.token_url,
        grant_type="authorization_code",
        client_id=method.client_id,
        **_secret_fields(method.client_secret, method.secret_place),
        code=code.value,
        code_verifier=verifier,
        redirect_uri=redirect,
    )
    return _with_secret(request, method.client_id, method.client_secret, method.secret_place)


def renewal_request(login: StoredLogin) -> HttpRequest:
    """The request that exchanges a refresh token for new tokens."""
    assert login.refresh is not UNSET
    secret, place = login.client_secret or "", login.secret_place or "header"
    request = token_request(
        login.token_url,
        grant_type="refresh_token",
        client_id=login.client_id,
        **_secret_fields(secret, place),
        refresh_token=login.refresh,
    )
    return _with_secret(request, login.client_id, secret, place)


def _secret_fields(secret: str, place: SecretPlace) -> dict[str, str]:
    return {"client_secret": secret} if secret and place == "body" else {}


def _with_secret(
    request: HttpRequest, client_id: str, secret: str, place: SecretPlace
) -> HttpRequest:
    if not secret or place != "header":
        return request
    # Both are encoded before they are joined (RFC 6749, 2.3.1).
    joined = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    basic = base64.b64encode(joined.encode()).decode()
    return replace(request, headers={**request.headers, "authorization": f"Basic {basic}"})


def token_request(url: str, **fields: str) -> HttpRequest:
    """A request with these fields to the token server at `url`."""
    return HttpRequest(
        url=url,
        headers={
            "accept": "application/json",
            "content-type": "application/x-www-form-urlencoded",
        },
        body=(urlencode(fields).encode(),),
    )


def read_tokens(*, status: int, body: bytes, now: int) -> Tokens | TokensRefused:
    """Parse the answer to a token request, received at `now`."""
    answer = read_object(body)
    # Some servers refuse with status 200.
    if status != 200 or "error" in answer:
        error: JsonValue = answer.get("error")
        known = isinstance(error, str) and _ERROR_CODE.fullmatch(error) is not None
        detail = f"{error} (status {status})" if known else f"status {status}"
        return TokensRefused(f"the provider answered {detail}", final=known and error in _FINAL)
    access, refresh = answer.get("access_token"), answer.get("refresh_token")
    if not _is_token(access) or not (refresh is None or _is_token(refresh)):
        return TokensRefused("the provider answered without a usable token", final=False)
    seconds: JsonValue = answer.get("expires_in")
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal():
        seconds = int(seconds[:12])
    if not isinstance(seconds, int | float) or not 0 < seconds < limits.LOGIN_SECONDS_MAX:
        return Tokens(access=cast("str", access), refresh=refresh, expires=None, due=None)
    life = int(seconds * 1000)
    expires, due = now + life, _due(now, life)
    return Tokens(access=cast("str", access), refresh=refresh, expires=expires, due=due)


def access_only(access: str, *, expires: int | None, now: int) -> Tokens:
    """An access token that another program renews."""
    due = None if expires is None else _due(now, expires - now)
    return Tokens(access=access, refresh=None, expires=expires, due=due)


def _due(now: int, life: int) -> int:
    return now + max(life - limits.LOGIN_RENEWED_AHEAD_SECONDS * 1000, life // 2)


def with_tokens(login: StoredLogin, tokens: Tokens) -> StoredLogin:
    """`login` with new tokens; it keeps its refresh token if the server sent none."""
    return msgspec.structs.replace(
        login,
        access=tokens.access,
        refresh=login.refresh if tokens.refresh is None else tokens.refresh,
        expires=UNSET if tokens.expires is None else tokens.expires,
        due=UNSET if tokens.due is None else tokens.due,
        lost=UNSET,
    )


def needs_renewal(login: StoredLogin, *, now: int) -> bool:
    """Whether the access token must be renewed before its next use."""
    return login.due is not UNSET and login.due <= now


def has_expired(login: StoredLogin, *, now: int) -> bool:
    return login.expires is not UNSET and login.expires <= now


def _applies(prompt: LoginPrompt, inputs: Mapping[str, str]) -> bool:
    when = prompt.when
    return when is UNSET or (inputs.get(when.key) == when.value) == (when.op == "eq")


def _code(text: str) -> Code | NoCode:
    if not text or len(text) > _CODES_CHARS_MAX or _UNFIT.search(text):
        return NoCode("there is no usable code in it", ours=True)
    return Code(text)


def _is_token(value: JsonValue) -> bool:
    fits = isinstance(value, str) and 0 < len(value) <= limits.CREDENTIAL_CHARS_MAX
    return fits and _UNFIT.search(cast("str", value)) is None


def _is_safe(url: str) -> bool:
    origin = keys.origin_of(url)
    if origin is None or _UNFIT.search(url):
        return False
    split = urlsplit(url)
    plain = split.username is None and not split.fragment
    return plain and (split.scheme == "https" or split.hostname in loopback.NAMES)


def read_object(body: bytes) -> JsonObject:
    """The JSON object of an answer; empty if it is none."""
    try:
        value = codec.decode_any(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else {}
