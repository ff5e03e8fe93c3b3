"""Every bound in the program, with its unit and its reason."""

from typing import Final

# HTTP: enough for a prompt with an inlined image, small enough to refuse an attack.
REQUEST_BODY_BYTES_MAX: Final = 32 * 1024 * 1024
REQUEST_HEAD_BYTES_MAX: Final = 64 * 1024
REQUEST_READ_SECONDS_MAX: Final = 30
KEEP_ALIVE_SECONDS_MAX: Final = 75
SHUTDOWN_SECONDS_MAX: Final = 10

PAGE_ITEMS_DEFAULT: Final = 50
PAGE_ITEMS_MAX: Final = 200
HISTORY_ITEMS_MAX: Final = 100

# Streams. A reader that falls this far behind the live ring is ended, explicitly.
HEARTBEAT_SECONDS: Final = 15
LIVE_RING_BYTES_MAX: Final = 16 * 1024 * 1024
REPLAY_ROWS_PER_READ: Final = 256

# The log and its readers.
APPEND_EVENTS_MAX: Final = 1_000
COMMIT_JOBS_MAX: Final = 256
HISTORY_CACHE_BYTES_MAX: Final = 64 * 1024 * 1024

# Sessions.
PROMPT_TEXT_BYTES_MAX: Final = 16 * 1024 * 1024
TITLE_CHARS_MAX: Final = 80
TITLE_CHOSEN_CHARS_MAX: Final = 500  # by a person
TOOL_CALLS_PER_TURN_MAX: Final = 128
TOOLS_PARALLEL_MAX: Final = 16
BOOT_WAKES_PARALLEL_MAX: Final = 8
WARM_UP_SECONDS: Final = 1.0

# Changing Sessions.
DELETION_ROWS_MAX: Final = 500  # removed in one transaction; others write in between
FORK_EVENTS_MAX: Final = 50_000  # copied in one transaction, in a second or two
INBOX_ITEMS_MAX: Final = 1_000  # listed and reordered

# Model tool output: what one settlement may put before the model.
TOOL_OUTPUT_LINES_MAX: Final = 2_000
TOOL_OUTPUT_BYTES_MAX: Final = 50 * 1024
TOOL_OUTPUT_RETENTION_SECONDS: Final = 7 * 24 * 60 * 60
TOOL_OUTPUT_FILE_BYTES_MAX: Final = 64 * 1024 * 1024  # of one file; what follows is not kept

# Built-in tools.
READ_LINES_MAX: Final = 2_000
READ_BYTES_MAX: Final = 50 * 1024
READ_LINE_CHARS_MAX: Final = 2_000
DIRECTORY_ENTRIES_MAX: Final = 2_000
SEARCH_RESULTS_DEFAULT: Final = 100
SEARCH_RESULTS_MAX: Final = 1_000
SEARCH_SECONDS_MAX: Final = 30
SEARCH_PATTERN_CHARS_MAX: Final = 1_024
SEARCH_LINE_CHARS_MAX: Final = 2_000
BASH_TIMEOUT_MILLIS_DEFAULT: Final = 120_000
BASH_TIMEOUT_MILLIS_MAX: Final = 600_000
BASH_OUTPUT_BYTES_MAX: Final = 1024 * 1024
PROCESS_TERMINATE_SECONDS: Final = 3
EDIT_FILE_BYTES_MAX: Final = 16 * 1024 * 1024


# Locations: what they read when they open, and how long they stay.
CONFIG_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
CONFIG_SUBSTITUTED_CHARS_MAX: Final = 4 * 1024 * 1024  # put in by the placeholders of one file
CONFIG_PROBLEMS_MAX: Final = 100  # of one file; the rest is counted
AGENT_FILE_BYTES_MAX: Final = 256 * 1024
AGENT_FILES_MAX: Final = 1_000  # in one config directory
AGENT_FOLDERS_MAX: Final = 200
AGENT_ENTRIES_MAX: Final = 10_000  # of one folder that are looked at
GIT_FILE_BYTES_MAX: Final = 1024 * 1024
GIT_SECONDS_MAX: Final = 5
LOCATION_IDLE_SECONDS_MAX: Final = 60 * 60
LOCATIONS_OPEN_MAX: Final = 256
PROJECTS_REMEMBERED_MAX: Final = 1_024
PERMISSIONS_PENDING_MAX: Final = 1_000

# Tools and the files and processes beneath them.
FILE_INLINE_BYTES_MAX: Final = 256 * 1024  # above this a thread does the work
READ_CHUNK_BYTES: Final = 1024 * 1024
READ_SNIFF_BYTES: Final = 4 * 1024
SEARCH_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
SEARCH_RECORD_BYTES_MAX: Final = 64 * 1024
SEARCH_SUBMATCHES_MAX: Final = 100  # of one line
SEARCH_BRACES_MAX: Final = 64
BASH_COMMAND_BYTES_MAX: Final = 128 * 1024 - 1  # the kernel takes no longer argument
BASH_WARNINGS_MAX: Final = 10
EDIT_DIFF_LINES_MAX: Final = 400  # a longer change is shown as one block
EDIT_PATCH_CHARS_MAX: Final = 64 * 1024
PROCESS_DRAIN_SECONDS: Final = 0.5
PROCESS_WAITING_BYTES_MAX: Final = 1024 * 1024  # not yet taken by who keeps the output
WILDCARD_CACHE_ITEMS_MAX: Final = 4_096

# HTTP connections, beside the request limits above.
CONNECTIONS_MAX: Final = 4_096
PIPELINED_REQUESTS_MAX: Final = 64  # of one connection, waiting behind the one that is answered
REQUESTS_PER_CLIENT_MAX: Final = 1_024  # being answered at a time; streams are not among them
STREAMS_MAX: Final = 2_048  # of one server; half of the connections stay free for requests
REQUEST_BODY_WINDOW_BYTES: Final = 64 * 1024
"""Unread body held for a handler; also the progress that renews the time to read a body."""
RESPONSE_STALL_SECONDS_MAX: Final = 60
LINGER_SECONDS_MAX: Final = 2
COMPRESS_BYTES_MIN: Final = 1_024
COMPRESS_INLINE_BYTES_MAX: Final = 256 * 1024
"""Larger bodies are compressed off the event loop."""

# Titles, and the model that makes one beside the conversation.
TITLE_SCAN_CHARS_MAX: Final = 4_096
TITLE_PROMPT_CHARS_MAX: Final = 4_000
TITLE_TOKENS_MAX: Final = 1_000  # most of them for models that think before one line
TITLE_ANSWER_CHARS_MAX: Final = 8_000
TITLE_SECONDS_MAX: Final = 30

# Permission requests that come from outside: they are kept in memory and told to every listener.
PERMISSION_RESOURCES_MAX: Final = 1_000
PERMISSION_INPUT_BYTES_MAX: Final = 64 * 1024
PERMISSION_FEEDBACK_BYTES_MAX: Final = 64 * 1024

# Compaction.
COMPACTION_KEEP_TOKENS: Final = 8_000
COMPACTION_BUFFER_TOKENS: Final = 20_000  # of the context, kept free for the answer
SUMMARY_TOKENS_MAX: Final = 4_096
SUMMARY_CHARS_MAX: Final = 256 * 1024  # a model that never stops is stopped
TRANSCRIPT_RESULT_CHARS_MAX: Final = 2_000
PRUNED_RESULT_CHARS_MAX: Final = 200  # of a result, where even the shortened ones are too much
COMPACTED_PERCENT_MAX: Final = 80
"""What an automatic compaction may leave, of the window and of the size before."""
COMPACTION_ROOM_TOKENS_MIN: Final = 600  # less than this is no room for a checkpoint
CARRIED_TOKENS_MAX: Final = 4_000  # of what the user said, and open items
DIRECTIVE_CHARS_MAX: Final = 4_000  # a longer message is carried by its beginning
DIRECTIVES_READ_MAX: Final = 500  # of a Session's prompts, the newest
SUMMARY_TOKENS_MIN: Final = 256
SUMMARY_READ_PERCENT: Final = 75  # of a context is read at once: estimates are off by as much
SUMMARY_PARTS_MAX: Final = 8  # requests for one summary
SUMMARY_SECONDS_MAX: Final = 180  # for one request; a model that stalls is left
CUT_REASON_CHARS_MAX: Final = 300
MEDIA_TOKENS: Final = 1_600  # an image of the size that we send

# Questions: they are kept in memory and told to every listener, and so are their answers.
QUESTIONS_PENDING_MAX: Final = 1_000
QUESTIONS_PER_REQUEST_MAX: Final = 20
QUESTION_OPTIONS_MAX: Final = 50
QUESTION_INPUT_BYTES_MAX: Final = 64 * 1024
QUESTION_ANSWERS_BYTES_MAX: Final = 64 * 1024

# System Context: what is told again and again, so its size is paid for with every request.
INSTRUCTION_FILE_BYTES_MAX: Final = 256 * 1024
INSTRUCTIONS_DISCOVERED_MAX: Final = 100  # of one Session
INSTRUCTION_FILES_MAX: Final = 100  # that one pattern stands for
INSTRUCTION_WALK_SECONDS: Final = 30  # between two walks through a tree
INSTRUCTION_PAGE_SECONDS: Final = 600  # until a page is fetched again
INSTRUCTION_FETCH_SECONDS_MAX: Final = 10
CONTEXT_GUEST_BYTES_MAX: Final = 64 * 1024
CONTEXT_GUEST_SECONDS_MAX: Final = 5
CONTEXT_DESCRIPTION_CHARS_MAX: Final = 1_024  # of a skill or a reference

# Patches.
PATCH_FILES_MAX: Final = 200

# Front matter of Markdown files.
FRONT_MATTER_NESTING_MAX: Final = 32

# Skills. What is listed is told with every request; what is watched is looked at before each.
SKILL_FILE_BYTES_MAX: Final = 256 * 1024
SKILL_NAME_CHARS_MAX: Final = 128
SKILLS_MAX: Final = 256  # of one Location
SKILL_DIRECTORIES_MAX: Final = 1_000  # of one source
SKILL_DIRECTORY_ENTRIES_MAX: Final = 10_000  # of one source
SKILL_SETTLED_SECONDS: Final = 2
"""A file system may stamp two changes within this time alike; a look is trusted only after it."""
SKILL_RULESETS_KEPT_MAX: Final = 64
SKILL_FILES_SHOWN_MAX: Final = 10
SKILL_SHOWN_DIRECTORIES_MAX: Final = 50
SKILL_MATCHES_SHOWN_MAX: Final = 3

# Skills from the network.
SKILL_REFRESH_SECONDS: Final = 10 * 60
SKILL_RETRIES_MAX: Final = 2
SKILL_RETRY_SECONDS: Final = 1
SKILL_REQUEST_SECONDS_MAX: Final = 30
SKILL_REFRESH_SECONDS_MAX: Final = 5 * 60  # of one refresh, whatever the server does
SKILL_INDEX_BYTES_MAX: Final = 1024 * 1024
SKILL_DOWNLOAD_FILES_MAX: Final = 200  # of one skill
SKILL_DOWNLOAD_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
SKILL_DOWNLOAD_BYTES_MAX: Final = 16 * 1024 * 1024  # of one skill
SKILL_LEFTOVER_SECONDS: Final = 60 * 60  # after this what a dead process was fetching is removed

# Repositories that are named as references.
REPOSITORY_REFRESH_SECONDS: Final = 60 * 60
REPOSITORY_SECONDS_MAX: Final = 10 * 60  # of one refresh, whatever the server does
REPOSITORY_REASON_CHARS_MAX: Final = 400

# Moving a Session together with the uncommitted changes of its work tree.
MOVED_PATCH_BYTES_MAX: Final = 64 * 1024 * 1024
MOVED_GIT_SECONDS_MAX: Final = 60  # for one command; the first look at a large tree takes a while
MOVED_REASON_CHARS_MAX: Final = 400

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

# How long to wait before a store that failed is asked again.
STORAGE_RETRY_SECONDS: Final = 5.0

# Stored credentials, and logins that a person finishes in a browser.
CREDENTIAL_CHARS_MAX: Final = 16 * 1024  # of one key or token; some tokens are signed documents
CREDENTIAL_LABEL_CHARS_MAX: Final = 200
CREDENTIAL_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
LOGIN_INPUT_CHARS_MAX: Final = 1_024
LOGIN_SECONDS_MAX: Final = 10 * 365 * 24 * 60 * 60  # a token said to live longer has no known end
LOGIN_RENEWED_AHEAD_SECONDS: Final = 5 * 60
LOGIN_RETRY_SECONDS: Final = 30  # until a renewal that failed is tried again, if nobody asks before
LOGIN_LOOK_SECONDS: Final = 60 * 60  # between two looks whether a login is to be renewed
LOGIN_ANSWER_BYTES_MAX: Final = 256 * 1024
LOGIN_ANSWER_SECONDS_MAX: Final = 30
GOOGLE_LOGIN_BYTES_MAX: Final = 64 * 1024  # what the Google Cloud tools write has a few hundred
LOGIN_LOCK_SECONDS: Final = 0.05  # between two looks whether another process has finished renewing
ATTEMPT_SECONDS_MAX: Final = 10 * 60
ATTEMPT_KEPT_SECONDS: Final = 60  # after its end, for whoever asks how it went
ATTEMPT_SWEEP_SECONDS: Final = 30
ATTEMPTS_OPEN_MAX: Final = 64
CALLBACK_HEAD_BYTES_MAX: Final = 16 * 1024
CALLBACK_SECONDS_MAX: Final = 10
CALLBACK_CONNECTIONS_MAX: Final = 16

# A Session's list of what is to be done: it is told to every listener and shown to the model.
TODOS_MAX: Final = 200
TODOS_BYTES_MAX: Final = 32 * 1024

# The progress of a running call: each word is a durable event.
TOOL_PROGRESS_SECONDS: Final = 0.25
TOOL_PROGRESS_BYTES_MAX: Final = 4 * 1024

# Calls that bring nothing new: after this many with the same result a person is asked, and after
# this many refusals to make one the run stops.
CALLS_REPEATED_MAX: Final = 3
CALLS_REFUSED_MAX: Final = 3
CALLS_REMEMBERED_MAX: Final = 256  # of one run

# File tools.
PATH_CHARS_MAX: Final = 4_096  # the kernel takes no longer one, and resolving costs its square
SEEN_FILES_MAX: Final = 20_000  # remembered for all Sessions; about 200 bytes each
WRITE_FILE_BYTES_MAX: Final = EDIT_FILE_BYTES_MAX  # what is written can be edited later
PATCH_BYTES_MAX: Final = 32 * 1024 * 1024

# Searches. Up to this many matches are put in order afterwards; more are searched for in order.
SEARCH_COLLECTED_MAX: Final = 10_000
SEARCH_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024  # for one line, with every place that matches
SEARCH_OWN_SECONDS_MAX: Final = 10  # without ripgrep an expression may never come to an end

# Images for the model. Pixels are counted before anything is decoded: a small file may hold many.
IMAGE_FILE_BYTES_MAX: Final = 20 * 1024 * 1024
IMAGE_PIXELS_MAX: Final = 50_000_000  # 200 MB while it is scaled, one image at a time
IMAGE_SIDE_MAX: Final = 2_000
IMAGE_BASE64_BYTES_MAX: Final = 5 * 1024 * 1024
IMAGE_SHRINK: Final = 0.75  # of each side, until the encoded image fits

# Facts about models: those that come with the program, and those that are fetched anew.
MODELS_TRUSTED_SECONDS: Final = 5 * 60  # a copy this young is not fetched again
MODELS_REFRESH_SECONDS: Final = 60 * 60
MODELS_FETCH_SECONDS_MAX: Final = 60
MODELS_FETCH_BYTES_MAX: Final = 32 * 1024 * 1024
MODELS_LOCK_SECONDS: Final = 0.05  # between two looks whether another process has finished
MODEL_INDEX_BYTES_MAX: Final = 4 * 1024 * 1024
MODEL_PROVIDERS_MAX: Final = 2_000
MODELS_PER_PROVIDER_MAX: Final = 5_000

# Approval of shell commands. More than this is not looked into: a person is asked.
COMMAND_CHARS_MAX: Final = 8 * 1024  # hostile text costs the parser its square
COMMAND_PARTS_MAX: Final = 50
COMMAND_DEPTH_MAX: Final = 8  # of commands within the text of commands

# What a running command is told to have printed so far: each word is a durable event, so they
# come at growing intervals.
BASH_PROGRESS_SECONDS_MIN: Final = 1
BASH_PROGRESS_SECONDS_MAX: Final = 30
BASH_PROGRESS_BYTES_MAX: Final = 2 * 1024
BASH_SAMPLE_BYTES: Final = 8 * 1024  # looked at to tell text from the rest

# Files over HTTP. What is larger is asked for in parts.
FS_READ_BYTES_MAX: Final = 32 * 1024 * 1024
FS_ENTRIES_MAX: Final = 20_000  # of one folder
FS_FOUND_DEFAULT: Final = 50
FS_FOUND_MAX: Final = 1_000

# Commands in Markdown files.
COMMAND_FILE_BYTES_MAX: Final = 256 * 1024
COMMAND_FILES_MAX: Final = 1_000  # in one folder
COMMAND_FOLDERS_MAX: Final = 200
COMMAND_ENTRIES_MAX: Final = 10_000  # of one folder that are looked at

# Terminals. What is kept of the output is all that a reader who comes back can see.
PTYS_RUNNING_MAX: Final = 64  # of one Location
PTYS_EXITED_MAX: Final = 25  # whose end is remembered, of one Location
PTY_KEPT_UNITS_MAX: Final = 2 * 1024 * 1024  # UTF-16 units
PTY_TYPED_BYTES_MAX: Final = 256 * 1024  # that the program has not read yet
PTY_DRAIN_READS_MAX: Final = 64  # after the end of a program, of what it printed before
PTY_FRAME_CHARS_MAX: Final = 64 * 1024  # of one frame to a client
PTY_TITLE_CHARS_MAX: Final = 200
PTY_TICKET_SECONDS: Final = 60
PTY_TICKETS_MAX: Final = 1_000  # that are not used yet; the oldest is forgotten
PTY_GUEST_SECONDS_MAX: Final = 5  # for a plugin to say what a terminal's variables are

# WebSockets.
SOCKET_MESSAGE_BYTES_MAX: Final = 1024 * 1024  # from a client, all fragments together
SOCKET_CLOSE_SECONDS_MAX: Final = 2  # until the client answers that we close

# How long a provider may take, unless its configuration says otherwise. Models may think long
# before their first word, and less long between two.
PROVIDER_CONNECT_SECONDS_MAX: Final = 30.0
PROVIDER_FIRST_BYTE_SECONDS_MAX: Final = 10 * 60.0
PROVIDER_IDLE_SECONDS_MAX: Final = 5 * 60.0

# Requests that failed before anything of an answer came: how often and after how long they are sent
# again. A provider that is only crowded is given more time than one that is broken.
RETRY_ATTEMPTS_MAX: Final = 3
RETRY_SECONDS_FIRST: Final = 0.5
RETRY_CROWDED_ATTEMPTS_MAX: Final = 6
RETRY_CROWDED_SECONDS_FIRST: Final = 1.0
RETRY_SECONDS_MAX: Final = 30.0
RETRY_SPREAD: Final = 0.2  # of a wait, to either side
RETRY_TOLD_SECONDS_MAX: Final = 10 * 60  # a provider that asks for more is not waited for

# What people granted to the configuration of projects; about 200 bytes each.
TRUST_FILE_BYTES_MAX: Final = 4 * 1024 * 1024

# Attachments of a prompt: what is told of them is kept in the log for good.
ATTACHMENTS_MAX: Final = 100  # of one prompt that are looked at
ATTACHED_TEXT_BYTES_MAX: Final = 400 * 1024  # of one prompt, all texts together
ATTACHED_MEDIA_CHARS_MAX: Final = 20 * 1024 * 1024  # of one prompt, in base64
ATTACHED_PAGES_MAX: Final = 10  # of one prompt that are fetched
ATTACHED_PAGE_SECONDS_MAX: Final = 20
DOCUMENT_BYTES_MAX: Final = 3_750_000  # 5 MB in base64: the least that a provider takes
MENTIONS_MAX: Final = 20  # of paths in one text; more is not a person's typing
MENTION_CHARS_MAX: Final = 512
MEDIA_CACHE_CHARS_MAX: Final = 64 * 1024 * 1024  # of images whose form for requests is remembered

# Recovery after a crash, and Sessions that another process runs.
RECOVERY_DEATHS_MAX: Final = 3  # processes that may die in one run before it is left to a person
ELSEWHERE_LOOK_SECONDS: Final = 0.05  # as often as that process looks what was asked of it
INTERRUPT_ELSEWHERE_SECONDS_MAX: Final = 10.0  # one that hangs is not waited for

# Subagents. Fewer run at once than calls of a turn may, so that other tools are never kept waiting.
TASK_DEPTH_MAX: Final = 3  # Sessions below the root
TASKS_RUNNING_MAX: Final = 10  # of one root and all below it, at a time
TASKS_MAX: Final = 100  # of one root and all below it, ever
TASK_PROMPT_BYTES_MAX: Final = 256 * 1024
TASK_WAIT_SECONDS_MAX: Final = 60 * 60  # after this the result comes as a notice
TASK_NOTICE_CHARS_MAX: Final = 20_000  # of a result that comes as a notice

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

# Programs that look after a file that a tool has changed.
FORMATTER_SECONDS_MAX: Final = 20
CHECKER_SECONDS_MAX: Final = 30
EDIT_PROGRAM_OUTPUT_BYTES_MAX: Final = 64 * 1024
FORMATTER_WORDS_CHARS_MAX: Final = 400  # of one that failed
DIAGNOSTICS_LINES_MAX: Final = 20
DIAGNOSTICS_LINE_CHARS_MAX: Final = 400
DIAGNOSED_FILES_MAX: Final = 5  # of one patch

# The inbox of one Session. A client that sends without end is refused before the disk is full.
INBOX_PENDING_MAX: Final = 1_000  # admitted, and neither promoted nor cancelled

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

# How long the command line can be told to wait for a person.
PERMISSION_TIMEOUT_SECONDS_MAX: Final = 30 * 24 * 60 * 60
