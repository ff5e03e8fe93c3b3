"""Which Sessions a V1 client has last prompted, so that they are told in the form of V1 alone.

The published server sends the events of a prompt in the form of the contract that it came by. What
is not known here, such as a prompt from before a restart, is told in both forms.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from perdure.schema.ids import MessageID, SessionID

_PROMPTS_MAX: Final = 10_000


class PromptOrigins:
    def __init__(self, *, prompts_max: int = _PROMPTS_MAX) -> None:
        self._prompts_max = prompts_max
        self._prompts: OrderedDict[str, None] = OrderedDict()
        self._admitting: Counter[SessionID] = Counter()

    @contextmanager
    def admitting(self, session_id: SessionID) -> Generator[Callable[[MessageID], None]]:
        """Hold while V1 admits a prompt; the function given takes the id that it was given.

        Its first events may be told before the id is known here.
        """
        self._admitting[session_id] += 1
        try:
            yield self._remember
        finally:
            self._admitting[session_id] -= 1
            if not self._admitting[session_id]:
                del self._admitting[session_id]

    def came_by_v1(self, session_id: SessionID, prompt_id: str) -> bool:
        return prompt_id in self._prompts or session_id in self._admitting

    def _remember(self, prompt_id: MessageID) -> None:
        self._prompts[prompt_id] = None
        if len(self._prompts) > self._prompts_max:
            self._prompts.popitem(last=False)
