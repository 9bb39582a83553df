"""A made network in LaMa's place: it shows what it is shown, so that any protected pixel would come out."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from geometry_made import placed, textured

from dpveil.assets.confined import Confined
from dpveil.core.region import Box
from dpveil.errors import ModelError
from dpveil.faces.geometry import Placed, recombine
from dpveil.faces.geometry.lama import Lama
from tiny_onnx import lama, yunet

FILL = 50
"""What the made network adds where the mask is: all that is in a hole if nothing else came through."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Lama:
    path = tmp_path_factory.mktemp("lama") / "made.onnx"
    path.write_bytes(lama(fill=FILL))
    return Lama(path)


def written(path: Path, contents: bytes) -> Path:
    path.write_bytes(contents)
    return path


@pytest.mark.parametrize("shape", [(40, 61), (512, 512), (700, 530), (1, 3), (1100, 90)])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_hole_gets_what_the_network_makes_and_nothing_that_was_under_it(
    network: Lama, shape: tuple[int, int], channels: int
) -> None:
    """At each size: in the hole only the network's constant, whose input there was 0 and whose mask was 1.

    Of a picture larger than the network's, pixels at the very edge of the hole are blended with its outside.
    """
    height, width = shape
    hole = np.zeros(shape, np.bool_)
    hole[height // 4 : height // 2 + 1, width // 3 : width // 2 + 1] = True
    known = np.full((height, width, channels), 255, np.uint8)
    whole = network(known, hole, Box(0, 0, width, height))
    assert whole.shape == known.shape
    assert whole.dtype == np.uint8
    edge = 2 * (max(shape) // 512)
    deep = cv2.erode(hole.astype(np.uint8), np.ones((2 * edge + 1, 2 * edge + 1), np.uint8)) > 0
    assert deep.any()
    assert (whole[deep] == FILL).all()
    changed = np.where(hole[..., None], textured(height, width, channels=channels), known)
    assert (network(changed, hole, Box(0, 0, width, height)) == whole).all()
    part = Box(width // 3, height // 4, max(1, width // 2), max(1, height // 2))
    assert (network(known, hole, part) == whole[part.slices]).all()


def test_a_protected_pixel_that_weighs_next_to_nothing_is_not_read_either(network: Lama) -> None:
    """From 513 to 512 pixels, the pixel (1, 1) is 4e-6 of the first one: too little to be masked.

    Levels around it are such that those 4e-6 decide how the first pixel is rounded.
    """
    side, hole = 513, np.zeros((513, 513), np.bool_)
    hole[1, 1] = True
    small = np.array([512, 1]) / 513
    first, beside = np.mgrid[:256, :511]
    exact = first * small[0] ** 2 + beside * small[0] * small[1]
    far = np.abs(exact + 128 * small[1] ** 2 - np.floor(exact) - 0.5)
    level, other = (int(place) for place in np.unravel_index(far.argmin(), far.shape))
    known = np.zeros((side, side, 3), np.uint8)
    known[0, 0], known[0, 1], known[1, 0] = level, min(other, 255), max(other - 255, 0)
    seen = []
    for under in (0, 255):
        known[1, 1] = under
        seen.append(network(known, hole, Box(0, 0, side, side)))
    plain = [
        cv2.resize(np.where(hole, v, known[..., 0]), (512, 512), interpolation=cv2.INTER_AREA)
        for v in (0, 255)
    ]
    assert plain[0][0, 0] != plain[1][0, 0], "without a care it would be read"
    assert (seen[0] == seen[1]).all()


def test_outside_of_a_hole_the_network_sees_the_picture_in_its_colours(network: Lama) -> None:
    known = np.full((300, 200, 3), (200, 100, 30), np.uint8)
    hole = np.zeros((300, 200), np.bool_)
    hole[100:150, 50:90] = True
    shown = network(known, hole, Box(0, 0, 200, 300))
    assert (shown[:50] == (200, 100, 30)).all()
    assert (shown[100:150, 50:90] == FILL).all()


def two_heads() -> list[Placed]:
    y, x = np.mgrid[:100, :90]
    ellipse = ((x - 45) / 45) ** 2 + ((y - 50) / 50) ** 2 <= 1
    return [placed(Box(20, 30, 90, 100), mask=ellipse), placed(Box(130, 10, 60, 80))]


@pytest.mark.parametrize("channels", [1, 3])
def test_recombined_no_protected_pixel_is_read_and_no_other_changes(network: Lama, channels: int) -> None:
    image, faces = textured(160, 220, seed=1, channels=channels), two_heads()
    crops = [textured(128, 128, seed=9 + i) for i in range(2)]
    hidden = np.zeros((160, 220), np.bool_)
    for face in faces:
        hidden[face.region.box.slices] |= True if face.region.mask is None else face.region.mask
    first = recombine(image, faces, crops, filling=network)
    assert (first[~hidden] == image[~hidden]).all()
    assert (first[hidden] == FILL).all(axis=-1).any(), "the network did fill"
    for other in (0, 255, textured(160, 220, seed=2, channels=channels)[hidden]):
        changed = image.copy()
        changed[hidden] = other
        assert (recombine(changed, faces, crops, filling=network) == first).all()
    assert (recombine(image, faces, crops) != first).any()


@pytest.mark.parametrize(
    ("contents", "match"),
    [
        (b"", "is not a network that OpenCV can inpaint with"),
        (b"no network", "is not a network that OpenCV can inpaint with"),
        (lama()[:300], "is not a network that OpenCV can inpaint with"),
        (yunet(), "is not a network that OpenCV can inpaint with"),
        (lama(mask="hole"), "is not a network that OpenCV can inpaint with"),
        (lama(channels=1), "gives 1 × 1 × 512 × 512 numbers, not 1 × 3 × 512 × 512"),
        (lama(gain=float("nan")), "numbers that are not finite"),
        (lama(fill=float("inf")), "numbers that are not finite"),
        (lama(gain=1), "turns level 128 into 0.502"),
        (lama(gain=-255), "turns level 128 into -128"),
    ],
    ids=["empty", "text", "cut", "yunet", "other input", "grey", "nan", "infinite", "0 to 1", "negative"],
)
def test_what_is_no_such_network_is_refused_at_once(tmp_path: Path, contents: bytes, match: str) -> None:
    with pytest.raises(ModelError, match=match) as refusal:
        Lama(written(tmp_path / "net.onnx", contents))
    assert "\n" not in str(refusal.value)
    assert "inpainting_lama" in refusal.value.hint


def test_files_that_cannot_be_read_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "none.onnx", tmp_path, tmp_path / ("x" * 300)):
        with pytest.raises(ModelError, match=r"there is no network|cannot be read"):
            Lama(path)
    monkeypatch.setattr("dpveil.faces.geometry.lama.MOST", 10)
    with pytest.raises(ModelError, match="larger than"):
        Lama(written(tmp_path / "net.onnx", lama()))


def test_a_network_that_fails_later_fills_nothing(network: Lama, tmp_path: Path) -> None:
    other = Lama(written(tmp_path / "net.onnx", lama()))
    other._network = Confined("lama", lama(gain=float("nan")))
    with pytest.raises(ModelError, match="not finite"):
        recombine(textured(160, 220), two_heads(), [textured(128, 128)] * 2, filling=other)
