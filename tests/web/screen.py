"""The page as a person uses it: what stands there, and what is pressed and typed."""

from typing import Final

from playwright.async_api import Locator, Page, expect

from tests.support.api import Api
from tests.web.browser import SCREENS

PATIENCE_MILLIS: Final = 10_000


class Screen:
    def __init__(self, page: Page, api: Api) -> None:
        self.page = page
        self.api = api
        self.url = f"http://127.0.0.1:{api.port}"

    async def open(self, path: str = "") -> None:
        """Open an address below `#/`, anew."""
        await self.page.goto("about:blank")
        await self.page.goto(f"{self.url}/#/{path}")

    async def see(self, *texts: str) -> None:
        for text in texts:
            await expect(self.page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MILLIS)

    async def miss(self, *texts: str) -> None:
        for text in texts:
            await expect(self.page.get_by_text(text)).to_have_count(0, timeout=3 * PATIENCE_MILLIS)

    async def press(self, name: str) -> None:
        await self.button(name).click()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=False).first

    async def say(self, text: str, *, key: str = "Enter") -> None:
        prompt = self.page.get_by_role("textbox", name="Prompt")
        await prompt.fill(text)
        await prompt.press(key)

    async def new_session(self, title: str = "A Session") -> str:
        session = await self.api.create(title=title)
        await self.open(session)
        await self.see(title)
        return session

    async def keep(self, name: str) -> None:
        """Keep a picture of the screen as output of the test."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=str(SCREENS / f"{name}.png"))
