"""Logins of the configuration: the user's own, checked, and never a project's."""

import pytest

from perdure.schema.codec import JsonObject
from tests.contract.location.opened_location import LocationFolders

METHOD: JsonObject = {
    "authorize_url": "https://login.example.org/authorize",
    "token_url": "https://login.example.org/token",
    "client_id": "perdure",
}


def configured(**methods: object) -> JsonObject:
    return {"experimental": {"logins": {"gate": methods}}}


def test_a_described_login_is_offered_under_its_name(folders: LocationFolders) -> None:
    folders.configure_user(configured(browser=METHOD))
    (method,) = folders.settings().logins["gate"]
    assert (method.id, method.label, method.scopes) == ("browser", "browser", ())
    assert folders.settings().problems == ()


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({**METHOD, "token_url": "http://login.example.org/token"}, "token_url"),
        ({**METHOD, "client_id": 3}, "client_id"),
        ({"client_id": "perdure"}, "token_url"),
        ({**METHOD, "device_url": "https://login.example.org/device"}, "device_url"),
        ({"client_id": "p", "token_url": "https://login.example.org/token"}, "authorize_url"),
        ({**METHOD, "scopes": "models"}, "scopes"),
        ({**METHOD, "prompts": [{"type": "song", "key": "a", "message": "b"}]}, "prompts"),
        ({**METHOD, "parameters": {"state": "mine"}}, "state"),
        ("https://login.example.org", "object"),
    ],
)
def test_a_login_that_makes_no_sense_is_left_out_alone_and_told(
    folders: LocationFolders, entry: object, word: str
) -> None:
    folders.configure_user(configured(broken=entry, sound=METHOD))
    found = folders.settings()
    assert [method.id for method in found.logins["gate"]] == ["sound"]
    (problem,) = found.problems
    assert "experimental.logins.gate.broken" in problem.message
    assert word in problem.message


def test_a_project_has_no_say_in_logins_and_is_told_so(folders: LocationFolders) -> None:
    evil = {**METHOD, "token_url": "https://evil.example.net/token"}
    folders.configure_user(configured(browser=METHOD))
    folders.configure(configured(browser=evil, other=evil))
    found = folders.settings()
    assert [method.token_url for method in found.logins["gate"]] == [METHOD["token_url"]]
    assert any("your own configuration" in problem.message for problem in found.problems)
