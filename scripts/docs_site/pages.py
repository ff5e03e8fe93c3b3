"""The table of contents of the site: sections, their pages, and where each page comes from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.docs_site import (
    cli_reference,
    configuration_reference,
    event_reference,
    http_reference,
    python_reference,
)

ROOT: Final = Path(__file__).resolve().parents[2]
ADR: Final = "docs/adr"


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `source` is a file of the repository, or a function that writes Markdown."""

    title: str
    path: str
    """Path within the site, ending in `.md`."""
    source: str | Callable[[], str]

    def text(self) -> str:
        if callable(self.source):
            return self.source()
        return (ROOT / self.source).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Section:
    """Pages under one heading of the navigation. Without a title they stand at its top."""

    title: str
    pages: tuple[Page, ...]


SECTIONS: Final = (
    Section(
        "Start",
        (
            Page("Perdure", "index.md", "docs/index.md"),
            Page("Tutorial: ten minutes", "tutorial.md", "docs/tutorial.md"),
            Page("Words", "words.md", "CONTEXT.md"),
        ),
    ),
    Section(
        "Tasks",
        (
            Page("Embed it in a program", "tasks/embed.md", "docs/howto/embed.md"),
            Page("Use a server from a program", "tasks/client.md", "docs/howto/client.md"),
            Page("Write a bot", "tasks/bot.md", "docs/howto/bot.md"),
            Page("Write a tool", "tasks/tool.md", "docs/howto/tool.md"),
            Page("Write a plugin", "tasks/plugin.md", "docs/howto/plugin.md"),
            Page("Add a provider", "tasks/provider.md", "docs/howto/provider.md"),
            Page("Use it in an editor", "tasks/editors.md", "docs/howto/editors.md"),
            Page("Use the web page", "tasks/web.md", "docs/web.md"),
            Page("Use MCP servers", "tasks/mcp.md", "docs/howto/mcp.md"),
            Page("Serve other agents", "tasks/workers.md", "docs/howto/workers.md"),
            Page("Test your program", "tasks/testing.md", "docs/howto/testing.md"),
            Page("Compact long Sessions", "tasks/compaction.md", "docs/compaction.md"),
        ),
    ),
    Section(
        "Operate",
        (
            Page("Operating", "operate/operating.md", "docs/operating.md"),
            Page("Deploying", "operate/deploying.md", "docs/deploying.md"),
            Page("Security", "operate/security.md", "docs/security.md"),
            Page("Troubleshooting", "operate/troubleshooting.md", "docs/troubleshooting.md"),
        ),
    ),
    Section(
        "Reference",
        (
            Page("Command line, in words", "reference/cli-guide.md", "docs/cli.md"),
            Page("Commands and options", "reference/cli.md", cli_reference.write),
            Page("Configuration, in words", "reference/configuration.md", "docs/configuration.md"),
            Page("Configuration keys", "reference/keys.md", configuration_reference.write),
            Page("HTTP operations", "reference/http.md", http_reference.write),
            Page("Python", "reference/python.md", python_reference.write),
            Page("Events", "reference/events.md", event_reference.write),
            Page("Compatible clients", "reference/compatibility.md", "docs/compatibility.md"),
            Page("Comparison", "reference/comparison.md", "docs/comparison.md"),
            Page("Stored shapes", "reference/stored-shapes.md", "docs/SCHEMA_CHANGELOG.md"),
            Page("Changes", "reference/changes.md", "CHANGELOG.md"),
        ),
    ),
    Section(
        "How it is built",
        (
            Page("Architecture", "built/architecture.md", "ARCHITECTURE.md"),
            Page("Contributing", "built/contributing.md", "CONTRIBUTING.md"),
            Page("Testing", "built/testing.md", "docs/testing.md"),
            Page("Figures", "built/figures.md", "docs/figures.md"),
            Page("Crashes", "built/crashes.md", "docs/crashes.md"),
            Page("Disks", "built/disks.md", "docs/disks.md"),
            Page("Failing things", "built/failing.md", "docs/failing.md"),
            Page("Simulation", "built/simulation.md", "docs/simulation.md"),
            Page("Wire protocols", "built/wire.md", "docs/wire.md"),
            Page("Planted bugs", "built/planted-bugs.md", "docs/planted_bugs.md"),
        ),
    ),
)


def list_sections() -> tuple[Section, ...]:
    """All sections, the decision records included."""
    return (*SECTIONS, Section("Decisions", tuple(_decision_pages())))


def list_pages() -> tuple[Page, ...]:
    return tuple(page for section in list_sections() for page in section.pages)


def _decision_pages() -> Iterator[Page]:
    for path in sorted((ROOT / ADR).glob("*.md")):
        heading = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        yield Page(heading, f"decisions/{path.name}", f"{ADR}/{path.name}")
