"""What the model was told can be looked at, exactly."""

from tests.requirements import requirement
from tests.support.api import Api
from tests.support.scripted_provider import ScriptedProvider, text


@requirement("S141", "S7", "S56")
async def test_the_complete_provider_context_can_be_inspected(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(text("Hello"))
    session = await api.create()
    before = (await api.get(f"/api/session/{session}/provider-context"))["data"]
    assert before == {"sources": [], "messages": []}
    await api.ask(session, "hi")
    told = (await api.get(f"/api/session/{session}/provider-context"))["data"]
    assert told["sources"] == ["core/date", "core/environment", "core/model"]
    assert told["baselineSeq"] == 1
    assert [message["type"] for message in told["messages"]] == ["user", "assistant"]
    # The baseline is the very text that was sent, at the end of the one system message.
    sent = provider.requests[0].body["messages"][0]
    assert sent["role"] == "system"
    assert sent["content"].endswith(told["baseline"])


@requirement("S72")
async def test_the_answer_to_a_prompt_is_the_receipt_of_its_admission(api: Api) -> None:
    session = await api.create()
    body = {"prompt": {"text": "hi"}, "resume": False}
    receipt = (await api.post(f"/api/session/{session}/prompt", body))["data"]
    assert receipt.keys() == {
        "admittedSeq", "id", "sessionID", "prompt", "delivery", "timeCreated"
    }  # fmt: skip
    assert (receipt["admittedSeq"], receipt["prompt"]) == (1, {"text": "hi"})
    assert await api.facts(session) == ["prompt.admitted"]


@requirement("S168")
async def test_a_file_that_nobody_can_resolve_never_reaches_the_model(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create()
    files = [
        {"uri": "file:///nowhere/secret.bin"},
        {"uri": "https://example.invalid/a.zip"},
        {"uri": "data:text/plain,inlined"},
    ]
    body = {"prompt": {"text": "look", "files": files}}
    await api.post(f"/api/session/{session}/prompt", body)
    await api.wait(session)
    (sent,) = [m for m in provider.requests[0].body["messages"] if m["role"] == "user"]
    assert "nowhere" not in sent["content"]
    assert "example.invalid" not in sent["content"]
    assert "inlined" in sent["content"]
