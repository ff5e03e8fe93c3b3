"""Registers the built-in tools of a Location."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from perdure.ports import Questioner
from perdure.ports.skills import SkillLookup
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.builtin.apply_patch import make_apply_patch
from perdure.tools.builtin.bash import make_bash
from perdure.tools.builtin.bash_background import make_bash_cancel, make_bash_output
from perdure.tools.builtin.edit import make_edit
from perdure.tools.builtin.glob import make_glob
from perdure.tools.builtin.grep import make_grep
from perdure.tools.builtin.question import make_question
from perdure.tools.builtin.read import make_read
from perdure.tools.builtin.skill import make_skill
from perdure.tools.builtin.task import TaskAgents, make_task
from perdure.tools.builtin.todowrite import make_todowrite
from perdure.tools.builtin.webfetch import make_webfetch
from perdure.tools.builtin.websearch import make_websearch
from perdure.tools.builtin.write import make_write
from perdure.tools.environment import ToolEnvironment


@contextmanager
def register_builtins(
    registry: ToolRegistry,
    environment: ToolEnvironment,
    questions: Questioner,
    skills: SkillLookup,
    *,
    subagents: TaskAgents | None = None,
) -> Generator[None]:
    """Register the built-in tools while the scope is open. A new tool is one line here."""
    with ExitStack() as scopes:
        scopes.enter_context(registry.register(make_apply_patch(environment)))
        scopes.enter_context(registry.register(make_bash(environment)))
        if environment.jobs is not None:
            scopes.enter_context(registry.register(make_bash_cancel(environment.jobs)))
            scopes.enter_context(registry.register(make_bash_output(environment.jobs)))
        scopes.enter_context(registry.register(make_edit(environment)))
        scopes.enter_context(registry.register(make_glob(environment)))
        scopes.enter_context(registry.register(make_grep(environment)))
        scopes.enter_context(registry.register(make_question(environment, questions)))
        scopes.enter_context(registry.register(make_read(environment)))
        scopes.enter_context(registry.register(make_skill(environment, skills)))
        if subagents is not None:
            task = make_task(environment, subagents.agents, subagents.runner)
            scopes.enter_context(registry.register(task))
        scopes.enter_context(registry.register(make_todowrite(environment)))
        if environment.web is not None:
            web = environment.web
            scopes.enter_context(registry.register(make_webfetch(environment, web)))
            scopes.enter_context(registry.register(make_websearch(environment, web.search)))
        scopes.enter_context(registry.register(make_write(environment)))
        yield
