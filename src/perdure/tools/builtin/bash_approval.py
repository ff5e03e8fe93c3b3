"""The permission request of a shell command: the whole text, and what it consists of.

A rule that tells commands apart must allow every part of a command, and denies all of it by
denying one. The text is looked into only when there is such a rule, or a person will be asked. A
reply of "always" saves one pattern for each part. What was not understood is shown with its
reason, and can only be approved as the very text it is.
"""

from functools import partial

from msgspec.structs import replace

from perdure.core.approval.rules import ResourceParts
from perdure.core.shell import approval_pattern
from perdure.core.shell import command as shell_command
from perdure.core.shell.command import CommandDirectory, Part, Review
from perdure.ports import PermissionAsk
from perdure.schema.codec import JsonObject
from perdure.tools.api.tool import ToolCallContext
from perdure.tools.shell import parser


def permission_ask(
    command: str, *, shell: str, place: CommandDirectory, context: ToolCallContext
) -> PermissionAsk:
    saved = approval_pattern.exact_pattern(command)
    ask = PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action="bash",
        resources=(command,),
        save=() if saved is None else (saved,),
        source=context.source,
    )
    return replace(ask, refine=partial(_refined, ask, shell, place))


def _refined(ask: PermissionAsk, shell: str, place: CommandDirectory) -> PermissionAsk:
    command = ask.resources[0]
    review = shell_command.review(command, parse=partial(parser.parse_for, shell), place=place)
    patterns = tuple({part.pattern: None for part in review.parts if part.pattern is not None})
    understood = review.unclear is None and review.parts
    return replace(
        ask,
        parts=ResourceParts(
            texts=tuple(part.text for part in review.parts) or (command,),
            spellings=tuple(form for part in review.parts for form in part.spellings),
            complete=review.unclear is None,
        ),
        save=patterns if understood else ask.save,
        metadata=_metadata(review, place),
    )


def _metadata(review: Review, place: CommandDirectory) -> JsonObject:
    shown: JsonObject = {
        "workdir": place.directory,
        "parts": [_described(part) for part in review.parts],
    }
    return shown if review.unclear is None else {**shown, "unclear": review.unclear}


def _described(part: Part) -> JsonObject:
    described: JsonObject = {"text": part.text}
    if part.pattern is not None:
        described["pattern"] = part.pattern
    if part.outside:
        described["outside"] = True
    return described
