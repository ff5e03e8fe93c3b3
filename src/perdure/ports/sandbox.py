"""Port for the sandbox: starts a program so that it reaches only what a policy allows."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import field

from perdure.core import limits
from perdure.core.sandbox import program_environment
from perdure.core.sandbox.host_list import HostList, Target
from perdure.core.sandbox.policy import SandboxPolicy
from perdure.ports.process import PipedProcess, PipedProcesses
from perdure.schema.approval.permission import Effect
from perdure.schema.value import Confidential, State, Value

Wall = Literal["namespaces", "bubblewrap", "landlock", "seatbelt"]
"""What keeps a program inside: namespaces of its own, made here or by bubblewrap; rules of the
kernel about files; or the sandbox of macOS."""

FILTERING_WALLS: Final[tuple[Wall, ...]] = ("namespaces", "bubblewrap")
"""Those that give a command a network of its own, which a filtering proxy alone leads out of."""


async def _ask(target: Target) -> Effect:
    return "ask"


class HostAccess(State):
    """The hosts that one program may reach through the filtering proxy, and what was refused."""

    listed: HostList = field(default_factory=HostList)
    decide: Callable[[Target], Awaitable[Effect]] = _ask
    """What rules and approvals say about a host; `ask` if they say nothing."""
    granted: tuple[Target, ...] = ()
    """Hosts that a person has allowed for this program."""
    refusals: list[str] = field(default_factory=list[str])

    async def allows(self, target: Target) -> bool:
        effect = await self.decide(target)
        if effect == "deny":
            return False
        return effect == "allow" or target in self.granted or self.listed.covers(target)

    def refuse(self, message: str) -> None:
        """Remember a refusal, to be told to the model."""
        if message not in self.refusals and len(self.refusals) < limits.PROXY_REFUSALS_TOLD_MAX:
            self.refusals.append(message)


class Sandbox(Protocol):
    async def wall(self) -> Wall | None:
        """What is in force here; None if the system offers nothing."""
        ...

    async def wrap(
        self,
        arguments: Sequence[str],
        *,
        policy: SandboxPolicy,
        directory: str,
        hosts: HostAccess | None = None,
    ) -> tuple[str, ...]:
        """The command line that runs `arguments` within `policy`; the same without a wall.

        With `hosts`, a filtering proxy leads to these, where the wall allows that. The command line
        can be used once then.
        """
        ...


class Containment(Value):
    """The sandbox of one Location."""

    sandbox: Sandbox
    policy: Callable[[], SandboxPolicy]
    """Reads the places anew, because a repository may be made at any time."""
    ask: bool = False
    """Whether a person is asked about commands inside that no rule is about."""

    async def contain(
        self,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        writable: str | None = None,
    ) -> "ContainedProgram":
        """How to start a program inside; it may also write to the file `writable`."""
        policy = self.policy()
        if writable is not None:
            policy = policy.allowing(writable)
        hosts = None
        if policy.hosts is not None and await self.filters_hosts():
            hosts = HostAccess(listed=policy.hosts)
        inner, outer = program_environment.move_inside(arguments, environment)
        wrapped = await self.sandbox.wrap(inner, policy=policy, directory=directory, hosts=hosts)
        variables = policy.variables(outer, proxied=hosts is not None) or outer
        return ContainedProgram(wrapped, variables, is_confined=wrapped != inner)

    async def start(
        self,
        processes: PipedProcesses,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        heard: Callable[[bytes], None],
        ended: Callable[[], None],
    ) -> PipedProcess:
        """Start a program inside that is spoken to by its input and output, such as a server."""
        program = await self.contain(arguments, directory=directory, environment=environment)
        return await processes.start(
            program.arguments,
            directory=directory,
            environment=program.environment,
            heard=heard,
            ended=ended,
        )

    async def filters_hosts(self) -> bool:
        """Whether programs inside can be given single hosts."""
        return await self.sandbox.wall() in FILTERING_WALLS


class ContainedProgram(Confidential):
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    is_confined: bool = True
    """False where the system offers no wall."""
