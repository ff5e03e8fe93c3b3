"""What is kept of a terminal's output, and where a reader is in it."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.core.text.output_ring import OutputRing, units


def test_positions_count_as_a_browser_does() -> None:
    ring = OutputRing(units_max=100)
    ring.append("a\U0001f600")
    ring.append("\u20ac!")
    assert (ring.start, ring.end) == (0, 5)
    assert ring.since(3) == "\u20ac!"
    assert ring.since(4) == "!"
    assert ring.since(2) == "\ufffd\u20ac!"


def test_the_oldest_is_dropped_and_a_reader_can_tell() -> None:
    ring = OutputRing(units_max=10)
    for number in range(10):
        ring.append(str(number) * 4)
    assert (ring.start, ring.end) == (32, 40)
    assert ring.since(0) == ring.since(32) == "88889999"
    assert ring.since(ring.end) == ""


def test_one_chunk_beyond_the_bound_is_kept_whole() -> None:
    ring = OutputRing(units_max=10)
    ring.append("x" * 50)
    assert ring.since(0) == "x" * 50
    ring.append("y")
    assert (ring.start, ring.since(0)) == (50, "y")


@given(st.lists(st.text(max_size=20), max_size=20), st.data())
def test_reading_on_from_any_place_gives_the_rest(texts: list[str], data: st.DataObject) -> None:
    ring = OutputRing(units_max=10_000)
    for text in texts:
        ring.append(text)
    whole = "".join(texts)
    cut = data.draw(st.integers(min_value=0, max_value=len(whole)))
    assert ring.since(units(whole[:cut])) == whole[cut:]
    assert ring.end == units(whole)
