"""The answers that stream in this process, for a client that joins in the middle of one.

The log knows a part only when it has ended. Until then its text is here, in the memory of the
process that runs the Session; other processes show what the log has.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from perdure.core.session import live_parts
from perdure.core.session.live_parts import Key, StreamedPart, StreamedParts
from perdure.schema import codec
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.message import AssistantMessage
from perdure.schema.value import Value


class LiveAnswers:
    def __init__(self) -> None:
        self._streaming: dict[SessionID, tuple[MessageID, StreamedParts]] = {}

    @contextmanager
    def streaming(
        self, session_id: SessionID, message_id: MessageID, parts: StreamedParts
    ) -> Generator[None]:
        """Show these parts of the message while the scope is open."""
        self._streaming[session_id] = (message_id, parts)
        try:
            yield
        finally:
            del self._streaming[session_id]

    def capture(self, session_id: SessionID) -> "LiveAnswer | None":
        """The answer as it is now. Capture it before the log is read.

        What the log has by then is newer than this; what it lacks follows as live events.
        """
        found = self._streaming.get(session_id)
        return None if found is None else LiveAnswer(found[0], found[1].capture())


class LiveAnswer(Value):
    message_id: MessageID
    parts: Mapping[Key, StreamedPart]

    def show(self, message_id: MessageID, data: bytes) -> bytes:
        """The JSON of a message, with what its open parts say so far if it is this answer."""
        if message_id != self.message_id:
            return data
        message = codec.decode(AssistantMessage, data)
        return codec.encode(live_parts.show(message, self.parts))
