"""The exit status of `perdure run` depends on a text that the runtime writes."""

from perdure.cli.runs import progress
from perdure.runtime.turn import turn_end


def test_an_interrupted_step_is_recognised_by_the_text_of_the_runtime() -> None:
    assert progress.TURN_INTERRUPTED == turn_end.TURN_INTERRUPTED
