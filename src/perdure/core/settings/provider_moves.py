"""Moves of the user's providers: a project's new addresses for a provider that the user configured.

The user's key would follow such a move. Only a document that a person granted, with the request for
that key, may move a provider.
"""

from collections.abc import Mapping

from perdure.core.config_file import problem as config_problem
from perdure.core.config_file.problem import Problem
from perdure.core.settings import trust
from perdure.core.settings.document import Document
from perdure.core.text.jsonc import Address
from perdure.schema.codec import JsonObject


def without_moves(
    document: Document, users: Mapping[str, JsonObject]
) -> tuple[Mapping[str, JsonObject], tuple[Problem, ...]]:
    """The providers of a document, without new addresses for the user's own providers."""
    if document.trust == "user":
        return document.providers, ()
    kept: dict[str, JsonObject] = {}
    problems: list[Problem] = []
    for name, entry in document.providers.items():
        stays = name in users and not _may_move(document, name)
        kept[name] = _without_address(entry) if stays else entry
        if kept[name] != entry:
            message = (
                f"`providers.{name}` is defined in your own configuration or by a plugin; "
                "a project with a key of its own cannot change its address or protocol"
            )
            problems.append(Problem(document.path, message, at=("providers", name, "api")))
    return kept, config_problem.with_positions(problems, document.text)


def may_set(document: Document, provider: str, at: Address) -> bool:
    """Whether the document may set the key `at` of a provider that the user configured."""
    return not _is_address_key(at) or _may_move(document, provider)


def _may_move(document: Document, provider: str) -> bool:
    """Whether a person granted the document to move this provider of the user, with its key."""
    entry = document.providers.get(provider)
    return document.granted and entry is not None and bool(trust.key_origins(entry))


def _is_address_key(at: Address) -> bool:
    """Whether `_without_address` removes this key of a provider or a model."""
    if at[0] == "models":
        return len(at) > 2 and _is_address_key(at[2:])
    return (at[0] == "api" and at[1:2] != ("id",)) or at[:3] == ("request", "body", "baseURL")


def _without_address(entry: JsonObject) -> JsonObject:
    result = dict(entry)
    if "api" in result:
        result["api"] = {key: value for key, value in result["api"].items() if key == "id"}
    if "baseURL" in result.get("request", {}).get("body", {}):
        body = {key: value for key, value in result["request"]["body"].items() if key != "baseURL"}
        result["request"] = {**result["request"], "body": body}
    if "models" in result:
        result["models"] = {
            name: _without_address(model) for name, model in result["models"].items()
        }
    return result
