"""The file in which the tools of Google Cloud keep a login, in a place of a test."""

from pathlib import Path

from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.location.opened_location import LocationFolders


def login(**fields: JsonValue) -> JsonObject:
    return {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "canary-client-secret",
        "refresh_token": "canary-refresh-token",
        **fields,
    }


def log_in(folders: LocationFolders, content: object) -> Path:
    """The file that `gcloud` writes."""
    usual = folders.home / ".config/gcloud/application_default_credentials.json"
    return folders.write(usual, content)
