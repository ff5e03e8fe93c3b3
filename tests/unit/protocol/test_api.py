"""The contract's table of contents, and the numbers it shares with the engine."""

from perdure.core import limits
from perdure.protocol.api import API
from perdure.protocol.files.pty import TITLE_CHARS_MAX
from perdure.protocol.session.message import MESSAGES_LIMIT_MAX
from perdure.protocol.session.session import HISTORY_LIMIT_MAX, SESSIONS_PER_PAGE_MAX
from tests.requirements import requirement

OPERATIONS = """
GET /api/health v2.health.get
GET /api/health/ready v2.health.ready
GET /api/health/detail v2.health.detail
GET /api/location v2.location.get
GET /api/location/trust v2.location.trust
POST /api/session v2.session.create
GET /api/session v2.session.list
GET /api/session/active v2.session.active
GET /api/session/attention v2.session.attention
GET /api/session/{sessionID} v2.session.get
POST /api/session/{sessionID}/agent v2.session.switchAgent
POST /api/session/{sessionID}/model v2.session.switchModel
POST /api/session/{sessionID}/move v2.session.move
POST /api/session/{sessionID}/prompt v2.session.prompt
POST /api/session/{sessionID}/interrupt v2.session.interrupt
POST /api/session/{sessionID}/compact v2.session.compact
POST /api/session/{sessionID}/compaction v2.session.compaction
POST /api/session/{sessionID}/wait v2.session.wait
GET /api/session/{sessionID}/context v2.session.context
GET /api/session/{sessionID}/provider-context v2.session.providerContext
GET /api/session/{sessionID}/history v2.session.history
GET /api/session/{sessionID}/event v2.session.events
PATCH /api/session/{sessionID} v2.session.rename
DELETE /api/session/{sessionID} v2.session.delete
POST /api/session/{sessionID}/archive v2.session.archive
POST /api/session/{sessionID}/unarchive v2.session.unarchive
POST /api/session/{sessionID}/fork v2.session.fork
POST /api/session/{sessionID}/resume v2.session.resume
GET /api/session/{sessionID}/snapshot v2.session.snapshot
GET /api/session/{sessionID}/inbox v2.session.inbox.list
PATCH /api/session/{sessionID}/inbox/{messageID} v2.session.inbox.revise
DELETE /api/session/{sessionID}/inbox/{messageID} v2.session.inbox.cancel
POST /api/session/{sessionID}/inbox/order v2.session.inbox.reorder
POST /api/session/{sessionID}/revert/stage v2.session.revert.stage
POST /api/session/{sessionID}/revert/clear v2.session.revert.clear
POST /api/session/{sessionID}/revert/commit v2.session.revert.commit
GET /api/session/{sessionID}/recovery v2.session.recovery.get
POST /api/session/{sessionID}/recovery v2.session.recovery.decide
GET /api/session/{sessionID}/message v2.session.messages
GET /api/session/{sessionID}/message/{messageID} v2.session.message
PATCH /api/session/{sessionID}/message/{messageID} v2.session.message.exclude
GET /api/session/{sessionID}/todo v2.session.todo
GET /api/session/{sessionID}/job v2.session.job.list
GET /api/session/{sessionID}/job/{jobID} v2.session.job.get
POST /api/session/{sessionID}/job/{jobID}/cancel v2.session.job.cancel
GET /api/session/{sessionID}/children v2.session.children
GET /api/session/{sessionID}/usage v2.session.usage
PUT /api/session/{sessionID}/budget v2.session.budget
PUT /api/session/{sessionID}/rules v2.session.rules
GET /api/session/{sessionID}/mcp v2.session.mcp.list
PUT /api/session/{sessionID}/mcp v2.session.mcp.set
POST /api/session/{sessionID}/mcp/{name}/restart v2.session.mcp.restart
POST /api/session/{sessionID}/mcp/{name}/login v2.session.mcp.login
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
GET /api/integration v2.integration.list
GET /api/integration/{integrationID} v2.integration.get
POST /api/integration/{integrationID}/connect/key v2.integration.connect.key
POST /api/integration/{integrationID}/connect/oauth v2.integration.connect.oauth
GET /api/integration/attempt/{attemptID} v2.integration.attempt.status
DELETE /api/integration/attempt/{attemptID} v2.integration.attempt.cancel
POST /api/integration/attempt/{attemptID}/complete v2.integration.attempt.complete
PATCH /api/credential/{credentialID} v2.credential.update
DELETE /api/credential/{credentialID} v2.credential.remove
GET /api/skill v2.skill.list
GET /api/mcp v2.mcp.list
POST /api/mcp/{name}/restart v2.mcp.restart
POST /api/mcp/{name}/login v2.mcp.login
POST /api/mcp/{name}/logout v2.mcp.logout
GET /api/reference v2.reference.list
GET /api/command v2.command.list
GET /api/fs/read/* v2.fs.read
GET /api/fs/list v2.fs.list
GET /api/fs/find v2.fs.find
GET /api/fs/search v2.fs.search
GET /api/vcs v2.vcs.get
GET /api/vcs/status v2.vcs.status
GET /api/vcs/diff v2.vcs.diff
GET /api/project v2.project.list
GET /api/project/current v2.project.current
GET /api/model/default v2.model.default
GET /api/session/{sessionID}/diff v2.session.diff
POST /api/session/{sessionID}/shell v2.session.shell
POST /api/session/{sessionID}/command v2.session.command
POST /api/session/{sessionID}/init v2.session.init
GET /api/pty v2.pty.list
POST /api/pty v2.pty.create
GET /api/pty/{ptyID} v2.pty.get
PUT /api/pty/{ptyID} v2.pty.update
DELETE /api/pty/{ptyID} v2.pty.remove
POST /api/pty/{ptyID}/connect-token v2.pty.connectToken
GET /api/pty/{ptyID}/connect v2.pty.connect
"""


@requirement("S146")
def test_routes_and_operation_ids_are_those_of_the_published_contract() -> None:
    written = {f"{item.method} {item.path} {item.operation_id}" for item in API}
    assert written == set(OPERATIONS.split("\n")) - {""}


def test_a_session_route_names_its_session_and_a_body_comes_only_with_a_change() -> None:
    for endpoint in API:
        assert (endpoint.scope == "session") == ("{sessionID}" in endpoint.path)
        assert endpoint.body is None or endpoint.method in {"POST", "PUT", "PATCH"}
        assert not endpoint.streams or endpoint.method == "GET"


def test_the_contract_and_the_engine_agree_on_page_sizes() -> None:
    assert limits.PAGE_ITEMS_MAX == MESSAGES_LIMIT_MAX == SESSIONS_PER_PAGE_MAX
    assert limits.HISTORY_ITEMS_MAX == HISTORY_LIMIT_MAX
    assert limits.PTY_TITLE_CHARS_MAX == TITLE_CHARS_MAX
