"""HEIC and AVIF: the picture as decoders read it, turned as the container says, and nothing else of it."""

import resource
import struct
import sys
from io import BytesIO

import numpy as np
import pytest
from io_samples import file_bytes, picture, swapped_profile
from pi_heif.as_plugin import HeifImageFile
from PIL import Image

from dpveil import processes
from dpveil.core.photo import BlockGrid
from dpveil.errors import PhotoError
from dpveil.io import reading
from heic_samples import box, container, heic, pictured, size, tiled

BLOCKS = {"HEIC": BlockGrid(1, 1, margin=48, codec="HEIC"), "AVIF": BlockGrid(1, 1, margin=80, codec="AVIF")}
ALPHA = (b"auxC", bytes(4) + b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")


def decoded(data: bytes) -> np.ndarray:
    """What libheif or libavif makes of the file as it is, without dpveil's screening."""
    image = HeifImageFile(BytesIO(data)) if b"heic" in data[:12] else Image.open(BytesIO(data))
    return np.asarray(image.convert("RGB"))


def refusal(data: bytes, **options) -> str:
    with pytest.raises(PhotoError) as caught:
        reading.read(data, **options)
    assert caught.value.hint
    return str(caught.value)


def transparent(levels: np.ndarray, alpha: np.ndarray) -> bytes:
    beside = pictured(np.repeat(alpha[:, :, None], 3, 2), ALPHA, chroma=0)
    return container([pictured(levels), (*beside[:3], [(b"auxl", [1])])])


FILES = {
    "heic": heic(picture(50, 70)),
    "heic 4:4:4": heic(picture(33, 47), chroma=3),
    "heic grey": heic(picture(32, 48), chroma=0),
    "heic tiles": tiled(picture(90, 140), 64),
    "heic turned": heic(picture(50, 70), (b"irot", b"\3")),
    "heic mirrored": heic(picture(50, 70), (b"imir", b"\0")),
    "heic turned and mirrored": heic(picture(50, 70), (b"irot", b"\1"), (b"imir", b"\1")),
    "avif": file_bytes(picture(50, 71), "avif", quality=60),
    "avif 4:4:4": file_bytes(picture(50, 71), "avif", quality=90, subsampling="4:4:4"),
    "avif grey": file_bytes(picture(32, 48, 1)[..., 0], "avif"),
}


@pytest.mark.parametrize("name", FILES)
def test_levels_are_those_of_the_decoder(name):
    data = FILES[name]
    photo = reading.read(data)
    assert photo.channels == (1 if name.endswith("grey") else 3)
    assert np.array_equal(np.repeat(photo.image, 3 // photo.channels, 2), decoded(data))
    assert photo.grid is not None
    assert photo.grid.codec.lower() == name[:4]


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("angle", range(4))
def test_turns_of_the_container_are_applied_as_libheif_does(angle, axis):
    steps = [(b"irot", bytes([angle]))] + ([] if axis is None else [(b"imir", bytes([axis]))])
    data = heic(picture(48, 80), *steps)
    assert np.array_equal(reading.read(data).image, decoded(data))


@pytest.mark.parametrize("value", range(1, 9))
def test_turns_of_an_avif_are_applied(value):
    tags = Image.Exif()
    tags[0x0112] = value
    levels = picture(48, 80)
    data = file_bytes(levels, "avif", quality=100, subsampling="4:4:4", exif=tags)
    turned = {1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud,
              5: lambda a: a.transpose(1, 0, 2), 6: lambda a: np.rot90(a, 3),
              7: lambda a: np.rot90(a, 2).transpose(1, 0, 2), 8: np.rot90}  # fmt: skip
    expected = turned[value](levels)
    image = reading.read(data).image
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).max() < 12


def test_exif_in_a_heic_does_not_turn_it_again():
    tags = Image.Exif()
    tags[0x0112] = 6
    words = (b"Exif", bytes(4) + tags.tobytes(), [], [(b"cdsc", [1])])
    assert reading.read(container([pictured(picture(32, 48)), words])).image.shape == (32, 48, 3)


def test_a_pixel_reaches_across_the_largest_block_wherever_it_is():
    for name, data in FILES.items():
        assert reading.read(data).grid == BLOCKS[name[:4].upper()]


def test_metadata_and_other_pictures_change_nothing():
    secret = b"the secret place"
    words = (b"Exif", bytes(4) + secret, [], [(b"cdsc", [1])])
    thumbnail = (*pictured(255 - picture(16, 16))[:3], [(b"thmb", [1])])
    data = container([pictured(picture(32, 48)), words, thumbnail], more=box(b"uuid", secret))
    assert np.array_equal(reading.read(data).image, reading.read(heic(picture(32, 48))).image)


def test_colour_under_transparency_is_gone():
    levels, alpha = picture(32, 48), np.full((32, 48), 255, np.uint8)
    alpha[:, :24] = 0
    image = reading.read(transparent(levels, alpha)).image
    assert (image[:, :24] == 255).all()
    assert np.array_equal(image[:, 24:], reading.read(heic(levels)).image[:, 24:])
    both = Image.fromarray(levels).convert("RGBA")
    both.putalpha(Image.fromarray(alpha))
    image = reading.read(file_bytes(both, "avif", quality=100)).image
    assert (image[:, :16] > 250).all()
    assert np.abs(image[:, 32:].astype(int) - levels[:, 32:]).max() < 12


def test_a_profile_is_applied_and_dynamic_range_is_refused():
    profile = swapped_profile()
    photo = reading.read(file_bytes(picture(32, 48), "avif", icc_profile=profile))
    assert "its colour profile was applied" in photo.notes
    photo = reading.read(heic(picture(32, 48), (b"colr", b"prof" + profile)))
    assert "its colour profile was applied" in photo.notes
    for transfer in (16, 18):
        bright = b"nclx" + struct.pack(">HHHB", 9, transfer, 9, 0x80)
        assert "high dynamic range" in refusal(heic(picture(32, 48), (b"colr", bright)))


def clap(width: int, height: int, *, shift: tuple[int, int]) -> tuple[bytes, bytes]:
    """Shows so much of a picture; `shift` is that of its centre, in halves of a pixel."""
    return b"clap", struct.pack(">IIIIiIiI", width, 1, height, 1, shift[0], 2, shift[1], 2)


def test_sizes_that_only_a_decoder_would_see_cost_no_memory_here():
    """The container says another size than the coded picture has."""
    kind, data, [_, *more], _ = pictured(picture(16, 16))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for side in (60_000, 8192):
        try:
            assert reading.read(container([(kind, data, [size(side, side), *more], [])])).image.size < 1000
        except PhotoError:
            continue
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_what_pillow_would_not_crop_is_refused():
    data = FILES["avif"]
    assert "cropped" in refusal(data.replace(b"pixi", b"clap"))


def test_a_photo_whose_decoder_is_missing_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setattr(processes, "confined", True)
    monkeypatch.setitem(sys.modules, "pi_heif.as_plugin", None)
    path = tmp_path / "photo.heic"
    path.write_bytes(FILES["heic"])
    with pytest.raises(PhotoError, match=r"photo\.heic is HEIC, and its decoder is not installed") as caught:
        reading.read(path)
    assert caught.value.hint == "pip install 'dpveil[formats]'"


@pytest.mark.parametrize("name", ["heic", "heic tiles", "avif"])
def test_files_cut_off_anywhere_are_refused_or_lose_nothing(name):
    data = FILES[name]
    whole = reading.read(data).image
    for length in range(0, len(data), len(data) // 50):
        try:
            assert np.array_equal(reading.read(data[:length]).image, whole)
        except PhotoError:
            continue
