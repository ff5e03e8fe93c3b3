"""PathAccess: resolves the paths of tool calls, with approval outside the Location.

A relative path must stay inside the Location, as written and after every link is resolved. An
absolute path outside needs `external_directory` approval before the tool's own permission; so does
`@name/path`, which is in a Reference and read-only. Managed Tool Output Files may be read without
approval. The tool itself asks for its own permission.

Invariant: a Target has a canonical path below a canonical root, and its resource is what the user
was shown. Perdure's own data (database, secrets) is never a target, whatever rules allow, but for
parts of it that may be read.
"""

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from perdure.core.approval import protected_paths
from perdure.core.approval import rules as permission
from perdure.core.approval.protected_paths import Protection
from perdure.core.files.paths import is_within
from perdure.core.limits import PATH_CHARS_MAX
from perdure.ports import Filesystem, PermissionAsk, PermissionGate
from perdure.schema.approval.permission import Effect
from perdure.schema.value import Value
from perdure.tools.api.output_store import NAME_PREFIX
from perdure.tools.api.tool import ToolCallContext, ToolFailure

TargetKind = Literal["file", "directory"]


class OwnDirectories(Value, kw_only=True):
    """The directories of this installation."""

    outputs: str
    """Holds the Managed Tool Output Files."""
    data: str | None = None
    """Holds the database and secrets: never read or written by a tool."""
    readable: tuple[str, ...] = ()
    """Parts of the directories here that tools may read."""
    secrets: tuple[str, ...] = ()
    """Canonical places where programs keep keys: a person is asked before one is read."""
    configuration: str | None = None
    """Holds the user's settings: protected, as those of a project are."""


class Target(Value, kw_only=True):
    path: str
    """Canonical and absolute."""
    root: str
    """The approved canonical directory; the path below it contains no links."""
    resource: str
    """Relative to the Location, or `path` itself when outside."""
    external: bool
    managed: bool = False
    """A Managed Tool Output File: may be read, not written."""
    secret: bool = False
    """In a place where programs keep keys, or in the user's configuration."""
    protection: Protection | None = None
    """Set for a Protected path that may be written: why a person is asked about a change."""


class _RealDirectories(Value, kw_only=True):
    root: str
    outputs: str
    data: str | None
    configuration: str | None
    readable: tuple[str, ...]
    secrets: tuple[str, ...]


class PathAccess:
    """The path access of one Location."""

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
        self._resolved: _RealDirectories | None = None

    async def claim(self, path: str, kind: TargetKind, context: ToolCallContext) -> Target:
        """Resolve `path`, with approval if it is outside. Raises ToolFailure when refused."""
        reference = self._reference(path)
        if reference is None:
            target = await self._resolve(path, kind)
        else:
            target = await self._resolve_below(path, reference)
        hidden = await self.hidden_effect(target.path)
        if hidden(target.path) == "deny":
            raise ToolFailure(f"{path} belongs to this program and cannot be read")
        if hidden(target.path) == "ask":
            target = replace(target, secret=True)
        if target.external and not target.managed:
            await self._approve_outside(target, context)
        return target

    async def resolve(self, path: str) -> Target:
        """Resolve `path` without approval; the caller must not read it yet."""
        return await self._resolve(path, "file")

    async def claim_for_writing(self, path: str, context: ToolCallContext) -> Target:
        """As `claim`, for writing; managed files need approval like others."""
        return (await self.claim_all_for_writing((path,), context))[path]

    async def claim_all_for_writing(
        self, paths: Sequence[str], context: ToolCallContext
    ) -> dict[str, Target]:
        """Claim several paths: all are resolved first, and each directory is asked about once."""
        targets = {path: await self._resolve_for_writing(path) for path in paths}
        outside = {target.root: target for target in targets.values() if target.external}
        for target in outside.values():
            await self._approve_outside(target, context)
        return targets

    async def root(self) -> str:
        """The canonical directory of the Location."""
        return (await self._directories()).root

    async def managed_prefix(self) -> str:
        """How the paths of all Managed Tool Output Files begin."""
        return f"{(await self._directories()).outputs}/{NAME_PREFIX}"

    async def contains(self, real_path: str) -> bool:
        """Whether a canonical path is inside the Location."""
        return is_within(real_path, await self.root())

    async def hidden_effect(self, directory: str) -> Callable[[str], Effect]:
        """For canonical paths in or below a directory: whether they are hidden from models.

        `deny` for this program's own data, `ask` for places where programs keep keys.
        """
        own = await self._directories()

        def is_concerned(place: str) -> bool:
            # A Location inside such a place was opened to work on it.
            touched = is_within(place, directory) or is_within(directory, place)
            return touched and not is_within(own.root, place)

        denied = [place for place in (own.data,) if place is not None and is_concerned(place)]
        asked = [place for place in own.secrets if is_concerned(place)]
        if not denied and not asked:
            return permission.allow_all

        def decide(path: str) -> Effect:
            if any(is_within(path, place) for place in own.readable):
                return "allow"
            if any(is_within(path, place) for place in denied):
                return "deny"
            return "ask" if any(is_within(path, place) for place in asked) else "allow"

        return decide

    async def _resolve(self, path: str, kind: TargetKind) -> Target:
        """Resolve `path`; its last parts need not exist."""
        _require_sane(path)
        own = await self._directories()
        lexical = self._lexical(path, own.root)
        real = await self._real_path(lexical, path)
        if is_within(real, own.root):
            relative = posixpath.relpath(real, own.root)
            return Target(path=real, root=own.root, resource=relative, external=False)
        if is_within(lexical, own.root):
            raise ToolFailure(f"{path} leads outside the project through a symbolic link")
        directory, name = posixpath.split(real)
        managed = directory == own.outputs and name.startswith(NAME_PREFIX)
        root = await self._boundary(real, kind)
        return Target(path=real, root=root, resource=real, external=True, managed=managed)

    async def _resolve_below(self, path: str, reference: str) -> Target:
        """Resolve `@name/rest` in the Reference."""
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
        own = await self._directories()
        if _is_own_data(target.path, own):
            raise ToolFailure(f"{target.resource} belongs to this program and cannot be changed")
        settings = own.configuration
        is_user_settings = settings is not None and is_within(target.path, settings)
        return Target(
            path=target.path,
            root=target.root,
            resource=target.resource,
            external=target.external,
            protection=protected_paths.USER_SETTINGS
            if is_user_settings
            else protected_paths.find_protection(target.path),
        )

    def _reference(self, path: str) -> str | None:
        """The directory of the Reference that `path` begins with, if any."""
        if not path.startswith("@"):
            return None
        return self._references().get(path[1:].partition("/")[0])

    def _lexical(self, path: str, root: str) -> str:
        if not posixpath.isabs(path):
            lexical = posixpath.normpath(posixpath.join(root, path))
            if not is_within(lexical, root):
                raise ToolFailure(f"{path} is outside the project; use an absolute path")
            return lexical
        # normpath keeps two leading slashes, which have no meaning here.
        lexical = "/" + posixpath.normpath(path).lstrip("/")
        if is_within(lexical, self._given_root):
            inside = posixpath.relpath(lexical, self._given_root)
            return posixpath.normpath(posixpath.join(root, inside))
        return lexical

    async def _directories(self) -> _RealDirectories:
        # Resolved once: a link that is changed later cannot move the boundary.
        if self._resolved is None:
            self._resolved = _RealDirectories(
                root=await self._filesystem.real_path(self._given_root),
                outputs=await self._filesystem.real_path(self._own.outputs),
                data=await self._real(self._own.data),
                configuration=await self._real(self._own.configuration),
                readable=await self._real_all((*self._own.readable, self._own.outputs)),
                secrets=(
                    *self._own.secrets,
                    *await self._real_all(tuple(filter(None, (self._own.configuration,)))),
                ),
            )
        return self._resolved

    async def _real_path(self, lexical: str, path: str) -> str:
        try:
            return await self._filesystem.real_path(lexical)
        except OSError as error:
            # The path became a link, or stopped being one, while it was resolved.
            raise ToolFailure(f"Unable to resolve {path}: {error.strerror}") from error

    async def _real(self, path: str | None) -> str | None:
        return None if path is None else await self._filesystem.real_path(path)

    async def _real_all(self, paths: Sequence[str]) -> tuple[str, ...]:
        return tuple([await self._filesystem.real_path(path) for path in paths])

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
        """The nearest existing directory, for which approval is asked."""
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


def _is_own_data(path: str, own: _RealDirectories) -> bool:
    if own.data is None or not is_within(path, own.data):
        return False
    # A Location inside the data directory may change its own files.
    return not (is_within(own.root, own.data) and is_within(path, own.root))
