"""Attachments: reads the files, URLs and paths that a prompt names, for the model.

They are read once, when the prompt is promoted, under the rules of the read tool. The user named
them, so inside the Location no permission is asked; outside, a rule must allow it. The caller
stores the result; media that can be sent unchanged stays in the prompt and is not repeated.

Invariant: never fails. What is missing, refused, too large or unusable becomes a note in the
message, and never an error that would stop the Session.
"""

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.mcp import tool_names
from perdure.core.request import attachments
from perdure.core.web import address
from perdure.core.web.address import WebAddressError
from perdure.location.approval.permissions import LocationPermissions
from perdure.location.workspace.attached_file import AttachedFiles, FileReference, parse_reference
from perdure.ports import PermissionAsk, PermissionBlockedError, WebFetchError, WebPage, WebRequest
from perdure.schema.approval.permission import Effect
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.prompt import FileAttachment, Prompt
from perdure.schema.session.tool import AttachedContent, FileContent, TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolFailure
from perdure.tools.environment import ToolEnvironment
from perdure.tools.files.mutation import FileMutations
from perdure.tools.web import content as web_content

_RESOURCE: Final = "mcp://"
_WEB: Final = ("http://", "https://")
_NO_ROOM: Final = "the attachments before it take all the room there is"
_ACCEPT: Final = "text/markdown, text/html;q=0.9, image/*;q=0.9, */*;q=0.5"


class AttachmentContext(Value, kw_only=True):
    """The Session, message and agent for which attachments are read."""

    session_id: SessionID
    message_id: MessageID
    agent: str
    above: tuple[str, ...] = ()
    """The agents that called this Session: the prompt of a subagent is the words of a model."""


class AttachmentPermissions:
    """A PermissionGate for what the user has attached: it never asks.

    Rules apply. What they leave open is allowed inside the Location and refused outside.
    """

    def __init__(self, permissions: LocationPermissions) -> None:
        self._permissions = permissions

    async def require(self, ask: PermissionAsk) -> None:
        effect = await self._permissions.evaluate(ask)
        outside = ask.action == "external_directory" or any(
            resource.startswith("/") for resource in ask.resources
        )
        if effect == "deny":
            raise PermissionBlockedError(f"a rule denies {ask.action}")
        if effect == "ask" and outside:
            raise PermissionBlockedError(f"it is outside the project: no rule allows {ask.action}")

    async def evaluate(self, ask: PermissionAsk) -> Effect:
        return await self._permissions.evaluate(ask)

    async def effects(self, ask: PermissionAsk) -> Callable[[str], Effect]:
        return await self._permissions.effects(ask)


ReadResource = Callable[[str], Awaitable[tuple[ToolContent, ...]]]
"""Reads a resource of an MCP server, by an address `mcp://server/uri`. Raises ToolFailure."""


class Attachments:
    """Reads what a prompt attaches. `environment` must use AttachmentPermissions."""

    def __init__(
        self,
        environment: Callable[[], ToolEnvironment],
        permissions: LocationPermissions,
        resources: ReadResource,
    ) -> None:
        self._make = environment
        self._permissions = permissions
        self._resources = resources

    def with_resources(self, resources: ReadResource) -> "Attachments":
        """The same with the resources of other servers."""
        return Attachments(self._make, self._permissions, resources)

    def without_tracking(self) -> "Attachments":
        """The same for a preview: files do not count as read by the Session."""

        def make() -> ToolEnvironment:
            environment = self._environment
            return replace(environment, mutations=FileMutations(environment.filesystem))

        return Attachments(make, self._permissions, self._resources)

    async def read(self, prompt: Prompt, context: AttachmentContext) -> tuple[AttachedContent, ...]:
        """The Attached content of a prompt."""
        files = () if prompt.files is UNSET else prompt.files
        if not files and "@" not in prompt.text:
            return ()
        pages = await self._pages(files, context)
        budget = _SizeBudget()
        attached: list[AttachedContent] = []
        for index, file in enumerate(files[: limits.ATTACHMENTS_MAX]):
            content = await self._file(file, pages.get(index), context)
            if content is not None:
                content = budget.spend(_name(file), content)
                attached.append(AttachedContent(content=content, file=index))
        attached += _notes_for_excess(len(files))
        for path in attachments.mentioned_paths(prompt.text, known=_known(prompt)):
            content = await self._mention(path, context)
            if content is not None:
                attached.append(AttachedContent(content=budget.spend(path, content)))
        return tuple(attached)

    @cached_property
    def _environment(self) -> ToolEnvironment:
        return self._make()

    @cached_property
    def _files(self) -> AttachedFiles:
        return AttachedFiles(self._environment)

    async def _file(
        self, file: FileAttachment, page: WebPage | str | None, context: AttachmentContext
    ) -> tuple[ToolContent, ...] | None:
        """The content of one file; None when it is sent unchanged."""
        name = _name(file)
        if page is not None:
            return await self._page(name, page)
        if file.uri.startswith("data:"):
            return await self._files.inline(file, name)
        if file.uri.startswith(_RESOURCE):
            return await self._resource(file.uri, name, context)
        reference = parse_reference(file.uri)
        if reference is None:
            return _note(name, "nothing here can read such an address")
        return await self._read_path(reference, name, context)

    async def _resource(
        self, uri: str, name: str, context: AttachmentContext
    ) -> tuple[ToolContent, ...]:
        ask = PermissionAsk(
            session_id=context.session_id,
            agent=context.agent,
            above=context.above,
            action=tool_names.READ_RESOURCE,
            resources=(uri,),
        )
        try:
            await self._environment.permissions.require(ask)
            return await self._resources(uri)
        except (ToolFailure, PermissionBlockedError) as refused:
            return _note(name, str(refused))

    async def _read_path(
        self, reference: FileReference, name: str, context: AttachmentContext
    ) -> tuple[ToolContent, ...]:
        try:
            return await self._files.read(
                reference,
                session_id=context.session_id,
                message_id=context.message_id,
                agent=context.agent,
                above=context.above,
            )
        except (ToolFailure, PermissionBlockedError) as refused:
            return _note(name, str(refused))

    async def _mention(
        self, path: str, context: AttachmentContext
    ) -> tuple[ToolContent, ...] | None:
        """The content of a path mentioned in the text; None when there is no such file."""
        try:
            target = await self._environment.path_access.resolve(path)
            await self._environment.files(target).stat(target.path)
        except (ToolFailure, OSError):
            return None
        # The user did not attach it: an @ in a text is no approval where the rules leave it open.
        ask = PermissionAsk(
            session_id=context.session_id,
            agent=context.agent,
            above=context.above,
            action="read",
            resources=(target.resource,),
        )
        if target.external or await self._permissions.evaluate(ask) != "allow":
            return _note(path, "reading it needs approval; attach it, or let it be read")
        return await self._read_path(FileReference(path), path, context)

    # ---- web pages ------------------------------------------------------------------------------

    async def _pages(
        self, files: Sequence[FileAttachment], context: AttachmentContext
    ) -> dict[int, WebPage | str]:
        """The attached pages by index, or why they cannot be attached; fetched concurrently."""
        indexes = [index for index, file in enumerate(files) if file.uri.startswith(_WEB)]
        async with asyncio.TaskGroup() as group:
            tasks = {
                index: group.create_task(self._fetch(files[index].uri, context))
                for index in indexes[: limits.ATTACHED_PAGES_MAX]
            }
        pages: dict[int, WebPage | str] = dict.fromkeys(indexes, "there are too many addresses")
        return pages | {index: task.result() for index, task in tasks.items()}

    async def _fetch(self, uri: str, context: AttachmentContext) -> WebPage | str:
        environment, web = self._environment, self._environment.web
        if web is None:
            return "there is no way to the web here"
        try:
            url = address.parse(uri).url
            ask = PermissionAsk(
                session_id=context.session_id,
                agent=context.agent,
                above=context.above,
                action="webfetch",
                resources=(url,),
            )
            await environment.permissions.require(ask)
            return await web.pages.fetch(
                WebRequest(
                    url=url,
                    accept=_ACCEPT,
                    allowed_hosts=web.allowed_hosts,
                    seconds_max=limits.ATTACHED_PAGE_SECONDS_MAX,
                )
            )
        except (WebAddressError, WebFetchError, PermissionBlockedError) as error:
            return str(error)

    async def _page(self, name: str, page: WebPage | str) -> tuple[ToolContent, ...]:
        if isinstance(page, str):
            return _note(name, page)
        try:
            media = await web_content.extract_media(page, self._environment.images)
            if media is not None:
                return (media,)
            text = attachments.truncate(await web_content.extract_text(page, "markdown"))
        except ToolFailure as error:
            return _note(name, str(error))
        return (TextContent(text=attachments.with_heading("page", page.url, text)),)


class _SizeBudget:
    """The remaining size for one prompt's attachments."""

    def __init__(self) -> None:
        self._text = limits.ATTACHED_TEXT_BYTES_MAX
        self._media = limits.ATTACHED_MEDIA_CHARS_MAX

    def spend(self, name: str, content: tuple[ToolContent, ...]) -> tuple[ToolContent, ...]:
        """The content, or a note when it exceeds the remaining size."""
        text = sum(len(item.text.encode()) for item in content if isinstance(item, TextContent))
        media = sum(len(item.uri) for item in content if isinstance(item, FileContent))
        if (text and text > self._text) or (media and media > self._media):
            return _note(name, _NO_ROOM)
        self._text -= text
        self._media -= media
        return content


def _notes_for_excess(files: int) -> Iterator[AttachedContent]:
    """One note for all files beyond the maximum."""
    most = limits.ATTACHMENTS_MAX
    for index in range(most, files):
        note = _note(f"{files - most} more files", f"a prompt has room for {most}")
        yield AttachedContent(content=note if index == most else (), file=index)


def _note(name: str, why: str) -> tuple[ToolContent, ...]:
    return (TextContent(text=attachments.omitted_note(name, why)),)


def _name(file: FileAttachment) -> str:
    if file.name is not UNSET and file.name:
        return file.name
    if file.uri.startswith("data:"):
        return "a file"
    # The last part identifies it; the rest of the path need not be disclosed.
    return posixpath.basename(file.uri.partition("?")[0].rstrip("/")) or "a file"


def _known(prompt: Prompt) -> frozenset[str]:
    """Texts of mentions that the client has already resolved to files or agents."""
    files = () if prompt.files is UNSET else prompt.files
    agents = () if prompt.agents is UNSET else prompt.agents
    sources = [item.source.text for item in (*files, *agents) if item.source is not UNSET]
    named = [file.name for file in files if file.name is not UNSET]
    texts = (*sources, *named, *(file.uri for file in files), *(agent.name for agent in agents))
    return frozenset(text.removeprefix("@") for text in texts)
