"""Which Location a request is about: the query says, else the headers, else the server's default.

Empty values count as absent and of a repeated one the first counts. Only the spelling is checked
here; whether the directory is there is known to the Locations service.
"""

import re
from typing import Final

from msgspec import UNSET

from perdure.protocol import problems
from perdure.protocol.query import unquote
from perdure.schema import ids
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import WorkspaceID
from perdure.schema.location import LocationRef
from perdure.server.request import Request

_WHOLE_ESCAPES: Final = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_REPLACEMENT: Final = "\ufffd"


def of(request: Request, *, default_directory: str) -> LocationRef:
    return asked(request, default_directory=default_directory) or LocationRef(default_directory)


def asked(request: Request, *, default_directory: str) -> LocationRef | None:
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
    return checked(
        LocationRef(
            directory=directory or default_directory,
            workspace_id=WorkspaceID(workspace) if workspace else UNSET,
        )
    )


def checked(ref: LocationRef) -> LocationRef:
    """`ref`, or an InvalidRequestError when no Location can be spelled like that."""
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
    """Percent-decoded where that is possible as a whole; else as it came."""
    if value is None or "%" not in value or not _WHOLE_ESCAPES.fullmatch(value):
        return value
    text = unquote(value.encode())
    return value if _REPLACEMENT in text else text


def _invalid(message: str) -> InvalidRequestError:
    return InvalidRequestError(problems.join_problems((message,)), field="location")
