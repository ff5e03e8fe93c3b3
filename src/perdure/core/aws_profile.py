"""A named profile of the AWS tools, as the variables that it stands for.

Pure: what the two files hold goes in. Keys, lent ones with their token, and the region are read;
profiles that are to be assumed, logged in to or asked of a program are not, and stand for nothing.

Invariant: what a variable already says stays as it is.
"""

import re
from collections.abc import Mapping
from typing import Final

_SECTION: Final = re.compile(r"\[\s*(?:profile\s+)?([^\]\s][^\]]*?)\s*\]")
_KEYS: Final[Mapping[str, str]] = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")


def over(variables: Mapping[str, str], *, credentials: str, config: str) -> Mapping[str, str]:
    """`variables` with those of the profile that `AWS_PROFILE` names; as given, if it adds none."""
    name = variables.get("AWS_PROFILE")
    if not name:
        return variables
    found = {**section(config, name), **section(credentials, name)}
    added: dict[str, str] = {}
    if not variables.get("AWS_ACCESS_KEY_ID"):
        # A pair belongs together: never the half of one with the half of another.
        added = {_KEYS[key]: found[key] for key in _KEYS if found.get(key)}
    if found.get("region") and not any(variables.get(each) for each in _REGIONS):
        added["AWS_REGION"] = found["region"]
    return {**variables, **added} if added else variables


def section(text: str, name: str) -> dict[str, str]:
    """The settings below `[name]` or `[profile name]`; the last one wins."""
    found: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("["):
            head = _SECTION.match(stripped)
            inside = head is not None and head[1] == name
        elif inside and line[0] not in " \t":
            key, _, value = stripped.partition("=")
            found[key.strip().lower()] = value.strip()
    return found
