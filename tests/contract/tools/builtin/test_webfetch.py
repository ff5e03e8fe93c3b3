"""webfetch: what the model is given of a page, and what it is told instead."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.host.http.web_pages import WebClient
from perdure.ports import PermissionBlockedError, PermissionDeclinedError
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.api import output_store
from perdure.tools.environment import WebAccess
from tests.contract.host.loopback import Loopback, Received, replying, response, serving
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement
from tests.support.inputs.images import bomb, inlined, opened, picture
from tests.support.inputs.internal_addresses import BY_HOST

HTML = b"""<html><head><title>T</title><script>evil()</script></head>
<body><h1>Hello</h1><p>A <a href="/x">link</a>.</p><ul><li>one</ul></body></html>"""


@contextmanager
def online(tmp_path: Path, *allowed: str) -> Generator[ToolBench]:
    bench = ToolBench(tmp_path)
    web = WebAccess(pages=WebClient(), search=lambda _: None, allowed_hosts=allowed)
    bench.environment = replace(bench.environment, web=web)
    with bench.open():
        yield bench


@asynccontextmanager
async def page(
    tmp_path: Path, body: bytes, content_type: str = "text/html; charset=utf-8"
) -> AsyncGenerator[tuple[ToolBench, Loopback]]:
    headers = f"content-type: {content_type}\r\n" if content_type else ""
    async with serving(replying(response(body, headers=headers))) as server:
        with online(tmp_path, "127.0.0.1") as bench:
            yield bench, server


@requirement("S184", "S178")
async def test_html_comes_back_as_markdown_and_the_url_was_approved(tmp_path: Path) -> None:
    async with page(tmp_path, HTML) as (bench, server):
        settled = await bench.success("webfetch", url=f"{server.url}/doc")
        assert await bench.text("webfetch", url=server.url) == "\n".join(
            ["T", "", "# Hello", "", "A [link](/x).", "", "- one"]
        )
    assert settled.structured == {
        "url": f"{server.url}/doc",
        "contentType": "text/html; charset=utf-8",
        "format": "markdown",
    }
    asked = bench.desk.asked[0]
    assert (asked.action, asked.resources, asked.save) == (
        "webfetch",
        (f"{server.url}/doc",),
        ("*",),
    )
    assert asked.metadata == {"url": f"{server.url}/doc"}


@requirement("S184")
@pytest.mark.parametrize(
    ("format", "expected"),
    [("text", "T\nHello\nA link.\none"), ("html", HTML.decode())],
)
async def test_html_comes_back_as_it_was_asked_for(
    tmp_path: Path, format: str, expected: str
) -> None:
    async with page(tmp_path, HTML) as (bench, server):
        assert await bench.text("webfetch", url=server.url, format=format) == expected
    preferred = server.requests[0].headers["accept"].partition(",")[0]
    assert preferred == ("text/plain" if format == "text" else "text/html")


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
async def test_other_text_comes_back_unchanged(tmp_path: Path, format: str) -> None:
    body = b'{"a": "<b>1</b>  &amp;"}\n'
    async with page(tmp_path, body, "application/json") as (bench, server):
        assert await bench.text("webfetch", url=server.url, format=format) == body.decode()


@requirement("S184")
@pytest.mark.parametrize(
    ("content_type", "named"),
    [
        ("image/png", "image/png"),
        ("image/svg+xml", "image/svg+xml"),
        ("application/pdf", "application/pdf"),
        ("application/octet-stream", "application/octet-stream"),
        ("video/mp4; codecs=x", "video/mp4"),
        ("", "binary data"),
    ],
)
async def test_images_and_other_binaries_are_refused_by_name(
    tmp_path: Path, content_type: str, named: str
) -> None:
    async with page(tmp_path, b"\x89PNG\0\xff", content_type) as (bench, server):
        told = await bench.error("webfetch", url=server.url)
    assert told == f"{server.url} is {named}, which cannot be read as text"


async def test_a_wrong_charset_and_nuls_do_not_stop_the_reader(tmp_path: Path) -> None:
    body = b"<p>a\0b \xff gr\xc3\xbcn</p>"
    for charset in ("utf-8", "punycode", "no-such-charset", "unicode_escape"):
        (tmp_path / charset).mkdir()
        kind = f"text/html; charset={charset}"
        async with page(tmp_path / charset, body, kind) as (bench, server):
            assert await bench.text("webfetch", url=server.url) == "a\ufffdb \ufffd gr\u00fcn"


async def test_a_page_nested_a_hundred_thousand_times_is_read_while_others_go_on(
    tmp_path: Path,
) -> None:
    body = b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000
    async with page(tmp_path, body) as (bench, server), asyncio.timeout(30):
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1

        beside = asyncio.create_task(others())
        assert await bench.text("webfetch", url=server.url) == "deep"
        beside.cancel()
    assert turns > 5


async def test_a_long_page_is_kept_whole_in_a_managed_file(tmp_path: Path) -> None:
    body = b"word " * 40_000
    async with page(tmp_path, body, "text/plain") as (bench, server):
        settled = await bench.success("webfetch", url=server.url)
        bounded = await output_store.bound(settled, bench.store, bench.limits)
    (kept,) = bounded.output_paths
    assert Path(kept).read_bytes() == body
    assert len(str(settled.structured)) < 200


async def test_nothing_is_looked_up_or_fetched_before_it_is_allowed(tmp_path: Path) -> None:
    async with page(tmp_path, HTML) as (bench, server):
        connections: list[int] = []
        bench.desk.meanwhile = lambda: connections.append(server.connections)
        bench.desk.answers["webfetch"] = PermissionBlockedError("no web here")
        assert await bench.error("webfetch", url=server.url) == "no web here"
        bench.desk.answers["webfetch"] = PermissionDeclinedError()
        with pytest.raises(PermissionDeclinedError):
            await bench.call("webfetch", url=server.url)
    assert connections == [0, 0]
    assert server.connections == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://example.com/", "must begin with http"),
        ("file:///etc/passwd", "must begin with http"),
        ("example.com", "must begin with http"),
        ("http://user:pass@example.com/", "user name or password"),
        ("http://exa mple.com/", "a space"),
    ],
)
async def test_what_is_no_web_url_is_refused_before_anyone_is_asked(
    tmp_path: Path, url: str, told: str
) -> None:
    with online(tmp_path) as bench:
        message = await bench.error("webfetch", url=url)
    assert told in message
    assert "pass@" not in message
    assert bench.desk.asked == []


@pytest.mark.parametrize(
    "input",
    [
        {"url": ""},
        {"url": "http://x/", "format": "pdf"},
        {"url": "http://x/", "timeout": 0},
        {"url": "http://x/", "timeout": -1},
        {"url": "http://x/", "timeout": limits.WEB_SECONDS_MAX + 1},
        {},
    ],
)
async def test_bad_input_is_explained(tmp_path: Path, input: dict[str, object]) -> None:
    with online(tmp_path) as bench:
        assert "Invalid tool input" in await bench.error("webfetch", **input)


async def test_the_permission_names_the_host_that_is_meant(tmp_path: Path) -> None:
    with online(tmp_path) as bench:
        await bench.error("webfetch", url="HTTP://0x7F.1:80/a#b")
    assert bench.desk.questions() == [("webfetch", ("http://127.0.0.1/a",))]


async def test_internal_hosts_are_refused_and_the_user_is_told_how_to_allow_them(
    tmp_path: Path,
) -> None:
    async with serving(replying(response(b"x"))) as server:
        with online(tmp_path, "intranet.example") as bench:
            for host in BY_HOST:
                await bench.error("webfetch", url=f"http://{host}:{server.port}/")
            told = await bench.error("webfetch", url=server.url)
    assert server.connections == 0
    assert f'"allowed_hosts": ["127.0.0.1:{server.port}"]' in told


async def test_a_slow_server_is_given_up_after_the_timeout(tmp_path: Path) -> None:
    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx")

    async with serving(answer) as server:
        with online(tmp_path, "127.0.0.1") as bench:
            told = await bench.error("webfetch", url=server.url, timeout=0.2)
    assert told == f"Unable to fetch {server.url}: No answer within 0.2 s"


async def test_an_empty_page_is_said_to_be_empty(tmp_path: Path) -> None:
    async with page(tmp_path, b"<script>x</script>") as (bench, server):
        assert await bench.text("webfetch", url=server.url) == "(the page is empty)"


async def test_without_the_web_there_are_no_tools_for_it(bench: ToolBench) -> None:
    assert not bench.registry.names() & {"webfetch", "websearch"}


async def test_an_image_is_shown_within_its_bounds_whatever_its_type_is_said_to_be(
    tmp_path: Path,
) -> None:
    async with page(tmp_path, picture(2_600, 1_300), "text/html") as (bench, server):
        success = await bench.success("webfetch", url=f"{server.url}/a%20b.png?x=1")
    note, file = success.content
    assert isinstance(note, TextContent)
    assert isinstance(file, FileContent)
    assert (file.mime, file.name) == ("image/png", "a b.png")
    assert opened(file.uri).size == (2_000, 1_000)
    assert "media" not in success.structured


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def test_a_document_is_attached_and_one_that_is_too_large_is_refused(tmp_path: Path) -> None:
    pdf = b"%PDF-1.7\n"
    async with page(tmp_path, pdf, "application/pdf") as (bench, server):
        success = await bench.success("webfetch", url=server.url)
    assert success.content[1] == FileContent(
        uri=inlined(pdf, "application/pdf"), mime="application/pdf", name=server.url[7:]
    )
    large = pdf + bytes(limits.DOCUMENT_BYTES_MAX)
    async with page(_made(tmp_path / "large"), large, "application/pdf") as (bench, server):
        assert "is a PDF of" in await bench.error("webfetch", url=server.url)


@pytest.mark.parametrize("body", [bomb(60_000, 60_000), picture(300, 300)[:200]])
async def test_an_image_that_cannot_be_shown_is_refused_with_a_reason(
    tmp_path: Path, body: bytes
) -> None:
    async with page(tmp_path, body, "image/png") as (bench, server):
        assert "Cannot show the image" in await bench.error("webfetch", url=server.url)
