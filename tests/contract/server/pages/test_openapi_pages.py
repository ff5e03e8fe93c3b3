"""The description that a server gives of itself: complete, readable as it is, and harmless."""

from html.parser import HTMLParser

from perdure.protocol.api import API
from perdure.server.pages import reference_page
from perdure.server.pages.reference_page import Document, Operation, Schema
from tests.support.raw_http import call


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.anchors: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id" and value is not None:
                self.anchors.add(value)
            if name in {"href", "src", "action"} and value is not None:
                self.links.add(value)


def read(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


async def test_the_page_names_every_operation_and_needs_nothing_else(port: int) -> None:
    answer = await call(port, "GET", "/doc")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    page = read(answer.body.decode())
    assert {endpoint.operation_id for endpoint in API} <= page.anchors
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "form"})
    assert page.links - {"/openapi.json"} <= {f"#{anchor}" for anchor in page.anchors}


async def test_the_document_is_that_of_the_table(port: int) -> None:
    answer = await call(port, "GET", "/openapi.json")
    document = answer.json()
    assert document["openapi"] == "3.1.0"
    named = {op["operationId"] for item in document["paths"].values() for op in item.values()}
    assert named == {endpoint.operation_id for endpoint in API}


async def test_the_description_can_only_be_read(port: int) -> None:
    refused = await call(port, "POST", "/doc", b"{}")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    assert (await call(port, "HEAD", "/doc")).status == 200
    assert (await call(port, "GET", "/doc/")).status == 404


def test_text_that_looks_like_markup_stays_text() -> None:
    evil = '"><script>alert(1)</script>'
    shape: Schema = {"type": "object", "properties": {evil: {"const": evil}}}
    operation: Operation = {
        "operationId": evil,
        "tags": [evil],
        "parameters": [{"name": evil, "in": evil, "required": False, "schema": {"enum": [evil]}}],
        "responses": {"200": {"description": evil, "content": {evil: {"schema": shape}}}},
    }
    document: Document = {
        "info": {"title": evil, "version": evil},
        "paths": {evil: {"get": operation}},
        "components": {"schemas": {evil: shape}},
    }
    text = reference_page.render(document)
    assert "script" not in read(text).tags
    assert evil not in text
