"""Removes secrets from text that will be stored, shown or logged.

Known secrets are removed by value, others by their kind: values of fields with telling names in
every notation, options of commands, credentials of HTTP and in URLs, lines of password files,
private keys, tokens of well-known services (`schema.secrets`). It rather removes too much.

Invariant: time is linear in the text, which may be hostile. What was redacted is not changed by
redacting it again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

_MESSAGE_CHARS_MAX: Final = 32 * 1024
"""A message is read by people; more would stall the event loop for longer than it is worth."""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove the given secrets and everything that looks like one."""
    # Imported late: its patterns take longer to compile than a command needs that shows no error.
    from perdure.schema.secrets import scan

    return scan.redact(text, secrets)


def redact_message(text: str, secrets: Iterable[str] = ()) -> str:
    """`redact` for a message or a log line: one that is very long is cut at a blank before."""
    if len(text) <= _MESSAGE_CHARS_MAX:
        return redact(text, secrets)
    # Half of a secret might not be recognised.
    head, *_ = text[:_MESSAGE_CHARS_MAX].rsplit(None, 1)
    return f"{redact(head, secrets)} [{len(text) - len(head)} more characters left out]"


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """Remove secrets from the words of a command, where an option and its value are two words."""
    from perdure.schema.secrets import scan

    return scan.redact_words(words)
