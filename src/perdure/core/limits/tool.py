"""Limits on what tools read, write, start, fetch and return."""

from typing import Final

# Model Tool Output of one settlement.
TOOL_OUTPUT_LINES_MAX: Final = 2_000
TOOL_OUTPUT_BYTES_MAX: Final = 50 * 1024
TOOL_OUTPUT_RETENTION_SECONDS: Final = 7 * 24 * 60 * 60
TOOL_OUTPUT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # per file; the rest is dropped

# The progress of a running call: each report is a durable event.
TOOL_PROGRESS_SECONDS: Final = 0.25
TOOL_PROGRESS_BYTES_MAX: Final = 4 * 1024

# Repeated calls: after this many with the same result a person is asked, and after this many
# refusals the run stops.
CALLS_REPEATED_MAX: Final = 3
CALLS_REFUSED_MAX: Final = 3
CALLS_REMEMBERED_MAX: Final = 256  # per run

# Sets of tools, by the rules that chose them, that a registry keeps for the next turn.
TURN_TOOLS_KEPT_MAX: Final = 64

# Files: reading them, and changing them.
READ_LINES_MAX: Final = 2_000
READ_BYTES_MAX: Final = 50 * 1024
READ_LINE_CHARS_MAX: Final = 2_000
READ_CHUNK_BYTES: Final = 1024 * 1024
READ_SNIFF_BYTES: Final = 4 * 1024
DIRECTORY_ENTRIES_MAX: Final = 2_000
PATH_CHARS_MAX: Final = 4_096  # the kernel's limit; resolving takes quadratic time
SEEN_FILES_MAX: Final = 20_000  # for all Sessions together; about 200 bytes each
FILE_INLINE_BYTES_MAX: Final = 256 * 1024  # larger files are processed in a thread
EDIT_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
EDIT_DIFF_LINES_MAX: Final = 400  # a longer change is shown as one block
EDIT_PATCH_CHARS_MAX: Final = 64 * 1024
WRITE_FILE_BYTES_MAX: Final = EDIT_FILE_BYTES_MAX  # so that a written file can be edited later
PATCH_FILES_MAX: Final = 200
PATCH_BYTES_MAX: Final = 32 * 1024 * 1024
PATCH_LINES_MAX: Final = 1_000_000  # of a patch, and of a file that one changes
PATCH_SEARCHED_LINES_MAX: Final = 500_000_000  # in vain, for the passages of one file: a second

# File changes of a Session's steps are recorded, so that they can be reverted.
SNAPSHOT_FILE_BYTES_MAX: Final = 2 * 1024 * 1024  # of a file that a command may change
SNAPSHOT_WRITTEN_BYTES_MAX: Final = EDIT_FILE_BYTES_MAX  # of a file that a file tool changes
SNAPSHOT_TREE_FILES_MAX: Final = 50_000  # in a directory with more, commands are not watched
SNAPSHOT_TREE_BYTES_MAX: Final = 512 * 1024 * 1024  # newly stored for one command
SNAPSHOT_SCAN_SECONDS_MAX: Final = 10.0  # of scanning before a command; the rest is not recorded
SNAPSHOT_WALK_SECONDS_MAX: Final = 20.0  # of one scan; where it takes longer, nothing is watched
IGNORE_RULES_MAX: Final = 5_000  # of one ignore file
IGNORE_RULE_STARS_MAX: Final = 16  # a rule with more of them is left out: it takes long to match
SNAPSHOT_STORE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024  # nothing is added beyond this
SNAPSHOT_DISK_FREE_MIN: Final = 512 * 1024 * 1024  # free space left on the store's disk
SNAPSHOT_KEPT_SECONDS: Final = 24 * 60 * 60  # age at which unreferenced content is removed
SNAPSHOT_SETTLED_NANOS: Final = 1_000_000_000
"""Two changes within this time may get the same timestamp; only older timestamps are trusted."""
SNAPSHOT_TREES_REMEMBERED_MAX: Final = 8  # whose timestamps are kept in memory
SHELL_SECONDS_MAX: Final = 60 * 60  # of a command of the user, who can interrupt it
SESSION_DIFF_BYTES_MAX: Final = 8 * 1024 * 1024  # per answer; files beyond are listed without patch
REVERT_DIFF_BYTES_MAX: Final = 1024 * 1024  # shown per revert; patches beyond it are omitted

TOOL_SCHEMA_BYTES_MAX: Final = 64 * 1024  # of the input of a tool that brings its own
TOOL_SCHEMA_DEPTH_MAX: Final = 64  # of nested values in it

# After-edit programs: formatters and checkers.
FORMATTER_SECONDS_MAX: Final = 20
CHECKER_SECONDS_MAX: Final = 30
EDIT_PROGRAM_OUTPUT_BYTES_MAX: Final = 64 * 1024
FORMATTER_WORDS_CHARS_MAX: Final = 400  # of the error output of a failed formatter
DIAGNOSTICS_LINES_MAX: Final = 20
DIAGNOSTICS_LINE_CHARS_MAX: Final = 400
DIAGNOSED_FILES_MAX: Final = 5  # per patch

# Language servers: long-running external programs. They delay an edit at most this long.
LSP_ANSWER_SECONDS_MAX: Final = 5.0  # per edit, from starting the server to its last message
LSP_SETTLE_SECONDS: Final = 0.4  # after a message that names no document version
LSP_SILENCES_MAX: Final = 3  # unanswered edits; then edits do not wait until it answers again
LSP_START_SECONDS_MAX: Final = 60.0  # to be ready; large projects load slowly
LSP_STOP_SECONDS_MAX: Final = 2.0  # to exit on request
LSP_IDLE_SECONDS_MAX: Final = 15 * 60.0  # without an edit
LSP_RESTARTS_MAX: Final = 3  # of a server that exits by itself
LSP_RUNNING_MAX: Final = 8  # per Location; each may need a gigabyte
LSP_DOCUMENTS_OPEN_MAX: Final = 100  # per server
LSP_HEAD_BYTES_MAX: Final = 8 * 1024
LSP_MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024  # a longer message is dropped
LSP_HEARD_BYTES_MAX: Final = 16 * 1024 * 1024  # per second; a server that sends more is stopped
LSP_UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024  # sent but not read; then the server is stopped
LSP_FILE_BYTES_MAX: Final = 2 * 1024 * 1024  # larger files are not sent to a server
LSP_SYMBOLS_READ_MAX: Final = 1_000  # per search and server; the rest is ignored
LSP_SYMBOLS_SHOWN_MAX: Final = 100  # per search, of all servers
LSP_SYMBOLS_SECONDS_MAX: Final = 3.0  # per search; servers are asked at the same time
LSP_DIAGNOSTICS_READ_MAX: Final = 1_000  # per file; the rest is ignored

# Searches.
SEARCH_RESULTS_DEFAULT: Final = 100
SEARCH_RESULTS_MAX: Final = 1_000
SEARCH_COLLECTED_MAX: Final = 10_000  # sorted afterwards; a larger search runs in sorted order
SEARCH_SECONDS_MAX: Final = 30
SEARCH_OWN_SECONDS_MAX: Final = 10  # without ripgrep a pattern may never finish
SEARCH_PATTERN_CHARS_MAX: Final = 1_024
SEARCH_BRACES_MAX: Final = 64
SEARCH_LINE_CHARS_MAX: Final = 2_000
SEARCH_SUBMATCHES_MAX: Final = 100  # per line
SEARCH_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
SEARCH_RECORD_BYTES_MAX: Final = 64 * 1024
SEARCH_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024  # per line, with all its matches

# Shell commands and processes.
BASH_TIMEOUT_MILLIS_DEFAULT: Final = 120_000
BASH_TIMEOUT_MILLIS_MAX: Final = 600_000
BASH_OUTPUT_BYTES_MAX: Final = 1024 * 1024
BASH_COMMAND_BYTES_MAX: Final = 128 * 1024 - 1  # the kernel's limit for one argument
BASH_WARNINGS_MAX: Final = 10
PROCESS_TERMINATE_SECONDS: Final = 3
PROCESS_DRAIN_SECONDS: Final = 0.5
PROCESS_GONE_SECONDS: Final = 0.05  # between the last output of a process and its exit
ORPHAN_TERMINATE_SECONDS: Final = 1.0  # to exit by itself, when its server has died
ORPHAN_KILL_SECONDS: Final = 1.0  # to be gone after it was killed
PROCESS_WAITING_BYTES_MAX: Final = 1024 * 1024  # not yet consumed by the reader of the output

# Progress of a running command. Each report is a durable event, so they come at growing intervals.
BASH_PROGRESS_SECONDS_MIN: Final = 1
BASH_PROGRESS_SECONDS_MAX: Final = 30
BASH_PROGRESS_BYTES_MAX: Final = 2 * 1024
BASH_SAMPLE_BYTES: Final = 8 * 1024  # inspected to tell text from binary output

# Approval of shell commands. Beyond these the command is not analysed: a person is asked.
COMMAND_CHARS_MAX: Final = 8 * 1024  # hostile text makes the parser quadratic
COMMAND_PARTS_MAX: Final = 50
COMMAND_DEPTH_MAX: Final = 8  # of commands nested in the text of commands
WILDCARD_CACHE_ITEMS_MAX: Final = 4_096

# Rules for files.
OMITTED_NAMES_MAX: Final = 20  # files that a search names because they need permission
PERMISSION_DIFF_CHARS_MAX: Final = 40_000  # stored with a request, and sent to every client

# Commands in the background. They outlive the call, the run and this process, but not these limits.
JOBS_PER_SESSION_MAX: Final = 8  # running at a time
JOBS_MAX: Final = 64  # running at a time, per data directory
JOB_SECONDS_DEFAULT: Final = 60 * 60
JOB_SECONDS_MAX: Final = 24 * 60 * 60
JOB_OUTPUT_BYTES_MAX: Final = TOOL_OUTPUT_FILE_BYTES_MAX  # beyond this the job is killed
JOB_OUTPUT_SHOWN_BYTES_MAX: Final = 32 * 1024  # per bash_output call
JOB_LAST_WORDS_BYTES_MAX: Final = 2 * 1024  # in the notice of its end
JOB_COMMAND_SHOWN_CHARS_MAX: Final = 500  # in the notice of its end
JOB_WAIT_SECONDS_MAX: Final = 300  # per bash_output call
JOB_LOOK_SECONDS_MIN: Final = 0.05  # between two polls of its process: short at first
JOB_LOOK_SECONDS_MAX: Final = 1.0
JOB_GUSH_BYTES: Final = 1024 * 1024  # printed between two polls: the next poll comes early
JOBS_LISTED_MAX: Final = 200

# Images for the model. Pixels are counted before decoding: a small file may contain many.
IMAGE_FILE_BYTES_MAX: Final = 20 * 1024 * 1024
IMAGE_PIXELS_MAX: Final = 50_000_000  # 200 MB while it is scaled, one image at a time
IMAGE_SIDE_MAX: Final = 2_000
IMAGE_BASE64_BYTES_MAX: Final = 5 * 1024 * 1024
IMAGE_SHRINK: Final = 0.75  # applied to each side until the encoded image fits

# Web pages. Their content is untrusted, so everything is bounded.
WEB_URL_CHARS_MAX: Final = 8 * 1024
WEB_REDIRECTS_MAX: Final = 5
WEB_ADDRESSES_TRIED_MAX: Final = 4  # per host
WEB_PAGE_BYTES_MAX: Final = 5 * 1024 * 1024  # compressed, and again decompressed
WEB_INFLATION_MAX: Final = 100  # decompressed bytes per compressed byte
WEB_SECONDS_DEFAULT: Final = 30
WEB_SECONDS_MAX: Final = 120
WEB_ATTRIBUTES_CHARS_MAX: Final = 16 * 1024  # per tag; the rest is ignored
WEB_NESTING_MAX: Final = 16  # of lists, quotes and emphasis; deeper levels are flattened
WEB_SEARCH_SECONDS_MAX: Final = 25
WEB_SEARCH_BYTES_MAX: Final = 256 * 1024
WEB_SEARCH_QUERY_CHARS_MAX: Final = 4 * 1024
WEB_SEARCH_RESULTS_DEFAULT: Final = 8
WEB_SEARCH_RESULTS_MAX: Final = 20
WEB_SEARCH_CONTEXT_CHARS_MAX: Final = 50_000

# The proxy of sandboxed commands.
PROXY_CONNECTIONS_MAX: Final = 64  # at the same time, for one command; more wait
PROXY_ALL_CONNECTIONS_MAX: Final = 256  # at the same time, for all commands of a process
PROXY_REQUEST_SECONDS_MAX: Final = 30  # until a request, or the beginning of a tunnel, is complete
PROXY_CONNECT_SECONDS_MAX: Final = 20  # to resolve a name and to connect
PROXY_IDLE_SECONDS_MAX: Final = 600  # without a byte in either direction
PROXY_BUFFER_BYTES_MAX: Final = 64 * 1024  # in flight, per connection and direction
PROXY_REFUSALS_TOLD_MAX: Final = 10  # per command
HOSTS_ASKED_MAX: Final = 20  # per command
