"""Which hosts a list means, however an entry or a host is spelled."""

import pytest

from perdure.core.sandbox import host_list
from perdure.core.sandbox.host_list import Target


def covers(entry: str, wanted: str) -> bool:
    return host_list.parse_list([entry]).covers(host_list.parse_target(wanted))


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("docs.python.org", "docs.python.org:443"),
        ("docs.python.org", "docs.python.org:80"),
        ("docs.python.org", "Docs.Python.ORG:443"),
        ("docs.python.org", "docs.python.org.:443"),
        ("Docs.Python.org", "docs.python.org:443"),
        ("docs.python.org.", "docs.python.org:443"),
        ("docs.python.org:8443", "docs.python.org:8443"),
        ("docs.python.org:*", "docs.python.org:22"),
        ("*.github.com:443", "api.github.com:443"),
        ("*.github.com", "a.b.github.com:443"),
        ("*", "any.example:443"),
        ("*:8443", "any.example:8443"),
        ("bücher.example", "xn--bcher-kva.example:443"),
        ("xn--bcher-kva.example", "bücher.example:443"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "0x7f.1:8080"),
        ("[::1]:8080", "[::1]:8080"),
        ("::1", "[0:0::1]:80"),
        ("localhost:3000", "localhost:3000"),
        ("203.0.113.9", "203.0.113.9:443"),
    ],
)
def test_a_host_that_an_entry_means(entry: str, wanted: str) -> None:
    assert covers(entry, wanted)


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("docs.python.org", "docs.python.org:22"),
        ("docs.python.org:443", "docs.python.org:80"),
        ("docs.python.org", "evildocs.python.org:443"),
        ("docs.python.org", "docs.python.org.evil.example:443"),
        ("docs.python.org", "sub.docs.python.org:443"),
        ("*.github.com", "github.com:443"),
        ("*.github.com", "evilgithub.com:443"),
        ("*.github.com", "github.com.evil.example:443"),
        ("*.github.com:443", "api.github.com:22"),
        ("*", "127.0.0.1:443"),
        ("*", "localhost:80"),
        ("*", "a.localhost:80"),
        ("*", "169.254.169.254:80"),
        ("*", "[::ffff:127.0.0.1]:80"),
        ("*", "[::ffff:10.0.0.1]:80"),
        ("*", "[fd00:ec2::254]:80"),
        ("*", "[fe80::1]:80"),
        ("*", "[64:ff9b::7f00:1]:80"),
        ("*", "2130706433:80"),
        ("*", "017700000001:80"),
        ("*", "0x7f000001:80"),
        ("*", "127.1:80"),
        ("*", "0:80"),
        ("*", "168.63.129.16:80"),
        ("*", "100.100.100.200:80"),
        ("*", "192.168.1.1:443"),
        ("127.0.0.1:80", "127.0.0.2:80"),
        ("127.0.0.1:80", "[::ffff:127.0.0.1]:80"),
        ("127.0.0.1:80", "localhost:80"),
        ("*.0.0.1", "127.0.0.1:80"),
        ("https://docs.python.org", "docs.python.org:443"),
        ("docs.python.org/simple", "docs.python.org:443"),
        ("user@docs.python.org", "docs.python.org:443"),
        ("docs.python.org:0", "docs.python.org:80"),
        ("docs.python.org:99999", "docs.python.org:80"),
        ("", "docs.python.org:443"),
        ("*.*.org", "a.docs.python.org:443"),
        ("py*", "docs.python.org:443"),
    ],
)
def test_a_host_that_an_entry_does_not_mean(entry: str, wanted: str) -> None:
    assert not covers(entry, wanted)


@pytest.mark.parametrize(
    "text",
    [
        *("", ":443", "a b:443", "a/b:443", "a@b:443", "a:443:443", "a:99999", "a:0", "a:-1"),
        *("a:x", "[::1", "::1:443", "[::1%25lo]:80", "a\\b:443", "a\x00b:443", "a\r\nb:443"),
        *(
            "1.2.3.256:80",
            "1.2.3.4.5:80",
            "0x:0x",
            "a..b:80",
            f"{'a' * 300}:80",
            "a?b:80",
            "docs.python.org",
        ),
    ],
)
def test_what_does_not_name_a_host_and_a_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="name"):
        host_list.parse_target(text)


def test_a_target_is_shown_as_it_is_written_in_a_request() -> None:
    assert str(Target("docs.python.org", 443)) == "docs.python.org:443"
    assert str(Target("::1", 80)) == "[::1]:80"
