"""`perdure compact`: what the model of a Session is shown becomes a checkpoint."""

import json
import re

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
    assert re.fullmatch(
        rf"{session} is compacted, from about [\d,]+ to [\d,]+ tokens:"
        r" older messages are summarised\n",
        done.stdout,
    )
    exported = json.loads(installation.perdure("export", session).stdout)
    assert '"compaction"' in json.dumps(exported)
    again = installation.perdure("compact", session)
    assert again.returncode == 0
    assert again.stdout.startswith(f"{session} needs no compaction: The conversation has about ")
    assert "compaction.keep.tokens" in again.stdout


def test_an_unknown_session_is_said_so(installation: Installation) -> None:
    session_of(installation, "hello")
    refused = installation.perdure("compact", "ses_none")
    assert refused.returncode == 1
    assert "ses_none" in refused.stderr
    assert "Traceback" not in refused.stderr
