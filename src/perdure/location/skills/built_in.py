"""The built-in skill: how Perdure itself is configured."""

from typing import Final

from perdure.core.skills import skill
from perdure.schema.settings.skill import SkillInfo

_TEXT: Final = """\
# Configuring Perdure

Configuration is shared with other OpenCode programs. Find out what is set before you change it:
`perdure config` shows each effective value with the file it came from, and every problem in them.

## Which files are read

From low to high; a later one lies over the ones before it.

1. `opencode.json`, then `opencode.jsonc`, in the user's config directory: `$OPENCODE_CONFIG_DIR`,
   else `$XDG_CONFIG_HOME/opencode`, else `~/.config/opencode`.
2. The same two files in each directory from the root of the project down to the working directory.
3. The same two files in the `.opencode` directory of each of these.
4. The file that `OPENCODE_CONFIG` names, and the text of `OPENCODE_CONFIG_CONTENT`.

Comments and trailing commas are allowed. A file with a syntax error is ignored as a whole; a key
with a wrong value is ignored alone. With `OPENCODE_DISABLE_PROJECT_CONFIG=1` nothing of the project
is read. Put what is about a person in the first place, and what is about a project in the project.

## Main keys

```jsonc
{
  "model": "provider/model",        // used when a Session has chosen none
  "default_agent": "build",
  "shell": "/bin/bash",             // only in the user's own files
  "permissions": [],                // rules for every agent, see below
  "agents": {},                     // changes to agents, and new ones
  "providers": {},                  // addresses, keys and models
  "skills": ["~/skills", "https://example.org/skills"],
  "references": {"docs": {"path": "../docs", "description": "The handbook."}},
  "tool_output": {"max_lines": 2000, "max_bytes": 51200}
}
```

Objects merge key by key, and lists of rules are joined. Else the highest file wins.
Keys of providers are best kept in environment variables: `"env": ["MY_KEY"]` in the provider.

## Agents

```jsonc
"agents": {
  "review": {
    "description": "Reads changes and comments on them.",
    "mode": "subagent",             // or "primary", or "all"
    "model": "provider/model",
    "system": "You review changes. ...",
    "steps": 20,
    "permissions": [{"action": "edit", "resource": "*", "effect": "deny"}]
  },
  "plan": {"disabled": true}
}
```

An agent may also be a Markdown file, `agents/review.md`, in a config directory or `.opencode`. Its
front matter holds the same keys, and the text below it is its system text.

## Permissions

A rule is `{"action", "resource", "effect"}`, the effect being `allow`, `ask` or `deny`. `*` stands
for any run of characters and `?` for one. The last rule that matches wins, and where none does, the
person is asked. Rules of an agent come after those for every agent, so they can change them. No
approval of a person overrides a `deny`.

Actions are names of tools: `read`, `edit` (every change of a file), `bash` with the command as its
resource, `glob`, `grep`, `skill` with the name of the skill, and `external_directory` for paths
outside the project. Paths may begin with `~/`.

## Instructions

`AGENTS.md` in the user's config directory, and in each directory from the working directory up to
the root of the project, is told to every agent. A change counts from the next turn on.

## Skills

A skill is a Markdown file: `skills/<name>.md`, or `skills/<name>/SKILL.md` with scripts and further
texts beside it. It lies in a config directory, in `.opencode`, or in a place named under `skills`.

```markdown
---
name: release
description: How this project is released. Use when someone asks for a release.
---
1. ...
```

Name and description are always shown, the text only when the skill is loaded. So the description
says what it is for and when to use it, and the text says how. Changes count
from the next turn on.
"""

_SKILL: Final = SkillInfo(
    name="configure-perdure",
    location=f"{skill.BUILT_IN_DIRECTORY}/configure-perdure.md",
    content=_TEXT.rstrip(),
    description=(
        "How this program is configured: which files are read, models and providers, agents, "
        "permissions, instructions and skills. Use when someone wants to change how the agent "
        "itself works, or when a setting does not take effect."
    ),
)


class BuiltInSkills:
    """The SkillSource of the built-in skill."""

    _all: Final = (_SKILL,)

    @property
    def is_known(self) -> bool:
        return True

    def list(self) -> tuple[SkillInfo, ...]:
        return self._all
