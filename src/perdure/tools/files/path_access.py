"""Path authority: which file a path means, and whether a tool may go there.

A relative path stays inside the Location, by its spelling and after every link is resolved. An
absolute path outside needs `external_directory` approval before the tool's own permission is asked;
so does `@name/path`, which lies in a Reference and is only for reading. Managed Tool Output Files
may be read without approval. Asking for the leaf permission is up to the tool.

Invariant: a Target names a canonical path below a canonical root, and its resource is what the
person was shown. Nothing of ours (database, secrets) is ever a target for writing.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from perdure.core.files import paths as protected_path
from perdure.core.files.paths import is_within
from perdure.core.limits import PATH_CHARS_MAX
from perdure.ports import Filesystem, PermissionAsk, PermissionGate
from perdure.schema.value import Value
from perdure.tools.api.output_store import NAME_PREFIX
from perdure.tools.api.tool import ToolCallContext, ToolFailure

TargetKind = Literal["file", "directory"]


class OwnDirectories(Value, kw_only=True):
    """The directories of this installation."""

    outputs: str
    """Managed Tool Output Files."""
    data: str | None = None
    """Our database and our secrets: never written by a tool."""
    configuration: str | None = None
    """The user's settings: protected as a project's are."""


class Target(Value, kw_only=True):
    path: str
    """Canonical and absolute."""
    root: str
    """The canonical directory that was approved; the path is reached from there without links."""
    resource: str
    """Relative to the Location with forward slashes, or `path` itself when outside."""
    external: bool
    managed: bool = False
    """One of our own output files: to be read, not written."""
    protected: bool = False
    """It governs what agents may do: only a person allows a change, each time."""


class _Pinned(Value, kw_only=True):
    root: str
    outputs: str
    data: str | None
    configuration: str | None


class PathAccess:
    """One for each Location."""

    def __init__(
        self,
        root: str,
        *,
        filesystem: Filesystem,
        permissions: PermissionGate,
        own: OwnDirectories,
        references: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._given_root = posixpath.normpath(root)
        self._filesystem = filesystem
        self._permissions = permissions
        self._own = own
        self._references = references
        self._pinned: _Pinned | None = None

    async def claim(self, path: str, kind: TargetKind, context: ToolCallContext) -> Target:
        """Resolve `path`, with approval where it is outside. Raises ToolFailure when refused."""
        reference = self._reference(path)
        if reference is None:
            target = await self._resolve(path, kind)
        else:
            target = await self._resolve_below(path, reference)
        if target.external and not target.managed:
            await self._approve_outside(target, context)
        return target

    async def look(self, path: str) -> Target:
        """What `path` means, without approval: nothing is to be read there yet."""
        return await self._resolve(path, "file")

    async def claim_for_writing(self, path: str, context: ToolCallContext) -> Target:
        """As `claim`. That a managed file may be read does not let it be written."""
        return (await self.claim_all_for_writing((path,), context))[path]

    async def claim_all_for_writing(
        self, paths: Sequence[str], context: ToolCallContext
    ) -> dict[str, Target]:
        """Several at once: everything is resolved first, and no directory is asked for twice."""
        targets = {path: await self._resolve_for_writing(path) for path in paths}
        outside = {target.root: target for target in targets.values() if target.external}
        for target in outside.values():
            await self._approve_outside(target, context)
        return targets

    async def root(self) -> str:
        """The canonical directory of the Location."""
        return (await self._pins()).root

    async def contains(self, real_path: str) -> bool:
        """Whether a canonical path lies in the Location."""
        return is_within(real_path, await self.root())

    async def _resolve(self, path: str, kind: TargetKind) -> Target:
        """What `path` means now. The last parts may not exist."""
        _require_sane(path)
        pinned = await self._pins()
        lexical = self._lexical(path, pinned.root)
        real = await self._real_path(lexical, path)
        if is_within(real, pinned.root):
            relative = posixpath.relpath(real, pinned.root)
            return Target(path=real, root=pinned.root, resource=relative, external=False)
        if is_within(lexical, pinned.root):
            raise ToolFailure(f"{path} leads outside the project through a symbolic link")
        directory, name = posixpath.split(real)
        managed = directory == pinned.outputs and name.startswith(NAME_PREFIX)
        root = await self._boundary(real, kind)
        return Target(path=real, root=root, resource=real, external=True, managed=managed)

    async def _resolve_below(self, path: str, reference: str) -> Target:
        """`@name/rest`: what `rest` means in the Reference."""
        _require_sane(path)
        root = await self._filesystem.real_path(reference)
        lexical = posixpath.normpath(posixpath.join(root, path.partition("/")[2]))
        real = await self._real_path(lexical, path)
        if not is_within(real, root):
            raise ToolFailure(f"{path} leads outside the reference")
        if is_within(real, await self.root()):
            return await self._resolve(real, "directory")
        return Target(path=real, root=root, resource=real, external=True)

    async def _resolve_for_writing(self, path: str) -> Target:
        if self._reference(path) is not None:
            raise ToolFailure(f"{path} is in a reference, and references are only for reading")
        target = await self._resolve(path, "file")
        pinned = await self._pins()
        if _is_ours(target.path, pinned):
            raise ToolFailure(f"{target.resource} belongs to this program and cannot be changed")
        settings = pinned.configuration
        of_user = settings is not None and is_within(target.path, settings)
        if not of_user and not protected_path.is_protected(target.path):
            return target
        return Target(
            path=target.path,
            root=target.root,
            resource=target.resource,
            external=target.external,
            protected=True,
        )

    def _reference(self, path: str) -> str | None:
        """The directory of the Reference that `path` begins with, if it does."""
        if not path.startswith("@"):
            return None
        return self._references().get(path[1:].partition("/")[0])

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

    async def _pins(self) -> _Pinned:
        # Pinned once: a link swapped under the Location later cannot move its boundary.
        if self._pinned is None:
            self._pinned = _Pinned(
                root=await self._filesystem.real_path(self._given_root),
                outputs=await self._filesystem.real_path(self._own.outputs),
                data=await self._real(self._own.data),
                configuration=await self._real(self._own.configuration),
            )
        return self._pinned

    async def _real_path(self, lexical: str, path: str) -> str:
        try:
            return await self._filesystem.real_path(lexical)
        except OSError as error:
            # It turned into a link, or back, while it was being looked at.
            raise ToolFailure(f"Unable to resolve {path}: {error.strerror}") from error

    async def _real(self, path: str | None) -> str | None:
        return None if path is None else await self._filesystem.real_path(path)

    async def _approve_outside(self, target: Target, context: ToolCallContext) -> None:
        resource = f"{target.root.rstrip('/')}/*"
        await self._permissions.require(
            PermissionAsk(
                session_id=context.session_id,
                agent=context.agent,
                above=context.above,
                action="external_directory",
                resources=(resource,),
                save=(resource,),
                metadata={"path": target.path, "directory": target.root},
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


def _require_sane(path: str) -> None:
    if "\0" in path:
        raise ToolFailure("A path cannot contain a NUL character")
    if len(path) > PATH_CHARS_MAX:
        raise ToolFailure(f"A path cannot be longer than {PATH_CHARS_MAX} characters")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ToolFailure("A path must be valid Unicode") from error


def _is_ours(path: str, pinned: _Pinned) -> bool:
    if pinned.data is None or not is_within(path, pinned.data):
        return False
    # A Location may lie in our data directory; then its own files are its own.
    return not (is_within(pinned.root, pinned.data) and is_within(path, pinned.root))
