"""V1 shows a Session alike before and after a restart, though nothing of V1 is stored."""

from dataclasses import replace
from pathlib import Path

from perdure.runtime.app.runtime import RuntimeSettings, open_runtime
from perdure.schema import codec
from tests.contract.server.served_runtime import SESSION, open_backend
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text

MESSAGES = f"/session/{SESSION}/message"


async def test_messages_and_part_ids_are_equal_after_a_restart(tmp_path: Path) -> None:
    prompt = codec.encode({"parts": [{"type": "text", "text": "look"}]})
    async with open_backend(tmp_path) as first, first.port() as port:
        first.provider.then(calls(Call("glob", {"pattern": "*"}), saying="So."), text("Done."))
        assert (await call(port, "POST", MESSAGES, prompt)).status == 200
        before = (await call(port, "GET", MESSAGES)).json()
        again = RuntimeSettings(
            environment=first.folders.environment,
            data_dir=str(first.folders.data),
            default_directory=first.here,
        )
    async with (
        open_runtime(again) as runtime,
        replace(first, runtime=runtime).port() as port,
    ):
        after = (await call(port, "GET", MESSAGES)).json()
    assert [part["type"] for message in before for part in message["parts"]] == [
        *("text", "step-start", "text", "tool", "step-finish"),
        *("step-start", "text", "step-finish"),
    ]
    assert after == before
