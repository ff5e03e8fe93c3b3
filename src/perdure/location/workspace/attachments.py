"""Attachments: what a model is told of the files, addresses and paths that a prompt names.

Read once, when the prompt is promoted, under the rules of the read tool. A person named them, so
within the Location nobody is asked; what lies outside needs a rule that allows it. Storing what was
told is the caller's; media that is fine as it was given is left in the prompt and not told twice.

Invariant: total. What is missing, refused, too large or of no use to a model becomes a note in the
message, and never an error that would stop the Session.
"""

import asyncio
import posixpath
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.request import attachments
from perdure.core.web import address
from perdure.core.web.address import WebAddressError
from perdure.location.approval.permissions import LocationPermissions
from perdure.location.workspace.attached_file import AttachedFiles, Reference
from perdure.location.workspace.attached_file import reference as reference_of
from perdure.ports import PermissionAsk, PermissionBlockedError, WebFetchError, WebPage, WebRequest
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.prompt import FileAttachment, Prompt
from perdure.schema.session.tool import AttachedContent, FileContent, TextContent, ToolContent
from perdure.schema.value import Value
from perdure.tools.api.tool import ToolFailure
from perdure.tools.environment import ToolEnvironment
from perdure.tools.files.mutation import FileMutations
from perdure.tools.web import content as web_content

_WEB: Final = ("http://", "https://")
_NO_ROOM: Final = "the attachments before it take all the room there is"
_ACCEPT: Final = "text/markdown, text/html;q=0.9, image/*;q=0.9, */*;q=0.5"


class Listener(Value, kw_only=True):
    """For whom attachments are read."""

    session_id: SessionID
    message_id: MessageID
    agent: str


class AttachmentPermissions:
    """A PermissionGate for what a person has named: it asks nobody.

    Rules hold. What they leave open is taken as granted inside the Location and refused outside.
    """

    def __init__(self, permissions: LocationPermissions) -> None:
        self._permissions = permissions

    async def require(self, ask: PermissionAsk) -> None:
        effect = await self._permissions.judge(ask)
        outside = ask.action == "external_directory" or any(
            resource.startswith("/") for resource in ask.resources
        )
        if effect == "deny":
            raise PermissionBlockedError(f"a rule denies {ask.action}")
        if effect == "ask" and outside:
            raise PermissionBlockedError(f"it is outside the project: no rule allows {ask.action}")


class Attachments:
    """Reads what a prompt attaches. `environment` must use AttachmentPermissions."""

    def __init__(
        self, environment: Callable[[], ToolEnvironment], permissions: LocationPermissions
    ) -> None:
        self._make = environment
        self._permissions = permissions

    def unnoticed(self) -> "Attachments":
        """The same for who only looks: it does not count as seen by the Session."""

        def make() -> ToolEnvironment:
            environment = self._environment
            return replace(environment, mutations=FileMutations(environment.filesystem))

        return Attachments(make, self._permissions)

    async def told(self, prompt: Prompt, listener: Listener) -> tuple[AttachedContent, ...]:
        files = () if prompt.files is UNSET else prompt.files
        if not files and "@" not in prompt.text:
            return ()
        pages = await self._pages(files, listener)
        purse = _Purse()
        told: list[AttachedContent] = []
        for index, file in enumerate(files[: limits.ATTACHMENTS_MAX]):
            content = await self._file(file, pages.get(index), listener)
            if content is not None:
                told.append(AttachedContent(content=purse.paid(_name(file), content), file=index))
        told += _uncounted(len(files))
        for path in attachments.mentioned_paths(prompt.text, known=_known(prompt)):
            content = await self._mention(path, listener)
            if content is not None:
                told.append(AttachedContent(content=purse.paid(path, content)))
        return tuple(told)

    @cached_property
    def _environment(self) -> ToolEnvironment:
        return self._make()

    @cached_property
    def _files(self) -> AttachedFiles:
        return AttachedFiles(self._environment)

    async def _file(
        self, file: FileAttachment, page: WebPage | str | None, listener: Listener
    ) -> tuple[ToolContent, ...] | None:
        """What is told of one file; None when it goes out as it was given."""
        name = _name(file)
        if page is not None:
            return await self._page(name, page)
        if file.uri.startswith("data:"):
            return await self._files.inline(file, name)
        where = reference_of(file.uri)
        if where is None:
            return _note(name, "nothing here can read such an address")
        return await self._at(where, name, listener)

    async def _at(self, where: Reference, name: str, listener: Listener) -> tuple[ToolContent, ...]:
        try:
            return await self._files.at(
                where,
                session_id=listener.session_id,
                message_id=listener.message_id,
                agent=listener.agent,
            )
        except (ToolFailure, PermissionBlockedError) as refused:
            return _note(name, str(refused))

    async def _mention(self, path: str, listener: Listener) -> tuple[ToolContent, ...] | None:
        """What is told of a path that stands in the text; None when there is no such file."""
        try:
            target = await self._environment.authority.look(path)
            await self._environment.files(target).stat(target.path)
        except (ToolFailure, OSError):
            return None
        # Nobody attached it: where the rules leave it open, an @ in a text is not a yes.
        ask = PermissionAsk(
            session_id=listener.session_id,
            agent=listener.agent,
            action="read",
            resources=(target.resource,),
        )
        if target.external or await self._permissions.judge(ask) != "allow":
            return _note(path, "reading it needs approval; attach it, or let it be read")
        return await self._at(Reference(path), path, listener)

    # ---- addresses ------------------------------------------------------------------------------

    async def _pages(
        self, files: Sequence[FileAttachment], listener: Listener
    ) -> dict[int, WebPage | str]:
        """The pages that are attached, or why they are not; fetched side by side."""
        asked = [at for at, file in enumerate(files) if file.uri.startswith(_WEB)]
        fetched = asked[: limits.ATTACHED_PAGES_MAX]
        async with asyncio.TaskGroup() as group:
            tasks = {
                at: group.create_task(self._fetched(files[at].uri, listener)) for at in fetched
            }
        pages: dict[int, WebPage | str] = dict.fromkeys(asked, "there are too many addresses")
        return pages | {at: task.result() for at, task in tasks.items()}

    async def _fetched(self, uri: str, listener: Listener) -> WebPage | str:
        environment, web = self._environment, self._environment.web
        if web is None:
            return "there is no way to the web here"
        try:
            url = address.parse(uri).url
            ask = PermissionAsk(
                session_id=listener.session_id,
                agent=listener.agent,
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
            media = await web_content.media_of(page, self._environment.images)
            if media is not None:
                return (media,)
            text = attachments.truncate(await web_content.text_of(page, "markdown"))
        except ToolFailure as error:
            return _note(name, str(error))
        return (TextContent(text=attachments.with_heading("page", page.url, text)),)


class _Purse:
    """How much of one prompt's attachments may still be told."""

    def __init__(self) -> None:
        self._text = limits.ATTACHED_TEXT_BYTES_MAX
        self._media = limits.ATTACHED_MEDIA_CHARS_MAX

    def paid(self, name: str, content: tuple[ToolContent, ...]) -> tuple[ToolContent, ...]:
        """The content, or a note where there is no room for it any more."""
        text = sum(len(item.text.encode()) for item in content if isinstance(item, TextContent))
        media = sum(len(item.uri) for item in content if isinstance(item, FileContent))
        if (text and text > self._text) or (media and media > self._media):
            return _note(name, _NO_ROOM)
        self._text -= text
        self._media -= media
        return content


def _uncounted(files: int) -> Iterator[AttachedContent]:
    """Files beyond the most that are looked at: one note for all of them."""
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
    # The last part is enough to know it by; where nothing was read, the rest is nobody's business.
    return posixpath.basename(file.uri.partition("?")[0].rstrip("/")) or "a file"


def _known(prompt: Prompt) -> frozenset[str]:
    """Mentions that somebody has already said the meaning of."""
    files = () if prompt.files is UNSET else prompt.files
    agents = () if prompt.agents is UNSET else prompt.agents
    sources = [item.source.text for item in (*files, *agents) if item.source is not UNSET]
    named = [file.name for file in files if file.name is not UNSET]
    texts = (*sources, *named, *(file.uri for file in files), *(agent.name for agent in agents))
    return frozenset(text.removeprefix("@") for text in texts)
