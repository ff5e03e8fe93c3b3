"""What a built-in tool is given: its Location and the ports it acts through."""

import errno
from collections.abc import Collection, Mapping, Sequence

from msgspec import field

from perdure.core.request.media_limits import ImageBounds
from perdure.core.request.tool_output import OutputLimits
from perdure.ports import Filesystem, PermissionAsk, PermissionGate, SpoolingRunner, WebPages
from perdure.ports.jobs import BackgroundJobs
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.api.tool import ToolCallContext, ToolFailure
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.path_access import PathAccess, Target
from perdure.tools.files.post_edit import PostEdit
from perdure.tools.web.search_backend import ChooseBackend


class WebAccess(Value, kw_only=True):
    pages: WebPages
    search: ChooseBackend
    allowed_hosts: tuple[str, ...] = ()
    """Hosts of the user's own network that pages may come from."""


class ToolEnvironment(Value, kw_only=True):
    filesystem: Filesystem
    processes: SpoolingRunner
    permissions: PermissionGate
    authority: PathAccess
    mutations: FileMutations
    shell: str = "/bin/sh"
    variables: Mapping[str, str] | None = None
    """The environment of commands; None is that of this process."""
    outputs: ToolOutputStore | None = None
    """Where output that is too long to be held goes; without it the middle is lost."""
    ripgrep: str | None = None
    """Without it searches run in our own, slower program."""
    output_limits: OutputLimits = field(default_factory=OutputLimits)
    images: ImageBounds = field(default_factory=ImageBounds)
    """How large an image may be that a model is shown."""
    after_edit: PostEdit = field(default_factory=PostEdit)
    """What happens to files that tools have changed."""
    web: WebAccess | None = None
    """Without it there are no tools for the web."""
    jobs: BackgroundJobs | None = None
    """Without it nothing runs in the background."""

    def files(self, target: Target) -> Filesystem:
        """The disk as far as it was approved with the target, and no link leads out of it."""
        return self.filesystem.confined_to(target.root)

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
                above=context.above,
                action=action,
                resources=tuple(resources),
                save=tuple(save),
                metadata=metadata,
                source=context.source,
            )
        )

    async def require_edit(self, context: ToolCallContext, targets: Collection[Target]) -> None:
        """Ask whether these files may be changed; about protected ones in a request of its own."""
        ordinary = dict.fromkeys(it.resource for it in targets if not it.protected)
        protected = dict.fromkeys(it.resource for it in targets if it.protected)
        if ordinary:
            await self.require(context, "edit", tuple(ordinary), save=("*",))
        if protected:
            await self.permissions.require(
                PermissionAsk(
                    session_id=context.session_id,
                    agent=context.agent,
                    above=context.above,
                    action="edit",
                    resources=tuple(protected),
                    metadata={"protected": True},
                    source=context.source,
                    protected=True,
                )
            )


def reason(error: OSError) -> str:
    """Why the world refused, without the path that the caller names anyway."""
    if error.errno == errno.ELOOP:
        return "it links to itself, or was replaced by a link after it was approved"
    return (error.strerror or str(error)).lower()


def encoded(text: str) -> bytes:
    """The bytes of a text that comes from a model."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure("The text is not valid Unicode: it holds half a character") from error


def printable(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become replacement characters."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
