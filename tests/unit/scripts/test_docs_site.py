"""The documentation site: every page fits, and the reference pages leave nothing out."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
from perdure.cli import command_table
from perdure.core.settings.project_keys import KEYS
from perdure.protocol.api import API
from perdure.schema import live_event, manifest
from scripts.docs_site import build, links, pages
from tests.tidy import source_tree

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return build.collect()


def test_the_pages_fit_together(texts: dict[str, str]) -> None:
    assert list(build.list_problems(texts)) == []


def test_each_page_has_one_heading_and_a_title_of_its_own(texts: dict[str, str]) -> None:
    titles = [page.title for page in pages.list_pages()]
    assert len(titles) == len(set(titles))
    for path, text in texts.items():
        assert text.startswith("# "), path


def test_every_command_and_option_is_in_the_reference(texts: dict[str, str]) -> None:
    for name in command_table.list_names():
        assert f"### `perdure {name}`" in texts["reference/cli.md"]
    assert "`--attach URL`" in texts["reference/cli.md"]


def test_every_operation_is_in_the_reference(texts: dict[str, str]) -> None:
    for endpoint in API:
        assert f"### {endpoint.method} {endpoint.path}\n" in texts["reference/http.md"]


def test_every_event_is_in_the_reference(texts: dict[str, str]) -> None:
    names = [definition.type for definition in manifest.DEFINITIONS]
    for name in (*names, *live_event.LIVE_TYPES.values()):
        assert f"### `{name}`\n" in texts["reference/events.md"]


def test_every_public_name_is_in_the_reference(texts: dict[str, str]) -> None:
    shown = re.findall(r"^### `(\w+)`$", texts["reference/python.md"], flags=re.MULTILINE)
    modules = {"__version__", "events", "testing"}
    assert set(shown) == set(perdure.__all__) - modules


def test_every_configuration_key_is_in_the_reference(texts: dict[str, str]) -> None:
    for key in KEYS:
        assert f"| `{'.'.join(map(str, key.at))}` |" in texts["reference/keys.md"]


def test_every_error_text_of_the_troubleshooting_page_is_one_of_the_program() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    texts = re.findall(r"^### `(.+)`$", page, flags=re.MULTILINE)
    said = "\n".join(literals())
    assert len(texts) > 20
    assert [text for text in texts if text not in said] == []


def test_links_lead_to_the_place_of_a_page_in_the_site() -> None:
    places = {"docs/a.md": "start/a.md", "docs/howto/b.md": "tasks/b.md"}
    text = "[b](howto/b.md#top) [code](../src/x.py) [web](https://example.com) [here](#here)"
    fitted = links.fit(text, origin="docs/a.md", place="start/a.md", places=places, source="S")
    assert fitted == (
        "[b](../tasks/b.md#top) [code](S/blob/main/src/x.py) [web](https://example.com)"
        " [here](#here)"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](other.md)", "page.md: other.md leads to no page"),
        ("[a](#there)", "page.md: #there leads to no heading"),
        ("# Here it is\n\n[a](#here-it-is)", None),
        ("# `perdure run`\n## Again\n## Again\n\n[a](#perdure-run) [b](#again_1)", None),
        ("```\n# no heading\n```\n[a](#no-heading)", "page.md: #no-heading leads to no heading"),
    ],
)
def test_a_broken_link_is_found(text: str, problem: str | None) -> None:
    assert list(links.list_broken({"page.md": text})) == ([] if problem is None else [problem])


def literals() -> Iterator[str]:
    """The texts that the program can say; a placeholder ends one."""
    for module in source_tree.modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
