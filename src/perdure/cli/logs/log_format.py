"""Log formats of `perdure serve`: one line of text or one JSON object for each record.

Log lines quote files, providers and requests. Terminal control sequences and secrets, known ones
and texts that look like one, are removed. The log goes to standard error; the program that starts
the server stores it.

Invariant: one record is one line.
"""

import json
import logging
import time
from collections.abc import Iterable
from typing import Final

from perdure.cli import terminal
from perdure.cli.logs.log_limit import LineLimit
from perdure.host import log_context
from perdure.schema import redaction

FORMATS: Final = ("text", "json")
LEVELS: Final = ("debug", "info", "warning", "error")

_SECRET_CHARS_MIN: Final = 8
_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"


def configure(*, form: str = "text", level: str = "info", secrets: Iterable[str] = ()) -> None:
    """Set up the log of this process. The values in `secrets` are masked in every line."""
    known = frozenset(secret for secret in secrets if len(secret) >= _SECRET_CHARS_MIN)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter(known) if form == "json" else TextFormatter(known))
    handler.addFilter(LineLimit())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class TextFormatter(logging.Formatter):
    """Formats a record as time, level, message and, inside a Session, its id."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_TEXT)
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line = terminal.clean(redaction.redact_message(super().format(record), self._secrets))
        session = log_context.SESSION.get()
        return line if session is None or session in line else f"{line} ({session})"


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": self._redact(record.getMessage()),
        }
        if (session := log_context.SESSION.get()) is not None:
            line["session"] = session
        if record.exc_info:
            line["exception"] = self._redact(self.formatException(record.exc_info))
        # json.dumps escapes everything that is not ASCII, terminal control characters included.
        return json.dumps(line)

    def _redact(self, text: str) -> str:
        return redaction.redact_message(text, self._secrets)


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"
