"""`perdure compact`: what the model of a Session is shown becomes a checkpoint."""

import json

from tests.contract.cli.command import MODEL, Installation


def session_of(installation: Installation, prompt: str) -> str:
    """A Session in which the demo model has answered."""
    assert installation.perdure("run", *MODEL, prompt).returncode == 0
    told = installation.perdure("sessions", "--limit", "1", "--format", "json").stdout
    return str(json.loads(told)["id"])


def test_a_long_session_is_compacted_and_a_short_one_left_alone(
    installation: Installation,
) -> None:
    session = session_of(installation, "hello " * 8_000)
    done = installation.perdure("compact", session, "--instruction", "keep greetings")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{session} is compacted\n"
    exported = json.loads(installation.perdure("export", session).stdout)
    assert '"compaction"' in json.dumps(exported)
    again = installation.perdure("compact", session)
    assert (again.returncode, again.stdout) == (
        0,
        f"{session} needs no compaction: there is too little to summarise\n",
    )


def test_an_unknown_session_is_said_so(installation: Installation) -> None:
    session_of(installation, "hello")
    refused = installation.perdure("compact", "ses_none")
    assert refused.returncode == 1
    assert "ses_none" in refused.stderr
    assert "Traceback" not in refused.stderr
