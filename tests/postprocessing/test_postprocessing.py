"""Steps that follow a release: they see one region of released pixels, and nothing else."""

import numpy as np
import pytest

import dpveil
from dpveil.core.certificate import parse_certificate
from dpveil.errors import InvalidParameter, UnknownName
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing import TABLE, GaussianBlur, Median, parse

FILTERS = [name for name in TABLE if name != "denoiser"]
"""Steps with a number; the network has tests of its own."""
SHAPES = [(1, 1, 1), (1, 1, 3), (1, 7, 3), (7, 1, 1), (2, 2, 3), (31, 17, 1), (16, 24, 3)]
USUAL = {"epsilon": 50, "block": 3, "neighbourhood": 1}


def speckled(shape, seed=1):
    words = SeededBits(seed).words(int(np.prod(shape)))
    return (words >> np.uint64(56)).astype(np.uint8).reshape(shape)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_steps_keep_shape_type_and_input(name, shape):
    image = speckled(shape)
    before = image.copy()
    out = parse(name)(image)
    assert out.shape == shape
    assert out.dtype == np.uint8
    assert np.array_equal(image, before)
    flat = np.full(shape, 77, np.uint8)
    assert np.abs(parse(name)(flat).astype(int) - 77).max() <= 1


@pytest.mark.parametrize("name", FILTERS)
def test_steps_smooth_each_channel_by_itself(name):
    image = 100 + speckled((40, 40, 3)) // 16
    image[:, :, 1] = 90
    out = parse(TABLE[name].usual)(image).astype(int)
    assert np.abs(out[:, :, 1] - 90).max() <= 1
    for k in (0, 2):
        variation = [np.abs(np.diff(shown[:, :, k].astype(int), axis=0)).mean() for shown in (image, out)]
        assert variation[1] < variation[0]
        alone = parse(TABLE[name].usual)(image[:, :, k : k + 1])
        assert np.array_equal(alone[:, :, 0], out[:, :, k])


@pytest.mark.parametrize("name", FILTERS)
def test_words_are_read_back_exactly(name):
    step = TABLE[name]
    assert parse(step.usual).description == step.usual
    assert parse(f" {step.usual} ") == parse(step.usual) == parse(parse(step.usual)) == parse(name)
    assert step.summary


@pytest.mark.parametrize(
    "text",
    [
        *(f"gaussian:{amount}" for amount in ("", "0", "-1", "nan", "1001", "1:2")),
        *(f"median:{side}" for side in ("", "1", "2", "3.0", "17", "three")),
    ],
)
def test_numbers_out_of_range_are_refused(text):
    with pytest.raises(InvalidParameter) as refusal:
        parse(text)
    assert refusal.value.hint


def test_an_unknown_step_names_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'gaussian'"):
        parse("gausian:1")
    with pytest.raises(UnknownName):
        parse("")


def test_steps_follow_the_draw_in_their_order_within_each_region():
    photo = dpveil.Photo(speckled((40, 50, 3)))
    box, steps = "5,6,20,21", ["gaussian:2", "median:3"]
    plain = dpveil.obfuscate(photo, "dp-pix", regions=box, bits=SeededBits(4), **USUAL)
    made = dpveil.obfuscate(photo, "dp-pix", regions=box, bits=SeededBits(4), post_processing=steps, **USUAL)
    inside = plain.image[6:27, 5:25]
    assert np.array_equal(made.image[6:27, 5:25], Median(3)(GaussianBlur(2)(inside)))
    assert not np.array_equal(made.image[6:27, 5:25], GaussianBlur(2)(Median(3)(inside)))
    outside = np.ones((40, 50), bool)
    outside[6:27, 5:25] = False
    assert np.array_equal(made.image[outside], photo.image[outside])
    assert made.certificate.post_processing == ("gaussian:2", "median:3")
    assert made.certificate.guarantees == plain.certificate.guarantees


def test_the_seam_reads_no_protected_pixel_and_no_neighbour():
    """The same draw on photos that differ outside the region gives the same region: steps end at its edge."""
    first = speckled((40, 50, 3))
    second = first.copy()
    second[:6] = 255 - second[:6]
    regions = [
        dpveil.obfuscate(
            photo, "dp-pix", regions="5,6,20,21", bits=SeededBits(4), post_processing="gaussian:5", **USUAL
        ).image[6:27, 5:25]
        for photo in (first, second)
    ]
    assert np.array_equal(regions[0], regions[1])


def test_certificates_state_the_steps_and_verify_checks_them(tmp_path):
    photo = speckled((20, 20, 3))
    release = dpveil.obfuscate(photo, "dp-pix", post_processing=["median"], **USUAL)
    image, beside = release.save(tmp_path / "a.png")
    assert dpveil.verify(image).status == "consistent"
    assert '"median:3"' in beside.read_text(encoding="utf-8")
    edited = parse_certificate(beside.read_text(encoding="utf-8"))
    for steps in (("median:03",), ("sharpen:1",), ("median",)):
        object.__setattr__(edited, "post_processing", steps)
        beside.write_text(edited.to_text(), encoding="utf-8")
        assert dpveil.verify(image).status == "inconsistent"
