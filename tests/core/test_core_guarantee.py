from __future__ import annotations

import io
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dpveil
from dpveil.core.guarantee import KINDS, RELATIONS, Guarantee, Relation, Scope
from dpveil.core.parameters import Between, Count, OptionalCount, OptionalProbability, Positive
from dpveil.core.photo import Photo
from dpveil.core.region import Box, CoverageDigests, Region
from dpveil.core.region_origin import Origin
from dpveil.errors import InvalidParameter

SCOPE = Scope("the photo", ("its size",))
ANY = Relation("any-image")
WHOLE = {
    "pure": {"epsilon": 0.1},
    "approximate": {"epsilon": 1, "delta": "1e-6"},
    "zcdp": {"rho": Fraction(1, 3)},
    "metric": {"epsilon": 2, "metric": "mean |x - y|", "diameter": 1},
    "heuristic": {"broken_by": ("parrot attack",)},
}
SPOKEN = {
    "pure": "0.1-DP, any-image",
    "approximate": "(1, 1e-06)-DP, any-image",
    "zcdp": "0.3334-zCDP, any-image",
    "metric": "2·d-privacy, d = mean |x - y|, diameter 1, any-image",
    "heuristic": "no formal guarantee",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_speaks_and_carries_exactly_its_fields(kind):
    guarantee = Guarantee(kind=kind, relation=ANY, scope=SCOPE, **WHOLE[kind])
    assert str(guarantee) == SPOKEN[kind]
    assert guarantee.formal == (kind != "heuristic")
    assert set(guarantee.to_json()) == {"kind", "relation", "scope", *KINDS[kind]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_fields_of_another_kind_are_refused(kind, other):
    if kind == other:
        return
    with pytest.raises(InvalidParameter, match=f"in a {kind} guarantee"):
        Guarantee(kind=kind, relation=ANY, scope=SCOPE, **WHOLE[other])


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "pure", "epsilon": -1},
        {"kind": "approximate", "epsilon": 1, "delta": 2},
        {"kind": "approximate", "epsilon": 1, "delta": -1},
        {"kind": "strong", "epsilon": 1},
        {"kind": "pure", "epsilon": "nan"},
    ],
)
def test_impossible_guarantees_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        Guarantee(relation=ANY, scope=SCOPE, **wrong)


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_say_who_is_a_neighbour(name):
    relation = Relation(name, 16 if name == "m-pixels" else None)
    assert ("16 pixels" in relation.in_words()) == (name == "m-pixels")
    assert relation.to_json()["name"] == name


@pytest.mark.parametrize(
    ("name", "m"),
    [
        ("any-image", 1),
        ("m-pixels", None),
        ("m-pixels", 0),
        ("cousins", None),
        ("m-pixels", 1.5),
        ("m-pixels", True),
    ],
)
def test_impossible_relations_are_refused(name, m):
    with pytest.raises(InvalidParameter):
        Relation(name, m)


class Knobs:
    epsilon: Positive = Positive()
    delta: OptionalProbability = OptionalProbability()
    blur: Between = Between("1e-9", 1000, hint="such as 1")
    block: Count = Count(default=1)
    m: OptionalCount = OptionalCount(optional=True)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("epsilon", "1e12", Fraction(10**12)),
        ("epsilon", 1e-12, Fraction(1, 10**12)),
        ("delta", 0.5, Fraction(1, 2)),
        ("blur", "1e-9", Fraction(1, 10**9)),
        ("blur", 1000, Fraction(1000)),
        ("block", 2**31, 2**31),
        ("m", None, None),
        ("m", 1, 1),
    ],
)
def test_parameters_accept_up_to_their_ends(name, given, kept):
    knobs = Knobs()
    setattr(knobs, name, given)
    value = getattr(knobs, name)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("epsilon", 0),
        ("epsilon", -1),
        ("epsilon", None),
        ("epsilon", 1e13),
        ("epsilon", "1e-13"),
        ("delta", 0),
        ("delta", 1),
        ("delta", None),
        ("blur", 0),
        ("blur", 1001),
        ("block", 0),
        ("block", 2**31 + 1),
        ("block", 1.0),
        ("block", "16"),
        ("block", True),
        ("block", None),
        ("m", 0),
        ("m", -1),
    ],
)
def test_parameters_refuse_beyond_their_ends_and_name_themselves(name, given):
    with pytest.raises(InvalidParameter) as caught:
        setattr(Knobs(), name, given)
    assert caught.value.name == name
    assert name in str(caught.value)
    assert caught.value.hint


def test_a_missing_budget_explains_how_to_choose():
    with pytest.raises(
        InvalidParameter, match=r"epsilon is missing: there is no default: 1 or less is strong, 2 moderate"
    ):
        Knobs().epsilon = None


# What a ledger compares between releases: which photo it is, and which of its pixels are replaced.


EVERY = Relation("any-image")
LEVELS = np.arange(12 * 10 * 3, dtype=np.uint16).astype(np.uint8).reshape(12, 10, 3)
PHOTO = Photo(LEVELS)


def of(*regions: Region, photo: Photo = PHOTO, relation: Relation = EVERY) -> CoverageDigests:
    return CoverageDigests.of(photo, regions or [Region.whole(photo)], relation)


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
    assert planned.coverage == of(Region(Box(1, 2, 6, 4)))
    copied = dpveil.plan(LEVELS, "fill", regions="faces", if_none="copy")
    assert copied.coverage is None


def test_digests_come_back_from_json() -> None:
    assert CoverageDigests.from_json(of().to_json()) == of()


def test_a_representation_has_no_digest() -> None:
    made = of()
    assert repr(made).startswith("<dpveil.core.region.CoverageDigests object")


def test_a_photo_is_a_read_only_copy_with_channels_last():
    levels = np.arange(6, dtype=np.uint8).reshape(2, 3)
    photo = Photo(levels)
    levels[:] = 0
    assert photo.image[:, :, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (photo.height, photo.width, photo.channels) == (2, 3, 1)
    with pytest.raises(ValueError, match="read-only"):
        photo.image[0, 0, 0] = 9


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((2, 2)),
        np.zeros((2, 2, 4), np.uint8),
        np.zeros((0, 2), np.uint8),
        np.zeros(4, np.uint8),
        [[1]],
        None,
        np.zeros((2, 2, 2), np.uint8),
        np.zeros((1, 2, 2, 3), np.uint8),
    ],
)
def test_other_arrays_are_refused(image):
    with pytest.raises(InvalidParameter, match="image"):
        Photo(image)


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 1), (0, 0, 1, -1), (0.5, 0, 1, 1), (True, 0, 1, 1), ("0", 0, 1, 1)]
)
def test_impossible_boxes_are_refused(box):
    with pytest.raises(InvalidParameter, match="box"):
        Box(*box)


@pytest.mark.parametrize(
    ("box", "inside"),
    [
        ((0, 0, 5, 4), True),
        ((1, 0, 5, 4), False),
        ((0, 1, 5, 4), False),
        ((-1, 0, 2, 2), False),
        ((4, 3, 1, 1), True),
    ],
)
def test_a_box_is_inside_up_to_the_last_pixel(box, inside):
    assert Box(*box).inside(5, 4) is inside


def test_paste_replaces_only_what_the_mask_covers():
    image = np.arange(20, dtype=np.uint8).reshape(4, 5, 1)
    before = image.copy()
    mask = np.array([[True, False], [False, True]])
    region = Region(Box(2, 1, 2, 2), mask, Origin("mask"))
    region.paste(image, np.full((2, 2, 1), 99, np.uint8))
    changed = np.argwhere(image[:, :, 0] != before[:, :, 0]).tolist()
    assert changed == [[1, 2], [2, 3]]
    assert region.pixels == 2
    assert region.record.in_words() == "mask: 2×2 pixels at 2,1, of which 2 are replaced"


def test_regions_meet_where_both_replace_a_pixel():
    def pixels(region):
        canvas = np.zeros((11, 11), bool)
        canvas[region.box.slices] = True if region.mask is None else region.mask
        return canvas

    masks = (None, np.eye(3, dtype=bool), np.eye(3, dtype=bool)[::-1])
    for mask, other, x, y in product(masks, masks, range(9), range(9)):
        one, two = Region(Box(4, 4, 3, 3), mask), Region(Box(x, y, 3, 3), other)
        assert one.meets(two) == two.meets(one) == (pixels(one) & pixels(two)).any()


@pytest.mark.parametrize("mask", [np.ones((3, 2), bool), np.zeros((2, 2), bool), np.ones((2, 2), np.uint8)])
def test_masks_that_do_not_fit_are_refused(mask):
    with pytest.raises(InvalidParameter, match="mask"):
        Region(Box(0, 0, 2, 2), mask)
