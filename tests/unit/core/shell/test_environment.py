"""Which variables a command of the model gets to see."""

import pytest

from perdure.core.shell.environment import without_secrets


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "github_token", "X_SECRET", "PGPASSWORD", "OPENCODE_SERVER_PASSWORD"),
        *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS"),
        *("TOKEN", "SECRET", "GITHUB_PAT", "SENTRY_DSN", "NPM_CONFIG__AUTH", "MYSQL_PASSWD"),
        *("MAPS_APIKEY", "STRIPE_SECRET_LIVE", "SSH_KEY_PASSPHRASE", "DEPLOY_KEYS"),
    ],
)
def test_names_that_usually_hold_a_secret_are_held_back(name: str) -> None:
    assert without_secrets({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize(
    "name",
    ["KEYBOARD", "MONKEY", "PWD", "OLDPWD", "AUTHOR", "SSH_AUTH_SOCK", "TOKENIZERS_PARALLELISM"],
)
def test_names_that_only_look_alike_pass(name: str) -> None:
    assert without_secrets({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("postgres://me:secret@db.example/x", False),
        ("https://user:p%40ss@proxy.example:3128", False),
        ("redis://:secret@cache.example", False),
        ("https://me@git.example/x", True),
        ("https://example.com:443/a@b", True),
        ("https://example.com/?to=a:b@c", True),
        ("", True),
    ],
)
def test_an_address_with_a_password_is_held_back(value: str, passes: bool) -> None:
    assert without_secrets({"WHERE": value}) == ({"WHERE": value} if passes else {})


def test_the_key_of_a_provider_is_held_back_whatever_its_name() -> None:
    assert without_secrets({"GATE": "x", "HOME": "/"}, keys={"GATE"}) == {"HOME": "/"}


def test_the_user_lets_names_through() -> None:
    variables = {"GITHUB_TOKEN": "1", "OPENAI_API_KEY": "2", "GATE": "3", "X_SECRET": "4"}
    kept = without_secrets(variables, keys={"GATE"}, allowed=("GITHUB_TOKEN", "OPENAI_*", "GATE"))
    assert kept.keys() == {"GITHUB_TOKEN", "OPENAI_API_KEY", "GATE"}
