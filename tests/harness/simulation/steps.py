"""The table of the steps that a simulation draws, with their weights.

A new capability adds its steps here: a coroutine function in `client_steps` or `machine_steps` that
acts through the clients or their machine, and a line in `WORK` or `CHANGES`. What must hold
afterwards is up to the checkers.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from tests.harness.simulation.client_steps import (
    answer_elsewhere,
    answer_permission,
    answer_question,
    burst,
    cancel,
    compact,
    create,
    decide_recovery,
    end_revert,
    exclude,
    follow,
    fork,
    interrupt,
    interrupt_a_good_end,
    interrupt_and_prompt,
    label,
    leave_waiting,
    page_through,
    pass_time,
    prompt_at_the_end,
    queue,
    read_messages,
    reorder,
    revise,
    send_again,
    send_other_body,
    stage_revert,
    steer,
    switch_agent,
    switch_model,
    wait,
)
from tests.harness.simulation.clients import Clients
from tests.harness.simulation.machine_steps import (
    change_instructions,
    change_repository,
    close,
    crash,
    crash_everything,
    crash_in_calls,
    crash_while_asked,
    crash_while_waited_for,
    hide_path,
    jump_clock,
    lose_project,
    nudge_clock,
    orphan,
    second_owner,
)

Step = Callable[[Clients], Awaitable[None]]

Weighted = tuple[tuple[Step, int], ...]

WORK: Final[Weighted] = (
    (create, 3),
    (steer, 14),
    (queue, 7),
    (leave_waiting, 3),
    (burst, 3),
    (prompt_at_the_end, 4),
    (interrupt, 6),
    (interrupt_a_good_end, 4),
    (interrupt_and_prompt, 2),
    (crash_while_waited_for, 2),
    (compact, 3),
    (stage_revert, 3),
    (end_revert, 4),
    (fork, 1),
    (lose_project, 1),
    (hide_path, 2),
    (second_owner, 4),
    (crash, 4),
    (crash_while_asked, 2),
    (crash_everything, 1),
    (crash_in_calls, 1),
    (orphan, 3),
    (close, 2),
)
"""What makes processes run, stop and start."""

CHANGES: Final[Weighted] = (
    (send_again, 6),
    (send_other_body, 4),
    (revise, 4),
    (cancel, 2),
    (reorder, 3),
    (answer_permission, 5),
    (answer_question, 4),
    (answer_elsewhere, 3),
    (decide_recovery, 4),
    (switch_agent, 4),
    (switch_model, 4),
    (label, 3),
    (exclude, 4),
    (jump_clock, 4),
    (nudge_clock, 2),
    (change_repository, 3),
    (change_instructions, 4),
    (follow, 2),
    (page_through, 4),
    (read_messages, 5),
    (wait, 4),
    (pass_time, 12),
)
"""What happens beside that: clients read, change something and wait."""
