"""Decides for all tools which files may be shown to a model, and which it may change.

A file whose content or name is shown needs `read`, whatever tool shows it; a file that is changed,
created, moved or removed needs `edit`. Both are asked for its canonical path. A search leaves out
what rules deny, and names what a person would have to allow. A change is asked about with the
difference that it makes.

Invariant: a tool opens a file for a model only after it has asked here; tests.tidy.access
lists those that do.
"""

import posixpath
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Literal

from msgspec.structs import replace

from perdure.core.approval import protected_paths
from perdure.core.approval import rules as permission
from perdure.core.files import exact_edit
from perdure.core.files.paths import printable
from perdure.core.limits import OMITTED_NAMES_MAX, PERMISSION_DIFF_CHARS_MAX
from perdure.ports import PermissionAsk, PermissionGate
from perdure.ports.offload import offload
from perdure.schema.approval.permission import Effect, ProposedChange
from perdure.schema.codec import Record
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolCallContext, ToolFailure
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.path_access import PathAccess, Target


class Omitted(Record, frozen=True):
    """Files that a tool left out of its answer because of rules for `read`."""

    denied: int
    """How many must not be shown. They are not named."""
    needs_permission: tuple[str, ...]
    """Files that can be read once a person allows it; a bounded number of them."""

    def describe(self) -> list[str]:
        """Lines for the model."""
        lines: list[str] = []
        if self.needs_permission:
            names = ", ".join(self.needs_permission)
            lines.append(f"(Left out, because reading them needs permission: {names})")
        if self.denied:
            files = "1 file" if self.denied == 1 else f"{self.denied} files"
            lines.append(f"({files} left out: the rules deny reading.)")
        return lines


class FileView:
    """Which files a search may show. `shows` remembers what it left out."""

    def __init__(self, effect: Callable[[str], Effect]) -> None:
        self._effect = effect
        self._denied = 0
        self._asked: list[str] = []

    def shows(self, resource: str) -> bool:
        """Whether a file may be shown, by its resource; called once for each."""
        effect = self._effect(resource)
        if effect == "deny":
            self._denied += 1
        elif effect == "ask" and len(self._asked) < OMITTED_NAMES_MAX:
            self._asked.append(resource)
        return effect == "allow"

    @property
    def is_partial(self) -> bool:
        """Whether there may be files that are not shown."""
        return self._effect is not permission.allow_all

    def is_shown(self, resource: str) -> bool:
        """As `shows`, without counting."""
        return self._effect(resource) == "allow"

    @property
    def omitted(self) -> Omitted | None:
        if not self._denied and not self._asked:
            return None
        return Omitted(denied=self._denied, needs_permission=tuple(map(printable, self._asked)))


class FileChange(Value, kw_only=True):
    """What a tool is about to do to a file. `after` is None for a removal."""

    target: Target
    before: bytes | None
    after: bytes | None


Preview = Callable[[], Awaitable[Sequence[FileChange]]]
"""Computes the changes. Raises ToolFailure when they cannot be made."""


class FilePermissions(Value):
    gate: PermissionGate
    path_access: PathAccess
    mutations: FileMutations

    async def refuse_denied(self, context: ToolCallContext, target: Target) -> None:
        """Refuse what a rule denies to read, before it is known whether it exists."""
        if not target.managed and await self._effect(context, "read", target) == "deny":
            await self.require_shown(context, target)

    async def require_shown(self, context: ToolCallContext, target: Target) -> None:
        """Require that the content of a file, or the names in a directory, may be shown."""
        if not target.managed:
            save = () if target.secret else ("*",)
            await self.gate.require(_ask(context, "read", (target,), save=save))

    async def require_used(self, context: ToolCallContext, target: Target) -> None:
        """Require that a tool may use the content, unless the Session knows it as it is now."""
        effect = await self._effect(context, "read", target)
        if effect == "deny" or (effect == "ask" and not await self._is_known(context, target)):
            await self.require_shown(context, target)

    async def view(self, context: ToolCallContext, directory: str) -> FileView:
        """Which files may be shown among those below a directory; no person is asked."""
        ruled = await self.gate.effects(_ask(context, "read", (), save=()))
        effect = await self._with_hidden(ruled, directory)
        if effect is permission.allow_all:
            return FileView(effect)
        managed = await self.path_access.managed_prefix()
        return FileView(
            lambda resource: "allow" if resource.startswith(managed) else effect(resource)
        )

    async def _with_hidden(
        self, ruled: Callable[[str], Effect], directory: str
    ) -> Callable[[str], Effect]:
        """What rules say, narrowed by what is hidden from models below a directory."""
        hidden = await self.path_access.hidden_effect(directory)
        if hidden is permission.allow_all:
            return ruled
        root = await self.path_access.root()

        def decide(resource: str) -> Effect:
            found = {ruled(resource), hidden(posixpath.join(root, resource))}
            return "deny" if "deny" in found else "ask" if "ask" in found else "allow"

        return decide

    async def require_change(
        self,
        context: ToolCallContext,
        targets: Collection[Target],
        *,
        uses: Collection[Target] = (),
        preview: Preview,
    ) -> Sequence[FileChange]:
        """Require that these files may be changed; returns the changes that a person was shown.

        `uses` are those whose present content the tool compares or moves, so that its answer or
        the new place would show it.
        """
        guarded = [target for target in targets if target.protection is not None]
        ordinary = [target for target in targets if target.protection is None]
        for target in guarded:
            if await self._effect(context, "edit", target) == "deny":
                await self.gate.require(_ask(context, "edit", (target,), save=()))
        shown: list[FileChange] = []
        if ordinary:
            ask = _ask(context, "edit", ordinary, save=("*",))
            await self.gate.require(replace(ask, changes=partial(_show_ordinary, preview, shown)))
        for target in uses:
            await self.require_used(context, target)
        if not guarded:
            return shown
        changes = [it for it in await preview() if it.target.protection is not None]
        await self._require_protected(context, changes)
        return [*shown, *changes]

    async def _require_protected(
        self, context: ToolCallContext, changes: Sequence[FileChange]
    ) -> None:
        harmless = [it.target for it in changes if not _counts(it)]
        if harmless:
            await self.gate.require(_ask(context, "edit", harmless, save=("*",)))
        for governs in (False, True):
            asked = [it for it in changes if _counts(it) and _governs(it) is governs]
            if asked:
                await self.gate.require(await _ask_protected(context, asked, governs=governs))

    async def _is_known(self, context: ToolCallContext, target: Target) -> bool:
        known = self.mutations.read_tracker.version(context.session_id, target.path)
        if known is None:
            return False
        try:
            return known == await self.mutations.load_version(target)
        except OSError:
            return False

    async def _effect(self, context: ToolCallContext, action: str, target: Target) -> Effect:
        return await self.gate.evaluate(_ask(context, action, (target,), save=()))


def _ask(
    context: ToolCallContext, action: str, targets: Sequence[Target], *, save: tuple[str, ...]
) -> PermissionAsk:
    return PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action=action,
        resources=tuple(dict.fromkeys(target.resource for target in targets)),
        save=save,
        source=context.source,
        protected=any(target.secret for target in targets),
    )


async def _show_ordinary(preview: Preview, shown: list[FileChange]) -> tuple[ProposedChange, ...]:
    """The changes of files that are not protected; adds them to those that a person was shown.

    Nothing if they cannot be made: the model is told why once it may know what the files hold.
    """
    try:
        changes = [it for it in await preview() if it.target.protection is None]
    except (ToolFailure, OSError):
        return ()
    shown.extend(changes)
    return await _propose(changes)


async def _propose(changes: Sequence[FileChange]) -> tuple[ProposedChange, ...]:
    size = sum(len(it.before or b"") + len(it.after or b"") for it in changes)
    proposed = await offload(size, lambda: tuple(map(_describe_change, changes)))
    room = PERMISSION_DIFF_CHARS_MAX
    bounded: list[ProposedChange] = []
    for change in proposed:
        bounded.append(replace(change, patch=_cut(change.patch, room)))
        room = max(0, room - len(change.patch))
    return tuple(bounded)


async def _ask_protected(
    context: ToolCallContext, changes: Sequence[FileChange], *, governs: bool
) -> PermissionAsk:
    ask = _ask(context, "edit", [it.target for it in changes], save=())
    proposed = await _propose(changes)
    reasons = {it.target.resource: it.target.protection for it in changes}
    return replace(
        ask,
        save=() if governs else ask.resources,
        protected=True,
        metadata={
            "protected": True,
            "reason": "; ".join(f"{name}: {found.why}" for name, found in reasons.items() if found),
            "diff": "".join(change.patch for change in proposed),
        },
        changes=partial(_give, proposed),
    )


async def _give(proposed: tuple[ProposedChange, ...]) -> tuple[ProposedChange, ...]:
    return proposed


def _counts(change: FileChange) -> bool:
    protection = change.target.protection
    return protection is not None and protected_paths.is_touched(
        protection, before=change.before, after=change.after
    )


def _governs(change: FileChange) -> bool:
    protection = change.target.protection
    return protection is not None and protection.governs


def _describe_change(change: FileChange) -> ProposedChange:
    name = change.target.resource
    before, after = (_text(data) for data in (change.before, change.after))
    lines = exact_edit.line_diff(name, before=before, after=after)
    large = f"{name}: {lines.additions} lines more, {lines.deletions} fewer; too large to show\n"
    return ProposedChange(
        path=name,
        status=_status_of(change),
        additions=lines.additions,
        deletions=lines.deletions,
        patch=lines.patch or large,
    )


def _status_of(change: FileChange) -> Literal["added", "modified", "deleted"]:
    if change.before is None:
        return "added"
    return "deleted" if change.after is None else "modified"


def _cut(diff: str, most: int) -> str:
    rest = len(diff) - most
    return diff if rest <= 0 else f"{diff[:most]}\n(cut; {rest} more characters)"


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")
