"""Skills from the network, against a real server: what arrives, what is refused, what stays."""

import asyncio
import os
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.skills.index import SkillIndexError
from perdure.host.clock import SystemClock
from perdure.host.http.client import HttptoolsTransport
from perdure.location.skills.downloads import DownloadedSkills, SkillDownloads
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.testing import SeededIds
from tests.contract.host.loopback import Loopback, Received, response, serving


@dataclass
class Site:
    """What a server offers, by path below `/skills/`. A list of answers is worked off first."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    first: dict[str, list[bytes | None]] = field(default_factory=dict[str, list[bytes | None]])
    asked: list[str] = field(default_factory=list[str])

    def offer(self, *skills: JsonObject) -> None:
        self.files["index.json"] = codec.encode({"skills": list(skills)})

    def skill(self, name: str, text: str, version: str | None = None, **more: str) -> JsonObject:
        """A skill with its text, and further files whose names have `_` for a dot."""
        files = {"SKILL.md": text, **{key.replace("_", "."): value for key, value in more.items()}}
        for file, content in files.items():
            self.files[f"{name}/{file}"] = content.encode()
        numbered = {} if version is None else {"version": version}
        return {"name": name, "files": list(files), **numbered}

    async def __call__(self, request: Received, writer: asyncio.StreamWriter) -> None:
        path = request.target.removeprefix("/skills/")
        self.asked.append(path)
        planned = self.first.get(path)
        if planned:
            answer = planned.pop(0)
            if answer is None:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it")
                writer.close()
                return
        elif path in self.files:
            answer = response(self.files[path])
        else:
            answer = response(b"no", status="404 Not Found")
        writer.write(answer)


@dataclass
class ShiftedClock:
    """The machine's time, some hours off. Sleeping takes no time."""

    shift_millis: int = 0
    slept: list[float] = field(default_factory=list[float])

    def now_millis(self) -> int:
        return SystemClock().now_millis() + self.shift_millis

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Stand:
    """One process with its downloads, and the tasks that it runs beside everything else."""

    def __init__(
        self, root: Path, group: asyncio.TaskGroup, transport: HttptoolsTransport, *, seed: int
    ) -> None:
        self.clock = ShiftedClock()
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []
        self.root = root
        self.downloads = SkillDownloads(
            str(root),
            transport=transport,
            clock=self.clock,
            ids=SeededIds(seed),
            start=self._start,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(self._group.create_task(work))

    @property
    def refreshes(self) -> int:
        return len(self._tasks)

    async def refreshed(self, source: DownloadedSkills) -> dict[str, str]:
        """Let enough time pass for a refresh, wait for it, and look again."""
        self.clock.shift_millis += limits.SKILL_REFRESH_SECONDS * 1000
        source.list()
        async with asyncio.timeout(20):
            await self._tasks[-1]
        return texts(source)

    def leftovers(self) -> list[str]:
        staging = self.root / ".staging"
        return [name for _, _, names in os.walk(staging) for name in names]


def texts(source: DownloadedSkills) -> dict[str, str]:
    return {skill.name: skill.content for skill in source.list()}


@asynccontextmanager
async def standing(root: Path, *, seed: int = 0) -> AsyncGenerator[Stand]:
    transport = HttptoolsTransport()
    try:
        async with asyncio.TaskGroup() as group:
            yield Stand(root, group, transport, seed=seed)
    finally:
        await transport.aclose()


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def server(site: Site) -> AsyncGenerator[Loopback]:
    async with serving(site) as loopback:
        yield loopback


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncGenerator[Stand]:
    async with standing(tmp_path / "cache") as stand:
        yield stand


@pytest.fixture
def source(stand: Stand, server: Loopback) -> DownloadedSkills:
    return stand.downloads.source(f"{server.url}/skills/")


async def test_nobody_waits_for_a_server_and_the_next_look_has_what_arrived(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.offer(site.skill("tea", "Boil.", "1", run_sh="echo tea"))
    assert source.list() == ()
    assert await stand.refreshed(source) == {"tea": "Boil."}
    (skill,) = source.list()
    assert (Path(skill.location).parent / "run.sh").read_text() == "echo tea"
    assert Path(skill.location).parent.name == "tea"
    assert stand.leftovers() == []


async def test_a_skill_may_be_named_by_its_front_matter_or_its_file(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.files["toast/toast.md"] = b"Toast it."
    site.files["toast/more.md"] = b"No skill of its own."
    site.offer(
        site.skill("tea", "---\nname: green tea\n---\nBoil.", "1"),
        {"name": "toast", "files": ["toast.md", "more.md"], "version": "1"},
    )
    assert await stand.refreshed(source) == {"green tea": "Boil.", "toast": "Toast it."}


async def test_looking_refreshes_once_in_ten_minutes(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.offer(site.skill("tea", "Boil.", "1"))
    await stand.refreshed(source)
    for _ in range(5):
        source.list()
    stand.clock.shift_millis += limits.SKILL_REFRESH_SECONDS * 1000 - 60_000
    source.list()
    assert stand.refreshes == 1
    await stand.refreshed(source)
    assert stand.refreshes == 2
    stand.clock.shift_millis -= 24 * 60 * 60 * 1000
    source.list()
    assert stand.refreshes == 3


async def test_an_unchanged_version_is_not_fetched_again_and_a_new_one_replaces_it(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.offer(site.skill("tea", "Boil.", "1", old_txt="old"))
    await stand.refreshed(source)
    (before,) = source.list()
    site.files["tea/SKILL.md"] = b"Brew."
    assert await stand.refreshed(source) == {"tea": "Boil."}
    site.offer({"name": "tea", "files": ["SKILL.md"], "version": "2"})
    assert await stand.refreshed(source) == {"tea": "Brew."}
    (after,) = source.list()
    assert after.location == before.location
    assert os.listdir(Path(after.location).parent) == ["SKILL.md"]
    assert site.asked.count("tea/SKILL.md") == 2


async def test_a_skill_without_a_version_is_compared_by_its_content(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.offer(site.skill("tea", "Boil."))
    await stand.refreshed(source)
    before = source.list()
    await stand.refreshed(source)
    assert source.list() is before
    site.files["tea/SKILL.md"] = b"Brew."
    assert await stand.refreshed(source) == {"tea": "Brew."}


async def test_a_skill_that_is_not_offered_any_more_is_withdrawn(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    tea, toast = site.skill("tea", "Boil.", "1"), site.skill("toast", "Toast.", "1")
    site.offer(tea, toast)
    await stand.refreshed(source)
    site.offer(toast)
    assert await stand.refreshed(source) == {"toast": "Toast."}
    stand.clock.shift_millis += limits.SKILL_LEFTOVER_SECONDS * 1000 + 1000
    await stand.refreshed(source)
    (versions,) = (stand.root / ".versions").iterdir()
    assert len(list(versions.iterdir())) == 1


async def test_a_copy_outlives_its_server_and_the_process(
    site: Site, server: Loopback, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.offer(site.skill("tea", "Boil.", "1"))
    url = f"{server.url}/skills"
    async with standing(tmp_path / "cache") as first:
        await first.refreshed(first.downloads.source(url))
    site.files.clear()
    async with standing(tmp_path / "cache") as second:
        source = second.downloads.source(url)
        assert texts(source) == {"tea": "Boil."}
        assert await second.refreshed(source) == {"tea": "Boil."}
    assert "index.json was answered with status 404" in caplog.text
    assert "/skills" not in caplog.text.replace("skills of", "").replace("skill_downloads", "")


@pytest.mark.parametrize(
    "trouble",
    [
        None,
        response(b"", status="503 Service Unavailable"),
        response(b"", status="429 Too Many Requests"),
    ],
    ids=["cut", "503", "429"],
)
async def test_passing_trouble_is_tried_again_twice(
    site: Site,
    stand: Stand,
    source: DownloadedSkills,
    trouble: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.offer(site.skill("tea", "Boil.", "1"))
    site.first["tea/SKILL.md"] = [trouble, trouble]
    assert await stand.refreshed(source) == {"tea": "Boil."}
    assert stand.clock.slept == [1, 2]
    assert caplog.records == []
    site.offer(site.skill("tea", "Brew.", "2"))
    site.first["tea/SKILL.md"] = [trouble, trouble, trouble]
    assert await stand.refreshed(source) == {"tea": "Boil."}
    assert "'tea' was not refreshed" in caplog.text
    assert stand.leftovers() == []


async def test_one_skill_that_fails_does_not_hold_up_the_others(
    site: Site, stand: Stand, source: DownloadedSkills, caplog: pytest.LogCaptureFixture
) -> None:
    lost = site.skill("lost", "Lost.", "1", more_txt="more")
    site.offer(lost, site.skill("tea", "Boil.", "1"))
    del site.files["lost/more.txt"]
    assert await stand.refreshed(source) == {"tea": "Boil."}
    assert "more.txt was answered with status 404" in caplog.text
    assert stand.leftovers() == []


@pytest.mark.parametrize(
    "index",
    [
        b"<html>",
        b"[]",
        b'{"skills": 1}',
        b'{"skills": [',
        b" " * (limits.SKILL_INDEX_BYTES_MAX + 1),
    ],
    ids=["html", "list", "shape", "cut", "huge"],
)
async def test_a_bad_index_changes_nothing(
    site: Site,
    stand: Stand,
    source: DownloadedSkills,
    index: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.offer(site.skill("tea", "Boil.", "1"))
    await stand.refreshed(source)
    site.files["index.json"] = index
    assert await stand.refreshed(source) == {"tea": "Boil."}
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "skill",
    [
        {"name": "../../evil", "files": ["SKILL.md"]},
        {"name": "evil", "files": ["SKILL.md", "../../../evil"]},
        {"name": "evil", "files": ["SKILL.md", "%2e%2e/evil"]},
        {"name": "evil", "files": ["SKILL.md", "//127.0.0.2/evil"]},
        {"name": "evil", "files": ["SKILL.md", "http://127.0.0.2/evil"]},
    ],
)
async def test_an_index_cannot_write_or_fetch_elsewhere(
    site: Site,
    stand: Stand,
    source: DownloadedSkills,
    skill: JsonObject,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.offer(skill, site.skill("tea", "Boil.", "1"))
    assert await stand.refreshed(source) == {"tea": "Boil."}
    assert site.asked == ["index.json", "tea/SKILL.md"]
    assert "is refused" in caplog.text
    assert not list(stand.root.parent.rglob("evil*"))


async def test_a_redirect_is_not_followed(
    site: Site, stand: Stand, source: DownloadedSkills, caplog: pytest.LogCaptureFixture
) -> None:
    moved = response(b"", status="302 Found", headers="location: http://127.0.0.2/x\r\n")
    site.first["index.json"] = [moved]
    assert await stand.refreshed(source) == {}
    assert "status 302" in caplog.text


async def test_sizes_are_bounded_whatever_the_server_declares(
    site: Site, stand: Stand, source: DownloadedSkills, caplog: pytest.LogCaptureFixture
) -> None:
    part = "x" * (limits.SKILL_DOWNLOAD_FILE_BYTES_MAX)
    whole = {f"f{n}_txt": part for n in range(5)}
    site.offer(
        site.skill("file", "Text.", "1", big_txt=part + "x"),
        site.skill("sum", "Text.", "1", **whole),
    )
    assert await stand.refreshed(source) == {}
    assert caplog.text.count("is larger than") == 2
    assert stand.leftovers() == []


async def test_a_file_that_is_also_a_directory_is_reported(
    site: Site, stand: Stand, source: DownloadedSkills, caplog: pytest.LogCaptureFixture
) -> None:
    site.files["odd/a"] = site.files["odd/a/b"] = site.files["odd/SKILL.md"] = b"x"
    site.offer({"name": "odd", "files": ["SKILL.md", "a", "a/b"], "version": "1"})
    assert await stand.refreshed(source) == {}
    assert "'odd' was not refreshed" in caplog.text


async def test_two_processes_bring_the_same_source_at_once(
    site: Site, server: Loopback, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.offer(*(site.skill(f"s{n}", f"Text {n}.", "1") for n in range(8)))
    async with (
        standing(tmp_path / "cache") as first,
        standing(tmp_path / "cache", seed=1) as second,
    ):
        url = f"{server.url}/skills"
        looks = await asyncio.gather(
            first.refreshed(first.downloads.source(url)),
            second.refreshed(second.downloads.source(url)),
        )
    assert [len(look) for look in looks] == [8, 8]
    assert caplog.records == []


async def test_what_a_dead_process_left_behind_is_removed_later(
    site: Site, stand: Stand, source: DownloadedSkills
) -> None:
    site.offer(site.skill("tea", "Boil.", "1"))
    await stand.refreshed(source)
    (staging,) = (stand.root / ".staging").iterdir()
    (staging / "skl_dead").mkdir()
    (staging / "skl_dead" / "SKILL.md").write_text("half")
    await stand.refreshed(source)
    stand.clock.shift_millis += limits.SKILL_LEFTOVER_SECONDS * 1000
    await stand.refreshed(source)
    assert list(staging.iterdir()) == []
    assert texts(source) == {"tea": "Boil."}


async def test_locations_share_a_source_and_a_bad_address_is_refused(
    stand: Stand, server: Loopback, source: DownloadedSkills
) -> None:
    assert stand.downloads.source(f"{server.url}/skills") is source
    with pytest.raises(SkillIndexError):
        stand.downloads.source("https://ada:key@example.org/")
