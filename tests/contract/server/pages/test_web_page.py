"""The web page is served to a browser that has no password yet, and lets no script of others in."""

import base64
import gzip
import os
from pathlib import Path

import pytest

from perdure.schema import codec
from tests.contract.server.served_runtime import Backend
from tests.support.raw_http import call

PASSWORD = "correct horse"
GOOD = {"authorization": "Basic " + base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "app-1.js").write_text("start()" * 500)
    (folder / "app-1.js.gz").write_bytes(gzip.compress(b"start()" * 500))
    (folder / "index.html").write_text("<!doctype html><title>Perdure</title>")
    (folder / "notes.md").write_text("not a part of the page")
    return folder


async def test_the_page_needs_no_password_and_allows_only_its_own_scripts(
    backend: Backend, built: Path
) -> None:
    settings = backend.settings(password=PASSWORD, web_directory=str(built))
    async with backend.port(settings) as port:
        page = await call(port, "GET", "/")
        script = await call(port, "GET", "/assets/app-1.js")
    assert (page.status, page.headers["cache-control"]) == (200, "no-cache")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert (script.status, script.body) == (200, b"start()" * 500)
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in script.headers["cache-control"]


async def test_a_file_that_was_packed_is_sent_so_once(backend: Backend, built: Path) -> None:
    async with backend.port(backend.settings(web_directory=str(built))) as port:
        packed = await call(port, "GET", "/assets/app-1.js", None, {"accept-encoding": "gzip"})
        plain = await call(port, "GET", "/assets/app-1.js", None, {"accept-encoding": "gzip;q=0"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < 100
    assert gzip.decompress(packed.body) == plain.body


@pytest.mark.parametrize(
    "path",
    [
        "/assets/notes.md",
        "/assets/app-2.js",
        "/assets/../app-1.js",
        "/assets/%2e%2e/index.html",
        "/assets/app-1.js.gz",
        "/assets//etc/passwd",
        "/assets/",
        "/index.html",
    ],
)
async def test_nothing_else_of_the_directory_is_served(
    path: str, backend: Backend, built: Path
) -> None:
    async with backend.port(backend.settings(web_directory=str(built))) as port:
        assert (await call(port, "GET", path)).status == 404


async def test_a_page_that_is_built_anew_is_served_at_once(backend: Backend, built: Path) -> None:
    async with backend.port(backend.settings(web_directory=str(built))) as port:
        assert (await call(port, "GET", "/assets/app-1.js")).status == 200
        (built / "app-1.js").rename(built / "app-2.js")
        (built / "index.html").write_text("<!doctype html><title>Newer</title>")
        os.utime(built / "index.html", ns=(1, 1))
        assert b"Newer" in (await call(port, "GET", "/")).body
        assert (await call(port, "GET", "/assets/app-2.js")).status == 200
        assert (await call(port, "GET", "/assets/app-1.js")).status == 404


async def test_the_page_is_no_way_around_the_checks_of_the_sender(
    backend: Backend, built: Path
) -> None:
    async with backend.port(backend.settings(web_directory=str(built))) as port:
        foreign = {"origin": "https://evil.example"}
        for headers in (foreign, {"host": "evil.example"}):
            assert (await call(port, "GET", "/", None, headers)).status == 403
        assert (await call(port, "POST", "/", b"{}")).status == 405


@pytest.mark.parametrize("mode", ["cors", "same-origin", "no-cors", "websocket"])
async def test_a_request_of_a_page_opens_no_dialog_of_the_browser(
    mode: str, backend: Backend
) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        for headers in ({}, {"authorization": "Basic eDp5"}):
            answer = await call(
                port, "GET", "/api/session", None, headers | {"sec-fetch-mode": mode}
            )
            assert answer.status == 401
            assert "www-authenticate" not in answer.headers
        typed = await call(port, "GET", "/doc", None, {"sec-fetch-mode": "navigate"})
    assert typed.headers["www-authenticate"].startswith("Basic")


async def test_a_ticket_logs_a_page_in_once(backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        assert (await call(port, "POST", "/web/ticket", b"{}")).status == 401
        made = await call(port, "POST", "/web/ticket", b"{}", GOOD)
        ticket = codec.encode({"ticket": made.json()["ticket"]})
        first = await call(port, "POST", "/web/login", ticket)
        assert first.json() == {"authorization": GOOD["authorization"]}
        assert first.headers["cache-control"] == "no-store"
        assert (await call(port, "POST", "/web/login", ticket)).status == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"ticket":"guess"}', 401),
        (b'{"ticket":"\\ud800"}', 400),
        (b'{"ticket":1}', 400),
        (b"{}", 400),
        (b"[", 400),
        (b'{"ticket":"' + b"x" * 2_000 + b'"}', 413),
    ],
)
async def test_what_is_no_ticket_lets_nobody_in(body: bytes, status: int, backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        assert (await call(port, "POST", "/web/login", body)).status == status


async def test_tickets_have_a_bound_and_other_types_are_refused(backend: Backend) -> None:
    async with backend.port(backend.settings(password=PASSWORD)) as port:
        first = last = await call(port, "POST", "/web/ticket", b"{}", GOOD)
        for _ in range(100):
            last = await call(port, "POST", "/web/ticket", b"{}", GOOD)
        old, new = (codec.encode({"ticket": each.json()["ticket"]}) for each in (first, last))
        assert (await call(port, "POST", "/web/login", old)).status == 401
        assert (await call(port, "POST", "/web/login", new)).status == 200
        typed = GOOD | {"content-type": "text/plain"}
        assert (await call(port, "POST", "/web/ticket", b"{}", typed)).status == 415
        assert (await call(port, "GET", "/web/login")).status == 405
