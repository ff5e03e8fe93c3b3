"""Limits on an editor that speaks the Agent Client Protocol over standard input and output."""

from typing import Final

ACP_LINE_BYTES_MAX: Final = 32 * 1024 * 1024
"""A longer message is left out and refused; as for the body of a request over HTTP."""
ACP_UNSENT_BYTES_MAX: Final = 4 * 1024 * 1024
"""Written and not read by the editor; then the updates wait, and the work goes on."""
ACP_REQUESTS_MAX: Final = 256  # in progress
ACP_SESSIONS_MAX: Final = 64  # followed at once; then the one that was used longest ago is left
ACP_EVENTS_WAITING_MAX: Final = 1_000  # per Session; more fragments are left to the log
ACP_MCP_SERVERS_MAX: Final = 32  # that an editor names for one Session
ACP_QUESTION_ROUNDS_MAX: Final = 50  # of choices for one question, where an editor has no forms
