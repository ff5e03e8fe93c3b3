"""Checkers of the inbox: each prompt is promoted once, as revised last, and in order."""

from collections.abc import Iterator

from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session import event as events
from perdure.schema.session.prompt import Delivery, Prompt
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.value import State
from tests.harness.checkers.checker import Seen
from tests.harness.checkers.ledger import LoggedEvent
from tests.harness.checkers.reverted import Reverted


class PromptsArePromotedOnce:
    """A prompt runs at most once and, at rest, exactly once. A receipt is a record."""

    promise = "P1"

    def __init__(self) -> None:
        self._pending: dict[MessageID, LoggedEvent] = {}
        self._admitted: dict[MessageID, LoggedEvent] = {}
        self._promoted: dict[MessageID, Seq] = {}
        self._revised: dict[MessageID, Prompt] = {}
        """Prompts that were revised, as they are now."""
        self._reverted = Reverted()
        self._gone: set[tuple[MessageID, Seq]] = set()
        """Admissions that a revert took away."""
        self._receipts: dict[MessageID, AdmittedPrompt] = {}

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            yield from self._take(item)
            boundary = self._reverted.boundary(item)
            if boundary is not None:
                self._revert(item.session_id, boundary)
        yield from self._check_receipts(seen)
        if seen.at_rest:
            yield from self._check_rest(seen)

    def _take(self, item: LoggedEvent) -> Iterator[str]:
        match item.event:
            case events.PromptAdmitted(message_id=id):
                if id in self._admitted:
                    yield f"{id} was admitted twice"
                self._admitted[id] = self._pending[id] = item
            case events.PromptPromoted(message_id=id, prompt=prompt):
                admitted = self._pending.pop(id, None)
                self._promoted[id] = item.seq
                if admitted is None:
                    yield f"{id} was promoted twice, or never admitted"
                # A fork's copy has no revisions: what was promoted in the original tells of them.
                elif not item.copied and self._said(admitted) != prompt:
                    yield f"{id} was promoted with another body"
            case events.PromptRevised(message_id=id, prompt=prompt):
                self._revised[id] = prompt
                if id not in self._pending:
                    yield f"{id} was revised when it did not wait"
            case events.PromptCancelled(message_id=id):
                if self._pending.pop(id, None) is None:
                    yield f"{id} was cancelled when it did not wait"
            case _:
                pass

    def _said(self, admitted: LoggedEvent) -> Prompt:
        assert isinstance(admitted.event, events.PromptAdmitted)
        return self._revised.get(admitted.event.message_id, admitted.event.prompt)

    def _revert(self, session_id: SessionID, boundary: Seq) -> None:
        for prompt, admitted in tuple(self._admitted.items()):
            if admitted.session_id != session_id:
                continue
            if max(admitted.seq, self._promoted.get(prompt, Seq(-1))) > boundary:
                self._gone.add((prompt, admitted.seq))
                del self._admitted[prompt]
                self._revised.pop(prompt, None)
                self._pending.pop(prompt, None)
                self._promoted.pop(prompt, None)

    def _check_receipts(self, seen: Seen) -> Iterator[str]:
        for prompt in seen.clients.prompts.values():
            # The log never changes: what was found in it once stays there.
            if prompt.receipt is None or prompt.receipt is self._receipts.get(prompt.id):
                continue
            self._receipts[prompt.id] = prompt.receipt
            if (prompt.id, prompt.receipt.admitted_seq) in self._gone:
                continue
            admitted = self._admitted.get(prompt.id)
            if admitted is None or admitted.seq != prompt.receipt.admitted_seq:
                yield f"{prompt.id} has a receipt and no admission at its sequence"

    def _check_rest(self, seen: Seen) -> Iterator[str]:
        for pending, admitted in self._pending.items():
            session_id = admitted.session_id
            excused = seen.clients.machine.witness.excused.get(session_id, Seq(-1))
            sent = seen.clients.prompts.get(pending)
            # A prompt that no client sent is a task.
            if (sent is None or sent.woken) and admitted.seq > excused:
                yield f"{pending} of {session_id} waits although nothing runs: a lost wake"


class _Place(State):
    id: MessageID
    admitted: Seq
    delivery: Delivery


class PromptsKeepTheirOrder:
    """Prompts of one delivery are promoted in the order that was asked for last."""

    promise = "S69"

    def __init__(self) -> None:
        self._places: dict[SessionID, list[_Place]] = {}
        self._reverted = Reverted()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            places = self._places.setdefault(item.session_id, [])
            yield from self._take(item, places)
            boundary = self._reverted.boundary(item)
            if boundary is not None:
                places[:] = [place for place in places if place.admitted <= boundary]

    def _take(self, item: LoggedEvent, places: list[_Place]) -> Iterator[str]:
        match item.event:
            case events.PromptAdmitted(message_id=id, delivery=delivery):
                places.append(_Place(id, item.seq, delivery))
            case events.PromptRevised(message_id=id, delivery=delivery):
                for place in places:
                    if place.id == id:
                        place.delivery = delivery
            case events.InboxReordered(message_ids=ids):
                moved = iter(
                    sorted((p for p in places if p.id in ids), key=lambda p: ids.index(p.id))
                )
                places[:] = [next(moved) if place.id in ids else place for place in places]
            case events.PromptCancelled(message_id=id):
                places[:] = [place for place in places if place.id != id]
            case events.PromptPromoted(message_id=id, delivery=delivery):
                first = next((place.id for place in places if place.delivery == delivery), None)
                # A fork does not copy the order that was asked for in the original.
                if first != id and not item.copied:
                    yield f"{id} was promoted, and {first} stood before it"
                places[:] = [place for place in places if place.id != id]
            case _:
                pass


class PromptsFollowAnEndedRevert:
    """No prompt is admitted while a revert is staged: the admission commits the revert first."""

    promise = "P1"

    def __init__(self) -> None:
        self._staged: set[SessionID] = set()

    def check(self, seen: Seen) -> Iterator[str]:
        for item in seen.fresh:
            match item.event:
                case events.RevertStaged():
                    self._staged.add(item.session_id)
                case events.RevertCleared() | events.RevertCommitted():
                    self._staged.discard(item.session_id)
                case events.PromptAdmitted(message_id=prompt):
                    if item.session_id in self._staged:
                        yield f"{prompt} was admitted behind a revert that is still staged"
                case _:
                    pass
