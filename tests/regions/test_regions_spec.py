"""What users may write for regions, and how each mistake is answered."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dpveil import obfuscate, regions
from dpveil.core.photo import BlockGrid, Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import InvalidParameter, RegionError
from dpveil.regions import growth
from dpveil.regions.finder import Finder
from dpveil.regions.spec import search
from region_search import find


@pytest.fixture
def photo() -> Photo:
    return Photo(np.arange(20 * 30 * 3, dtype=np.uint32).reshape(20, 30, 3).astype(np.uint8))


def save(mask: np.ndarray | Image.Image, path: Path, **options) -> Path:
    (mask if isinstance(mask, Image.Image) else Image.fromarray(mask)).save(path, **options)
    return path


def boxes(found: tuple[Region, ...]) -> list[tuple[int, int, int, int]]:
    return [(r.box.x, r.box.y, r.box.w, r.box.h) for r in found]


def test_what_a_finder_of_ones_own_found_stays_found(photo):
    class Own(Finder):
        description, data_dependent = "own", False

        def __call__(self, photo):
            return [Region(Box(1, 2, 3, 4), origin=Origin(found=True)), Region(Box(9, 2, 3, 4))]

    assert [one.origin.found for one in search(photo, [Own()])[0]] == [True, False]


def test_whole(photo):
    (found,) = find(photo, ["whole"])
    assert boxes((found,)) == [(0, 0, 30, 20)]
    assert found.mask is None
    assert found.label == "whole photo"
    assert regions.parse("whole").description == "whole"
    assert regions.parse("whole")(photo)[0].pixels == 600


@pytest.mark.parametrize(
    "spec",
    [
        "3,4,5,6",
        " 3, 4 ,5,+6 ",
        (3, 4, 5, 6),
        [3, 4, 5, 6],
        Box(3, 4, 5, 6),
        np.array([3, 4, 5, 6]),
        tuple(np.array([3, 4, 5, 6])),
    ],
)
def test_boxes_in_every_spelling(photo, spec):
    (found,) = find(photo, [spec])
    assert boxes((found,)) == [(3, 4, 5, 6)]
    assert found.label == "box"
    assert regions.parse(spec).description == "3,4,5,6"


def test_several_in_order_and_overlapping(photo):
    found = find(photo, ["10,0,5,5", "whole", (0, 0, 12, 3), "10,0,5,5"])
    assert boxes(found) == [(10, 0, 5, 5), (0, 0, 30, 20), (0, 0, 12, 3), (10, 0, 5, 5)]
    assert [region.label for region in found] == ["box 1", "whole photo", "box 2", "box 3"]


@pytest.mark.parametrize(
    "spec",
    [
        "1,2,3",
        "1,2,3,4,5",
        "1,2,3,x",
        "1.5,2,3,4",
        "1,2,0,4",
        "1,2,3,-4",
        ",,,",
        "7",
        "1e3,0,1,1",
        "1_0,0,1,1",
        "9" * 5000 + ",0,1,1",
        (1, 2, 3),
        (1.0, 2, 3, 4),
        (True, 2, 3, 4),
        (1, 2, 0, 4),
        np.array([1.5, 2, 3, 4]),
        None,
        7,
        b"1,2,3,4x",
        np.zeros((2, 2, 2), bool),
        np.zeros((2, 2), float),
        np.zeros((0, 2), bool),
    ],
    ids=lambda spec: repr(spec)[:20],
)
def test_malformed_is_refused_before_any_photo(spec):
    with pytest.raises(InvalidParameter) as caught:
        regions.parse(spec)
    assert caught.value.hint
    assert caught.value.exit_code == 2


def test_a_finder_and_a_region_pass_through(photo):
    finder = regions.parse("1,2,3,4")
    assert regions.parse(finder) is finder
    mask = np.eye(3, dtype=bool)
    region = Region(Box(1, 2, 3, 3), mask, Origin("left eye"))
    (found,) = find(photo, [region])
    assert found.label == "left eye"
    assert np.array_equal(found.mask, mask)
    assert regions.parse(region).description.startswith("1,2,3,3 mask sha256:")
    assert regions.parse(Region(Box(1, 2, 3, 4))).description == "1,2,3,4"


@pytest.mark.parametrize("box", [(-2, 0, 1, 5), (28, 0, 10, 10), (-2, -3, 1, 1), (40, 0, 5, 5)])
@pytest.mark.parametrize("grid", [None, BlockGrid(8, 8)])
def test_a_finder_of_the_users_own_cannot_leave_the_photo(photo, box, grid):
    """Negative places counted from the other side: other pixels were replaced than certified."""

    class Own(regions.Finder):
        description = "own"

        def __call__(self, photo):
            return [Region(Box(*box), origin=Origin("own"))]

    with pytest.raises(RegionError, match="is outside the photo, which is 30 × 20 pixels"):
        find(Photo(photo.image, grid), [Own()])
    with pytest.raises(RegionError, match="is outside the photo"):
        obfuscate(Photo(photo.image, grid), "fill", regions=Own(), if_none="copy")


def blob() -> np.ndarray:
    mask = np.zeros((20, 30), bool)
    mask[5:9, 7:11] = True
    mask[8, 7] = False
    return mask


def test_mask_arrays_and_files_mean_the_same(photo, tmp_path):
    mask = blob()
    grey = np.where(mask, 128, 127).astype(np.uint8)
    paint = np.zeros((20, 30, 3), np.uint8)
    paint[mask] = (0, 200, 0)
    clear = np.zeros((20, 30, 4), np.uint8)
    clear[mask] = 255
    deep = np.where(mask, 65535, 0).astype(np.uint16)
    specs = [
        mask,
        grey,
        save(grey, tmp_path / "grey.png"),
        str(save(grey, tmp_path / "grey.bmp")),
        save(paint, tmp_path / "paint.webp", lossless=True),
        save(clear, tmp_path / "clear.png"),
        save(Image.fromarray(mask), tmp_path / "bit.tiff"),
        save(deep, tmp_path / "deep.png"),
        save(Image.fromarray(grey).quantize(2), tmp_path / "palette.png"),
    ]
    for spec in specs:
        (found,) = find(photo, [spec])
        assert boxes((found,)) == [(7, 5, 4, 4)]
        assert np.array_equal(found.mask, mask[5:9, 7:11])
        assert found.pixels == 15
        assert found.label == "mask"
        assert regions.parse(spec).description == regions.parse(mask).description


def test_the_description_is_the_hash_of_the_bits_and_names_no_file(tmp_path):
    mask = blob()
    expected = hashlib.sha256("30×20:".encode() + np.packbits(mask).tobytes()).hexdigest()
    path = save(mask.astype(np.uint8) * 255, tmp_path / "secret name.png")
    assert regions.parse(path).description == f"mask sha256:{expected}"
    assert regions.parse(mask.reshape(30, 20)).description != regions.parse(mask).description
    other = mask.copy()
    other[0, 0] = True
    assert regions.parse(other).description != regions.parse(mask).description


@pytest.mark.parametrize("spec", ["4,5,9,7", blob()])
def test_a_seam_reads_no_protected_pixel(photo, spec):
    """Other pixels in the region and the same released ones: not one pixel of the result differs."""
    (region,) = find(photo, [spec])
    random = np.random.default_rng(5)
    released = random.integers(0, 256, region.crop(photo.image).shape).astype(np.uint8)
    inside = np.zeros((20, 30), bool)
    inside[region.box.slices] = True if region.mask is None else region.mask
    results = []
    for secret in (0, 255, 99):
        image = photo.image.copy()
        image[inside] = secret
        region.paste(image, released)
        results.append(image)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[0][~inside], photo.image[~inside])
    full = np.zeros_like(results[0])
    full[region.box.slices] = released
    assert np.array_equal(results[0][inside], full[inside])


# Growth: checked pixel by pixel against its definition.


QUICK = settings(derandomize=True, max_examples=80, deadline=None)


def by_definition(inside: np.ndarray, grid: BlockGrid) -> np.ndarray:
    """Every pixel at most `margin` rows and columns from a block that holds a pixel of the region."""
    height, width = inside.shape
    row = (np.arange(height) - grid.y0) // grid.height
    column = (np.arange(width) - grid.x0) // grid.width
    ys, xs = np.nonzero(inside)
    touched = np.zeros_like(inside)
    for block_row, block_column in {(row[y], column[x]) for y, x in zip(ys, xs, strict=True)}:
        touched |= (row == block_row)[:, None] & (column == block_column)[None, :]
    grown = np.zeros_like(inside)
    for y, x in zip(*np.nonzero(touched), strict=True):
        top, left = max(0, y - grid.margin), max(0, x - grid.margin)
        grown[top : y + grid.margin + 1, left : x + grid.margin + 1] = True
    return grown


def pixels(region: Region, shape: tuple[int, int]) -> np.ndarray:
    inside = np.zeros(shape, bool)
    inside[region.box.slices] = True if region.mask is None else region.mask
    return inside


@st.composite
def cases(draw):
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    w, h = draw(st.sampled_from([8, 16, 32])), draw(st.sampled_from([8, 16]))
    x0, y0 = draw(st.integers(0, w - 1)), draw(st.integers(0, h - 1))
    grid = BlockGrid(w, h, x0, y0, draw(st.sampled_from([0, 1, 8])), codec="Other")
    x, y = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
    box = Box(x, y, draw(st.integers(1, width - x)), draw(st.integers(1, height - y)))
    mask = np.random.default_rng(draw(st.integers(0, 99))).random((box.h, box.w)) < 0.05
    mask[draw(st.integers(0, box.h - 1)), draw(st.integers(0, box.w - 1))] = True
    return Photo(np.zeros((height, width), np.uint8), grid), box, mask


@given(cases())
@QUICK
def test_boxes_grow_as_defined(case):
    photo, box, _ = case
    shape = (photo.height, photo.width)
    grown = growth.grow(Region(box), photo)
    assert grown.mask is None
    assert np.array_equal(pixels(grown, shape), by_definition(pixels(Region(box), shape), photo.grid))


@given(cases())
@QUICK
def test_masks_grow_as_defined(case):
    photo, box, mask = case
    shape = (photo.height, photo.width)
    region = Region(box, mask)
    grown = growth.grow(region, photo)
    assert np.array_equal(pixels(grown, shape), by_definition(pixels(region, shape), photo.grid))


def test_the_label_says_that_it_grew_and_only_then():
    photo = Photo(np.zeros((64, 64), np.uint8), BlockGrid(16, 16))
    found = find(photo, ["20,20,4,4", "whole", "1,1,2,2"])
    assert [region.label for region in found] == [
        "box 1, grown to the JPEG blocks",
        "whole photo",
        "box 2, grown to the JPEG blocks",
    ]
    webp = Photo(photo.image, BlockGrid(16, 16, margin=8, codec="WebP"))
    assert find(webp, ["20,20,4,4"])[0].label == "box, grown to the WebP blocks"
    aligned = Photo(photo.image, BlockGrid(16, 16, margin=0, codec="Other"))
    assert find(aligned, ["16,16,16,32"])[0].label == "box"


@pytest.mark.parametrize("spec", ["3,4,5,6", np.eye(64, dtype=bool)])
def test_nothing_grows_without_blocks(spec):
    plain = Photo(np.zeros((64, 64), np.uint8))
    (found,) = find(plain, [spec])
    assert found.label in ("box", "mask")
    assert found.pixels == (30 if isinstance(spec, str) else 64)
