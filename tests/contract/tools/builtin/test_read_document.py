"""read: documents, for models that can be shown one."""

import base64
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core.limits import DOCUMENT_BYTES_MAX
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.api.registry import Settled, ToolError, ToolSuccess
from tests.contract.tools.tool_bench import CONTEXT, ToolBench

PDF = b"%PDF-1.7\n" + bytes(range(256))
READER = replace(CONTEXT, reads_documents=True)


@pytest.fixture
def bench(tmp_path: Path) -> Generator[ToolBench]:
    made = ToolBench(tmp_path)
    with made.open():
        yield made


async def read(bench: ToolBench, **input: str | int) -> Settled:
    asked: JsonObject = dict(input)
    return await bench.registry.materialize(()).settle("read", asked, READER)


@pytest.mark.parametrize("name", ["paper.pdf", "renamed.txt", "no name"])
async def test_a_document_is_known_by_its_bytes_and_shown_as_it_is(
    bench: ToolBench, name: str
) -> None:
    bench.write({name: PDF})
    shown = await read(bench, path=name, offset=3)
    assert isinstance(shown, ToolSuccess)
    uri = f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}"
    assert shown.content == (
        TextContent(text=f"{name}: application/pdf, {len(PDF)} bytes"),
        FileContent(uri=uri, mime="application/pdf", name=name),
    )
    assert shown.structured == {
        "type": "document",
        "uri": (bench.root / name).as_uri(),
        "name": name,
        "mime": "application/pdf",
        "size": len(PDF),
    }


async def test_the_largest_document_is_shown_and_one_byte_more_is_refused(bench: ToolBench) -> None:
    largest = PDF + b"\0" * (DOCUMENT_BYTES_MAX - len(PDF))
    bench.write({"largest.pdf": largest, "more.pdf": largest + b"\0"})
    assert isinstance(await read(bench, path="largest.pdf"), ToolSuccess)
    assert await read(bench, path="more.pdf") == ToolError(
        f"more.pdf is a PDF of {DOCUMENT_BYTES_MAX + 1} bytes;"
        f" the most that can be shown is {DOCUMENT_BYTES_MAX}"
    )


@pytest.mark.parametrize("data", [b"", b"%PDF", b"plain text", b"\x89PDF\r\n", b"\0" * 100])
async def test_a_name_alone_makes_no_document(bench: ToolBench, data: bytes) -> None:
    bench.write({"a.pdf": data})
    assert await read(bench, path="a.pdf") == ToolError("Cannot read binary file: a.pdf")


async def test_a_model_that_cannot_read_documents_is_told_so(bench: ToolBench) -> None:
    bench.write({"paper.pdf": PDF})
    assert await bench.error("read", path="paper.pdf") == "Cannot read binary file: paper.pdf"
