"""Which prompts no client wants to be run, as the clients of a simulated machine know it."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from perdure.schema.ids import MessageID, Seq, SessionID
from tests.harness.checkers.ledger import Ledger


class UnaskedPrompts:
    """Prompts that were only admitted, or stopped, in a Session of which no run is asked since."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._asking: list[SessionID] = []
        self._asked: Counter[SessionID] = Counter()
        """How often a run of each Session was asked for."""
        self.since: dict[MessageID, Seq] = {}
        """The last sequence of the Session when it was known."""

    @contextmanager
    def asking(self, session_id: SessionID) -> Generator[None]:
        """A client asks for a run within this scope."""
        self._asking.append(session_id)
        self._asked[session_id] += 1
        self._forget(session_id)
        try:
            yield
        finally:
            self._asking.remove(session_id)

    def count(self, session_id: SessionID) -> int:
        """How often a run was asked for; -1 while a client asks."""
        return -1 if session_id in self._asking else self._asked[session_id]

    def admitted(self, session_id: SessionID) -> None:
        """A prompt was only admitted: it waits, unless a run was owed anyway."""
        if session_id not in self._ledger.attempts():
            self._note(session_id)

    def stopped(self, session_id: SessionID, *, asked: int) -> None:
        """An interrupt was obeyed: all that waited waits on, if no client asked meanwhile."""
        notices = self._ledger.notices().values()
        if self.count(session_id) != asked or asked < 0 or session_id in notices:
            return
        if session_id not in self._ledger.interrupted():
            self._note(session_id)

    def _note(self, session_id: SessionID) -> None:
        if session_id in self._asking:
            return
        for waiting in self._ledger.waiting():
            if waiting.session_id == session_id:
                self.since[waiting.id] = self._ledger.latest(session_id)

    def _forget(self, session_id: SessionID) -> None:
        for waiting in self._ledger.waiting():
            if waiting.session_id == session_id:
                self.since.pop(waiting.id, None)
