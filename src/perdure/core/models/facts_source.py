"""Whether facts about models are fetched, and from where, by the user's environment.

A separate module, so that a server can log it at start without loading the catalog.
"""

from collections.abc import Mapping
from typing import Final

DISABLE: Final = "OPENCODE_DISABLE_MODELS_FETCH"
URL: Final = "OPENCODE_MODELS_URL"
URL_DEFAULT: Final = "https://models.dev"


def source_of(variables: Mapping[str, str]) -> str | None:
    """The URL to fetch from; None if fetching is disabled."""
    return None if is_true(variables.get(DISABLE)) else variables.get(URL) or URL_DEFAULT


def is_true(value: str | None) -> bool:
    """Whether the value of an environment variable means true."""
    return (value or "").lower() in {"1", "true"}
