"""The Location of a request: from the query, else the headers, else the server's default.

An empty value counts as absent, and of a repeated one the first counts. Only the spelling is
checked here; the runtime's Locations check that the directory exists.
"""

import re
from typing import Final

from msgspec import UNSET

from perdure.lazy_pattern import lazy_pattern
from perdure.protocol import problems
from perdure.protocol.query import unquote
from perdure.schema import ids
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import WorkspaceID
from perdure.schema.location import LocationRef
from perdure.server.request import Request

_WHOLE_ESCAPES: Final = lazy_pattern(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_REPLACEMENT: Final = "\ufffd"


def resolve(request: Request, *, default_directory: str) -> LocationRef:
    """The Location that the request names, else the default."""
    named = find_named(request, default_directory=default_directory)
    return named or LocationRef(default_directory)


def find_named(request: Request, *, default_directory: str) -> LocationRef | None:
    """The Location that the request names; None when it names none."""
    if flat := request.fields.get("location"):
        raise _invalid(problems.expected("object | undefined", flat[0], ("location",)))
    directory = _first(request, "location[directory]")
    if directory is None:
        directory = _decoded(request.header(b"x-opencode-directory"))
    workspace = _first(request, "location[workspace]")
    if workspace is None:
        workspace = request.header(b"x-opencode-workspace")
    if not directory and not workspace:
        return None
    return check(
        LocationRef(
            directory=directory or default_directory,
            workspace_id=WorkspaceID(workspace) if workspace else UNSET,
        )
    )


def check(ref: LocationRef) -> LocationRef:
    """`ref`; raises InvalidRequestError when no Location can be spelled like that."""
    if not ref.directory.startswith("/"):
        raise _invalid(f"Location directory must be an absolute path: {ref.directory[:200]}")
    if "\x00" in ref.directory:
        raise _invalid("Location directory must not contain a null character")
    if ref.workspace_id is not UNSET and not ids.well_formed("wrk", str(ref.workspace_id)):
        raise _invalid(problems.expected('a string starting with "wrk_"', ref.workspace_id))
    return ref


def _first(request: Request, name: str) -> str | None:
    values = request.fields.get(name)
    return (values[0] or None) if values else None


def _decoded(value: str | None) -> str | None:
    """The value percent-decoded; unchanged where any escape in it is invalid."""
    if value is None or "%" not in value or not _WHOLE_ESCAPES.fullmatch(value):
        return value
    text = unquote(value.encode())
    return value if _REPLACEMENT in text else text


def _invalid(message: str) -> InvalidRequestError:
    return InvalidRequestError(problems.join_problems((message,)), field="location")
