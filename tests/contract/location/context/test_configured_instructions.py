"""Instructions that the configuration names: files, patterns, and pages of the web."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.settings.document import Trust
from perdure.core.settings.settings import InstructionEntry
from perdure.host.http.web_pages import WebClient
from perdure.location.context.configured_instructions import ConfiguredInstructions
from perdure.location.context.registry import Subject
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders
from tests.fixtures import SESSION
from tests.requirements import requirement

SUBJECT = Subject(session_id=SESSION)


def configured(
    folders: LocationFolders, *texts: str, trust: Trust = "user", clock: ManualClock | None = None
) -> ConfiguredInstructions:
    return ConfiguredInstructions(
        tuple(InstructionEntry(text, str(folders.project), trust) for text in texts),
        root=str(folders.project),
        environment=folders.environment,
        pages=WebClient(),
        allowed_hosts=("127.0.0.1",),
        clock=clock or ManualClock(),
    )


async def told(found: ConfiguredInstructions) -> str | None:
    generation = system_context.initialize(await found.observe(SUBJECT))
    return generation.baseline if isinstance(generation, system_context.Generation) else None


class Page:
    """A server with one page, which can be changed or taken away."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.url = ""
        self.asked = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        await reader.readuntil(b"\r\n\r\n")
        body = (self.text or "").encode()
        status = b"404 Not Found" if self.text is None else b"200 OK"
        head = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def served() -> AsyncGenerator[Page]:
    page = Page()
    async with await asyncio.start_server(page.answer, "127.0.0.1", 0) as server:
        page.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/rules.md"
        yield page


async def test_files_and_patterns_are_told_in_the_order_they_are_named(
    folders: LocationFolders,
) -> None:
    folders.write(folders.project / "rules/b.md", "second")
    folders.write(folders.project / "rules/a.md", "first")
    folders.write(folders.home / "mine.md", "mine")
    folders.write(folders.project / "deep/er/x.rules", "deep")
    found = configured(folders, "~/mine.md", "rules/*.md", "missing.md", "**/*.rules", "rules/a.md")
    assert await told(found) == (
        f"Instructions from {folders.home}/mine.md:\nmine\n\n"
        f"Instructions from {folders.project}/rules/a.md:\nfirst\n\n"
        f"Instructions from {folders.project}/rules/b.md:\nsecond\n\n"
        f"Instructions from {folders.project}/deep/er/x.rules:\ndeep"
    )


async def test_nothing_named_or_nothing_there_is_nothing_to_tell(folders: LocationFolders) -> None:
    assert await configured(folders).observe(SUBJECT) == ()
    assert await configured(folders, "missing.md", "[", "no/**/such").observe(SUBJECT) == ()


@pytest.mark.parametrize("text", ["{root}/secret.md", "../secret.md", "link.md", "~/secret.md"])
async def test_a_project_names_only_files_of_its_own(
    folders: LocationFolders, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    folders.write(folders.root / "secret.md", "secret")
    folders.write(folders.home / "secret.md", "secret")
    (folders.project / "link.md").symlink_to(folders.root / "secret.md")
    named = text.format(root=folders.root)
    assert await configured(folders, named, trust="project").observe(SUBJECT) == ()
    assert "not in the project" in caplog.text
    assert "secret" in (await told(configured(folders, named)) or "")


async def test_outside_of_any_repository_a_project_is_its_directory(
    folders: LocationFolders,
) -> None:
    folders.write(folders.root / "secret.md", "secret")
    entry = InstructionEntry("../secret.md", str(folders.project), "project")
    found = ConfiguredInstructions(
        (entry,),
        root="/",
        environment=folders.environment,
        pages=WebClient(),
        allowed_hosts=(),
        clock=ManualClock(),
    )
    assert await found.observe(SUBJECT) == ()


async def test_a_whole_tree_is_walked_only_now_and_then(folders: LocationFolders) -> None:
    clock = ManualClock()
    found = configured(folders, "**/*.rules", clock=clock)
    assert await found.observe(SUBJECT) == ()
    folders.write(folders.project / "new.rules", "new")
    assert await found.observe(SUBJECT) == ()
    clock.advance(limits.INSTRUCTION_WALK_SECONDS)
    assert "new" in (await told(found) or "")


@requirement("S44", "S34")
async def test_a_page_is_unavailable_until_it_was_fetched_and_then_outlives_its_server(
    folders: LocationFolders,
) -> None:
    clock = ManualClock()
    async with served() as page:
        found = configured(folders, page.url, clock=clock)
        observation = await found.observe(SUBJECT)
        assert [item.available for item in observation] == [False]
        page.text = "Be kind."
        assert await told(found) == f"Instructions from {page.url}:\nBe kind."
        asked = page.asked
        assert await told(found) == f"Instructions from {page.url}:\nBe kind."
        assert page.asked == asked
        page.text = "Be quick."
        clock.advance(limits.INSTRUCTION_PAGE_SECONDS)
        assert await told(found) == f"Instructions from {page.url}:\nBe quick."
    clock.advance(limits.INSTRUCTION_PAGE_SECONDS)
    assert await told(found) == f"Instructions from {page.url}:\nBe quick."


async def test_a_page_that_is_too_large_is_not_taken(folders: LocationFolders) -> None:
    async with served() as page:
        page.text = "x" * (limits.INSTRUCTION_FILE_BYTES_MAX + 1)
        observation = await configured(folders, page.url).observe(SUBJECT)
    assert [item.available for item in observation] == [False]


async def test_a_change_is_told_with_the_whole_set_and_the_end_with_a_sentence(
    folders: LocationFolders,
) -> None:
    rules = folders.write(folders.project / "rules.md", "one")
    found = configured(folders, "rules.md")
    first = system_context.initialize(await found.observe(SUBJECT))
    assert isinstance(first, system_context.Generation)
    rules.write_text("two and more")
    second = system_context.reconcile(await found.observe(SUBJECT), first.snapshot)
    assert isinstance(second, system_context.Updated)
    assert second.text.startswith("The configured instructions have changed.")
    rules.unlink()
    third = system_context.reconcile(await found.observe(SUBJECT), second.snapshot)
    assert isinstance(third, system_context.Updated)
    assert third.text.startswith("There are no configured instructions any more.")
