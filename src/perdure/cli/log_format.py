"""The log of a server: a line for each record, to read or to feed to a machine.

Every line quotes files, providers and requests, so it is cleaned of what a terminal would obey and
of what is, or looks like, a secret. Standard error is where it goes; keeping it is somebody else's
work.

Invariant: one record is one line of text, or one JSON object a line.
"""

import json
import logging
import time
from collections.abc import Iterable
from typing import Final

from perdure.cli import terminal
from perdure.host import log_context
from perdure.schema import redaction

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

_SECRET_CHARS_MIN: Final = 8
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"


def configure(*, form: str = "text", level: str = "info", secrets: Iterable[str] = ()) -> None:
    """Set up the log of this process. `secrets` are known values that must not be in it."""
    known = frozenset(secret for secret in secrets if len(secret) >= _SECRET_CHARS_MIN)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(known) if form == "json" else TextFormatter(known))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class TextFormatter(logging.Formatter):
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_TEXT)
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line = terminal.clean(redaction.redact(super().format(record), self._secrets))
        session = log_context.SESSION.get()
        return line if session is None or session in line else f"{line} ({session})"


class JsonFormatter(logging.Formatter):
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._shown(record.getMessage()),
        }
        if (session := log_context.SESSION.get()) is not None:
            line["session"] = session
        if record.exc_info:
            line["exception"] = self._shown(self.formatException(record.exc_info))
        # Pure ASCII: nothing that a terminal obeys is left, and nothing is lost.
        return json.dumps(line)

    def _shown(self, text: str) -> str:
        return redaction.redact(text, self._secrets)


def _moment(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"
