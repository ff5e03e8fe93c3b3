"""Errors of model calls, with the same reasons for every provider."""

from typing import Final, Literal

from perdure.schema import redaction

Reason = Literal[
    "overflow",
    "rate-limit",
    "overload",
    "quota-exceeded",
    "authentication",
    "content-policy",
    "invalid-request",
    "native-part",
    "no-route",
    "provider-internal",
    "transport",
    "timeout",
    "invalid-provider-output",
    "unknown",
]

RETRYABLE: Final[frozenset[Reason]] = frozenset(
    {"rate-limit", "overload", "provider-internal", "transport"}
)
"""Failures that may pass by themselves. A timeout is not among them."""


class LLMError(Exception):
    """A failed call. The message is bounded and free of secrets; it may be stored and shown."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        status: int | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        # A message may quote a configuration or what a provider answered.
        message = redaction.redact(message)
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.status = status
        self.retry_after_ms = retry_after_ms

    @property
    def overflow(self) -> bool:
        return self.reason == "overflow"

    @property
    def retryable(self) -> bool:
        return self.reason in RETRYABLE
