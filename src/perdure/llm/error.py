"""Why a model call failed, in one vocabulary for every provider."""

from typing import Literal

Reason = Literal[
    "invalid-request",
    "no-route",
    "authentication",
    "rate-limit",
    "quota-exceeded",
    "content-policy",
    "provider-internal",
    "transport",
    "invalid-provider-output",
    "unknown",
]


class LLMError(Exception):
    """A failed call. The message is bounded and free of secrets; it may be stored and shown."""

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        status: int | None = None,
        overflow: bool = False,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.status = status
        self.overflow = overflow
        self.retry_after_ms = retry_after_ms

    @property
    def retryable(self) -> bool:
        return self.reason in ("rate-limit", "provider-internal", "transport")
