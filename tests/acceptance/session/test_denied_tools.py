"""Tools that are denied to a Session: its model and those of its subagents are not offered them."""

from perdure.schema.codec import JsonObject
from tests.support.api import Api
from tests.support.scripted_provider import Call, Request, ScriptedProvider, calls, text

DENY_BASH = {"permission": "bash", "pattern": "*", "action": "deny"}


def offered(request: Request) -> set[str]:
    return {tool["function"]["name"] for tool in request.body["tools"]}


async def test_a_denied_tool_is_offered_neither_to_the_session_nor_to_its_subagents(
    api: Api, provider: ScriptedProvider
) -> None:
    session: JsonObject = await api.post("/session", {"permission": [DENY_BASH]})
    assert session["permission"] == [DENY_BASH]
    task = {"description": "Look", "prompt": "look", "subagent_type": "general"}
    provider.then(
        calls(Call("task", task)),
        calls(Call("bash", {"command": "true"})),
        text("The child cannot."),
        text("Nor can I."),
    )
    await api.ask(session["id"], "delegate")
    assert len(provider.requests) == 4
    for request in provider.requests:
        assert "bash" not in offered(request)
        assert "read" in offered(request)
    assert "Unknown tool" in provider.requests[2].texts("tool")[-1]


async def test_other_sessions_are_offered_it(api: Api, provider: ScriptedProvider) -> None:
    await api.post("/session", {"permission": [DENY_BASH]})
    await api.ask(await api.create(), "hello")
    assert "bash" in offered(provider.requests[-1])
