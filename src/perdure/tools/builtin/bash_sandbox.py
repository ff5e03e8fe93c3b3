"""How a command of bash is started: inside the sandbox, or outside after a person allowed it.

What the sandbox refuses is an ordinary error for a program ("Read-only file system"), so a command
that failed with such an error is reported with what the sandbox allows. The model may then ask to
run it outside; a person decides, once or always for exactly this command, whatever the rules allow.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core.sandbox.policy import SandboxPolicy
from perdure.core.shell import approval_pattern
from perdure.ports import PermissionAsk
from perdure.ports.sandbox import HostAccess
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolCallContext
from perdure.tools.builtin import bash_hosts
from perdure.tools.environment import ToolEnvironment

OUTSIDE_ACTION: Final = "outside_sandbox"

_REFUSALS: Final = (
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "device or resource busy",
    "network is unreachable",
    "could not resolve host",
    "name resolution",
    "name or service not known",
    "eacces",
    "eperm",
    "erofs",
)
_TAIL_CHARS: Final = 4_000


class Launch(Value, kw_only=True):
    wrapper: tuple[str, ...] = ()
    """Words before those of the command."""
    variables: Mapping[str, str] | None
    policy: SandboxPolicy | None = None
    """What the command may reach; None outside the sandbox."""
    hosts: HostAccess | None = None
    """The hosts that it may reach; None if it has no filtering proxy."""

    def refusals(self) -> tuple[str, ...]:
        """What to tell the model about hosts that the command did not reach."""
        if self.hosts is None or not self.hosts.refusals:
            return ()
        return (*self.hosts.refusals, bash_hosts.HINT)

    def explain(self, output: str) -> str | None:
        """What to tell the model about a command that failed and printed this."""
        if self.policy is None or (self.hosts is not None and self.hosts.refusals):
            return None
        said = output[-_TAIL_CHARS:].lower()
        if not any(refusal in said for refusal in _REFUSALS):
            return None
        return _explanation(self.policy, self.hosts)


async def needs_no_question(environment: ToolEnvironment) -> bool:
    """Whether a command that no rule is about may run unasked, because a sandbox contains it.

    To run one outside a person is asked in any case.
    """
    containment = environment.containment
    if containment is None or containment.ask:
        return False
    return await containment.sandbox.wall() is not None


async def prepare(
    environment: ToolEnvironment,
    *,
    command: str,
    directory: str,
    outside: bool,
    hosts: Sequence[str] = (),
    context: ToolCallContext,
) -> Launch:
    """How to start an approved command.

    Waits for a person if it shall run outside, or reach hosts that are not allowed.
    """
    containment = environment.containment
    if containment is None or await containment.sandbox.wall() is None:
        return Launch(variables=environment.variables)
    if outside:
        await environment.permissions.require(_outside_ask(command, directory, context))
        return Launch(variables=environment.variables)
    policy = containment.policy()
    access = await bash_hosts.open_access(environment, policy, hosts, context)
    return Launch(
        wrapper=await containment.sandbox.wrap(
            (), policy=policy, directory=directory, hosts=access
        ),
        variables=policy.variables(environment.variables, proxied=access is not None),
        policy=policy,
        hosts=access,
    )


async def contain(environment: ToolEnvironment, directory: str) -> Launch:
    """How to start a command that asks for nothing more than the sandbox has; none: without."""
    containment = environment.containment
    if containment is None or await containment.sandbox.wall() is None:
        return Launch(variables=environment.variables)
    policy = containment.policy()
    return Launch(
        wrapper=await containment.sandbox.wrap((), policy=policy, directory=directory),
        variables=policy.variables(environment.variables),
        policy=policy,
    )


async def remove_appeared(environment: ToolEnvironment, launch: Launch) -> tuple[str, ...]:
    """Remove files that a command made and that git would obey outside; returns what to tell."""
    notes: list[str] = []
    files = environment.filesystem.confined_to("/")
    for path in () if launch.policy is None else launch.policy.absent:
        try:
            await files.remove(path)
        except OSError:
            # It is not there.
            continue
        notes.append(f"It made {path}, which git obeys outside the sandbox too. It was removed.")
    return tuple(notes)


def _outside_ask(command: str, directory: str, context: ToolCallContext) -> PermissionAsk:
    saved = approval_pattern.exact_pattern(command)
    return PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action=OUTSIDE_ACTION,
        resources=(command,),
        save=() if saved is None else (saved,),
        metadata={"workdir": directory, "sandbox": "outside"},
        source=context.source,
        protected=True,
    )


def _explanation(policy: SandboxPolicy, hosts: HostAccess | None) -> str:
    writable = [place.path for place in policy.places if place.access in {"write", "keep"}]
    network = "the network" if policy.network else "no network"
    if hosts is not None:
        network = "only the hosts that are allowed, through the proxy in HTTPS_PROXY"
    return (
        "It ran in a sandbox, which may have refused something. It can write only to"
        f" {', '.join(writable) or 'no directory'}, has {network}, and does not see files with"
        " secrets. If it needs hosts, call bash again with `hosts`; if it needs more, with"
        " `outside`. A person is asked."
    )
