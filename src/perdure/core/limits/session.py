"""Limits on a Session: its log, inbox, requests and children."""

from typing import Final

# The log and its readers.
APPEND_EVENTS_MAX: Final = 1_000  # per transaction; more are committed in several
COMMIT_JOBS_MAX: Final = 256
HISTORY_CACHE_BYTES_MAX: Final = 64 * 1024 * 1024
LOCK_WAIT_SECONDS_MAX: Final = 10.0  # for another process that writes; a commit takes milliseconds
STORAGE_RETRY_SECONDS: Final = 5.0  # before a failed database call is retried

# Sessions.
PROMPT_TEXT_BYTES_MAX: Final = 4 * 1024 * 1024  # a million tokens: no model reads more
TITLE_CHARS_MAX: Final = 80
TITLE_CHOSEN_CHARS_MAX: Final = 500  # by a person
METADATA_BYTES_MAX: Final = 16 * 1024  # a part of every record of the Session
SESSION_RULES_MAX: Final = 100
TOOL_CALLS_PER_TURN_MAX: Final = 128
LIVE_PARTS_MAX: Final = 1_000  # of one answer; later parts are told whole, when they end
TOOLS_PARALLEL_MAX: Final = 16
BOOT_WAKES_PARALLEL_MAX: Final = 8
WARM_UP_SECONDS: Final = 1.0

# Changing Sessions.
DELETION_ROWS_MAX: Final = 500  # removed per transaction, so that other writes get in between
FORK_EVENTS_MAX: Final = 50_000  # copied in one transaction, which takes a second or two

# The inbox of one Session. A client that never stops sending is refused before the disk is full.
INBOX_ITEMS_MAX: Final = 1_000  # listed and reordered
INBOX_PENDING_MAX: Final = 1_000  # admitted, and neither promoted nor cancelled

# Templates of slash commands, and what they run when one is used.
TEMPLATE_COMMANDS_MAX: Final = 20
TEMPLATE_COMMAND_SECONDS_MAX: Final = 30
TEMPLATE_OUTPUT_BYTES_MAX: Final = 64 * 1024  # of one command; the rest is left out
COMMAND_ARGUMENTS_BYTES_MAX: Final = 64 * 1024

# Attachments of a prompt. The attached content stays in the log for good.
ATTACHMENTS_MAX: Final = 100  # read per prompt
ATTACHED_TEXT_BYTES_MAX: Final = 400 * 1024  # per prompt, all texts together
ATTACHED_MEDIA_CHARS_MAX: Final = 20 * 1024 * 1024  # per prompt, in base64
ATTACHED_PAGES_MAX: Final = 10  # fetched per prompt
ATTACHED_PAGE_SECONDS_MAX: Final = 20
DOCUMENT_BYTES_MAX: Final = 3_750_000  # 5 MB in base64: the smallest limit among providers
MENTIONS_MAX: Final = 20  # paths per text
MENTION_CHARS_MAX: Final = 512
MENTIONS_READ_MAX: Final = 20_000  # of a text, repeated ones included
MENTIONS_TEXT_CHARS_MAX: Final = 2 * 1024 * 1024  # of a text, from its start
MEDIA_CACHE_CHARS_MAX: Final = 64 * 1024 * 1024  # of images already encoded for requests

# Titles, and the model request that makes one.
TITLE_SCAN_CHARS_MAX: Final = 4_096
TITLE_PROMPT_CHARS_MAX: Final = 4_000
TITLE_TOKENS_MAX: Final = 1_000  # most of it for models that think first
TITLE_ANSWER_CHARS_MAX: Final = 8_000
TITLE_SECONDS_MAX: Final = 30

# Compaction.
COMPACTION_KEEP_TOKENS: Final = 8_000
COMPACTION_BUFFER_TOKENS: Final = 20_000  # of the context, kept free for the answer
SUMMARY_TOKENS_MAX: Final = 4_096
SUMMARY_CHARS_MAX: Final = 256 * 1024  # a longer summary is cut off
TRANSCRIPT_RESULT_CHARS_MAX: Final = 2_000
PRUNED_RESULT_CHARS_MAX: Final = 200  # of a result, if the usual shortening is not enough
PRUNED_SAVING_TOKENS_MIN: Final = 400  # a smaller result is not worth a marker
COMPACTED_PERCENT_MAX: Final = 80
"""Largest result of an automatic compaction, relative to the window and to the size before."""
REFUSED_MESSAGE_PERCENT: Final = 90  # of a refused request: a larger message is told as its cause
COMPACTION_ROOM_TOKENS_MIN: Final = 600  # smaller windows cannot hold a checkpoint
CARRIED_TOKENS_MAX: Final = 4_000  # of user directives and open items
DIRECTIVE_CHARS_MAX: Final = 4_000  # only the beginning of a longer message is carried
DIRECTIVES_READ_MAX: Final = 500  # of a Session's prompts, the newest
SUMMARY_TOKENS_MIN: Final = 256
SUMMARY_READ_PERCENT: Final = 75  # of a context per request: estimates are imprecise
SUMMARY_PARTS_MAX: Final = 8  # requests for one summary
SUMMARY_SECONDS_MAX: Final = 180  # per request
CUT_REASON_CHARS_MAX: Final = 300
MEDIA_TOKENS: Final = 1_600  # for an image of the size that is sent

# Permission requests from clients: kept in memory and published to every listener.
PERMISSIONS_PENDING_MAX: Final = 1_000
PERMISSION_RESOURCES_MAX: Final = 1_000
PERMISSION_INPUT_BYTES_MAX: Final = 64 * 1024
PERMISSION_FEEDBACK_BYTES_MAX: Final = 64 * 1024

# Questions and their answers: kept in memory and published to every listener.
QUESTIONS_PENDING_MAX: Final = 1_000
QUESTIONS_PER_REQUEST_MAX: Final = 20
QUESTION_OPTIONS_MAX: Final = 50
QUESTION_INPUT_BYTES_MAX: Final = 64 * 1024
QUESTION_ANSWERS_BYTES_MAX: Final = 64 * 1024

# A Session's todo list: published to every listener and sent to the model.
TODOS_MAX: Final = 200
TODOS_BYTES_MAX: Final = 32 * 1024

# Recovery after a crash, and Sessions that another process runs.
RECOVERY_DEATHS_MAX: Final = 3  # process deaths in one run before a person must decide
SUSPEND_SECONDS_MAX: Final = 5.0  # how long a server that stops lets its turns come to an end
PARKED_LOOK_SECONDS: Final = 0.05  # until it looks again which of them wait for a person
ELSEWHERE_LOOK_SECONDS: Final = 0.05  # the other process polls for requests as often
INTERRUPT_ELSEWHERE_SECONDS_MAX: Final = 10.0  # how long to wait for the other process
FINISH_SECONDS_MAX: Final = 30.0  # for runs of other processes that a short-lived one took over
BEAT_SECONDS: Final = 1.0  # each process shows the others that it runs
BEATS_MISSED_MAX: Final = 5  # then it does not respond: it was stopped, or its event loop stands

# Subagents. Fewer run in parallel than tool calls may, so that other tools are never blocked.
TASK_DEPTH_MAX: Final = 3  # Sessions below the root
TASKS_RUNNING_MAX: Final = 10  # at a time, per root Session
TASKS_MAX: Final = 100  # in total, per root Session
TASK_PROMPT_BYTES_MAX: Final = 256 * 1024
TASK_WAIT_SECONDS_MAX: Final = 60 * 60  # then the result is delivered as a notice
TASK_NOTICE_CHARS_MAX: Final = 20_000  # of a result delivered as a notice

# Moving a Session together with the uncommitted changes of its work tree.
MOVED_PATCH_BYTES_MAX: Final = 64 * 1024 * 1024
MOVED_GIT_SECONDS_MAX: Final = 60  # per command; the first status of a large tree is slow
MOVED_REASON_CHARS_MAX: Final = 400
