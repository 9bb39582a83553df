"""What a certificate says to be filled has the level of the fill in the image."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpveil
from dpveil.core.region import Box
from dpveil.io import encode
from dpveil.noise.bits import SeededBits
from dpveil.release.filled import fill_problems
from dpveil.release.saving import certificate_path

BOX = Box(2, 3, 20, 10)


def picture() -> np.ndarray:
    """Return a photo without a pixel of three equal levels."""
    levels = np.random.Generator(np.random.PCG64(7)).integers(1, 120, (30, 40, 3), np.uint8)
    return levels + np.array([0, 1, 130], np.uint8) * (levels[:, :, :1] > 0)


def masked() -> np.ndarray:
    mask = np.zeros((30, 40), bool)
    mask[3:9, 4:20] = True
    mask[20:25, 30:] = True
    return mask


def swapped(path: Path, made: dpveil.Release, image: np.ndarray) -> Path:
    """Write another image with a certificate that states its hash, as a careful forger would."""
    contents, (_, stated) = encode(image, "png"), made.encoded("png")
    assert stated.output is not None
    output = replace(stated.output, sha256=hashlib.sha256(contents).hexdigest())
    path.write_bytes(contents)
    certificate_path(path).write_text(replace(stated, output=output).to_text(), encoding="utf-8")
    return path


@pytest.mark.parametrize("regions", [str(BOX), "whole", masked(), [str(BOX), masked(), "5,5,3,3"]])
@pytest.mark.parametrize("suffix", ["png", "webp", "tiff", "bmp"])
def test_honest_fills_verify(tmp_path: Path, regions: object, suffix: str) -> None:
    for number, image in enumerate((picture(), picture()[:, :, 0])):
        made = dpveil.obfuscate(image, "fill", level=77, regions=regions)
        made.save(tmp_path / f"{number}.{suffix}")
        assert dpveil.verify(tmp_path / f"{number}.{suffix}").publishable


@pytest.mark.parametrize("regions", [str(BOX), "whole", masked(), [masked(), str(BOX)]])
def test_an_original_with_the_certificate_of_a_fill_is_inconsistent(tmp_path: Path, regions: object) -> None:
    made = dpveil.obfuscate(picture(), "fill", regions=regions)
    found = dpveil.verify(swapped(tmp_path / "a.png", made, picture()))
    assert found.status == "inconsistent"
    assert "is not filled with level 0" in " ".join(found.problems)


@pytest.mark.parametrize("at", [(3, 2), (12, 21), (3, 21), (12, 2)])
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_one_level_at_a_corner_is_noticed(tmp_path: Path, at: tuple[int, int], channel: int) -> None:
    made = dpveil.obfuscate(picture(), "fill", level=9, regions=str(BOX))
    image = made.image.copy()
    image[(*at, channel)] = 10
    found = dpveil.verify(swapped(tmp_path / "a.png", made, image))
    assert found.problems == ("the region box: 20×10 pixels at 2,3 is not filled with level 9",)


def test_one_pixel_of_a_mask_less_is_noticed() -> None:
    made = dpveil.obfuscate(picture(), "fill", regions=masked())
    image = made.image.copy()
    assert not [*fill_problems(made.certificate, image)]
    image[3, 4] = 1
    assert len([*fill_problems(made.certificate, image)]) == 1


def test_post_processed_fills_and_other_methods_are_not_compared(tmp_path: Path) -> None:
    for number, more in enumerate(({"post_processing": "gaussian:1"}, {"post_processing": "median:3"})):
        made = dpveil.obfuscate(picture(), "fill", regions=str(BOX), **more)
        made.save(tmp_path / f"{number}.png")
        assert dpveil.verify(tmp_path / f"{number}.png").publishable
    noisy = dpveil.obfuscate(
        picture(), "dp-pix", epsilon=1, block=8, regions=f"object:{BOX}", bits=SeededBits(1)
    )
    assert not [*fill_problems(noisy.certificate, noisy.image)]


def test_objects_are_compared_except_where_a_face_lies_over_them() -> None:
    drawn = pytest.importorskip("facespace_made").astronaut()
    face, below = "150,50,160,180", Box(100, 150, 300, 300)
    for box in (below, Box(0, 0, 512, 512), Box(20, 400, 60, 40)):
        made = dpveil.obfuscate(
            drawn, "attributes", regions=[face, f"object:{box}"], gallery="drawn", attributes="tone=2"
        )
        assert not [*fill_problems(made.certificate, made.image)]
        image = made.image.copy()
        image[box.y + box.h - 1, box.x] ^= 1
        assert len([*fill_problems(made.certificate, image)]) == 1
        assert len([*fill_problems(made.certificate, drawn)]) == 1


def test_ten_thousand_regions_over_another_are_counted() -> None:
    """As many as a certificate may have: no count of boxes overflows, and none hides what is beside them."""
    drawn = pytest.importorskip("facespace_made").astronaut()
    regions = ["150,50,160,180", "object:20,400,60,40"]
    made = dpveil.obfuscate(drawn, "attributes", regions=regions, gallery="drawn", attributes="tone=2")
    face, plate = made.certificate.regions
    first, last = made.certificate.guarantees
    records, promises = (*(face,) * 9999, plate), (*(first,) * 9999, last)
    many = replace(made.certificate, regions=records, guarantees=promises)
    assert not [*fill_problems(many, made.image)]
    assert len([*fill_problems(many, drawn)]) == 1
