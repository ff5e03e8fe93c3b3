"""Problems of a document, as they are logged and shown."""

from perdure.core.config_file.problem import Problem


def test_a_problem_does_not_quote_a_secret_of_the_document() -> None:
    quoted = 'must be a map, not {"apiKey":"abcd-1234","name":"x"}'
    problem = Problem("opencode.json", quoted, line=3, column=5)
    shown = 'must be a map, not {"apiKey":"[redacted]","name":"x"}'
    assert problem.shown == shown
    assert str(problem) == f"opencode.json:3:5: {shown}"
