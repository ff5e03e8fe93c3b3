"""Which environment variables the model's commands receive.

Withheld are names that usually hold a secret, those that a provider's configuration names as its
key, and URLs with a password in them, because the output of a command goes to the model and into
the log. The user's own configuration can allow names (`experimental.bash.allowed_variables`).
Other values are not inspected: a secret under an ordinary name is passed on.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from perdure.core.text import wildcard
from perdure.lazy_pattern import lazy_pattern

_SECRET: Final = (
    "*_KEY",
    "*_KEYS",
    "*APIKEY",
    "*TOKEN",
    "*TOKENS",
    "*SECRET",
    "*SECRETS",
    "*_SECRET_*",
    "*CREDENTIAL*",
    "*PASSWORD*",
    "*PASSPHRASE*",
    "*_PASSWD",
    "*_PAT",
    "*_AUTH",
    "*_DSN",
)
_WITH_PASSWORD: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]*://[^/?#\s@:]*+:[^/?#\s@]++@")


def without_secrets(
    variables: Mapping[str, str], *, keys: Collection[str] = (), allowed: Sequence[str] = ()
) -> dict[str, str]:
    """The variables to pass to a command.

    `keys` are variables that hold a provider's key. `allowed` are names or patterns, as in
    permission rules.
    """
    return {
        name: value
        for name, value in variables.items()
        if not (name in keys or _is_secret(name, value))
        or any(wildcard.matches(pattern, name) for pattern in allowed)
    }


def _is_secret(name: str, value: str) -> bool:
    if _WITH_PASSWORD.match(value) is not None:
        return True
    return any(wildcard.matches(pattern, name.upper()) for pattern in _SECRET)
