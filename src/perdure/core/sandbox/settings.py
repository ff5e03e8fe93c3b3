"""The `sandbox` of the user's configuration. A project's documents cannot set it."""

from collections.abc import Iterable
from typing import Literal

from perdure.core.config_file.entries import SandboxEntry
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

Mode = Literal["read-only", "workspace-write", "danger-full-access"]


class SandboxSettings(Value, kw_only=True):
    mode: Mode = "workspace-write"
    network: bool = False
    writable: tuple[str, ...] = ()
    """Further directories that commands may write to."""
    hidden: tuple[str, ...] = ()
    """Further places that commands may not see."""
    ask: bool = False
    """Whether a person is asked about a command inside that no rule is about."""


def merge(layers: Iterable[JsonObject]) -> SandboxSettings:
    """The settings of these documents, each valid as a SandboxEntry; the last wins."""
    merged: JsonObject = {}
    for layer in layers:
        merged |= layer
    entry, default = codec.convert(SandboxEntry, merged), SandboxSettings()
    return SandboxSettings(
        mode=entry.mode or default.mode,
        network=entry.network is True,
        writable=entry.writable or (),
        hidden=entry.hidden or (),
        ask=entry.ask is True,
    )
