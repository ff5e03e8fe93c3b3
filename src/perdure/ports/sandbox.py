"""Port for the sandbox: starts a program so that it reaches only what a policy allows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from perdure.core.sandbox.policy import SandboxPolicy
from perdure.schema.value import Confidential, Value

Wall = Literal["namespaces", "bubblewrap", "landlock", "seatbelt"]
"""What keeps a program inside: namespaces of its own, made here or by bubblewrap; rules of the
kernel about files; or the sandbox of macOS."""


class Sandbox(Protocol):
    async def wall(self) -> Wall | None:
        """What is in force here; None if the system offers nothing."""
        ...

    async def wrap(
        self, arguments: Sequence[str], *, policy: SandboxPolicy, directory: str
    ) -> tuple[str, ...]:
        """The command line that runs `arguments` within `policy`; the same without a wall."""
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
        wrapped = await self.sandbox.wrap(arguments, policy=policy, directory=directory)
        return ContainedProgram(wrapped, policy.variables(environment) or environment)


class ContainedProgram(Confidential):
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
