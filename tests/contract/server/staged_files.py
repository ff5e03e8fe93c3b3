"""One file, behind the protocol the server asks for."""

from perdure.schema.errors import NotFoundError
from perdure.schema.files.fs import EntryType, FileContent, FileEntry, Span
from perdure.schema.location import LocationRef


class StagedFiles:
    """One file and nothing else."""

    async def read(self, ref: LocationRef, path: str, span: Span | None) -> FileContent:
        if path != "a.txt":
            raise NotFoundError(f"No such file or directory: {path}")
        return FileContent(data=b"text", offset=0, size=4, content_type="text/plain")

    async def list(self, ref: LocationRef, path: str) -> tuple[FileEntry, ...]:
        return (FileEntry("a.txt", "file"),)

    async def find(
        self, ref: LocationRef, query: str, *, type: EntryType | None, limit: int | None
    ) -> tuple[FileEntry, ...]:
        return (FileEntry("a.txt", "file"),)
