"""Attachments: what a model is given of what a person names, told once and kept to the byte."""

import asyncio
import os
from pathlib import Path

import pytest

from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.contract.host.loopback import replying, response, serving
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.inputs.images import bomb, inlined, noise, opened, picture
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, Request, ScriptedProvider, calls, text

PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%%EOF\n"


async def attach(api: Api, session: str, *files: JsonObject, said: str = "look") -> JsonObject:
    """Send a prompt with files and wait for its answer; the user message that it became."""
    body = {"prompt": {"text": said, "files": list(files)}}
    receipt = await api.post(f"/api/session/{session}/prompt", body)
    await api.wait(session)
    return next(it for it in await api.messages(session) if it["id"] == receipt["data"]["id"])


def told(request: Request) -> str:
    """All text of the last user message."""
    content = [it for it in request.messages if it["role"] == "user"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def shown(request: Request) -> list[str]:
    """The images of all messages, oldest first."""
    found: list[str] = []
    for message in request.messages:
        content: JsonValue = message["content"]
        parts: list[JsonObject] = content if jsonc.is_list(content) else []
        found += [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return found


@requirement("S168")
async def test_files_directories_and_images_reach_the_model_as_what_they_are(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "notes.txt").write_text("remember the milk\n")
    (folders.project / "src" / "deep").mkdir(parents=True)
    (folders.project / "src" / "app.py").write_text("print(1)\n")
    (folders.project / "red.png").write_bytes(picture())
    session = await api.create()
    message = await attach(
        api,
        session,
        {"uri": (folders.project / "notes.txt").as_uri()},
        {"uri": "src/"},
        {"uri": "red.png"},
        {"uri": f"{(folders.project / 'src' / 'app.py').as_uri()}?start=1&end=1"},
    )
    said = told(provider.requests[0])
    assert "remember the milk" in said
    assert "deep/\napp.py" in said
    assert "print(1)" in said
    assert shown(provider.requests[0]) == [inlined(picture())]
    assert [item["file"] for item in message["attached"]] == [0, 1, 2, 3]
    # The prompt itself is what the person sent.
    assert [file["uri"] for file in message["files"]][1:3] == ["src/", "red.png"]


async def test_what_was_told_stays_as_it_was_over_a_restart_and_changes_of_the_file(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    note, image = folders.project / "note.txt", folders.project / "large.png"
    note.write_text("the first version")
    image.write_bytes(noise(2_400, 300))
    async with running(folders) as instance:
        session = await instance.api.create()
        await attach(instance.api, session, {"uri": "note.txt"}, {"uri": "large.png"})
        await instance.api.ask(session, "and then?")
    note.write_text("the second version")
    image.unlink()
    async with running(folders) as instance:
        await instance.api.ask(session, "and now?")
    first, second, third = provider.requests
    for before, after in ((first, second), (second, third)):
        sent = [codec.encode(message) for message in before.messages]
        assert [codec.encode(message) for message in after.messages][: len(sent)] == sent
    assert max(opened(shown(third)[0]).size) == 2_000


async def test_paths_that_a_text_mentions_are_attached_if_they_exist(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "src").mkdir()
    (folders.project / "src" / "app.py").write_text("answer = 42\n")
    session = await api.create()
    await api.ask(session, "why is @src/app.py, and not @src/none.py or me@src, so short?")
    said = told(provider.requests[0])
    assert said.count("Attached") == 1
    assert "Attached file src/app.py:\nanswer = 42" in said


async def test_a_mention_that_a_client_resolved_is_attached_once(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "a.txt").write_text("only once")
    session = await api.create()
    source = {"start": 4, "end": 10, "text": "@a.txt"}
    await attach(api, session, {"uri": "a.txt", "source": source}, said="see @a.txt")
    assert told(provider.requests[0]).count("only once") == 1


async def test_sensitive_files_are_attached_by_a_person_and_not_by_an_at_sign(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / ".env").write_text("TOKEN=canary")
    session = await api.create()
    await api.ask(session, "what about @.env here")
    assert "canary" not in told(provider.requests[0])
    assert "needs approval" in told(provider.requests[0])
    await attach(api, session, {"uri": ".env"})
    assert "TOKEN=canary" in told(provider.requests[1])


async def test_what_lies_outside_needs_a_rule_and_links_lead_nowhere(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("canary")
    (folders.project / "link.txt").symlink_to(outside)
    (folders.project / "loop").symlink_to(folders.project / "loop")
    session = await api.create()
    await attach(
        api,
        session,
        {"uri": outside.as_uri()},
        {"uri": "link.txt"},
        {"uri": "../outside.txt"},
        {"uri": "loop"},
    )
    said = told(provider.requests[0])
    assert "canary" not in said
    assert said.count("[Attachment left out: ") == 4


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("none.txt", "no such file"),
        ("pipe", "not a regular file"),
        ("file://elsewhere/a.txt", "nothing here can read such an address"),
        ("ftp://example.org/a.txt", "nothing here can read such an address"),
        ("http://127.0.0.1:9/a.txt", "127.0.0.1"),
        ("data:text/plain;base64,%%%", "malformed"),
        ("data:text/plain", "malformed"),
        (inlined(bomb(60_000, 60_000)), "million pixels"),
        (inlined(picture(300, 300)[:200]), "cannot be decoded"),
        (inlined(b"\x00\x01\x02\x00" * 50, "application/zip"), "a model cannot read"),
        ("archive.zip", "binary file"),
        ("latin.txt", "not valid UTF-8"),
        ("a\x00b", "NUL"),
    ],
)
async def test_what_is_of_no_use_is_a_note_and_the_session_goes_on(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider, uri: str, why: str
) -> None:
    os.mkfifo(folders.project / "pipe")
    (folders.project / "archive.zip").write_bytes(b"PK\x03\x04\x00\x00")
    (folders.project / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    session = await api.create()
    async with asyncio.timeout(10):
        await attach(api, session, {"uri": uri})
        await api.ask(session, "still there?")
    assert "[Attachment left out: " in told(provider.requests[0])
    assert why in told(provider.requests[0])
    assert shown(provider.requests[1]) == []


async def test_data_that_lies_about_its_type_is_shown_as_what_it_is(
    api: Api, provider: ScriptedProvider
) -> None:
    drawing = "<svg xmlns='http://www.w3.org/2000/svg'/>"
    session = await api.create()
    message = await attach(
        api,
        session,
        {"uri": inlined(picture(kind="JPEG"), "image/png")},
        {"uri": inlined(picture())},
        {"uri": inlined(drawing.encode(), "image/svg+xml"), "name": "a.svg"},
    )
    jpeg, png = shown(provider.requests[0])
    assert jpeg == inlined(picture(kind="JPEG"), "image/jpeg")
    assert png == inlined(picture())
    assert drawing in told(provider.requests[0])
    # What is fine as it was given is not stored a second time.
    assert [item["file"] for item in message["attached"]] == [0, 2]


async def test_a_hundred_attachments_and_a_huge_one_stay_within_bounds(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    for number in range(120):
        (folders.project / f"{number}.txt").write_text(f"<{number}>" + "x" * 20_000)
    huge = "data:text/plain," + "y" * 3_000_000
    session = await api.create()
    files = [{"uri": f"{number}.txt"} for number in range(120)]
    await attach(api, session, {"uri": huge}, *files)
    said = told(provider.requests[0])
    assert len(said) < 600 * 1024
    assert "[Cut here: " in said
    assert "<0>" in said
    assert "<119>" not in said
    assert "[Attachment left out: 99.txt" not in said
    assert "[Attachment left out: 98.txt" in said
    assert "[Attachment left out: 21 more files: a prompt has room for 100]" in said


async def test_pages_are_fetched_under_the_rules_of_webfetch(
    tmp_path: Path, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folder = tmp_path / "home" / ".config" / "opencode"
    folder.mkdir(parents=True)
    page = response(b"<h1>Inside</h1>", headers="content-type: text/html\r\n")
    image = response(picture(), headers="content-type: image/png\r\n")
    async with serving(replying(page)) as words, serving(replying(image)) as drawn:
        allowed = [f"127.0.0.1:{words.port}", f"127.0.0.1:{drawn.port}"]
        users = {"experimental": {"webfetch": {"allowed_hosts": allowed}}}
        (folder / "opencode.json").write_bytes(codec.encode(users))
        async with running(folders) as instance:
            session = await instance.api.create()
            await attach(
                instance.api, session, {"uri": f"{words.url}/a"}, {"uri": f"{drawn.url}/b.png"}
            )
    assert "# Inside" in told(provider.requests[0])
    assert shown(provider.requests[0]) == [inlined(picture())]


async def test_a_document_is_named_where_a_model_cannot_read_it(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "paper.pdf").write_bytes(PDF)
    session = await api.create()
    message = await attach(api, session, {"uri": "paper.pdf"})
    assert "[Attachment left out: paper.pdf" in told(provider.requests[0])
    # It is kept: the next model may be able to.
    (content,) = message["attached"][0]["content"]
    assert content["uri"] == inlined(PDF, "application/pdf")


async def test_a_file_that_was_attached_counts_as_read(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "a.txt").write_text("one")
    provider.then(calls(Call("write", {"path": "a.txt", "content": "two"})), text("done"))
    session = await api.create()
    await attach(api, session, {"uri": "a.txt"})
    assert (folders.project / "a.txt").read_text() == "two"


async def test_what_is_announced_is_what_is_sent(
    api: Api, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    (folders.project / "a.txt").write_text("announced")
    session = await api.create()
    prompt = {"prompt": {"text": "see @a.txt", "files": [{"uri": "a.txt"}]}, "resume": False}
    await api.post(f"/api/session/{session}/prompt", prompt)
    before = await api.get(f"/api/session/{session}/provider-context")
    announced = before["data"]["request"]["messages"][-1]["content"]
    await api.post(f"/api/session/{session}/prompt", {"prompt": {"text": "go"}})
    await api.wait(session)
    assert announced[1]["text"] in provider.requests[0].raw.decode().replace("\\n", "\n")
