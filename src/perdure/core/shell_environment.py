"""Which variables of the user's environment a command of the model gets to see.

Names that usually hold a secret are held back, those of providers' keys and of our own server's
password among them: what a command prints goes to the model and into the log. The user's own
configuration can let names through (`experimental.bash.allowed_variables`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core import wildcard

_SECRET: Final = (
    "*_KEY",
    "*_TOKEN",
    "*_SECRET",
    "*_CREDENTIALS",
    "*PASSWORD*",
    "*PASSPHRASE*",
    "TOKEN",
    "SECRET",
)


def scrubbed(variables: Mapping[str, str], *, allowed: Sequence[str] = ()) -> dict[str, str]:
    """The variables to pass on. `allowed` are names or patterns, as in permission rules."""
    return {
        name: value
        for name, value in variables.items()
        if not _is_secret(name) or any(wildcard.matches(pattern, name) for pattern in allowed)
    }


def _is_secret(name: str) -> bool:
    return any(wildcard.matches(pattern, name.upper()) for pattern in _SECRET)
