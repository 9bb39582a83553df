"""What a ledger compares between releases: which photo it is, and which of its pixels are replaced."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.core.guarantee import RELATIONS, Relation
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Covered, Region

EVERY = Relation("any-image")
LEVELS = np.arange(12 * 10 * 3, dtype=np.uint16).astype(np.uint8).reshape(12, 10, 3)
PHOTO = Photo(LEVELS)


def of(*regions: Region, photo: Photo = PHOTO, relation: Relation = EVERY) -> Covered:
    return Covered.of(photo, regions or [Region.whole(photo)], relation)


def masked(box: Box, *pixels: tuple[int, int]) -> Region:
    mask = np.zeros((box.h, box.w), np.bool_)
    for row, column in pixels:
        mask[row, column] = True
    return Region(box, mask)


@pytest.mark.parametrize("kind", ["png", "bmp", "tiff", "webp"])
def test_a_copy_without_loss_is_the_same_photo(tmp_path: Path, kind: str) -> None:
    Image.fromarray(LEVELS).save(tmp_path / f"a.{kind}", **({"lossless": True} if kind == "webp" else {}))
    assert of(photo=dpveil.read(tmp_path / f"a.{kind}")) == of()


def test_a_turned_file_with_its_orientation_is_the_same_photo() -> None:
    exif, file = Image.Exif(), io.BytesIO()
    exif[274] = 3
    Image.fromarray(LEVELS[::-1, ::-1]).save(file, "PNG", exif=exif)
    assert of(photo=dpveil.read(file.getvalue())) == of()


def test_grey_in_three_channels_is_the_same_photo_and_colour_is_not() -> None:
    grey = LEVELS[..., :1]
    assert of(photo=Photo(grey)) == of(photo=Photo(np.repeat(grey, 3, 2)))
    tinted = np.repeat(grey, 3, 2)
    tinted[-1, -1, 2] ^= 1
    assert of(photo=Photo(grey)).photo != of(photo=Photo(tinted)).photo


def test_every_level_and_the_size_tell_photos_apart() -> None:
    seen = {of().photo, of(photo=Photo(LEVELS.reshape(10, 12, 3))).photo}
    for channel in range(3):
        changed = LEVELS.copy()
        changed[11, 9, channel] ^= 1
        seen.add(of(photo=Photo(changed)).photo)
    assert len(seen) == 5


def test_the_set_of_replaced_pixels_counts_and_not_how_it_is_divided() -> None:
    whole = of()
    left, right = Region(Box(0, 0, 4, 12)), Region(Box(4, 0, 6, 12))
    assert of(left, right) == of(right, left) == of(left, right, left) == whole
    every = masked(Box(0, 0, 10, 12), *((row, column) for row in range(12) for column in range(10)))
    assert of(every) == whole
    assert of(masked(Box(2, 2, 3, 3), (0, 0))) == of(Region(Box(2, 2, 1, 1)))
    parts = [left, right, Region(Box(0, 0, 5, 12)), Region(Box(0, 0, 4, 11)), masked(left.box, (3, 3))]
    parts += [masked(left.box, (3, 2)), Region(Box(1, 0, 4, 12)), Region(Box(9, 11, 1, 1))]
    assert len({whole.pixels, *(of(part).pixels for part in parts)}) == len(parts) + 1
    assert {of(part).photo for part in parts} == {whole.photo}


def test_where_singular_vectors_are_in_the_clear_the_boxes_count_as_well() -> None:
    """Both halves' vectors and those of the whole photo could give its singular values away."""
    vectors, halves = Relation("singular-values"), [Region(Box(0, 0, 5, 12)), Region(Box(5, 0, 5, 12))]
    assert of(*halves, relation=vectors) == of(*reversed(halves), relation=vectors)
    assert of(*halves, relation=vectors) != of(relation=vectors)
    assert of(relation=vectors) != of()
    alike = {of(*halves, relation=Relation(name)) for name in ("any-image", "latent-cell")}
    alike |= {of(*halves, relation=Relation("m-pixels", m)) for m in (1, 16)}
    assert alike == {of()}
    assert "singular-values" in RELATIONS


def test_a_plan_covers_what_it_replaces() -> None:
    planned = dpveil.plan(LEVELS, "dp-pix", epsilon=1, block=4, regions=["1,2,3,4", "4,2,3,4"])
    assert planned.covered == of(Region(Box(1, 2, 6, 4)))
    copied = dpveil.plan(LEVELS, "fill", regions="faces", if_none="copy")
    assert copied.covered is None


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        None,
        [],
        "x",
        {"photo": "00" * 32},
        {"photo": "00" * 32, "pixels": "00" * 31},
        {"photo": "zz" * 32, "pixels": "00" * 32},
        {"photo": None, "pixels": None},
        {"photo": 5, "pixels": "00" * 32},
        {"photo": "é" * 64, "pixels": "00" * 32},
    ],
)
def test_what_is_no_pair_of_digests_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="digests"):
        Covered.parse(wrong)


def test_digests_come_back_from_json() -> None:
    assert Covered.parse(of().to_json()) == of()


def test_a_representation_has_no_digest() -> None:
    made = of()
    assert repr(made).startswith("<dpveil.core.region.Covered object")
