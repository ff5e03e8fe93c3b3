"""Files and commands of a Location, over HTTP."""

import gzip

import pytest

from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders


async def test_a_file_is_read_by_path_or_by_query(api: Api, folders: ProjectFolders) -> None:
    folder = folders.project / "a b"
    folder.mkdir()
    (folder / "page.html").write_text("<script>alert(1)</script>")
    for path in ("/api/fs/read/a%20b/page.html", "/api/fs/read/*?path=a%20b%2Fpage.html"):
        answer = await api.call("GET", path)
        assert (answer.status, answer.body) == (200, b"<script>alert(1)</script>")
        assert answer.headers["content-type"] == "text/plain"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox")


async def test_a_range_is_answered_with_that_part_uncompressed(
    api: Api, folders: ProjectFolders
) -> None:
    (folders.project / "log.txt").write_text("0123456789" * 1_000)
    accepted = {"accept-encoding": "gzip"}
    part = await api.call(
        "GET", "/api/fs/read/log.txt", headers={"range": "bytes=5-2004", **accepted}
    )
    assert part.status == 206
    assert part.headers["content-range"] == "bytes 5-2004/10000"
    assert part.body == (b"0123456789" * 201)[5:2005]
    whole = await api.call("GET", "/api/fs/read/log.txt", headers=accepted)
    assert gzip.decompress(whole.body) == b"0123456789" * 1_000
    for ignored in ("bytes=9-1", "bytes=-", "bytes=0-1,4-5", "lines=1-2", "bytes=a-b"):
        answer = await api.call("GET", "/api/fs/read/log.txt", headers={"range": ignored})
        assert (answer.status, len(answer.body)) == (200, 10_000)
    beyond = await api.call("GET", "/api/fs/read/log.txt", headers={"range": "bytes=10000-"})
    assert (beyond.status, beyond.tag) == (400, "InvalidRequestError")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("read/none.txt", 404),
        ("read/opencode.json/x", 404),
        ("read/.", 400),
        ("read/../../etc/passwd", 400),
        ("read/..%2f..%2f..%2fetc%2fpasswd", 400),
        ("read//etc/hostname", 400),
        ("read/%2Fetc%2Fhostname", 400),
        ("read/a%00b", 400),
        ("read/%ff%fe", 404),
        ("read", 404),
        ("list?path=none", 404),
        ("list?path=../..", 400),
        ("list?path=/etc", 400),
        ("list?path=opencode.json", 400),
        ("list?path=a&path=b", 400),
        ("find", 400),
        ("find?query=a&limit=0", 400),
        ("find?query=a&type=link", 400),
        ("find?query=a%00", 400),
    ],
)
async def test_hostile_paths_are_refused_and_never_a_server_error(
    api: Api, path: str, status: int
) -> None:
    answer = await api.call("GET", f"/api/fs/{path}")
    assert answer.status == status
    assert answer.tag in {"InvalidRequestError", "NotFoundError"}


async def test_folders_files_and_commands_are_listed_for_the_asked_location(
    api: Api, folders: ProjectFolders
) -> None:
    other = folders.project / "other"
    (other / "deep").mkdir(parents=True)
    (other / "deep" / "found.txt").touch()
    (other / ".opencode" / "command").mkdir(parents=True)
    (other / ".opencode" / "command" / "ship.md").write_text("Ship.")
    where = f"location[directory]={other}"
    listing = (await api.call("GET", f"/api/fs/list?{where}")).json
    assert listing["location"]["directory"] == str(other)
    assert listing["data"] == [
        {"path": ".opencode/", "type": "directory"},
        {"path": "deep/", "type": "directory"},
    ]
    found = (await api.call("GET", f"/api/fs/find?query=fnd&limit=100000&{where}")).json["data"]
    assert found == [{"path": "deep/found.txt", "type": "file"}]
    commands = (await api.call("GET", f"/api/command?{where}")).json["data"]
    assert {"name": "ship", "template": "Ship."} in commands
    assert {"init", "review"} <= {command["name"] for command in commands}


async def test_files_are_closed_to_strangers(folders: ProjectFolders) -> None:
    async with running(folders, password="open sesame") as instance:
        for path in ("fs/read/opencode.json", "fs/list", "fs/find?query=", "command"):
            assert (await instance.api.call("GET", f"/api/{path}")).status == 401
