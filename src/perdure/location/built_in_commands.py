"""The commands that come with the program. A command of the same name takes their place."""

from typing import Final

from perdure.schema.command import CommandInfo

_INIT: Final = """\
Write the file AGENTS.md at the root of this project, or improve the one that is there.

It is read by coding agents before they start to work here. Tell them what they cannot see at once
and would otherwise get wrong:

- how to build, lint and test, with the exact commands, and how to run a single test;
- how the source is laid out, and which parts depend on which;
- habits of this code base: style, naming, error handling, what to avoid;
- anything surprising, such as generated files or steps that must come in some order.

First look at the build files, the continuous integration, the README and existing rules for agents,
and check the commands that you write down. Leave out what is true of every project. Keep it under
a hundred lines.

$ARGUMENTS"""

_REVIEW: Final = """\
Review a change of this project and report what is wrong with it. Do not edit anything.

What to review: $ARGUMENTS

- Nothing named: the uncommitted changes (`git diff`, `git diff --cached`, untracked files).
- A commit: that commit (`git show`).
- A branch: what it adds to the main branch (`git diff main...branch`).
- A pull request, by number or address: its description and its diff, with `gh` if there is one.

Read each changed file as a whole before you judge a line of it. Look for defects first: wrong
results, lost data, races, missing checks of input, broken callers, secrets. Then for code that does
what existing code does, and for tests that are missing. Leave matters of taste alone.

For each finding give the file and line, what happens and when, and how to mend it. The worst come
first. Say so plainly if there is nothing to report."""

COMMANDS: Final = (
    CommandInfo(name="init", template=_INIT, description="write or improve AGENTS.md"),
    CommandInfo(
        name="review",
        template=_REVIEW,
        description="review a commit, branch or pull request; uncommitted changes by default",
        subtask=True,
    ),
)
