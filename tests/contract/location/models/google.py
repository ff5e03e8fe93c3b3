"""The file in which the tools of Google Cloud keep a login, in a place of a test."""

from pathlib import Path

from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.location.opened_location import Place


def login(**fields: JsonValue) -> JsonObject:
    return {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "canary-client-secret",
        "refresh_token": "canary-refresh-token",
        **fields,
    }


def log_in(place: Place, content: object) -> Path:
    """The file that `gcloud` writes."""
    usual = place.home / ".config/gcloud/application_default_credentials.json"
    return place.write(usual, content)
