"""A run that gets nowhere is noticed: by counting calls that bring the same as before."""

from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.session.repeated_calls import RepeatedCallGuard

READ = {"path": "a.txt"}
MOST = limits.CALLS_REPEATED_MAX


def repeat(discipline: RepeatedCallGuard, times: int, outcome: object = "same") -> list[str | None]:
    return [discipline.record_outcome("read", READ, outcome) for _ in range(times)]


def test_a_call_with_the_same_result_is_nudged_and_then_asked_for() -> None:
    discipline = RepeatedCallGuard()
    nudges: list[str | None] = []
    for _ in range(MOST):
        assert discipline.verdict("read", READ) == "run"
        nudges += repeat(discipline, 1)
    assert nudges[:-1] == [None] * (MOST - 1)
    assert f"{MOST} times" in str(nudges[-1])
    assert discipline.verdict("read", READ) == "ask"


def test_another_input_or_tool_is_another_call() -> None:
    discipline = RepeatedCallGuard()
    repeat(discipline, MOST)
    assert discipline.verdict("read", {"path": "b.txt"}) == "run"
    assert discipline.verdict("glob", READ) == "run"


def test_the_order_of_the_arguments_means_nothing() -> None:
    discipline = RepeatedCallGuard()
    for number in range(MOST):
        pairs = [("a", 1), ("b", 2)]
        discipline.record_outcome("read", dict(pairs[:: 1 if number % 2 else -1]), "same")
    assert discipline.verdict("read", {"b": 2, "a": 1}) == "ask"


def test_another_result_of_the_same_call_is_news() -> None:
    discipline = RepeatedCallGuard()
    for number in range(10 * MOST):
        assert discipline.verdict("read", READ) == "run"
        assert discipline.record_outcome("read", READ, f"line {number}") is None


def test_calls_that_take_turns_are_noticed_as_well() -> None:
    discipline = RepeatedCallGuard()
    for _ in range(MOST):
        for tool in ("read", "glob", "grep"):
            assert discipline.verdict(tool, READ) == "run"
            discipline.record_outcome(tool, READ, f"what {tool} finds")
    assert {discipline.verdict(tool, READ) for tool in ("read", "glob", "grep")} == {"ask"}


def test_working_towards_a_failing_test_is_no_loop() -> None:
    discipline = RepeatedCallGuard()
    for number in range(10 * MOST):
        discipline.record_outcome("edit", {"change": number}, "done")
        assert discipline.verdict("bash", {"command": "make test"}) == "run"
        assert discipline.record_outcome("bash", {"command": "make test"}, "1 failed") is None


def test_refusals_that_change_nothing_end_the_run() -> None:
    discipline = RepeatedCallGuard()
    repeat(discipline, MOST)
    for _ in range(limits.CALLS_REFUSED_MAX):
        assert discipline.verdict("read", READ) == "ask"
        discipline.record_refusal("read", READ)
    assert discipline.verdict("read", READ) == "stop"
    discipline.record_outcome("write", {"path": "b"}, "done")
    assert discipline.verdict("read", READ) == "run"


def test_a_refusal_of_a_call_that_is_not_known_is_no_harm() -> None:
    discipline = RepeatedCallGuard()
    discipline.record_refusal("read", READ)
    assert discipline.verdict("read", READ) == "run"


def test_what_is_remembered_is_bounded() -> None:
    discipline = RepeatedCallGuard()
    repeat(discipline, MOST)
    for number in range(limits.CALLS_REMEMBERED_MAX):
        discipline.record_outcome("read", {"path": f"{number}"}, "x" * 10_000)
    # Forgotten, so that its result is news again.
    assert repeat(discipline, 1) == [None]


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=200))
def test_nothing_that_brings_no_news_goes_on_for_ever(calls: list[str]) -> None:
    """Whatever the order, a call whose result never changes runs a bounded number of times."""
    discipline, runs = RepeatedCallGuard(), dict.fromkeys(calls, 0)
    for call in calls:
        if discipline.verdict(call, {}) == "run":
            runs[call] += 1
            discipline.record_outcome(call, {}, "same")
    # Each first call of another kind is news, and starts the counts anew.
    assert all(count <= MOST + len(runs) * MOST for count in runs.values())
