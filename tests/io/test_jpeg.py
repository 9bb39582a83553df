"""A JPEG stays a JPEG: blocks outside of regions stay as they are, and nothing hidden reaches the file."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from io_samples import picture, swapped_profile
from PIL import Image, ImageCms

import dpveil
from dpveil.core.jpeg_blocks import BLOCK_SIDE, JpegBlocks
from dpveil.core.region import Box, hidden_pixels
from dpveil.errors import PhotoError
from dpveil.faces.attributes_method import Attributes
from dpveil.io.jpeg import jpeg_file
from dpveil.io.writing import only_picture
from dpveil.ledger import Limit
from dpveil.mechanisms.pixel.common_practice import Fill

SHAPES = ((131, 203), (64, 64), (9, 17), (1, 1), (250, 33))
SAMPLINGS = ("4:4:4", "4:2:2", "4:2:0")


def jpeg(image: np.ndarray, *, orientation: int = 1, **options) -> bytes:
    exif = Image.Exif()
    exif[0x112] = orientation
    exif[0x10F] = "a camera of somebody"
    file = BytesIO()
    Image.fromarray(image).save(file, "jpeg", exif=exif.tobytes(), comment=b"a comment", **options)
    return file.getvalue()


def smooth(height: int, width: int, channels: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    waves = [128 + 60 * np.sin(x / (5 + n)) + 60 * np.cos(y / (7 + n)) for n in range(channels)]
    levels = np.stack(waves, axis=-1).clip(0, 255).astype(np.uint8)
    return levels[..., 0] if channels == 1 else levels


def outside(blocks: JpegBlocks, kept: JpegBlocks) -> list[tuple[np.ndarray, np.ndarray]]:
    """The blocks that `kept` knows, in both."""
    planes = zip(blocks.planes, kept.planes, kept.missing, strict=True)
    return [(one[~missing], other[~missing]) for one, other, missing in planes]


@pytest.mark.parametrize(("shape", "sampling"), [*itertools.product(SHAPES, SAMPLINGS)])
def test_blocks_outside_of_a_region_stay_and_others_are_drawn(shape, sampling):
    for orientation, progressive, channels in itertools.product(range(1, 9), (False, True), (1, 3)):
        options = {} if channels == 1 else {"subsampling": sampling}
        levels = smooth(*shape, channels)
        data = jpeg(levels, orientation=orientation, progressive=progressive, quality=80, **options)
        photo = dpveil.read(data)
        height, width = photo.image.shape[:2]
        blocks = photo.blocks()
        again = dpveil.read(jpeg_file(blocks))
        assert np.array_equal(again.image, photo.image)

        box = Box(width // 4, height // 3, max(1, width // 3), max(1, height // 4))
        made = dpveil.plan(photo, "fill", regions=str(box), level=200)
        release = made.release()
        if release.blocks is None:
            assert hidden_pixels(made.placement.regions, height, width).all()
            continue
        file, _ = release.encode_with_certificate("jpeg")
        assert only_picture(file, "jpeg")
        assert b"camera" not in file
        assert b"comment" not in file
        read = dpveil.read(file)
        for one, other in outside(read.blocks(), release.blocks):
            assert np.array_equal(one, other)
        for one, other in outside(blocks, release.blocks):
            assert np.array_equal(one, other)
        assert np.abs(read.image[box.slices].astype(int) - 200).mean() <= 8


def changed_within(photo: dpveil.Photo, region: np.ndarray) -> bytes:
    """The JPEG with other contents in all blocks that hold something of the region."""
    original, noise = photo.blocks(), np.random.default_rng(5)
    planes = []
    for n, plane in enumerate(original.planes):
        change = noise.integers(-9, 10, plane.shape, np.int16)
        planes.append(np.where(original.blocks_of(region, n)[:, :, None, None], change, plane))
    return jpeg_file(replace(original, planes=tuple(planes)))


@pytest.mark.parametrize("method", [Fill(level=90), Attributes(protect="face", placing="box")])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_no_byte_follows_from_hidden_coefficients(method, sampling):
    photo = dpveil.read(jpeg(picture(120, 136), quality=85, subsampling=sampling))
    made = dpveil.plan(photo, method, regions="41,35,50,60")
    region = hidden_pixels([one.before for one in made.placement.regions], 120, 136)
    other = dpveil.read(changed_within(photo, region))
    assert not np.array_equal(other.image, photo.image)
    files = []
    for one in (photo, other):
        release = dpveil.obfuscate(one, method, regions="41,35,50,60", bits=dpveil.SeededBits(1))
        files.append(release.encode_with_certificate("jpeg")[0])
        assert not np.array_equal(dpveil.read(files[-1]).image, one.image)
    assert files[0] == files[1]


def test_luma_is_that_of_its_own_block():
    photo = dpveil.read(jpeg(picture(50, 70), quality=90, subsampling="4:2:0", orientation=6))
    blocks, (height, width) = photo.blocks(), photo.image.shape[:2]
    with Image.open(BytesIO(jpeg_file(blocks))) as stored:
        stored.draft("YCbCr", stored.size)
        expected = blocks.turn.there(np.asarray(stored)[..., 0])
    for rows, columns in ((slice(0, height), slice(0, width)), (slice(3, 19), slice(11, 40))):
        assert np.abs(blocks.luma(rows, columns) - expected[rows, columns]).max() < 1.5


def test_a_picture_in_other_colours_is_coded_anew():
    levels = picture(32, 32)
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert dpveil.read(jpeg(levels, icc_profile=srgb)).blocks is not None
    assert dpveil.read(jpeg(levels, icc_profile=swapped_profile())).blocks is None
    file = BytesIO()
    Image.fromarray(levels).convert("CMYK").save(file, "jpeg")
    photo = dpveil.read(file.getvalue())
    assert photo.blocks is None
    assert dpveil.read(jpeg(levels, keep_rgb=True)).blocks is None
    release = dpveil.obfuscate(photo, "fill", regions="4,4,9,9")
    file, certificate = release.encode_with_certificate("jpeg")
    assert dpveil.read(file).image.shape == levels.shape
    assert certificate.output.format == "jpeg"


def test_tables_of_a_photo_that_is_all_replaced_are_not_shown():
    photo = dpveil.read(jpeg(picture(24, 24), quality=31))
    release = dpveil.obfuscate(photo, "fill", regions="whole")
    with Image.open(BytesIO(release.encode_with_certificate("jpeg")[0])) as image:
        assert image.quantization != Image.open(BytesIO(jpeg(picture(24, 24), quality=31))).quantization
    assert release.blocks is None


def test_a_copy_keeps_every_block():
    photo = dpveil.read(jpeg(picture(40, 56), quality=60))
    copy = dpveil.obfuscate(photo, "fill", regions="faces", if_none="copy")
    assert np.array_equal(dpveil.read(copy.encode_with_certificate("jpeg")[0]).image, photo.image)


def test_blocks_know_their_pixels():
    blocks = dpveil.read(jpeg(smooth(40, 40, 3), subsampling="4:2:0")).blocks()
    assert (blocks.side(0), blocks.side(1)) == ((BLOCK_SIDE, BLOCK_SIDE), (2 * BLOCK_SIDE, 2 * BLOCK_SIDE))
    hidden = np.zeros((40, 40), bool)
    hidden[16:24, 31:33] = True
    expected = np.zeros((3, 3), bool)
    expected[1, 1:] = True
    assert np.array_equal(blocks.blocks_of(hidden, 1), expected)
    assert np.array_equal(np.argwhere(blocks.blocks_of(hidden, 0)), [(2, 3), (2, 4)])


def coded(number: int) -> bytes:
    """A grey JPEG of one block, with an AC coefficient of 11 bits, which no baseline encoder writes."""
    tables = b"".join(
        b"\xff\xc4"
        + (19 + len(values)).to_bytes(2, "big")
        + bytes([kind, *lengths, *[0] * (16 - len(lengths))])
        + bytes(values)
        for kind, lengths, values in ((0x00, [1], [0]), (0x10, [1, 1], [11, 0]))
    )
    bits = f"00{number if number > 0 else number + 2047:011b}10"
    data = int(bits.ljust(16, "1"), 2).to_bytes(2, "big")
    quantised = b"\xff\xdb\0\x43\0" + bytes([1] * 64)
    frame = b"\xff\xc0\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0"
    scan = b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + data.replace(b"\xff", b"\xff\0")
    return b"\xff\xd8" + quantised + frame + tables + scan + b"\xff\xd9"


@pytest.mark.parametrize("number", [1024, 1500, 2047, -1024, -2047])
def test_what_cannot_be_written_again_is_refused_before_anything_is_paid(tmp_path, number):
    ledger = dpveil.Ledger(f"sqlite:///{tmp_path / 'book.db'}", create=True)
    ledger.set_limit("album", Limit("pure", epsilon=9))
    before = [*ledger.history("album")]
    plan = dpveil.plan(coded(number), "dp-pix", epsilon=1, block=1, neighbourhood=1, regions="0,0,2,2")
    with pytest.raises(PhotoError):
        plan.release(ledger=ledger, subject="album")
    assert [*ledger.history("album")] == before


def test_a_photo_goes_to_another_process_with_its_blocks(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(smooth(24, 32, 3), quality=90))
    photo = dpveil.read(path)
    other = pickle.loads(pickle.dumps(photo))  # noqa: S301  its own
    assert np.array_equal(photo.image, other.image)
    assert photo.blocks is not None
    assert all(
        np.array_equal(*pair) for pair in zip(photo.blocks().planes, other.blocks().planes, strict=True)
    )


def test_arithmetic_coding_is_refused():
    data = jpeg(picture(16, 16)).replace(b"\xff\xc0", b"\xff\xc9")
    with pytest.raises(PhotoError, match="arithmetic"):
        dpveil.read(data)


def test_a_drawn_box_is_replaced_as_a_whole_and_its_release_verifies(tmp_path):
    photo = dpveil.read(jpeg(smooth(200, 200, 3), quality=90, subsampling="4:2:0"))
    for box in (Box(57, 71, 12, 14), Box(50, 35, 83, 97), Box(0, 0, 60, 80)):
        plan = dpveil.plan(photo, "attributes", regions=str(box), placing="box", outside="none")
        assert hidden_pixels(plan.regions, photo.height, photo.width)[box.slices].all()
        path, _ = plan.release().save(tmp_path / "a.jpg", replace=True)
        assert dpveil.verify(path).problems == ()
