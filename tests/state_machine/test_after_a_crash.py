"""What a crash must not be taken for: single histories that the model of the machine allows."""

from pathlib import Path

from perdure.runtime.app.runtime import Runtime
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session import event as events
from perdure.schema.session.prompt import PromptInput
from tests.harness.checkers.ledger import Ledger
from tests.state_machine.data_directory import MODELS, PROVIDER, DataDirectory

SESSION = SessionID("ses_one")
PROMPT = MessageID("msg_one")
LONG_ENOUGH_SECONDS = 5.0


def test_a_prompt_whose_answer_was_taken_back_is_not_failed_by_a_crash(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path, seed=3)
    ledger = Ledger(directory.path)
    try:
        directory.ask(_create)
        directory.ask(_prompt)
        directory.pass_time(LONG_ENOUGH_SECONDS)
        directory.ask(lambda r: r.sessions.revert.stage(SESSION, PROMPT))
        directory.ask(lambda r: r.sessions.revert.commit(SESSION))
        directory.pass_time(LONG_ENOUGH_SECONDS)
        assert [type(item.event) for item in ledger.new_events()][-1] is events.RevertCommitted
        directory.ask_and_crash(lambda r: r.sessions.get(SESSION), after=1)
        directory.open()
        directory.pass_time(LONG_ENOUGH_SECONDS)
        assert ledger.new_events() == [], "nobody waits for an answer"
        directory.ask(lambda r: r.sessions.prompt(SESSION, PromptInput(text="again"), resume=True))
        directory.pass_time(LONG_ENOUGH_SECONDS)
        kinds = [type(item.event) for item in ledger.new_events()]
        assert events.StepEnded in kinds
        assert events.StepFailed not in kinds
    finally:
        ledger.close()
        directory.demolish()


async def _create(runtime: Runtime) -> None:
    await runtime.sessions.create(id=SESSION, model=ModelRef(id=MODELS[0], provider_id=PROVIDER))


async def _prompt(runtime: Runtime) -> None:
    await runtime.sessions.prompt(SESSION, PromptInput(text="hello"), id=PROMPT)
