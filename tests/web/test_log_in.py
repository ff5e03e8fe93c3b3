"""Whoever opens the page logs in with a form of it, or with a ticket, and never twice."""

import base64

from playwright.async_api import Browser, expect

from perdure.schema import codec
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.raw_http import call
from tests.web.browser import opened_page
from tests.web.screen import Screen

PASSWORD = "correct horse"
GOOD = {"authorization": "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()}


async def test_a_password_lets_in_and_a_wrong_one_does_not(
    browser: Browser, folders: ProjectFolders, page_directory: str
) -> None:
    async with (
        running(folders, password=PASSWORD, web_directory=page_directory) as instance,
        opened_page(browser) as page,
    ):
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.type))
        screen = Screen(page, Api(instance.api.port, GOOD))
        await screen.open()
        await page.get_by_label("Password").fill("battery staple")
        await screen.press("Log in")
        await screen.see("The server refused this user and password.")
        await screen.keep("login-light")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_label("Password").press("Enter")
        await screen.see("There is no Session yet.")
        await page.reload()
        await screen.see("There is no Session yet.")
        session = await screen.new_session("Behind a password")
        await screen.see("Nothing was said yet.")
        assert session in page.url
        await screen.press("Log out")
        await expect(page.get_by_label("Password")).to_be_visible()
        assert dialogs == []


async def test_a_ticket_logs_in_once_and_leaves_the_address(
    browser: Browser, folders: ProjectFolders, page_directory: str
) -> None:
    async with running(folders, password=PASSWORD, web_directory=page_directory) as instance:
        port = instance.api.port
        made = await call(port, "POST", "/web/ticket", b"{}", GOOD)
        address = f"http://127.0.0.1:{port}/#ticket={codec.decode_any(made.body)['ticket']}"
        async with opened_page(browser) as page:
            await page.goto(address)
            await expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
            assert "ticket" not in page.url
        async with opened_page(browser) as page:
            await page.goto(address)
            await expect(page.get_by_label("Password")).to_be_visible()
