"""What clients may ask of a server, how much at a time, and how long it waits for them."""

from typing import Final

# HTTP: enough for a prompt with an inlined image, small enough to refuse an attack.
REQUEST_BODY_BYTES_MAX: Final = 32 * 1024 * 1024
REQUEST_HEAD_BYTES_MAX: Final = 64 * 1024
REQUEST_READ_SECONDS_MAX: Final = 30
REQUEST_BODY_WINDOW_BYTES: Final = 64 * 1024
"""Unread body held for a handler; also the progress that renews the time to read a body."""
KEEP_ALIVE_SECONDS_MAX: Final = 75
SHUTDOWN_SECONDS_MAX: Final = 10
RESPONSE_STALL_SECONDS_MAX: Final = 60
LINGER_SECONDS_MAX: Final = 2
COMPRESS_BYTES_MIN: Final = 1_024
COMPRESS_INLINE_BYTES_MAX: Final = 256 * 1024
"""Larger bodies are compressed off the event loop."""

# Connections, and who takes how many of them.
CONNECTIONS_MAX: Final = 4_096
PIPELINED_REQUESTS_MAX: Final = 64  # of one connection, waiting behind the one that is answered
REQUESTS_PER_CLIENT_MAX: Final = 1_024  # being answered at a time; streams are not among them
STREAMS_MAX: Final = 2_048  # of one server; half of the connections stay free for requests

# Pages.
PAGE_ITEMS_DEFAULT: Final = 50
PAGE_ITEMS_MAX: Final = 200
HISTORY_ITEMS_MAX: Final = 100

# Streams. A reader that falls this far behind the live ring is ended, explicitly.
HEARTBEAT_SECONDS: Final = 15
LIVE_RING_BYTES_MAX: Final = 16 * 1024 * 1024
REPLAY_ROWS_PER_READ: Final = 256
TAIL_BYTES_KEPT_MAX: Final = 256 * 1024  # for each Session that somebody follows

# WebSockets.
SOCKET_MESSAGE_BYTES_MAX: Final = 1024 * 1024  # from a client, all fragments together
SOCKET_CLOSE_SECONDS_MAX: Final = 2  # until the client answers that we close

# Files over HTTP. What is larger is asked for in parts.
FS_READ_BYTES_MAX: Final = 32 * 1024 * 1024
FS_ENTRIES_MAX: Final = 20_000  # of one folder
FS_FOUND_DEFAULT: Final = 50
FS_FOUND_MAX: Final = 1_000

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

# How long the command line can be told to wait for a person.
PERMISSION_TIMEOUT_SECONDS_MAX: Final = 30 * 24 * 60 * 60
