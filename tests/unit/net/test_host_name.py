"""Host names as they are sent: the mapping of UTS 46, not that of 2003."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from perdure.core.credentials import keys
from perdure.net import host_name


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("Models.Test", "models.test"),
        ("faß.de", "xn--fa-hia.de"),
        ("straße.example", "xn--strae-oqa.example"),
        ("bücher。example", "xn--bcher-kva.example"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),
        ("\uff25\uff38ample.com", "example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("under_score.test", "under_score.test"),
        ("", ""),
    ],
)
def test_a_name_becomes_ascii(written: str, sent: str) -> None:
    assert host_name.to_ascii(written) == sent


@pytest.mark.parametrize("written", ["a\u200b\u2028.test", "☃.test", "ü" * 70 + ".test"])
def test_what_cannot_be_a_name_is_refused(written: str) -> None:
    with pytest.raises(UnicodeError):
        host_name.to_ascii(written)


@given(some.text(max_size=40))
def test_the_result_is_ascii_and_stays_what_it_is(written: str) -> None:
    try:
        sent = host_name.to_ascii(written)
    except UnicodeError:
        return
    assert sent.isascii()
    assert host_name.to_ascii(sent) == sent


def test_a_key_is_bound_to_the_name_that_is_sent() -> None:
    assert keys.origin_of("https://faß.de/v1") == "https://xn--fa-hia.de"
    assert keys.origin_of("https://fass.de/v1") == "https://fass.de"
    assert keys.origin_of("https://☃.test") is None
