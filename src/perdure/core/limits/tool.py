"""What tools may read, write, start, fetch and show, and for how long."""

from typing import Final

# Model tool output: what one settlement may put before the model.
TOOL_OUTPUT_LINES_MAX: Final = 2_000
TOOL_OUTPUT_BYTES_MAX: Final = 50 * 1024
TOOL_OUTPUT_RETENTION_SECONDS: Final = 7 * 24 * 60 * 60
TOOL_OUTPUT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # of one file; what follows is not kept

# The progress of a running call: each word is a durable event.
TOOL_PROGRESS_SECONDS: Final = 0.25
TOOL_PROGRESS_BYTES_MAX: Final = 4 * 1024

# Calls that bring nothing new: after this many with the same result a person is asked, and after
# this many refusals to make one the run stops.
CALLS_REPEATED_MAX: Final = 3
CALLS_REFUSED_MAX: Final = 3
CALLS_REMEMBERED_MAX: Final = 256  # of one run

# Sets of tools, by the rules that chose them, that a registry keeps for the next turn.
TURN_TOOLS_KEPT_MAX: Final = 64

# Files: reading them, and changing them.
READ_LINES_MAX: Final = 2_000
READ_BYTES_MAX: Final = 50 * 1024
READ_LINE_CHARS_MAX: Final = 2_000
READ_CHUNK_BYTES: Final = 1024 * 1024
READ_SNIFF_BYTES: Final = 4 * 1024
DIRECTORY_ENTRIES_MAX: Final = 2_000
PATH_CHARS_MAX: Final = 4_096  # the kernel takes no longer one, and resolving costs its square
SEEN_FILES_MAX: Final = 20_000  # remembered for all Sessions; about 200 bytes each
FILE_INLINE_BYTES_MAX: Final = 256 * 1024  # above this a thread does the work
EDIT_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
EDIT_DIFF_LINES_MAX: Final = 400  # a longer change is shown as one block
EDIT_PATCH_CHARS_MAX: Final = 64 * 1024
WRITE_FILE_BYTES_MAX: Final = EDIT_FILE_BYTES_MAX  # what is written can be edited later
PATCH_FILES_MAX: Final = 200
PATCH_BYTES_MAX: Final = 32 * 1024 * 1024

# What a Session's steps do to files is kept, so that it can be taken back.
SNAPSHOT_FILE_BYTES_MAX: Final = 2 * 1024 * 1024  # of a file that a command may change
SNAPSHOT_WRITTEN_BYTES_MAX: Final = EDIT_FILE_BYTES_MAX  # of a file that a file tool changes
SNAPSHOT_TREE_FILES_MAX: Final = 50_000  # in a directory with more, commands are not watched
SNAPSHOT_TREE_BYTES_MAX: Final = 512 * 1024 * 1024  # kept anew for one command
SNAPSHOT_SCAN_SECONDS_MAX: Final = 10.0  # of reading before a command; the rest is not kept
SNAPSHOT_STORE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024  # nothing new is kept beyond
SNAPSHOT_DISK_FREE_MIN: Final = 512 * 1024 * 1024  # left to others on the disk of the store
SNAPSHOT_KEPT_SECONDS: Final = 24 * 60 * 60  # after this what no Session needs is removed
SNAPSHOT_SETTLED_NANOS: Final = 1_000_000_000
"""A file system may stamp two changes within this time alike; an older stamp is trusted."""
SNAPSHOT_TREES_REMEMBERED_MAX: Final = 8  # whose stamps are kept in memory
REVERT_DIFF_BYTES_MAX: Final = 1024 * 1024  # shown of one revert; a patch beyond is left out

# Programs that look after a file that a tool has changed.
FORMATTER_SECONDS_MAX: Final = 20
CHECKER_SECONDS_MAX: Final = 30
EDIT_PROGRAM_OUTPUT_BYTES_MAX: Final = 64 * 1024
FORMATTER_WORDS_CHARS_MAX: Final = 400  # of one that failed
DIAGNOSTICS_LINES_MAX: Final = 20
DIAGNOSTICS_LINE_CHARS_MAX: Final = 400
DIAGNOSED_FILES_MAX: Final = 5  # of one patch

# Language servers: programs of others that stay. An edit is held up by them no longer than this.
LSP_ANSWER_SECONDS_MAX: Final = 5.0  # for one edit, from the start of a server to its last word
LSP_SETTLE_SECONDS: Final = 0.4  # after a word that does not say which text it is about
LSP_SILENCES_MAX: Final = 3  # edits without an answer; until the next one nobody waits
LSP_START_SECONDS_MAX: Final = 60.0  # to be ready; large projects take a while to be read
LSP_STOP_SECONDS_MAX: Final = 2.0  # to end when asked to
LSP_IDLE_SECONDS_MAX: Final = 15 * 60.0  # without an edit
LSP_RESTARTS_MAX: Final = 3  # of one that ends by itself
LSP_RUNNING_MAX: Final = 8  # of one Location; they may take a gigabyte each
LSP_DOCUMENTS_OPEN_MAX: Final = 100  # in one server
LSP_HEAD_BYTES_MAX: Final = 8 * 1024
LSP_MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024  # a longer one is dropped
LSP_HEARD_BYTES_MAX: Final = 16 * 1024 * 1024  # in one second; one that says more is ended
LSP_UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024  # of what we said; one that reads no more is ended
LSP_FILE_BYTES_MAX: Final = 2 * 1024 * 1024  # a larger file is not shown to one
LSP_DIAGNOSTICS_READ_MAX: Final = 1_000  # of one file; the rest is not looked at

# Searches.
SEARCH_RESULTS_DEFAULT: Final = 100
SEARCH_RESULTS_MAX: Final = 1_000
SEARCH_COLLECTED_MAX: Final = 10_000  # put in order afterwards; more are searched for in order
SEARCH_SECONDS_MAX: Final = 30
SEARCH_OWN_SECONDS_MAX: Final = 10  # without ripgrep an expression may never come to an end
SEARCH_PATTERN_CHARS_MAX: Final = 1_024
SEARCH_BRACES_MAX: Final = 64
SEARCH_LINE_CHARS_MAX: Final = 2_000
SEARCH_SUBMATCHES_MAX: Final = 100  # of one line
SEARCH_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
SEARCH_RECORD_BYTES_MAX: Final = 64 * 1024
SEARCH_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024  # for one line, with every place that matches

# Commands, and processes in general.
BASH_TIMEOUT_MILLIS_DEFAULT: Final = 120_000
BASH_TIMEOUT_MILLIS_MAX: Final = 600_000
BASH_OUTPUT_BYTES_MAX: Final = 1024 * 1024
BASH_COMMAND_BYTES_MAX: Final = 128 * 1024 - 1  # the kernel takes no longer argument
BASH_WARNINGS_MAX: Final = 10
PROCESS_TERMINATE_SECONDS: Final = 3
PROCESS_DRAIN_SECONDS: Final = 0.5
PROCESS_GONE_SECONDS: Final = 0.05  # between the last word of one that ends and its end
PROCESS_WAITING_BYTES_MAX: Final = 1024 * 1024  # not yet taken by who keeps the output

# What a running command is told to have printed so far: each word is a durable event, so they
# come at growing intervals.
BASH_PROGRESS_SECONDS_MIN: Final = 1
BASH_PROGRESS_SECONDS_MAX: Final = 30
BASH_PROGRESS_BYTES_MAX: Final = 2 * 1024
BASH_SAMPLE_BYTES: Final = 8 * 1024  # looked at to tell text from the rest

# Approval of shell commands. More than this is not looked into: a person is asked.
COMMAND_CHARS_MAX: Final = 8 * 1024  # hostile text costs the parser its square
COMMAND_PARTS_MAX: Final = 50
COMMAND_DEPTH_MAX: Final = 8  # of commands within the text of commands
WILDCARD_CACHE_ITEMS_MAX: Final = 4_096

# Commands in the background. They outlive a call, a run and this process, but not their bounds.
JOBS_PER_SESSION_MAX: Final = 8  # running at a time
JOBS_MAX: Final = 64  # running at a time, on one data directory
JOB_SECONDS_DEFAULT: Final = 60 * 60
JOB_SECONDS_MAX: Final = 24 * 60 * 60
JOB_OUTPUT_BYTES_MAX: Final = TOOL_OUTPUT_FILE_BYTES_MAX  # beyond this the job is ended
JOB_OUTPUT_SHOWN_BYTES_MAX: Final = 32 * 1024  # by one look at it
JOB_LAST_WORDS_BYTES_MAX: Final = 2 * 1024  # in the notice of its end
JOB_COMMAND_SHOWN_CHARS_MAX: Final = 500  # in the notice of its end
JOB_WAIT_SECONDS_MAX: Final = 300  # for one look
JOB_LOOK_SECONDS_MIN: Final = 0.05  # between two looks at its process: short-lived ones end soon
JOB_LOOK_SECONDS_MAX: Final = 1.0
JOB_GUSH_BYTES: Final = 1024 * 1024  # printed between two looks: the next one is soon
JOBS_LISTED_MAX: Final = 200

# Images for the model. Pixels are counted before anything is decoded: a small file may hold many.
IMAGE_FILE_BYTES_MAX: Final = 20 * 1024 * 1024
IMAGE_PIXELS_MAX: Final = 50_000_000  # 200 MB while it is scaled, one image at a time
IMAGE_SIDE_MAX: Final = 2_000
IMAGE_BASE64_BYTES_MAX: Final = 5 * 1024 * 1024
IMAGE_SHRINK: Final = 0.75  # of each side, until the encoded image fits

# The web: pages come from strangers, so everything about them is bounded.
WEB_URL_CHARS_MAX: Final = 8 * 1024
WEB_REDIRECTS_MAX: Final = 5
WEB_ADDRESSES_TRIED_MAX: Final = 4  # of one host
WEB_PAGE_BYTES_MAX: Final = 5 * 1024 * 1024  # as it is sent, and again without its compression
WEB_INFLATION_MAX: Final = 100  # bytes that one compressed byte may become
WEB_SECONDS_DEFAULT: Final = 30
WEB_SECONDS_MAX: Final = 120
WEB_ATTRIBUTES_CHARS_MAX: Final = 16 * 1024  # of one tag; what follows is not read
WEB_NESTING_MAX: Final = 16  # of lists, quotes and emphasis; deeper ones lose their marks
WEB_SEARCH_SECONDS_MAX: Final = 25
WEB_SEARCH_BYTES_MAX: Final = 256 * 1024
WEB_SEARCH_QUERY_CHARS_MAX: Final = 4 * 1024
WEB_SEARCH_RESULTS_DEFAULT: Final = 8
WEB_SEARCH_RESULTS_MAX: Final = 20
WEB_SEARCH_CONTEXT_CHARS_MAX: Final = 50_000
