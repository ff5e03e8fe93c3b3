"""Limits of MCP servers: programs and addresses of others, of which everything is bounded."""

from typing import Final

MCP_SERVERS_MAX: Final = 32  # per Location; each may be a process of 100 MB
MCP_NAME_CHARS_MAX: Final = 100  # of a server
MCP_STARTUP_SECONDS: Final = 30.0  # from the start to the list of tools, if not configured
MCP_REQUEST_SECONDS: Final = 60.0  # without an answer or progress, if not configured
MCP_TIMEOUT_SECONDS_MAX: Final = 60 * 60.0  # that can be configured
MCP_CALL_SECONDS_MAX: Final = 60 * 60.0  # of one call, however much progress it reports
MCP_FIRST_LIST_SECONDS_MAX: Final = 15.0  # that a turn waits for tools it has never seen
MCP_STOP_SECONDS_MAX: Final = 2.0  # to exit after its input was closed
MCP_RESTART_SECONDS_MIN: Final = 1.0  # before the first restart; each pause doubles
MCP_RESTART_SECONDS_MAX: Final = 5 * 60.0
MCP_STEADY_SECONDS: Final = 60.0  # connected this long, it starts again with short pauses
MCP_MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024  # a longer one ends the connection
MCP_HEARD_BYTES_MAX: Final = 64 * 1024 * 1024  # per second; a server that sends more is stopped
MCP_MESSAGES_WAITING_MAX: Final = 1_000  # received and not handled; then the server is stopped
MCP_ERROR_CHARS_MAX: Final = 2_000  # of a server's error that the model or a person is shown
MCP_TOOLS_MAX: Final = 1_000  # per server; the rest is left out and reported
MCP_TOOLS_OFFERED_MAX: Final = 128  # in a request, if not configured; more are offered by search
MCP_PAGES_MAX: Final = 100  # of one list
MCP_TOOLS_BYTES_MAX: Final = 4 * 1024 * 1024  # of all definitions of a server
MCP_DESCRIPTION_CHARS_MAX: Final = 16 * 1024  # of a tool; the rest is left out
MCP_INSTRUCTIONS_CHARS_MAX: Final = 16 * 1024  # of a server; the rest is left out
MCP_RESULT_PARTS_MAX: Final = 200  # of one result; the rest is left out and reported
MCP_PROBLEMS_MAX: Final = 20  # reported of one list
MCP_LISTS_KEPT_MAX: Final = 200  # lists of tools in the store; the oldest go
MCP_SEARCH_RESULTS_DEFAULT: Final = 10
MCP_SEARCH_RESULTS_MAX: Final = 50
MCP_SEARCH_CHARS_MAX: Final = 1_000  # of the words that are searched for
MCP_STRUCTURED_BYTES_MAX: Final = 256 * 1024  # of a structured result; a larger one is not kept
MCP_CONNECT_SECONDS_MAX: Final = 10.0  # to reach a server over HTTP, or to send it a request
MCP_LISTEN_PAUSE_SECONDS: Final = 10.0  # before a lost stream of changes is opened again
MCP_LISTED_MAX: Final = 20_000  # entries of one list that are read at all
MCP_FORM_FIELDS_MAX: Final = 20  # of one form that a server asks a person to fill in
MCP_QUESTION_CHARS_MAX: Final = 4_000  # of the words of a server in a question
MCP_HEADER_CHARS_MAX: Final = 100  # of the name of a field, and of an option
MCP_FORM_TRIES_MAX: Final = 3  # of answers that do not fit; then the form is declined
MCP_PROMPTS_MAX: Final = 50  # of a server; the rest is not offered as commands
MCP_PROMPT_CHARS_MAX: Final = 64 * 1024  # of the text of a prompt
MCP_RESOURCES_LISTED_MAX: Final = 200  # that a model is shown of one server
