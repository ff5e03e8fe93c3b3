"""The `sessions.questions` group: what a Session wants to know, and the answers."""

from collections.abc import Sequence

from perdure.client.wire import CallOptions, Wire, items_of, segment
from perdure.schema.codec import JsonObject


class SessionQuestions:
    """Requests are there while they wait; one that is settled is gone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def list(
        self, session_id: str, *, options: CallOptions | None = None
    ) -> tuple[JsonObject, ...]:
        return items_of(await self._wire.get(_path(session_id), options=options))

    async def reply(
        self,
        session_id: str,
        request_id: str,
        answers: Sequence[Sequence[str]],
        *,
        options: CallOptions | None = None,
    ) -> None:
        """Answer: a list of labels for each question, in order; an empty one leaves it open."""
        body = {"answers": [list(labels) for labels in answers]}
        await self._wire.command(_path(session_id, request_id, "reply"), body, options=options)

    async def reject(
        self, session_id: str, request_id: str, *, options: CallOptions | None = None
    ) -> None:
        """Do not answer. The run that asked stops."""
        await self._wire.command(_path(session_id, request_id, "reject"), options=options)


def _path(session_id: str, *rest: str) -> str:
    parts = (session_id, "question", *rest)
    return "/api/session/" + "/".join(segment(part) for part in parts)
