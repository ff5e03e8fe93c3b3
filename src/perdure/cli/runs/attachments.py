"""Makes attachments of a prompt from files that the user names."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perdure.cli import terminal
from perdure.cli.problem import Problem

if TYPE_CHECKING:
    from perdure.client.generated import types

_SENT_BYTES_MAX: Final = 5_000_000


def make_file(path: str, *, is_local: bool) -> "types.FileInput":
    """Return the attachment of one file; raise Problem if it cannot be read.

    A server on this machine reads the file itself; another one is sent the content.
    """
    shown = terminal.one_line(path)
    try:
        with open(path, "rb") as file:
            head = b"" if is_local else file.read(_SENT_BYTES_MAX + 1)
    except OSError as error:
        raise Problem(f"-f {shown}: {error.strerror or error}") from error
    if is_local:
        return {"uri": Path(os.path.abspath(path)).as_uri(), "name": os.path.basename(path)}
    if len(head) > _SENT_BYTES_MAX:
        raise Problem(f"-f {shown} is larger than {_SENT_BYTES_MAX:,} bytes")
    # Imported late: only a server on another machine needs them.
    import base64
    import mimetypes

    kind = mimetypes.guess_type(path)[0] or "text/plain"
    content = base64.b64encode(head).decode()
    return {"uri": f"data:{kind};base64,{content}", "name": os.path.basename(path)}
