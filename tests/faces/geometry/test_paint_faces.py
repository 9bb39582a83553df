"""Recombination: the protected pixels are never read, the others never change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from geometry_made import cell_near, placed, released, textured
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage import data

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces.drawn_face import CropFace
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.place import Placed
from dpveil.faces.paint_faces import NECK, _column, paint_faces
from dpveil.regions.growth import grow


def test_the_neck_is_narrower_than_the_head_and_ends() -> None:
    """In a frame of 1000 pixels a side, whose centre is the head's."""
    seen = _column(Similarity(1 / 1000, 0.0, -0.5, -0.5), Box(0, 0, 1000, 1000))
    chin, half, soft, end = (round(1000 * part) for part in NECK)
    assert seen[: chin - soft].min() == 1
    below = seen[chin + soft : chin + end] > 0.5
    assert below[:, 500].all()
    assert 2 * half - soft < below.sum(axis=1).max() < 2 * (half + soft)
    assert not seen[chin + end + 2 :].any()


def ellipse(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return ((x - width / 2) / (width / 2)) ** 2 + ((y - height / 2) / (height / 2)) ** 2 <= 1


def hidden(image: np.ndarray, places: list[Placed]) -> np.ndarray:
    mask = np.zeros(image.shape[:2], bool)
    for place in places:
        mask[place.region.box.slices] |= True if place.region.mask is None else place.region.mask
    return mask


def places(kind: str) -> list[Placed]:
    """Faces in 160 × 200 pixels."""
    made = {
        "box": [placed(Box(40, 30, 90, 100))],
        "mask": [placed(Box(40, 30, 90, 100), mask=ellipse(100, 90), angle=0.3)],
        "two": [placed(Box(20, 30, 90, 100)), placed(Box(80, 10, 70, 120), mask=ellipse(120, 70), unit=50.0)],
        "corner": [placed(Box(0, 0, 60, 70), centre=(10.0, 12.0), unit=60.0)],
        "tiny": [placed(Box(50, 50, 10, 10), unit=6.0), placed(Box(199, 159, 1, 1), unit=10.0)],
        "margin": [placed(Box(30, 20, 120, 120), frame=Frame(96, 0.5), angle=-0.4)],
        "everything": [placed(Box(0, 0, 200, 160))],
        "far": [placed(Box(100, 100, 40, 40), centre=(-900.0, 20.0), unit=20.0)],
    }
    return made[kind]


KINDS = ["box", "mask", "two", "corner", "tiny", "margin", "everything", "far"]


CASES = [(kind, protect, 3) for kind in KINDS for protect in ("head", "face")]
CASES += [(kind, protect, 1) for kind in ("mask", "two", "everything") for protect in ("head", "face")]


@pytest.mark.parametrize(("kind", "protect", "channels"), CASES)
def test_no_protected_pixel_is_read_and_no_other_changes(kind, protect, channels):
    """The proof of `paint_faces`, on pictures: whatever was under the regions, the output is the same."""
    image = textured(160, 200, seed=1, channels=channels)
    faces = [replace(face, protect=protect) for face in places(kind)]
    shown = [released(place, 9 + number) for number, place in enumerate(faces)]
    mask = hidden(image, faces)
    first = paint_faces(image, faces, shown)
    assert first.shape == image.shape
    assert first.dtype == np.uint8
    assert (first[~mask] == image[~mask]).all()
    rng = np.random.default_rng(2)
    for other in (0, 255, rng.integers(0, 256, (int(mask.sum()), channels), np.uint8)):
        changed = image.copy()
        changed[mask] = other
        assert (paint_faces(changed, faces, shown) == first).all()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 150), st.integers(0, 110), st.integers(1, 120), st.integers(1, 120),
    st.floats(3, 200), st.floats(-3, 3), st.integers(0, 2**16), st.booleans(),
    st.sampled_from(["head", "face"]),
)  # fmt: skip
def test_no_protected_pixel_is_read_anywhere(x, y, w, h, unit, angle, seed, masked, protect):
    box = Box(x, y, min(w, 200 - x), min(h, 160 - y))
    mask = np.random.default_rng(seed).random((box.h, box.w)) < 0.6 if masked else None
    if mask is not None:
        mask[0, 0] = True
    faces = [placed(box, unit=float(unit), angle=float(angle), mask=mask, frame=Frame(48), protect=protect)]
    image, shown = textured(160, 200, seed=seed), [released(faces[0], seed + 1)]
    under = hidden(image, faces)
    changed = image.copy()
    changed[under] ^= textured(160, 200, seed=seed + 2)[under] | 1
    first = paint_faces(image, faces, shown)
    assert (first == paint_faces(changed, faces, shown)).all()
    assert (first[~under] == image[~under]).all()


@pytest.mark.parametrize("protect", ["head", "face"])
def test_every_protected_pixel_is_replaced(protect):
    """With a photo of 0 under the region, and 200 around and in the face, nothing of 0 is left.

    The darkest there is follows from the light of a wall at the edge.
    """
    image = np.full((160, 200, 3), 200, np.uint8)
    for kind in ("box", "mask", "two"):
        faces = [replace(face, protect=protect) for face in places(kind)]
        dark = image.copy()
        dark[hidden(image, faces)] = 0
        out = paint_faces(dark, faces, [released(face, level=200) for face in faces])
        assert out.min() >= 110


def test_small_faces_at_the_side_that_look_away_or_show_no_skin_are_out_of_focus():
    image = (textured(160, 200, seed=3) // 16 + np.array((180, 130, 105))).astype(np.uint8)
    large, side = replace(placed(Box(10, 20, 90, 110)), protect="face"), Box(146, 68, 16, 20)

    def sharpness(photo, yaw, box, *others):
        cell = cell_near(80, 0, 3.9, 1.95, yaw)
        small = replace(placed(box, unit=25.0), protect="face", cell=cell)
        faces = [*others, small]
        out = paint_faces(photo, faces, [released(face) for face in faces])[box.slices].astype(float)
        return np.abs(np.diff(out, axis=0)).mean() + np.abs(np.diff(out, axis=1)).mean()

    for yaw in (0, 1, 2, -2, None):
        aside = sharpness(image, yaw, side, large) < 0.8 * sharpness(image, yaw, side)
        assert aside == (yaw not in (0, 1))
    blue = np.full_like(image, (30, 60, 200))
    assert sharpness(blue, 0, side, large) < 0.8 * sharpness(blue, 0, side)
    cut = Box(184, 68, 16, 20)
    assert sharpness(image, 0, cut, large) < 0.8 * sharpness(image, 0, cut)


def test_the_face_is_in_the_middle_and_meets_the_photo_at_the_edge():
    image = np.full((160, 200, 3), (40, 60, 120), np.uint8)
    (face,) = places("box")
    out = paint_faces(image, [face], [released(face, level=160)]).astype(int)
    assert out[85, 85] == pytest.approx((160, 160, 160), abs=6)
    box = face.region.box
    edge = np.concatenate([out[box.y, box.x : box.x + box.w], out[box.y : box.y + box.h, box.x]])
    assert np.abs(edge - (40, 60, 120)).max() <= 6


@pytest.mark.parametrize("tops", [(10, 24), (0, 0)])
def test_of_two_faces_of_one_size_the_lower_is_on_top(tops: tuple[int, int]):
    """The lower head, that is: at the edge of the photo both boxes may begin in one row."""
    pairs = zip(tops, (60, 74), strict=True)
    high, low = (placed(Box(40, top, 100, 110), unit=60.0, centre=(90, row)) for top, row in pairs)
    heads = [released(place, level=level) for place, level in ((high, 40), (low, 180))]
    image = np.full((160, 200, 3), 200, np.uint8)
    for order in ([0, 1], [1, 0]):
        out = paint_faces(image, [(high, low)[i] for i in order], [heads[i] for i in order])
        assert out[70, 90].tolist() == pytest.approx([180] * 3, abs=2)


def test_an_inner_face_goes_on_before_one_behind_it():
    """Its own region ends in the middle of it; what else is hidden shows the rest of it."""
    front = replace(placed(Box(70, 30, 60, 100), unit=70.0, centre=(75, 80)), protect="face")
    behind = replace(placed(Box(20, 40, 50, 80), unit=50.0, centre=(45, 80)), protect="face")
    image = textured(160, 200, seed=4)

    class Shown:
        def light(self, planes):
            none = np.zeros((*planes.shape[:2], 3), np.float32)
            return none, np.ones(planes.shape[:2], np.float32), none

    class Lit(CropFace):
        model = Shown()

    def shown(seed):
        face = Lit(textured(front.frame.size, front.frame.size, seed), front.frame)
        return paint_faces(image, [front, behind], [face, released(behind)]).astype(int)

    changed = np.abs(shown(1) - shown(2)).max(axis=2)
    assert changed[60:100, 55:70].mean() > 10
    assert (changed[:, :35] == 0).all()


def test_filling_meets_its_surroundings_and_reads_nothing_else():
    y, x = np.mgrid[:500, :750]
    ramp = np.stack([x * 0.3, y * 0.5, 250 - x * 0.3], axis=2).astype(np.uint8)
    hole = np.zeros((500, 750), bool)
    hole[123:376, 201:502] = True
    first = fill(ramp, hole)
    changed = np.where(hole[..., None], np.uint8(255), ramp)
    assert (fill(changed, hole) == first).all()
    rim = hole.copy()
    rim[131:368, 209:494] = False
    assert np.abs(first.astype(int) - ramp)[rim].max() <= 12
    assert np.abs(first.astype(int) - ramp)[hole].max() <= 45
    assert (fill(ramp, np.ones_like(hole)) == 128).all()
    part = Box(170, 90, 400, 330)
    assert np.abs(fill(ramp, hole, part).astype(int) - first[90:420, 170:570]).max() <= 1


def test_a_region_grown_to_jpeg_blocks_is_replaced_as_a_whole(tmp_path):
    from PIL import Image

    from dpveil.io.reading import read

    Image.fromarray(data.astronaut()).save(tmp_path / "a.jpg", quality=80)
    photo = read(tmp_path / "a.jpg")
    face = placed(Box(150, 40, 150, 160))
    wide = grow(face.region, photo)
    assert wide.pixels > face.region.pixels
    face = replace(face, region=wide)
    first = paint_faces(photo.image, [face], [released(face)])
    changed = photo.image.copy()
    changed[wide.box.slices] ^= 255
    assert (paint_faces(changed, [face], [released(face)]) == first).all()


def test_faces_that_do_not_fit_are_refused():
    image, faces = textured(160, 200), places("box")
    for shown in ([], [released(faces[0])] * 2):
        with pytest.raises(InvalidParameter, match="faces"):
            paint_faces(image, faces, shown)
    with pytest.raises(InvalidParameter, match="protect = 'head' is not for faces alone"):
        paint_faces(image, faces, [CropFace(textured(128, 128), Frame())])
    assert (paint_faces(image, [], []) == image).all()


@pytest.mark.parametrize(
    "box", [Box(-2, 0, 40, 5), Box(-9, -9, 9, 9), Box(150, 100, 60, 40), Box(300, 0, 5, 5)]
)
def test_regions_outside_of_the_photo_are_refused(box):
    with pytest.raises(RegionError, match="is outside the photo, which is 200 × 160"):
        paint_faces(textured(160, 200), [placed(box)], [released(placed(box))])


def test_a_photo_stays_as_it_was():
    photo = Photo(textured(160, 200))
    before = photo.image.copy()
    paint_faces(photo.image, places("two"), [released(place) for place in places("two")])
    assert (photo.image == before).all()
