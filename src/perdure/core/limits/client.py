"""Limits on clients of a server: sizes, concurrency and timeouts."""

from typing import Final

# HTTP: enough for a prompt with an inlined image, small enough to refuse an attack.
REQUEST_BODY_BYTES_MAX: Final = 32 * 1024 * 1024
REQUEST_HEAD_BYTES_MAX: Final = 64 * 1024
"""Of a head, of trailers, and of the framing between two pieces of a body."""
REQUEST_HEADER_OVERHEAD: Final = 32  # bytes that each header counts beside its own, as in HTTP/2
REQUEST_READ_SECONDS_MAX: Final = 30
REQUEST_BODY_WINDOW_BYTES: Final = 64 * 1024
"""Unread body buffered for a handler; receiving this much also restarts the read timeout."""
FIRST_REQUEST_SECONDS_MAX: Final = 10
"""For the head of a request, until one was answered that had the credentials it needed."""
KEEP_ALIVE_SECONDS_MAX: Final = 75
SHUTDOWN_SECONDS_MAX: Final = 10
RESPONSE_STALL_SECONDS_MAX: Final = 60
RESPONSE_UNSENT_BYTES_MAX: Final = 256 * 1024 * 1024
"""Of all answers that clients do not read; the connection that holds most of it is ended."""
LINGER_SECONDS_MAX: Final = 2
COMPRESS_BYTES_MIN: Final = 1_024
COMPRESS_INLINE_BYTES_MAX: Final = 256 * 1024
"""Larger bodies are compressed off the event loop."""

# Connections, and how many one client may use.
CONNECTIONS_MAX: Final = 4_096
CONNECTIONS_LEAVING_MAX: Final = 16  # refused, and still being told so
CONNECTIONS_SHRUNK: Final = 16  # fewer when the system has no descriptor for another one
ACCEPTS_PER_TURN_MAX: Final = 16  # of the event loop
ACCEPT_RETRY_SECONDS: Final = 0.5  # after the system had no descriptor or memory for a connection
DESCRIPTORS_RESERVED_MIN: Final = 128
"""Not used by connections: the database, children with their pipes, files, calls to providers."""
DESCRIPTORS_RESERVED_PERCENT: Final = 25  # the same, where the process may open many
DESCRIPTORS_CONNECTED_PERCENT_MIN: Final = 25  # for connections, where it may open few

# The log of a server. A fault that repeats must not fill the disk.
LOG_LINES_PER_KIND_MAX: Final = 50  # from one place of the program, in each of these spans
LOG_KIND_SECONDS: Final = 10
LOG_KINDS_MAX: Final = 1_000
PIPELINED_REQUESTS_MAX: Final = 64  # per connection, waiting behind the current one
REQUESTS_PER_CLIENT_MAX: Final = 1_024  # in progress; streams are not counted
STREAMS_MAX: Final = 2_048  # per server
STREAMS_PERCENT_MAX: Final = 50  # of the connections; the others stay free for requests

# The event loop of a server: a longer round of callbacks is logged and counted as a stall.
LOOP_STALL_SECONDS_MAX: Final = 0.2
LOOP_STALL_STACK_CALLS_MAX: Final = 24  # logged, the innermost ones

# Pages.
PAGE_ITEMS_DEFAULT: Final = 50
PAGE_ITEMS_MAX: Final = 200
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024  # of stored rows; only a single larger one exceeds it
HISTORY_ITEMS_MAX: Final = 100

# Streams. A reader that falls this far behind the live ring is disconnected with an error.
HEARTBEAT_SECONDS: Final = 15
LIVE_RING_BYTES_MAX: Final = 16 * 1024 * 1024
REPLAY_ROWS_PER_READ: Final = 256
TAIL_BYTES_KEPT_MAX: Final = 256 * 1024  # per followed Session

# WebSockets.
SOCKET_MESSAGE_BYTES_MAX: Final = 1024 * 1024  # from a client, all fragments together
SOCKET_CLOSE_SECONDS_MAX: Final = 2  # for the client to answer a close frame

# Files over HTTP. Clients request larger files in ranges.
FS_READ_BYTES_MAX: Final = 32 * 1024 * 1024
FS_ENTRIES_MAX: Final = 20_000  # per directory
FS_FOUND_DEFAULT: Final = 50
FS_FOUND_MAX: Final = 1_000
FS_MATCHES_DEFAULT: Final = 100  # lines of one text search
FS_MATCHES_MAX: Final = 1_000

# Terminals. A client that reconnects sees only the output kept here.
PTYS_RUNNING_MAX: Final = 64  # per Location
PTYS_EXITED_MAX: Final = 25  # ended terminals still listed, per Location
PTY_KEPT_UNITS_MAX: Final = 2 * 1024 * 1024  # UTF-16 units
PTY_TYPED_BYTES_MAX: Final = 256 * 1024  # not yet read by the program
PTY_DRAIN_READS_MAX: Final = 64  # to collect remaining output after a program has ended
PTY_FRAME_CHARS_MAX: Final = 64 * 1024  # per frame to a client
PTY_TITLE_CHARS_MAX: Final = 200
PTY_TICKET_SECONDS: Final = 60
PTY_TICKETS_MAX: Final = 1_000  # unused; the oldest is dropped
ATTENTION_SESSIONS_MAX: Final = 500  # in one answer; those that wait for a person come first
PTY_GUEST_SECONDS_MAX: Final = 5  # for a plugin to supply a terminal's variables

# The largest wait for a permission decision that the command line accepts.
PERMISSION_TIMEOUT_SECONDS_MAX: Final = 30 * 24 * 60 * 60

# How long a server waits for a permission decision unless it is told otherwise: a person who left
# in the evening answers in the morning, and a call that no person will answer ends.
PERMISSION_WAIT_SECONDS: Final = 24 * 60 * 60
