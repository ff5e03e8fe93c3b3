"""What a URL names, and whether it lies on the public internet."""

import ipaddress

import pytest

from perdure.core import limits
from perdure.core.web import address as web_address
from perdure.core.web.address import WebAddressError
from tests.requirements import requirement
from tests.support.inputs.internal_addresses import BY_HOST, GLOBAL, MALFORMED, RESOLVED


def test_the_table_of_spellings_is_long_and_has_no_doubles() -> None:
    assert len(BY_HOST) >= 200
    assert len(set(BY_HOST)) == len(BY_HOST)


@requirement("S184")
@pytest.mark.parametrize("host", BY_HOST)
def test_no_spelling_of_an_internal_host_passes_for_a_global_one(host: str) -> None:
    try:
        address = web_address.parse(f"http://{host}/x")
    except WebAddressError:
        return
    number = address.number
    assert address.names_this_machine or (
        number is not None and not web_address.is_global(str(number))
    )


@pytest.mark.parametrize("host", MALFORMED)
def test_a_host_that_cannot_be_read_is_refused(host: str) -> None:
    with pytest.raises(WebAddressError):
        web_address.parse(f"http://{host}/")


@pytest.mark.parametrize("address", RESOLVED)
def test_special_addresses_are_not_global(address: str) -> None:
    assert not web_address.is_global(address)


@pytest.mark.parametrize("address", GLOBAL)
def test_ordinary_addresses_are_global(address: str) -> None:
    assert web_address.is_global(address)


def test_every_block_is_refused_up_to_its_edges() -> None:
    for text in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "198.18.0.0/15", "2002::/16"):
        block = ipaddress.ip_network(text)
        assert not web_address.is_global(str(block[0]))
        assert not web_address.is_global(str(block[-1]))
        assert web_address.is_global(str(block[0] - 1))
        assert web_address.is_global(str(block[-1] + 1))


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://example.com", "https://example.com"),
        ("HTTPS://Example.COM:443/A?b=C#d", "https://example.com/A?b=C"),
        ("http://example.com.:8080/", "http://example.com:8080/"),
        ("http://134744072/", "http://8.8.8.8/"),
        ("http://0x08.8.2056/", "http://8.8.8.8/"),
        ("http://[2606:4700::0001]:81/x", "http://[2606:4700::1]:81/x"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("http://\uff45xample.com/", "http://example.com/"),
    ],
)
def test_a_host_has_one_spelling(url: str, canonical: str) -> None:
    assert web_address.parse(url).url == canonical


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:secret@example.com/",
        "http://@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:x/",
        "http://exa mple.com/",
        "http://example.com/\r\nhost: x",
        "http://example.com/\x00",
        "http://\ud800.example/",
        "http://a..b/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 200}example/",
        f"http://example.com/{'x' * limits.WEB_URL_CHARS_MAX}",
        f"http://{'1' * 5000}/",
    ],
)
def test_what_is_no_web_url_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(WebAddressError) as refused:
        web_address.parse(url)
    assert "secret" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("hosts", "allowed"),
    [
        (("intranet.example",), True),
        (("INTRANET.example",), True),
        (("intranet.example:8080",), True),
        (("*.example",), True),
        (("intranet.example:80",), False),
        (("example",), False),
        (("*.intranet.example",), False),
        (("tranet.example",), False),
        (("*",), False),
        ((), False),
    ],
)
def test_an_allowed_host_is_named_exactly(hosts: tuple[str, ...], *, allowed: bool) -> None:
    address = web_address.parse("http://intranet.example:8080/")
    assert web_address.is_allowed(address, hosts) is allowed


@pytest.mark.parametrize("host", ["::1", "[::1]", "[::1]:81"])
def test_an_allowed_ipv6_host_may_be_written_with_or_without_brackets(host: str) -> None:
    assert web_address.is_allowed(web_address.parse("http://[0::1]:81/"), (host,))


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://example.com/b"),
        ("c?d", "https://example.com/a/c?d"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example/x y", "http://other.example/x%20y"),
        ("?q", "https://example.com/a/b?q"),
    ],
)
def test_a_redirect_is_read_against_the_page_it_came_from(location: str, url: str) -> None:
    page = web_address.parse("https://example.com/a/b")
    assert web_address.follow(page, location).url == url


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://x/", "http://u:p@x/", "http://[::1/", "data:,x", "\0"]
)
def test_a_redirect_to_something_else_than_the_web_is_refused(location: str) -> None:
    with pytest.raises(WebAddressError, match="cannot follow"):
        web_address.follow(web_address.parse("https://example.com/"), location)
