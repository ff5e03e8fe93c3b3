"""The hosts that a command of bash may reach from inside the sandbox.

The user lists hosts in the configuration. Others are asked about by name: a person allows one for
this command, or always, for a Session, a project or everywhere. Rules can decide too, by the
actions `network` for hosts of the internet and `private_network` for others; only rules of the
user's own configuration for these very actions count.
"""

from collections.abc import Sequence
from typing import Final

from perdure.core.limits import HOSTS_ASKED_MAX
from perdure.core.sandbox import host_list
from perdure.core.sandbox.host_list import HostList, Target
from perdure.core.sandbox.policy import SandboxPolicy
from perdure.ports import PermissionAsk
from perdure.ports.sandbox import HostAccess
from perdure.schema.approval.permission import Effect
from perdure.tools.api.tool import ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment

HINT: Final = "To ask a person for hosts, call bash again with `hosts`."

_PORT_DEFAULT: Final = 443
_UNFILTERED: Final = (
    "The sandbox of this machine cannot allow single hosts: see `perdure doctor`. Call bash without"
    " `hosts`, or with `outside`, and a person is asked."
)


async def open_access(
    environment: ToolEnvironment,
    policy: SandboxPolicy,
    wanted: Sequence[str],
    context: ToolCallContext,
) -> HostAccess | None:
    """The hosts of a command: those that are allowed, and those that a person allows now.

    None if it has no filtering proxy: all of the network, or none. Raises ToolFailure, and the
    errors of a permission.
    """
    targets = _parse(wanted)
    containment = environment.containment
    if containment is None or policy.network or (policy.hosts is None and not targets):
        return None
    if not await containment.filters_hosts():
        if targets:
            raise ToolFailure(_UNFILTERED)
        return None

    async def decide(target: Target) -> Effect:
        return await environment.permissions.evaluate(_ask((target,), context))

    access = HostAccess(listed=policy.hosts or HostList(), decide=decide)
    missing = [target for target in targets if not await access.allows(target)]
    for private in (False, True):
        some = tuple(target for target in missing if target.is_private is private)
        if some:
            await environment.permissions.require(_ask(some, context))
            access.granted += some
    return access


def _parse(wanted: Sequence[str]) -> tuple[Target, ...]:
    if len(wanted) > HOSTS_ASKED_MAX:
        raise ToolFailure(f"`hosts` has more than {HOSTS_ASKED_MAX} entries")
    targets: list[Target] = []
    for text in wanted:
        try:
            targets.append(host_list.parse_target(text, port=_PORT_DEFAULT))
        except ValueError as error:
            raise ToolFailure(f"`hosts` has {text[:100]!r}, but {error}") from error
    return tuple(dict.fromkeys(targets))


def _ask(targets: tuple[Target, ...], context: ToolCallContext) -> PermissionAsk:
    texts = tuple(map(str, targets))
    return PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action="private_network" if targets[0].is_private else "network",
        resources=texts,
        save=texts,
        metadata={"sandbox": "network"},
        source=context.source,
        protected=True,
    )
