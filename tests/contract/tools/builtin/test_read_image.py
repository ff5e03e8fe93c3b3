"""read: images, as far as a model can take them."""

import base64
from io import BytesIO

import PIL.Image
import pytest

from perdure.core.limits import (
    IMAGE_BASE64_BYTES_MAX,
    IMAGE_FILE_BYTES_MAX,
    IMAGE_PIXELS_MAX,
    IMAGE_SIDE_MAX,
)
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.media import image_header, images
from perdure.tools.media.image_header import ImageSize
from perdure.tools.media.images import UnusableImageError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement
from tests.support.inputs.images import bomb, noise, opened

KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def image(kind: str, width: int, height: int, mode: str = "RGB") -> bytes:
    out = BytesIO()
    PIL.Image.new(mode, (width, height), "red").save(out, kind)
    return out.getvalue()


@requirement("S180")
@pytest.mark.parametrize(("kind", "mime"), KINDS.items())
async def test_an_image_is_known_by_its_bytes_and_shown_as_it_is(
    bench: ToolBench, kind: str, mime: str
) -> None:
    data = image(kind, 30, 20)
    bench.write({"really.txt": data})
    success = await bench.success("read", path="really.txt")
    note, file = success.content
    encoded = base64.b64encode(data).decode()
    assert isinstance(note, TextContent)
    assert "30x20" in note.text
    assert file == FileContent(uri=f"data:{mime};base64,{encoded}", mime=mime, name="really.txt")
    structured = success.structured
    assert (structured["mime"], structured["width"], structured["height"]) == (mime, 30, 20)
    assert encoded not in str(structured)


@pytest.mark.parametrize(
    ("kind", "mode", "drawn", "shown"),
    [
        ("PNG", "RGBA", (4_000, 1_000), (2_000, 500)),
        ("JPEG", "RGB", (1_000, 5_000), (400, 2_000)),
        ("GIF", "P", (2_001, 2_001), (2_000, 2_000)),
        ("WEBP", "RGB", (1, 9_000), (1, 2_000)),
    ],
)
async def test_a_large_image_is_scaled_down_in_proportion(
    bench: ToolBench, kind: str, mode: str, drawn: tuple[int, int], shown: tuple[int, int]
) -> None:
    bench.write({"large": image(kind, *drawn, mode)})
    _, file = (await bench.success("read", path="large")).content
    assert isinstance(file, FileContent)
    assert opened(file.uri).size == shown


async def test_an_image_of_many_bytes_is_encoded_until_it_fits(bench: ToolBench) -> None:
    data = noise(1_500, 1_400)
    assert len(base64.b64encode(data)) > IMAGE_BASE64_BYTES_MAX
    bench.write({"noise.png": data})
    _, file = (await bench.success("read", path="noise.png")).content
    assert isinstance(file, FileContent)
    assert len(file.uri.partition(",")[2]) <= IMAGE_BASE64_BYTES_MAX
    assert max(opened(file.uri).size) <= IMAGE_SIDE_MAX


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (bomb(100_000, 100_000), "100000x100000"),
        (bomb(2**31 - 1, 2**31 - 1), "million pixels"),
        (bomb(0, 10), "not a valid"),
        (bomb(1_000, 1_000), "cannot be decoded"),
        (image("PNG", 50, 50)[:60], "cannot be decoded"),
        (image("JPEG", 50, 50)[:300], "Cannot show"),
        (b"\x89PNG\r\n\x1a\n", "not a valid"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not a valid"),
        (b"\xff\xd8\xff\xe0rest", "not a valid"),
        (b"\xff\xd8" + b"\xff" * 5_000, "not a valid"),
        (b"GIF89a", "not a valid"),
        (b"GIF89a\x05\x00\x05\x00", "cannot be decoded"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "not a valid"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8X" + bytes(20), "cannot be decoded"),
    ],
)
async def test_a_broken_or_hostile_image_is_refused_by_name(
    bench: ToolBench, data: bytes, told: str
) -> None:
    bench.write({"picture": data})
    message = await bench.error("read", path="picture")
    assert message.startswith("Cannot show the image picture: ")
    assert told in message


async def test_an_image_file_that_is_too_large_is_refused_with_its_size(bench: ToolBench) -> None:
    with (bench.root / "a.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(IMAGE_FILE_BYTES_MAX + 1)
    assert str(IMAGE_FILE_BYTES_MAX) in await bench.error("read", path="a.png")


def test_without_pillow_only_what_fits_is_shown() -> None:
    small, large = image("PNG", 10, 10), image("PNG", 3_000, 10)
    assert images.prepare_image(small, "image/png", decoding=lambda: None).size == ImageSize(10, 10)
    with pytest.raises(UnusableImageError, match=r"install perdure\[images\]"):
        images.prepare_image(large, "image/png", decoding=lambda: None)
    with pytest.raises(UnusableImageError, match="pixels"):
        images.prepare_image(bomb(100_000, 1_000), "image/png", decoding=lambda: None)


@pytest.mark.parametrize(("kind", "mime"), KINDS.items())
def test_the_header_tells_the_size_and_any_part_of_it_does_no_harm(kind: str, mime: str) -> None:
    data = image(kind, 321, 123)
    assert image_header.read_size(data, mime) == ImageSize(321, 123)
    for end in range(min(len(data), 700)):
        assert image_header.read_size(data[:end], mime) in (None, ImageSize(321, 123))


def test_the_pixels_that_are_decoded_are_bounded() -> None:
    assert IMAGE_PIXELS_MAX * 4 <= 256 * 1024 * 1024
