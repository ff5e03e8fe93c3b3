"""A Session with everything that a client shows of it, changed by each of its events.

Begin with a snapshot, then apply every later event of the live stream once: durable ones that are
already known are ignored by their sequence, fragments by the cursor of their part. After a lost
connection take another snapshot; nothing is missing and nothing stands twice.
"""

from collections.abc import Iterable
from typing import Final

from perdure.client.transcript.messages import PREFIX, Messages
from perdure.schema.codec import JsonObject

_IDLE: Final[JsonObject] = {"type": "idle"}
_TOKENS: Final = ("input", "output", "reasoning")


class SessionView:
    """One Session. The values are those of the contract; do not change them from outside."""

    def __init__(self, snapshot: JsonObject) -> None:
        """`snapshot`: as `sessions.snapshot` gives it."""
        self.info: JsonObject = snapshot["session"]
        self.messages = Messages(snapshot["messages"])
        self.inbox: list[JsonObject] = list(snapshot["inbox"])
        self.seq: int = snapshot["seq"]
        self.earlier: str | None = snapshot["cursor"].get("previous")
        """The cursor of the page before the first message; None if all are loaded."""
        self.status: JsonObject = _IDLE
        self.todos: list[JsonObject] = []
        self.requests: dict[str, JsonObject] = {}
        """Permission requests and questions that wait, by id, in the order of their arrival."""
        self.notice: str = ""
        """What the work waits for besides the model: a retry, a compaction."""

    @property
    def id(self) -> str:
        return self.info["id"]

    @property
    def is_busy(self) -> bool:
        return self.status["type"] != "idle"

    def apply(self, event: JsonObject) -> str | None:
        """Apply an event of this Session; returns the id of the message that it changed."""
        durable = event.get("durable")
        if durable is not None:
            if durable["seq"] <= self.seq:
                return None
            self.seq = durable["seq"]
        kind, data = str(event["type"]).removeprefix(PREFIX), event["data"]
        self._apply_to_requests(kind, data)
        self._apply_to_inbox(kind, data, self.seq)
        self._apply_to_info(kind, data)
        self._apply_to_notice(kind, data)
        if kind == "todo.updated":
            self.todos = list(data["todos"])
        return self.messages.apply(event)

    def add_requests(self, requests: Iterable[JsonObject]) -> None:
        """Take up requests that waited before the events began."""
        for request in requests:
            self.requests.setdefault(request["id"], request)

    def _apply_to_requests(self, kind: str, data: JsonObject) -> None:
        match kind:
            case "permission.v2.asked" | "question.v2.asked":
                self.requests[data["id"]] = data
            case "permission.v2.replied" | "question.v2.replied" | "question.v2.rejected":
                self.requests.pop(data["requestID"], None)
            case "session.status":
                self.status = data["status"]
            case _:
                pass

    def _apply_to_inbox(self, kind: str, data: JsonObject, seq: int) -> None:
        match kind:
            case "prompt.admitted":
                self.inbox.append(
                    {
                        "admittedSeq": seq,
                        "id": data["messageID"],
                        "sessionID": data["sessionID"],
                        "prompt": data["prompt"],
                        "delivery": data["delivery"],
                        "timeCreated": data["timestamp"],
                    }
                )
            case "prompted" | "prompt.cancelled":
                self.inbox = [item for item in self.inbox if item["id"] != data["messageID"]]
            case "prompt.revised":
                changed = {"prompt": data["prompt"], "delivery": data["delivery"]}
                self.inbox = [
                    {**item, **changed} if item["id"] == data["messageID"] else item
                    for item in self.inbox
                ]
            case "inbox.reordered":
                self.inbox = _reordered(self.inbox, data["messageIDs"])
            case _:
                pass

    def _apply_to_info(self, kind: str, data: JsonObject) -> None:
        match kind:
            case "agent.switched" | "model.switched":
                field = kind.partition(".")[0]
                self.info = {**_without(self.info, "substitute"), field: data[field]}
            case "model.substituted":
                kept = _without(self.info, "substitute")
                given = {"substitute": data["substitute"]} if "substitute" in data else {}
                self.info = kept | given
            case "renamed":
                self.info = {**self.info, "title": data["title"]}
            case "moved":
                self.info = {**self.info, "location": data["location"]}
            case "step.ended" | "spent":
                self.info = _charged(self.info, data)
            case "revert.staged":
                self.info = {**self.info, "revert": data["revert"]}
            case "revert.cleared" | "revert.committed":
                self.info = _without(self.info, "revert")
            case _:
                pass

    def _apply_to_notice(self, kind: str, data: JsonObject) -> None:
        match kind:
            case "retried":
                self.notice = f"trying again: {data['error']['message']}"
            case "compaction.started":
                self.notice = "summarising older messages"
            case "compaction.ended" | "step.started" | "step.failed":
                self.notice = ""
            case "compaction.reported":
                self.notice = data.get("note", "")
            case _:
                pass


def _reordered(inbox: list[JsonObject], order: list[str]) -> list[JsonObject]:
    """The named prompts in their new order, in the places that they had before."""
    by_id = {item["id"]: item for item in inbox}
    named = iter([by_id[message_id] for message_id in order if message_id in by_id])
    moved = set(order)
    return [next(named) if item["id"] in moved else item for item in inbox]


def _charged(info: JsonObject, data: JsonObject) -> JsonObject:
    before, spent = info["tokens"], data["tokens"]
    tokens = {name: before[name] + spent[name] for name in _TOKENS}
    cache = {name: before["cache"][name] + spent["cache"][name] for name in ("read", "write")}
    return {**info, "cost": info["cost"] + data["cost"], "tokens": {**tokens, "cache": cache}}


def _without(info: JsonObject, field: str) -> JsonObject:
    return {name: value for name, value in info.items() if name != field}
