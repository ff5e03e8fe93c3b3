"""Draws commands of the harmless programs, with options from the table and with others."""

import random
from collections.abc import Sequence
from typing import Final

from perdure.core.shell.harmless_program import HARMLESS

_OPERANDS_TEXT: Final = "in in in in2 sub . - HEAD 1 x a +1 f g -1 -- canary @in @ = {} in:1 --in"
OPERANDS: Final = _OPERANDS_TEXT.split()
_OTHERS_TEXT: Final = """
    -o -of -O -Ocanary -w -W -T -r -R -i -e -f -p -x -z -C -K -P -X --output --output=f --out=f
    --outp --compress-program=canary --comp=canary --pre=canary --pre --hostname-bin=canary
    --filter=canary --open-files-in-pager=canary --open=canary --ext-diff --textconv --paginate
    --exec=canary --files0-from=in --from-file --compile --set --edit --delete -d -D -m -M
    --format=%G? -c --no-pager --upload-pack=canary --contents=in --order-file=in -O=in --fixed
    --write --in-place --to-command=x
"""
OTHERS: Final = _OTHERS_TEXT.split()
"""Options that write, run something, or are abbreviations, in some program or in none."""

_DANGEROUS: Final = frozenset(
    {"git branch", "git diff", "git grep", "git log", "git show", "sort", "tree", "uniq", "xxd"}
)
"""Programs that some other option or operand makes write or start something."""


class DrawnArguments:
    """An endless supply of commands of these programs, from a seed."""

    def __init__(self, seed: int, names: Sequence[str]) -> None:
        self._chance = random.Random(seed)
        self._names = [*names, *[name for name in names if name in _DANGEROUS] * 5]

    def next(self) -> list[str]:
        name = self._chance.choice(self._names)
        words = name.split()
        own = [entry for entry in HARMLESS[name].split() if entry.startswith("-")]
        for _ in range(self._chance.randint(0, 4)):
            drawn = self._chance.random()
            if own and drawn < 0.55:
                words += self._option(self._chance.choice(own))
            elif drawn < 0.75:
                words.append(self._chance.choice(OTHERS))
            else:
                words.append(self._chance.choice(OPERANDS))
        return words

    def _option(self, entry: str) -> list[str]:
        option, valued, _ = entry.partition("=")
        if option.startswith("--"):
            option = (
                option if self._chance.random() < 0.8 else option[: self._chance.randint(3, 12)]
            )
            return self._with_value(option, "=") if valued else [option]
        if valued:
            return self._with_value(option, "")
        letters = self._chance.choices(option[1:], k=self._chance.randint(1, 3))
        if self._chance.random() < 0.2:
            letters.append(self._chance.choice("oOwrTzfxCDe"))
        return ["-" + "".join(letters)]

    def _with_value(self, option: str, sign: str) -> list[str]:
        value = self._chance.choice((*OPERANDS, *OTHERS))
        match self._chance.randrange(3):
            case 0:
                return [option]
            case 1:
                return [f"{option}{sign}{value}"]
            case _:
                return [option, value]
