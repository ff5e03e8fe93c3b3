"""Credentials for tests of those who keep them."""

from typing import Final

from perdure.schema.models.credential import StoredKey, StoredLogin

CANARY: Final = "sk-canary-0ddba11"
HOME: Final = "https://api.example.org"


def key(integration_id: str, *, value: str = CANARY) -> StoredKey:
    return StoredKey(
        id=f"cred_{integration_id}",
        integration_id=integration_id,
        label="mine",
        origins=(HOME,),
        time_created=1,
        key=value,
    )


def login(integration_id: str = "fake", *, access: str = CANARY) -> StoredLogin:
    return StoredLogin(
        id=f"cred_{integration_id}",
        integration_id=integration_id,
        label="mine",
        origins=(HOME,),
        time_created=1,
        token_url="https://login.example.org/token",
        client_id="perdure",
        access=access,
        refresh=f"refresh-{access}",
    )
