"""A real browser with the page open, and everything that it complained about.

The page is built from the sources once for each state of them, below `.cache`.
"""

import asyncio
import fcntl
import hashlib
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    ViewportSize,
    async_playwright,
)

from tests.clients.equipment import Equipment
from tests.skipping import cannot_run
from tests.support import node
from tests.support.node import CACHE

ROOT: Final = Path(__file__).parents[2]
SCREENS: Final = ROOT / ".scratch" / "screens"
PATIENCE_MILLIS: Final = 10_000
INSTALL_SECONDS_MAX: Final = 110
_SOURCES: Final = ("web/src", "clients/typescript/src", "web/build.mjs", "web/index.html")
_ARGUMENTS: Final = ("--no-sandbox", "--no-zygote", "--disable-gpu", "--force-color-profile=srgb")
_REPORTS: Final = """
    window.reports = []
    document.addEventListener("securitypolicyviolation", (event) =>
      window.reports.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`))
"""


async def installed() -> Path:
    """The folder with the packages of the page, as its lock file says."""
    lock = ROOT / "web" / "package-lock.json"
    version = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "web.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        return await node.installed(
            f"web-{version}", "ci", prepare=_prepare, seconds_max=INSTALL_SECONDS_MAX
        )


async def built_page() -> Path:
    """The folder with the page, built from the sources as they are."""
    packages = await installed()
    out = CACHE / f"page-{_digest()}"
    with (CACHE / "web.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not out.exists():
            for old in CACHE.glob("page-*"):
                shutil.rmtree(old)
            await _build(packages, out)
    return out


def _prepare(folder: Path) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "web" / name, folder)


def _digest() -> str:
    digest = hashlib.sha256()
    for source in _SOURCES:
        path = ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()[:12]


async def _build(packages: Path, out: Path) -> None:
    code, told = await node.run(
        *(node.node(), str(ROOT / "web" / "build.mjs"), str(out)),
        environment=node.USERS | {"PERDURE_WEB_PACKAGES": str(packages / "node_modules")},
    )
    assert code == 0, told


@asynccontextmanager
async def opened_browser(equipment: Equipment) -> AsyncGenerator[Browser]:
    folder = equipment.browser_folder
    async with async_playwright() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=str(equipment.browser),
                args=list(_ARGUMENTS),
                chromium_sandbox=False,
                env={
                    **node.USERS,
                    "LD_LIBRARY_PATH": str(folder / "al2023" / "lib"),
                    "FONTCONFIG_FILE": str(folder / "fonts.conf"),
                },
            )
        except Error as error:
            cannot_run(f"the browser cannot be started on this machine: {error}")
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened_page(
    browser: Browser, *, dark: bool = False, phone: bool = False
) -> AsyncGenerator[Page]:
    """A page of its own; when the test has passed, nothing was refused and nothing failed."""
    async with watched_context(browser, dark=dark, phone=phone) as context:
        yield await context.new_page()


@asynccontextmanager
async def watched_context(
    browser: Browser, *, dark: bool = False, phone: bool = False
) -> AsyncGenerator[BrowserContext]:
    size = ViewportSize(width=390, height=844) if phone else ViewportSize(width=1360, height=860)
    context = await browser.new_context(
        viewport=size,
        color_scheme="dark" if dark else "light",
        has_touch=phone,
        locale="en-GB",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(PATIENCE_MILLIS)
    await context.add_init_script(_REPORTS)
    failures: list[str] = []
    context.on("weberror", lambda error: failures.append(str(error.error)))
    context.on(
        "console",
        lambda said: failures.append(said.text) if _is_fault(said.type, said.text) else None,
    )
    try:
        yield context
        for page in context.pages:
            reports = await page.evaluate("window.reports ?? []")
            assert reports == []
        assert failures == []
    finally:
        await context.close()


def _is_fault(kind: str, text: str) -> bool:
    """What the page should not say; that a request was refused or lost, tests provoke."""
    return kind == "error" and not text.startswith("Failed to load resource")


async def settle(page: Page) -> None:
    """Wait until the page has drawn what it knows."""
    await page.evaluate("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")
    await asyncio.sleep(0)
