"""ToolEnvironment: the ports and limits of a Location that built-in tools use."""

import errno
from collections.abc import Mapping, Sequence

from msgspec import field

from perdure.core.request.media_limits import ImageBounds
from perdure.core.request.tool_output import OutputLimits
from perdure.ports import Filesystem, PermissionAsk, PermissionGate, SpoolingRunner, WebPages
from perdure.ports.jobs import BackgroundJobs
from perdure.ports.sandbox import Containment
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.api.tool import ToolCallContext, ToolFailure
from perdure.tools.files.file_permissions import FilePermissions
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.path_access import PathAccess, Target
from perdure.tools.files.post_edit import PostEdit
from perdure.tools.web.search_backend import ChooseBackend


class WebAccess(Value, kw_only=True):
    pages: WebPages
    search: ChooseBackend
    allowed_hosts: tuple[str, ...] = ()
    """Private hosts that the user allowed."""


class ToolEnvironment(Value, kw_only=True):
    filesystem: Filesystem
    processes: SpoolingRunner
    permissions: PermissionGate
    path_access: PathAccess
    mutations: FileMutations
    shell: str = "/bin/sh"
    variables: Mapping[str, str] | None = None
    """The environment of commands; None for that of this process."""
    containment: Containment | None = None
    """The sandbox of commands; without it they run outside."""
    outputs: ToolOutputStore | None = None
    """Stores output that is too long for memory; without it the middle is lost."""
    ripgrep: str | None = None
    """Path of ripgrep; without it searches use the slower fallback program."""
    output_limits: OutputLimits = field(default_factory=OutputLimits)
    images: ImageBounds = field(default_factory=ImageBounds)
    """Size limits of images for a model."""
    after_edit: PostEdit = field(default_factory=PostEdit)
    """Formats and checks files that tools have changed."""
    web: WebAccess | None = None
    """Without it there are no web tools."""
    jobs: BackgroundJobs | None = None
    """Without it there are no background jobs."""

    def files(self, target: Target) -> Filesystem:
        """A filesystem confined to the approved directory of the target."""
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
        """Require the tool's own permission; returns when it is allowed."""
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

    @property
    def file_permissions(self) -> FilePermissions:
        """Decides which files may be shown and changed."""
        return FilePermissions(self.permissions, self.path_access, self.mutations)


def reason(error: OSError) -> str:
    """The reason of an OS error, without the path, which the caller names anyway."""
    if error.errno == errno.ELOOP:
        return "it links to itself, or was replaced by a link after it was approved"
    return (error.strerror or str(error)).lower()


def encode_text(text: str) -> bytes:
    """Encode a text from a model. Raises ToolFailure when it is not valid Unicode."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure("The text is not valid Unicode: it holds half a character") from error
