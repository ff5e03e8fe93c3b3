"""Removes secrets from text that will be stored, shown or logged.

Known secrets are removed by value, others by their kind: values of fields with telling names in
every notation, options of commands, credentials of HTTP and in URLs, lines of password files,
private keys, tokens of well-known services (`schema.secrets`). It rather removes too much.

Invariant: time is linear in the text, which may be hostile. What was redacted is not changed by
redacting it again.
"""

from collections.abc import Iterable, Sequence


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Remove the given secrets and everything that looks like one."""
    # Imported late: its patterns take longer to compile than a command needs that shows no error.
    from perdure.schema.secrets import scan

    return scan.redact(text, secrets)


def redact_words(words: Sequence[str]) -> tuple[str, ...]:
    """Remove secrets from the words of a command, where an option and its value are two words."""
    from perdure.schema.secrets import scan

    return scan.redact_words(words)
