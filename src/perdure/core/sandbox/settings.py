"""The `sandbox` of the user's configuration. A project's documents cannot set it.

The managed configuration bounds the user's: the stricter mode counts, and the network that both
allow.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from perdure.core.config_file.entries import SandboxEntry, SandboxNetworkEntry
from perdure.core.sandbox import host_list
from perdure.core.sandbox.host_list import HostList
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

Mode = Literal["read-only", "workspace-write", "danger-full-access"]

_FREEDOM: Final[dict[Mode, int]] = {"read-only": 0, "workspace-write": 1, "danger-full-access": 2}


class SandboxSettings(Value, kw_only=True):
    mode: Mode = "workspace-write"
    network: bool = False
    hosts: HostList | None = None
    """The hosts that are reached through the filtering proxy, if a list is configured."""
    writable: tuple[str, ...] = ()
    """Further directories that commands may write to."""
    hidden: tuple[str, ...] = ()
    """Further places that commands may not see."""
    ask: bool = False
    """Whether a person is asked about a command inside that no rule is about."""


def merge(layers: Iterable[JsonObject], managed: Sequence[JsonObject] = ()) -> SandboxSettings:
    """The settings of these documents, each valid as a SandboxEntry; the last wins.

    `managed` are those of the managed configuration, which bound the result.
    """
    chosen, bound = _join(layers), _join(managed)
    entry = codec.convert(SandboxEntry, {**bound, **chosen})
    upper = codec.convert(SandboxEntry, bound)
    network, hosts = _network(entry)
    if "network" in bound:
        network, hosts = _narrow(network, hosts, _network(upper))
    modes: list[Mode] = [mode for mode in (entry.mode, upper.mode) if mode]
    return SandboxSettings(
        mode=min(modes, key=lambda mode: _FREEDOM[mode]) if modes else SandboxSettings().mode,
        network=network,
        hosts=hosts,
        writable=(upper.writable if "writable" in bound else entry.writable) or (),
        hidden=(*(upper.hidden or ()), *(entry.hidden or ())),
        ask=entry.ask is True or upper.ask is True,
    )


def _join(layers: Iterable[JsonObject]) -> JsonObject:
    joined: JsonObject = {}
    for layer in layers:
        joined |= layer
    return joined


def _network(entry: SandboxEntry) -> tuple[bool, HostList | None]:
    if isinstance(entry.network, SandboxNetworkEntry):
        return False, host_list.parse_list(entry.network.allow or ())
    return entry.network is True, None


def _narrow(
    network: bool, hosts: HostList | None, bound: tuple[bool, HostList | None]
) -> tuple[bool, HostList | None]:
    """What both allow. Of a list and the whole network that is the list."""
    all_allowed, allowed = bound
    if all_allowed:
        return network, hosts
    if allowed is None:
        return False, None
    if network:
        return False, allowed
    return False, None if hosts is None else hosts.within(allowed)
