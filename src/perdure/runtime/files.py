"""The files of Locations as clients see them."""

from perdure.location.location_map import LocationMap
from perdure.schema.fs import EntryType, FileContent, FileEntry, Span
from perdure.schema.location import LocationRef


class Files:
    """Each method raises InvalidRequestError for a directory that cannot be a Location."""

    def __init__(self, locations: LocationMap) -> None:
        self._locations = locations

    async def read(self, ref: LocationRef, path: str, span: Span | None) -> FileContent:
        return await (await self._locations.get(ref)).files.read(path, span)

    async def list(self, ref: LocationRef, path: str) -> tuple[FileEntry, ...]:
        return await (await self._locations.get(ref)).files.list(path)

    async def find(
        self, ref: LocationRef, query: str, *, type: EntryType | None, limit: int | None
    ) -> tuple[FileEntry, ...]:
        location = await self._locations.get(ref)
        return await location.files.find(query, type=type, limit=limit)
