"""Signatures as AWS publishes them in its test suite, and what is never part of a request."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from perdure.llm.aws.signature import AwsKeys, Scope, bedrock_signer, sign_request
from perdure.net.transport import HttpRequest

KEYS = AwsKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SCOPE = Scope("us-east-1", "service")
AT = int(datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp() * 1000)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def request(method: str, path: str, *body: bytes, **headers: str) -> HttpRequest:
    url = f"https://example.amazonaws.com{path}"
    return HttpRequest(url=url, headers=headers, body=body, method=method)


def signature_of(request: HttpRequest, keys: AwsKeys = KEYS) -> str:
    return sign_request(request, keys, SCOPE, AT).headers["authorization"].rpartition("=")[2]


@pytest.mark.parametrize(
    ("asked", "signature"),
    [
        (
            request("GET", "/"),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            request("POST", "/"),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            request("GET", "/?Param2=value2&Param1=value1"),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            request("GET", "/ሴ"),
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
        ),
        (
            request("POST", "/", b"Param1=", b"value1", **FORM),
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
    ids=["get", "post", "query", "utf-8", "form"],
)
def test_published_signatures_come_out(asked: HttpRequest, signature: str) -> None:
    assert signature_of(asked) == signature


def test_the_whole_header_names_the_scope_and_what_was_signed() -> None:
    made = sign_request(request("GET", "/"), KEYS, SCOPE, AT)
    assert made.headers["x-amz-date"] == "20150830T123600Z"
    assert made.headers["authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
        " SignedHeaders=host;x-amz-date, Signature="
    )


def test_the_token_of_lent_keys_goes_along_and_is_signed() -> None:
    lent = replace(KEYS, session_token="token-of-a-session")
    made = sign_request(request("POST", "/"), lent, SCOPE, AT)
    assert made.headers["x-amz-security-token"] == "token-of-a-session"
    assert "host;x-amz-date;x-amz-security-token," in made.headers["authorization"]
    assert signature_of(request("POST", "/"), lent) != signature_of(request("POST", "/"))


def test_the_secret_is_in_no_header_and_not_in_print() -> None:
    made = sign_request(request("POST", "/", authorization="Bearer old"), KEYS, SCOPE, AT)
    assert KEYS.secret_access_key not in "".join(made.headers.values())
    assert "Bearer" not in made.headers["authorization"]
    assert "wJalr" not in repr(KEYS)
    assert "AKID" not in repr(KEYS)


@pytest.mark.parametrize(
    "changed",
    [
        request("POST", "/model/a%3A0/converse-stream"),
        request("POST", "/model/a:0/converse-stream", b"{}"),
        replace(request("POST", "/model/a:0/converse-stream"), url="http://h:8080/model/a:0"),
        request("POST", "/model/a:0/converse-stream", **{"content-type": "application/json"}),
    ],
)
def test_whatever_is_sent_differently_is_signed_differently(changed: HttpRequest) -> None:
    assert signature_of(changed) != signature_of(request("POST", "/model/a:0/converse-stream"))


def test_pieces_of_a_body_are_one_body() -> None:
    assert signature_of(request("POST", "/", b"a", b"bc")) == signature_of(
        request("POST", "/", b"abc")
    )


def test_each_request_is_signed_at_its_own_time() -> None:
    moments = iter([AT, AT + 1_000])
    sign = bedrock_signer(KEYS, "eu-west-1", lambda: next(moments))
    first, second = sign(request("GET", "/")), sign(request("GET", "/"))
    assert first.headers["x-amz-date"] == "20150830T123600Z"
    assert second.headers["x-amz-date"] == "20150830T123601Z"
    assert "AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request" in first.headers["authorization"]
