"""Path authority: which file a path means, and whether it lies inside the Location.

A relative path stays inside, by its spelling and after every link is resolved. An absolute path
outside needs `external_directory` approval before the tool's own permission is asked. Managed
Tool Output Files may be read without approval. Asking for the leaf permission is up to the tool.

Invariant: a Target names a canonical path, and its resource is what the person was shown.
"""

import posixpath
from collections.abc import Sequence
from typing import Literal

from perdure.core.containment import is_within
from perdure.ports import Filesystem, PermissionAsk, PermissionDesk
from perdure.schema.value import Value
from perdure.tools.output_store import NAME_PREFIX
from perdure.tools.tool import ToolCallContext, ToolFailure

TargetKind = Literal["file", "directory"]


class Target(Value, kw_only=True):
    path: str
    """Canonical and absolute."""
    resource: str
    """Relative to the Location with forward slashes, or `path` itself when outside."""
    external: bool
    managed: bool = False
    """One of our own output files: to be read, not written."""


class PathAuthority:
    """One for each Location."""

    def __init__(
        self,
        root: str,
        *,
        filesystem: Filesystem,
        permissions: PermissionDesk,
        output_directory: str,
    ) -> None:
        self._given_root = posixpath.normpath(root)
        self._filesystem = filesystem
        self._permissions = permissions
        self._given_output = output_directory
        self._pinned: tuple[str, str] | None = None

    async def claim(self, path: str, kind: TargetKind, context: ToolCallContext) -> Target:
        """Resolve `path`, with approval where it is outside. Raises ToolFailure when refused."""
        target = await self.resolve(path)
        if target.external and not target.managed:
            await self._approve_outside(target, kind, context)
        return target

    async def claim_for_writing(self, path: str, context: ToolCallContext) -> Target:
        """As `claim`. That a managed file may be read does not let it be written."""
        target = await self.resolve(path)
        if target.external:
            await self._approve_outside(target, "file", context)
        return target

    async def claim_all_for_writing(
        self, paths: Sequence[str], context: ToolCallContext
    ) -> dict[str, Target]:
        """Several at once: everything is resolved first, and no directory is asked for twice."""
        targets = {path: await self.resolve(path) for path in paths}
        outside = {
            await self._boundary(target.path, "file"): target
            for target in targets.values()
            if target.external
        }
        for target in outside.values():
            await self._approve_outside(target, "file", context)
        return targets

    async def resolve(self, path: str) -> Target:
        """What `path` means now. The last parts may not exist."""
        if "\0" in path:
            raise ToolFailure("A path cannot contain a NUL character")
        root, output = await self._roots()
        lexical = self._lexical(path, root)
        real = await self._filesystem.real_path(lexical)
        if is_within(real, root):
            relative = posixpath.relpath(real, root)
            return Target(path=real, resource=relative, external=False)
        if is_within(lexical, root):
            raise ToolFailure(f"{path} leads outside the project through a symbolic link")
        directory, name = posixpath.split(real)
        managed = directory == output and name.startswith(NAME_PREFIX)
        return Target(path=real, resource=real, external=True, managed=managed)

    async def root(self) -> str:
        """The canonical directory of the Location."""
        return (await self._roots())[0]

    async def contains(self, real_path: str) -> bool:
        """Whether a canonical path lies in the Location."""
        return is_within(real_path, await self.root())

    async def confirm(self, target: Target) -> None:
        """Still the file that was approved? Asked right before writing."""
        if await self._filesystem.real_path(target.path) != target.path:
            raise ToolFailure(f"{target.resource} was replaced by a link after it was approved")

    def _lexical(self, path: str, root: str) -> str:
        if not posixpath.isabs(path):
            lexical = posixpath.normpath(posixpath.join(root, path))
            if not is_within(lexical, root):
                raise ToolFailure(f"{path} is outside the project; use an absolute path")
            return lexical
        # Two leading slashes are kept by normpath and mean nothing here.
        lexical = "/" + posixpath.normpath(path).lstrip("/")
        if is_within(lexical, self._given_root):
            inside = posixpath.relpath(lexical, self._given_root)
            return posixpath.normpath(posixpath.join(root, inside))
        return lexical

    async def _roots(self) -> tuple[str, str]:
        # Pinned once: a link swapped under the Location later cannot move its boundary.
        if self._pinned is None:
            root = await self._filesystem.real_path(self._given_root)
            output = await self._filesystem.real_path(self._given_output)
            self._pinned = (root, output)
        return self._pinned

    async def _approve_outside(
        self, target: Target, kind: TargetKind, context: ToolCallContext
    ) -> None:
        directory = await self._boundary(target.path, kind)
        resource = f"{directory.rstrip('/')}/*"
        await self._permissions.require(
            PermissionAsk(
                session_id=context.session_id,
                agent=context.agent,
                action="external_directory",
                resources=(resource,),
                save=(resource,),
                metadata={"path": target.path, "directory": directory},
                source=context.source,
            )
        )

    async def _boundary(self, path: str, kind: TargetKind) -> str:
        """The existing directory that an approval is about."""
        candidate = path if kind == "directory" else posixpath.dirname(path)
        while candidate != "/" and not await self._is_directory(candidate):
            candidate = posixpath.dirname(candidate)
        return candidate

    async def _is_directory(self, path: str) -> bool:
        try:
            return (await self._filesystem.stat(path)).is_directory
        except OSError:
            return False
