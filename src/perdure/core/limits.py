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
TOOL_CALLS_PER_TURN_MAX: Final = 128
TOOLS_PARALLEL_MAX: Final = 16
BOOT_WAKES_PARALLEL_MAX: Final = 8
WARM_UP_SECONDS: Final = 1.0

# Model tool output: what one settlement may put before the model.
TOOL_OUTPUT_LINES_MAX: Final = 2_000
TOOL_OUTPUT_BYTES_MAX: Final = 50 * 1024
TOOL_OUTPUT_RETENTION_SECONDS: Final = 7 * 24 * 60 * 60

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
READ_IMAGE_BYTES_MAX: Final = 5 * 1024 * 1024
SEARCH_OUTPUT_BYTES_MAX: Final = 32 * 1024 * 1024
SEARCH_RECORD_BYTES_MAX: Final = 64 * 1024
SEARCH_SUBMATCHES_MAX: Final = 100  # of one line
SEARCH_BRACES_MAX: Final = 64
BASH_WARNINGS_MAX: Final = 10
EDIT_DIFF_LINES_MAX: Final = 400  # a longer change is shown as one block
EDIT_PATCH_CHARS_MAX: Final = 64 * 1024
PROCESS_DRAIN_SECONDS: Final = 0.5
WILDCARD_CACHE_ITEMS_MAX: Final = 4_096

# HTTP connections, beside the request limits above.
CONNECTIONS_MAX: Final = 4_096
REQUEST_BODY_WINDOW_BYTES: Final = 64 * 1024
"""Unread body held for a handler; also the progress that renews the time to read a body."""
RESPONSE_STALL_SECONDS_MAX: Final = 60
LINGER_SECONDS_MAX: Final = 2
COMPRESS_BYTES_MIN: Final = 1_024
COMPRESS_INLINE_BYTES_MAX: Final = 256 * 1024
"""Larger bodies are compressed off the event loop."""

# Titles.
TITLE_SCAN_CHARS_MAX: Final = 4_096

# Permission requests that come from outside: they are kept in memory and told to every listener.
PERMISSION_RESOURCES_MAX: Final = 1_000
PERMISSION_INPUT_BYTES_MAX: Final = 64 * 1024
PERMISSION_FEEDBACK_BYTES_MAX: Final = 64 * 1024

# Compaction.
COMPACTION_KEEP_TOKENS: Final = 8_000
SUMMARY_TOKENS_MAX: Final = 4_096
SUMMARY_CHARS_MAX: Final = 256 * 1024  # a model that never stops is stopped
TRANSCRIPT_RESULT_CHARS_MAX: Final = 2_000

# Questions: they are kept in memory and told to every listener, and so are their answers.
QUESTIONS_PENDING_MAX: Final = 1_000
QUESTIONS_PER_REQUEST_MAX: Final = 20
QUESTION_OPTIONS_MAX: Final = 50
QUESTION_INPUT_BYTES_MAX: Final = 64 * 1024
QUESTION_ANSWERS_BYTES_MAX: Final = 64 * 1024

# System Context: what is told again and again, so its size is paid for with every request.
INSTRUCTION_FILE_BYTES_MAX: Final = 256 * 1024
INSTRUCTIONS_DISCOVERED_MAX: Final = 100  # of one Session
CONTEXT_GUEST_BYTES_MAX: Final = 64 * 1024
CONTEXT_GUEST_SECONDS_MAX: Final = 5

# Patches.
PATCH_FILES_MAX: Final = 200
