"""What a built-in tool is given: its Location and the ports it acts through."""

from collections.abc import Sequence

from msgspec import field

from perdure.core.tool_output import OutputLimits
from perdure.ports import Filesystem, PermissionAsk, PermissionDesk, ProcessRunner, WebPages
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.tools.authority import PathAuthority
from perdure.tools.file_mutation import FileMutations
from perdure.tools.search_service import ChooseBackend
from perdure.tools.tool import ToolCallContext


class WebAccess(Value, kw_only=True):
    pages: WebPages
    search: ChooseBackend
    allowed_hosts: tuple[str, ...] = ()
    """Hosts of the user's own network that pages may come from."""


class ToolEnvironment(Value, kw_only=True):
    filesystem: Filesystem
    processes: ProcessRunner
    permissions: PermissionDesk
    authority: PathAuthority
    mutations: FileMutations
    shell: str = "/bin/sh"
    ripgrep: str | None = None
    """Without it searches run in our own, slower program."""
    output_limits: OutputLimits = field(default_factory=OutputLimits)
    web: WebAccess | None = None
    """Without it there are no tools for the web."""

    async def require(
        self,
        context: ToolCallContext,
        action: str,
        resources: Sequence[str],
        *,
        save: Sequence[str],
        metadata: JsonObject | None = None,
    ) -> None:
        """Ask for the leaf permission of a call; returns when it is allowed."""
        await self.permissions.require(
            PermissionAsk(
                session_id=context.session_id,
                agent=context.agent,
                action=action,
                resources=tuple(resources),
                save=tuple(save),
                metadata=metadata,
                source=context.source,
            )
        )


def reason(error: OSError) -> str:
    """Why the world refused, without the path that the caller names anyway."""
    return (error.strerror or str(error)).lower()


def printable(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become replacement characters."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
