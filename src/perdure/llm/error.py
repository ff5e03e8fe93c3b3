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
_OF_ONE_MODEL: Final[frozenset[Reason]] = frozenset({"quota-exceeded", "timeout"})
RENEWED: Final[Reason] = "quota-exceeded"
"""A failure that passes by itself if the provider says when."""


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
        message = redaction.redact_message(message)
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.status = status
        self.retry_after_ms = retry_after_ms

    @property
    def overflow(self) -> bool:
        return self.reason == "overflow"

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later, or with another model."""
        return self.retryable or self.reason in _OF_ONE_MODEL

    @property
    def retryable(self) -> bool:
        renewed = self.reason == RENEWED and self.retry_after_ms is not None
        return renewed or self.reason in RETRYABLE
