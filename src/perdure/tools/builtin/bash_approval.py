"""The permission request of a shell command: the whole text and its parts.

Rules must allow every part of a command; denying one part denies the command. The text is parsed
only if a rule distinguishes commands or the user will be asked. An "always" reply saves one pattern
for each part. Text that cannot be parsed is shown with the reason, and can only be approved as
exactly that text.
"""

from functools import partial

from msgspec.structs import replace

from perdure.core.approval.rules import ResourcePart, ResourceParts
from perdure.core.shell import approval_pattern
from perdure.core.shell import command as shell_command
from perdure.core.shell.command import CommandDirectory, Part, Review
from perdure.ports import PermissionAsk
from perdure.schema.codec import JsonObject
from perdure.tools.api.tool import ToolCallContext
from perdure.tools.shell import parser


def permission_ask(
    command: str,
    *,
    shell: str,
    location: CommandDirectory,
    context: ToolCallContext,
    contained: bool = False,
) -> PermissionAsk:
    """The request for a command; its parts are parsed on demand, by `refine`."""
    saved = approval_pattern.exact_pattern(command)
    ask = PermissionAsk(
        session_id=context.session_id,
        agent=context.agent,
        above=context.above,
        action="bash",
        resources=(command,),
        save=() if saved is None else (saved,),
        source=context.source,
        contained=contained,
    )
    return replace(ask, refine=partial(_refine, ask, shell, location))


def resource_parts(review: Review) -> ResourceParts:
    """The parts of a command as rules see them."""
    parts = tuple(
        ResourcePart(
            text=part.text,
            pattern=part.pattern,
            spellings=part.spellings,
            suspected=part.suspected,
        )
        for part in review.parts
    )
    return ResourceParts(parts=parts, complete=review.unclear is None)


def _refine(ask: PermissionAsk, shell: str, location: CommandDirectory) -> PermissionAsk:
    command = ask.resources[0]
    parse = partial(parser.parse_script, shell)
    review = shell_command.review(command, parse=parse, place=location)
    patterns = tuple({part.pattern: None for part in review.parts if part.pattern is not None})
    understood = review.unclear is None and review.parts
    return replace(
        ask,
        parts=resource_parts(review),
        save=patterns if understood else ask.save,
        metadata=_metadata(review, location),
    )


def _metadata(review: Review, location: CommandDirectory) -> JsonObject:
    metadata: JsonObject = {
        "workdir": location.directory,
        "parts": [_describe_part(part) for part in review.parts],
    }
    return metadata if review.unclear is None else {**metadata, "unclear": review.unclear}


def _describe_part(part: Part) -> JsonObject:
    described: JsonObject = {"text": part.text}
    if part.pattern is not None:
        described["pattern"] = part.pattern
    if part.outside:
        described["outside"] = True
    return described
