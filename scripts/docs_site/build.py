"""Puts the pages of the site together, checks their links, and has them rendered."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from scripts.docs_site import links, pages
from scripts.docs_site.pages import ROOT, Section

WORK: Final = ROOT / ".scratch" / "site"
FILES: Final = {"docs/openapi.json": "reference/openapi.json"}
"""Files beside the pages: path in the repository -> path in the site."""
ASSETS: Final = ROOT / "docs" / "site"


class SiteError(Exception):
    """The pages do not fit together."""


def source_address() -> str:
    """Address of the source repository, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["urls"]["Source"])


def collect() -> dict[str, str]:
    """All pages of the site: path -> Markdown, with links that fit the site."""
    places: dict[str, str] = dict(FILES)
    for page in pages.list_pages():
        if isinstance(page.source, str):
            places[page.source] = page.path
    address = source_address()
    return {
        page.path: links.fit(
            page.text(),
            origin=page.source if isinstance(page.source, str) else "",
            place=page.path,
            places=places,
            source=address,
        )
        for page in pages.list_pages()
    }


def list_problems(texts: Mapping[str, str]) -> Iterator[str]:
    """List broken links, and documents that no page shows."""
    beside = dict.fromkeys(FILES.values(), "")
    yield from links.list_broken({**texts, **beside})
    shown = {page.source for page in pages.list_pages()}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if name not in shown:
            yield f"{name}: no page of the site shows it; add it to scripts/docs_site/pages.py"


def build(work: Path = WORK) -> Path:
    """Build the site and return the folder with its HTML."""
    texts = collect()
    if problems := list(list_problems(texts)):
        raise SiteError("\n".join(problems))
    shutil.rmtree(work, ignore_errors=True)
    for path, text in texts.items():
        file = work / "pages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for origin, place in FILES.items():
        shutil.copy(ROOT / origin, work / "pages" / place)
    shutil.copytree(ASSETS, work / "pages" / "assets", dirs_exist_ok=True)
    (work / "zensical.toml").write_text(_configuration(), encoding="utf-8")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    output = built.stdout + built.stderr
    if built.returncode or "warning" in output.lower():
        raise SiteError(output)
    return work / "html"


def _configuration() -> str:
    """The settings of the renderer; they name no font or script of another address."""
    navigation = ", ".join(map(_navigation, pages.list_sections()))
    return f"""[project]
site_name = "Perdure"
site_description = "A durable home for coding-agent conversations"
repo_url = {json.dumps(source_address())}
docs_dir = "pages"
site_dir = "html"
use_directory_urls = false
extra_css = ["assets/site.css"]
nav = [{navigation}]

[project.theme]
language = "en"
font = false
features = [
  "content.code.copy", "navigation.indexes", "navigation.instant", "navigation.sections",
  "navigation.tabs", "navigation.top", "search.highlight", "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.pymdownx.highlight]
"""


def _navigation(section: Section) -> str:
    """A section and its pages as inline TOML; a JSON string is also one of TOML."""
    inside = ", ".join(
        f"{{{_quoted(page.title)} = {_quoted(page.path)}}}" for page in section.pages
    )
    return f"{{{_quoted(section.title)} = [{inside}]}}"


def _quoted(text: str) -> str:
    return json.dumps(text)
