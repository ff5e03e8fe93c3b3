"""The files that a revert changes or leaves alone, for people."""

from collections.abc import Iterable
from typing import cast

from perdure.cli import terminal
from perdure.cli.style import Span, Style
from perdure.schema.codec import JsonObject


def print_files(state: JsonObject, *, verb: str) -> None:
    """Print a line for each file of a revert, and for each that it leaves alone."""
    files = cast("Iterable[JsonObject]", state.get("files", ()))
    for file in files:
        terminal.print_output(f"  {verb} {terminal.one_line(str(file['path']))}\n")
    for conflict in cast("Iterable[JsonObject]", state.get("conflicts", ())):
        line = f"  left alone {conflict['path']}: {conflict['reason']}"
        terminal.print_spans([Span(f"  {terminal.one_line(line)}\n", Style.YELLOW)])
    if not state.get("files") and not state.get("conflicts"):
        terminal.print_output("  it changed no files\n")
