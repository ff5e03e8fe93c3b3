"""Whether facts about models are fetched, and from where: the user's environment decides.

A module of its own, so that a server can say so at its start without loading the catalog.
"""

from collections.abc import Mapping
from typing import Final

DISABLE: Final = "OPENCODE_DISABLE_MODELS_FETCH"
URL: Final = "OPENCODE_MODELS_URL"
URL_DEFAULT: Final = "https://models.dev"


def source_of(variables: Mapping[str, str]) -> str | None:
    """The address of the publisher; None when nothing may be fetched."""
    return None if is_true(variables.get(DISABLE)) else variables.get(URL) or URL_DEFAULT


def is_true(value: str | None) -> bool:
    """Whether a variable of the environment switches something on."""
    return (value or "").lower() in {"1", "true"}
