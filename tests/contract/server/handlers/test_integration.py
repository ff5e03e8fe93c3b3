"""The routes of integrations and credentials: spelled as the contract says, and no secret back."""

from typing import Final

import pytest

from perdure.schema.location import LocationRef
from tests.contract.server.fake_runtime import Answer, Stage, call, listening

HERE: Final = LocationRef("/work/here")
CANARY: Final = "sk-canary-1c0ffee"


async def asked(stage: Stage, method: str, path: str, body: bytes | None = None) -> Answer:
    async with listening(stage.app()) as (_, port):
        return await call(port, method, path, body)


async def test_integrations_are_listed_with_methods_and_connections() -> None:
    answer = await asked(Stage(), "GET", "/api/integration")
    assert answer.status == 200
    assert answer.json()["location"]["directory"] == "/work/here"
    assert answer.json()["data"] == [
        {
            "id": "fake",
            "name": "Fake",
            "methods": [
                {"type": "key"},
                {"type": "env", "names": ["FAKE_KEY"]},
                {"type": "oauth", "id": "browser", "label": "With a browser"},
            ],
            "connections": [
                {"type": "credential", "id": "cred_1", "label": "mine"},
                {"type": "env", "name": "FAKE_KEY"},
            ],
        }
    ]


async def test_a_key_is_handed_over_and_answered_with_nothing() -> None:
    stage = Stage()
    body = b'{"key":"%b","label":"mine"}' % CANARY.encode()
    answer = await asked(stage, "POST", "/api/integration/fake/connect/key", body)
    assert (answer.status, answer.body) == (204, b"")
    assert stage.integrations.calls == [("key", HERE, "fake", CANARY, "mine")]


async def test_a_login_is_begun_asked_about_completed_and_cancelled() -> None:
    stage = Stage()
    body = b'{"methodID":"browser","inputs":{"region":"eu"}}'
    async with listening(stage.app()) as (_, port):
        begun = await call(port, "POST", "/api/integration/fake/connect/oauth", body)
        assert begun.json()["data"] == {
            "attemptID": "att_1",
            "url": "https://login.example.org/",
            "instructions": "Go there.",
            "mode": "code",
            "time": {"created": 1, "expires": 2},
        }
        status = await call(port, "GET", "/api/integration/attempt/att_1")
        assert status.json()["data"] == {
            "status": "failed",
            "message": "no",
            "time": {"created": 1, "expires": 2},
        }
        path = "/api/integration/attempt/att_1/complete"
        assert (await call(port, "POST", path, b'{"code":"c"}')).status == 204
        assert (await call(port, "POST", path, b"{}")).status == 204
        assert (await call(port, "DELETE", "/api/integration/attempt/gone")).status == 204
    assert stage.integrations.calls == [
        ("oauth", HERE, "fake", "browser", {"region": "eu"}, None),
        ("complete", "att_1", "c"),
        ("complete", "att_1", None),
        ("cancel", "gone"),
    ]


async def test_a_credential_is_renamed_and_forgotten() -> None:
    stage = Stage()
    async with listening(stage.app()) as (_, port):
        renamed = await call(port, "PATCH", "/api/credential/cred_1", b'{"label":"work"}')
        removed = await call(port, "DELETE", "/api/credential/cred_1")
        assert (renamed.status, removed.status) == (204, 204)
    assert stage.integrations.calls == [("relabel", "cred_1", "work"), ("remove", "cred_1")]


@pytest.mark.parametrize(
    ("method", "path", "body", "tag"),
    [
        ("GET", "/api/integration/nope", None, "IntegrationNotFoundError"),
        (
            "POST",
            "/api/integration/nope/connect/key",
            b'{"key":"k"}',
            "IntegrationNotFoundError",
        ),
        ("GET", "/api/integration/attempt/nope", None, "AttemptNotFoundError"),
        ("POST", "/api/integration/attempt/nope/complete", b"{}", "AttemptNotFoundError"),
        ("PATCH", "/api/credential/nope", b'{"label":"x"}', "CredentialNotFoundError"),
    ],
)
async def test_what_is_not_there_is_said_to_be_missing(
    method: str, path: str, body: bytes | None, tag: str
) -> None:
    answer = await asked(Stage(), method, path, body)
    assert (answer.status, answer.json()["_tag"]) == (404, tag)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/integration/fake/connect/key", "key"),
        ("/api/integration/fake/connect/oauth", "methodID"),
    ],
)
async def test_a_body_that_lacks_what_is_needed_is_refused(path: str, key: str) -> None:
    answer = await asked(Stage(), "POST", path, b"{}")
    assert answer.status == 400
    assert answer.json()["message"].startswith(f'Missing key\n  at ["{key}"]')
    assert answer.json()["kind"] == "Payload"
