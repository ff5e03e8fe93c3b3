"""What a Session may hold and do: its log, its inbox, its requests, its children."""

from typing import Final

# The log and its readers.
APPEND_EVENTS_MAX: Final = 1_000
COMMIT_JOBS_MAX: Final = 256
HISTORY_CACHE_BYTES_MAX: Final = 64 * 1024 * 1024
STORAGE_RETRY_SECONDS: Final = 5.0  # before a store that failed is asked again

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

# The inbox of one Session. A client that sends without end is refused before the disk is full.
INBOX_ITEMS_MAX: Final = 1_000  # listed and reordered
INBOX_PENDING_MAX: Final = 1_000  # admitted, and neither promoted nor cancelled

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

# Titles, and the model that makes one beside the conversation.
TITLE_SCAN_CHARS_MAX: Final = 4_096
TITLE_PROMPT_CHARS_MAX: Final = 4_000
TITLE_TOKENS_MAX: Final = 1_000  # most of them for models that think before one line
TITLE_ANSWER_CHARS_MAX: Final = 8_000
TITLE_SECONDS_MAX: Final = 30

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

# Permission requests that come from outside: they are kept in memory and told to every listener.
PERMISSIONS_PENDING_MAX: Final = 1_000
PERMISSION_RESOURCES_MAX: Final = 1_000
PERMISSION_INPUT_BYTES_MAX: Final = 64 * 1024
PERMISSION_FEEDBACK_BYTES_MAX: Final = 64 * 1024

# Questions: they are kept in memory and told to every listener, and so are their answers.
QUESTIONS_PENDING_MAX: Final = 1_000
QUESTIONS_PER_REQUEST_MAX: Final = 20
QUESTION_OPTIONS_MAX: Final = 50
QUESTION_INPUT_BYTES_MAX: Final = 64 * 1024
QUESTION_ANSWERS_BYTES_MAX: Final = 64 * 1024

# A Session's list of what is to be done: it is told to every listener and shown to the model.
TODOS_MAX: Final = 200
TODOS_BYTES_MAX: Final = 32 * 1024

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

# Moving a Session together with the uncommitted changes of its work tree.
MOVED_PATCH_BYTES_MAX: Final = 64 * 1024 * 1024
MOVED_GIT_SECONDS_MAX: Final = 60  # for one command; the first look at a large tree takes a while
MOVED_REASON_CHARS_MAX: Final = 400
