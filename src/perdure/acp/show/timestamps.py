"""Times of the contract, in milliseconds, as the protocol writes them."""

from datetime import UTC, datetime


def iso_time(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
