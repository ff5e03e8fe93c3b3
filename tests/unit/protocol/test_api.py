"""The contract's table of contents, and the numbers it shares with the engine."""

from perdure.core import limits
from perdure.protocol.api import API
from perdure.protocol.message import MESSAGES_LIMIT_MAX
from perdure.protocol.session import HISTORY_LIMIT_MAX, SESSIONS_PER_PAGE_MAX
from tests.requirements import requirement

OPERATIONS = """
GET /api/health v2.health.get
GET /api/location v2.location.get
POST /api/session v2.session.create
GET /api/session v2.session.list
GET /api/session/active v2.session.active
GET /api/session/{sessionID} v2.session.get
POST /api/session/{sessionID}/agent v2.session.switchAgent
POST /api/session/{sessionID}/model v2.session.switchModel
POST /api/session/{sessionID}/move v2.session.move
POST /api/session/{sessionID}/prompt v2.session.prompt
POST /api/session/{sessionID}/interrupt v2.session.interrupt
POST /api/session/{sessionID}/compact v2.session.compact
POST /api/session/{sessionID}/wait v2.session.wait
GET /api/session/{sessionID}/context v2.session.context
GET /api/session/{sessionID}/provider-context v2.session.providerContext
GET /api/session/{sessionID}/history v2.session.history
GET /api/session/{sessionID}/event v2.session.events
POST /api/session/{sessionID}/revert/stage v2.session.revert.stage
POST /api/session/{sessionID}/revert/clear v2.session.revert.clear
POST /api/session/{sessionID}/revert/commit v2.session.revert.commit
GET /api/session/{sessionID}/message v2.session.messages
GET /api/session/{sessionID}/message/{messageID} v2.session.message
POST /api/session/{sessionID}/permission v2.session.permission.create
GET /api/session/{sessionID}/permission v2.session.permission.list
GET /api/session/{sessionID}/permission/{requestID} v2.session.permission.get
POST /api/session/{sessionID}/permission/{requestID}/reply v2.session.permission.reply
GET /api/permission/request v2.permission.request.list
GET /api/permission/saved v2.permission.saved.list
DELETE /api/permission/saved/{id} v2.permission.saved.remove
GET /api/session/{sessionID}/question v2.session.question.list
POST /api/session/{sessionID}/question/{requestID}/reply v2.session.question.reply
POST /api/session/{sessionID}/question/{requestID}/reject v2.session.question.reject
GET /api/question/request v2.question.request.list
GET /api/event v2.event.subscribe
GET /api/agent v2.agent.list
GET /api/model v2.model.list
GET /api/provider v2.provider.list
GET /api/provider/{providerID} v2.provider.get
GET /api/skill v2.skill.list
GET /api/reference v2.reference.list
"""


@requirement("S146")
def test_routes_and_operation_ids_are_those_of_the_published_contract() -> None:
    written = {f"{item.method} {item.path} {item.operation_id}" for item in API}
    assert written == set(OPERATIONS.split("\n")) - {""}


def test_a_session_route_names_its_session_and_a_body_comes_only_with_a_post() -> None:
    for endpoint in API:
        assert (endpoint.scope == "session") == ("{sessionID}" in endpoint.path)
        assert endpoint.body is None or endpoint.method == "POST"
        assert not endpoint.streams or endpoint.method == "GET"


def test_the_contract_and_the_engine_agree_on_page_sizes() -> None:
    assert limits.PAGE_ITEMS_MAX == MESSAGES_LIMIT_MAX == SESSIONS_PER_PAGE_MAX
    assert limits.HISTORY_ITEMS_MAX == HISTORY_LIMIT_MAX
