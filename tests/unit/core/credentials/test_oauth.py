"""Logins as decisions: what is sent, what is believed, and when a token is renewed."""

from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from msgspec import UNSET

from perdure.core import limits
from perdure.core.config_file.entries import LoginEntry
from perdure.core.credentials import oauth
from perdure.core.credentials.oauth import Code, LoginMethod, NoCode, Tokens, TokensRefused
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.models.credential import StoredLogin

NOW = 1_700_000_000_000
CANARY = "canary-5up3r"


def entry(**fields: object) -> LoginEntry:
    described: JsonObject = {
        "authorize_url": "https://login.example.org/authorize?audience=api",
        "token_url": "https://login.example.org/token",
        "client_id": "perdure",
        "scopes": ["models", "offline"],
        **fields,
    }
    return codec.convert(LoginEntry, described)


def method(**fields: object) -> LoginMethod:
    return oauth.read_method("browser", entry(**fields))


def login(**fields: object) -> StoredLogin:
    given: JsonObject = {
        "type": "oauth",
        "id": "cred_1",
        "integrationID": "fake",
        "label": "mine",
        "origins": ["https://api.example.org"],
        "timeCreated": NOW,
        "tokenUrl": "https://login.example.org/token",
        "clientID": "perdure",
        "access": f"access-{CANARY}",
        "refresh": f"refresh-{CANARY}",
        **fields,
    }
    return codec.convert(StoredLogin, given)


def answer(body: object, status: int = 200) -> Tokens | TokensRefused:
    data = body if isinstance(body, bytes) else codec.encode(body)
    return oauth.read_tokens(status=status, body=data, now=NOW)


# ---- the way out --------------------------------------------------------------------------------


def test_the_challenge_is_the_one_of_the_standard() -> None:
    # The example of RFC 7636, appendix B.
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert oauth.challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_browser_is_sent_away_with_a_challenge_and_without_the_verifier() -> None:
    url = oauth.authorize_url(
        method(parameters={"prompt": "consent"}),
        state="s1",
        verifier="v1",
        redirect="http://127.0.0.1:5000/callback",
        inputs={},
    )
    assert dict(parse_qsl(urlsplit(url).query)) == {
        "audience": "api",
        "prompt": "consent",
        "response_type": "code",
        "client_id": "perdure",
        "redirect_uri": "http://127.0.0.1:5000/callback",
        "scope": "models offline",
        "state": "s1",
        "code_challenge": oauth.challenge("v1"),
        "code_challenge_method": "S256",
    }


def test_answers_to_prompts_become_parameters_when_they_were_asked() -> None:
    region = {
        "type": "select",
        "key": "region",
        "message": "Where?",
        "options": [{"label": "Europe", "value": "eu"}, {"label": "Asia", "value": "as"}],
    }
    host = {
        "type": "text",
        "key": "host",
        "message": "Which?",
        "when": {"key": "region", "op": "eq", "value": "eu"},
    }
    asking = method(prompts=[region, host])
    assert oauth.check_inputs(asking, {"region": "eu", "host": "a"}) is None
    assert oauth.check_inputs(asking, {"region": "as"}) is None
    assert "needed" in (oauth.check_inputs(asking, {"region": "eu"}) or "")
    assert "options" in (oauth.check_inputs(asking, {"region": "mars"}) or "")
    assert "was asked" in (oauth.check_inputs(asking, {"region": "as", "state": "x"}) or "")
    assert "too long" in (oauth.check_inputs(asking, {"region": "eu", "host": "a" * 9999}) or "")
    url = oauth.authorize_url(
        asking, state="s", verifier="v", redirect="r", inputs={"region": "as", "host": "a"}
    )
    sent = parse_qs(urlsplit(url).query)
    assert sent["region"] == ["as"]
    assert "host" not in sent


@pytest.mark.parametrize(
    "fields",
    [
        {"authorize_url": "http://login.example.org/authorize"},
        {"token_url": "http://login.example.org/token"},
        {"token_url": "ftp://login.example.org/token"},
        {"token_url": "https://user:pw@login.example.org/token"},
        {"token_url": "https://login.example.org/token\r\nx: y"},
        {"token_url": "https://login.example.org:port/token"},
        {"redirect_url": "http://elsewhere.example.org/back"},
        {"parameters": {"state": "mine"}},
        {"parameters": {"redirect_uri": "https://evil.example.org"}},
        {"prompts": [{"type": "text", "key": "client_id", "message": "?"}]},
    ],
)
def test_a_description_that_would_leak_or_break_a_login_is_refused(fields: JsonObject) -> None:
    with pytest.raises(oauth.LoginMethodError):
        method(**fields)


@pytest.mark.parametrize(
    ("redirect", "comes_back"),
    [
        (None, True),
        ("http://127.0.0.1:1455/auth/callback", True),
        ("http://localhost:1455/auth/callback", True),
        ("http://localhost/auth/callback", False),
        ("https://login.example.org/show-code", False),
    ],
)
def test_only_a_port_of_this_machine_needs_no_copied_code(
    redirect: str | None, *, comes_back: bool
) -> None:
    fields = {} if redirect is None else {"redirect_url": redirect}
    assert method(**fields).comes_back is comes_back


# ---- the way back -------------------------------------------------------------------------------


def test_a_browser_with_the_right_state_brings_the_code() -> None:
    assert oauth.read_redirect({"state": "s1", "code": "c1"}, "s1") == Code("c1")


@pytest.mark.parametrize(
    "parameters",
    [{}, {"code": "c"}, {"state": "", "code": "c"}, {"state": "s2", "code": "c"}, {"state": "ß"}],
)
def test_whatever_cannot_prove_that_it_belongs_leaves_the_attempt_alone(
    parameters: dict[str, str],
) -> None:
    found = oauth.read_redirect(parameters, "s1")
    assert isinstance(found, NoCode)
    assert not found.ours


def test_a_refusal_by_the_provider_ends_the_attempt_and_is_told_in_its_standard_word() -> None:
    found = oauth.read_redirect({"state": "s1", "error": "access_denied"}, "s1")
    assert found == NoCode("the provider answered access_denied", ours=True)
    hostile = oauth.read_redirect({"state": "s1", "error": "<script>alert(1)</script>"}, "s1")
    assert hostile == NoCode("the provider answered an error", ours=True)


@pytest.mark.parametrize(
    "text",
    [
        "c1",
        "  c1\n",
        "c1#s1",
        "http://127.0.0.1:5000/callback?code=c1&state=s1",
        "https://login.example.org/show#code=c1&state=s1",
    ],
)
def test_a_copied_code_is_understood_in_every_form_that_people_copy(text: str) -> None:
    assert oauth.read_pasted(text, "s1") == Code("c1")


@pytest.mark.parametrize(
    "text",
    ["", "c1#s2", "http://127.0.0.1/callback?code=c1", "a b", "a\x00b", "x" * 10_000, "http://[::"],
)
def test_a_copied_text_that_is_no_code_of_this_attempt_is_refused(text: str) -> None:
    assert isinstance(oauth.read_pasted(text, "s1"), NoCode)


# ---- tokens -------------------------------------------------------------------------------------


def test_the_code_goes_out_with_its_verifier() -> None:
    request = oauth.exchange_request(method(), code=Code("c1"), verifier="v1", redirect="http://r")
    assert request.url == "https://login.example.org/token"
    assert dict(parse_qsl(b"".join(request.body).decode())) == {
        "grant_type": "authorization_code",
        "client_id": "perdure",
        "code": "c1",
        "code_verifier": "v1",
        "redirect_uri": "http://r",
    }


def test_a_long_token_is_renewed_minutes_before_its_end_and_a_short_one_half_way() -> None:
    long = answer({"access_token": "a", "refresh_token": "r", "expires_in": 3600})
    assert long == Tokens(
        access="a", refresh="r", expires=NOW + 3_600_000, due=NOW + 3_600_000 - 300_000
    )
    short = answer({"access_token": "a", "expires_in": "60"})
    assert short == Tokens(access="a", refresh=None, expires=NOW + 60_000, due=NOW + 30_000)


@pytest.mark.parametrize("seconds", [None, 0, -5, 1e300, "soon", True, [], "9" * 5000])
def test_a_lifetime_that_makes_no_sense_is_no_lifetime(seconds: object) -> None:
    found = answer({"access_token": "a", "expires_in": seconds})
    assert isinstance(found, Tokens)
    assert found.expires is None or found.expires > NOW


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        {"access_token": 3},
        {"access_token": ""},
        {"access_token": "a\r\nx-evil: 1"},
        {"access_token": "a", "refresh_token": "b c"},
        {"access_token": "a" * (limits.CREDENTIAL_CHARS_MAX + 1)},
    ],
)
def test_an_answer_without_a_usable_token_is_a_refusal_that_may_pass(body: object) -> None:
    found = answer(body)
    assert isinstance(found, TokensRefused)
    assert not found.final


@pytest.mark.parametrize(
    ("status", "error", "final"),
    [
        (400, "invalid_grant", True),
        (401, "invalid_client", True),
        (400, "temporarily_unavailable", False),
        (503, None, False),
        (429, "slow_down", False),
    ],
)
def test_only_a_refusal_of_the_grant_itself_is_final(
    status: int, error: str | None, *, final: bool
) -> None:
    body = {"error": error, "error_description": f"token {CANARY} is bad"}
    found = answer(body, status)
    assert isinstance(found, TokensRefused)
    assert found.final is final
    assert CANARY not in found.reason


def test_a_renewed_login_keeps_the_refresh_token_that_was_not_replaced() -> None:
    before = login(due=NOW, expires=NOW)
    tokens = Tokens(access="new", refresh=None, expires=None, due=None)
    after = oauth.with_tokens(before, tokens)
    assert (after.access, after.refresh, after.expires, after.due) == (
        "new",
        before.refresh,
        UNSET,
        UNSET,
    )
    assert not oauth.needs_renewal(after, now=NOW + 10**12)


def test_a_login_is_due_before_it_has_run_out() -> None:
    kept = login(due=NOW + 1, expires=NOW + 2)
    assert not oauth.needs_renewal(kept, now=NOW)
    assert oauth.needs_renewal(kept, now=NOW + 1)
    assert not oauth.has_expired(kept, now=NOW + 1)
    assert oauth.has_expired(kept, now=NOW + 2)


def test_nothing_that_holds_a_secret_shows_it_when_printed() -> None:
    tokens = Tokens(access=CANARY, refresh=CANARY, expires=None, due=None)
    shown = [repr(each) for each in (login(), tokens, Code(CANARY), [login()], {"a": tokens})]
    assert not any(CANARY in text for text in shown)
