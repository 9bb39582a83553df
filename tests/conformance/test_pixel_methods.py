"""One suite for every pixel-space method in the table (style 13): what a user may rely on."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from dpveil.core.guarantee import KINDS, Guarantee
from dpveil.core.registry import PIXEL
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SecureBits, SeededBits
from sources import NoBits

SETTINGS = {
    "dp-pix": {
        "usual": {"epsilon": 5, "block": 4, "neighbourhood": 2},
        "block larger than the image": {"epsilon": "1/3", "block": 1000},
        "every option": {"epsilon": 0.1, "block": 3, "neighbourhood": 7},
        "pure noise": {"epsilon": "0.001"},
        "with delta": {"epsilon": 3, "delta": "1e-6", "block": 4, "neighbourhood": 2},
    },
    "dp-pix-gaussian": {
        "usual": {"epsilon": 5, "delta": "1e-5", "block": 4, "neighbourhood": 2},
        "block larger than the image": {"rho": "1/3", "block": 1000},
        "every option": {"rho": 0.1, "block": 3, "neighbourhood": 7},
        "pure noise": {"rho": "1e-8"},
    },
    "dp-svd": {
        "usual": {"epsilon": 5, "rank": 3},
        "rank above the sides": {"epsilon": "1/3", "rank": 1000},
        "pure noise": {"epsilon": "1e-6", "rank": 4},
    },
    "dct-gaussian": {
        "usual": {"epsilon": 5, "delta": "1e-5", "block": 4, "neighbourhood": 2},
        "block larger than the image": {"rho": "1/3", "block": 16},
        "every option": {"rho": 0.1, "block": 3, "neighbourhood": 7, "coefficients": 2, "raw": True},
        "pure noise": {"rho": "1e-7", "raw": True},
    },
    "dp-samp": {
        "usual": {"epsilon": 5, "clusters": 4, "neighbourhood": 1},
        "private clusters": {
            "epsilon": 5,
            "clusters": 4,
            "neighbourhood": 1,
            "private_clusters": True,
            "rate": 0.3,
        },
        "pure noise": {"epsilon": 0.001, "clusters": 3, "private_clusters": True, "rate": "1e-12"},
    },
    "blur": {"usual": {"sigma": 2}, "wide": {"sigma": "100/3"}},
    "mosaic": {"usual": {"block": 4}, "block larger than the image": {"block": 1000}},
    "fill": {"usual": {}, "grey": {"level": 127}},
    "ssim-exponential": {
        "usual": {"epsilon": 1000, "block": 2},
        "block larger than the image": {"epsilon": "1/3", "block": 1000},
        "every option": {"rho": 9, "block": 3, "window": 2, "levels": 3},
        "pure noise": {"epsilon": "0.001", "levels": 16},
        "with delta": {"epsilon": 30, "delta": "1e-6", "block": 2, "window": 2, "levels": 8},
    },
    "snow": {
        "usual": {"delta": "0.3"},
        "most shown": {"delta": "0.99"},
        "pure noise": {"delta": "1e-12"},
    },
    "mse-exponential": {
        "usual": {"epsilon": 5, "block": 4},
        "block larger than the image": {"epsilon": "1/3", "block": 1000},
        "every option": {"epsilon": 0.1, "block": 3, "levels": 7},
        "pure noise": {"epsilon": "0.001"},
        "with rho": {"rho": "0.2", "block": 2, "levels": 2},
        "with delta": {"epsilon": 3, "delta": "1e-6", "block": 4},
    },
    "bit-planes": {
        "usual": {"epsilon": 5, "neighbourhood": 2},
        "groups larger than the image": {"epsilon": "1000/3", "wavelet": 8},
        "every option": {"epsilon": 70, "wavelet": 2, "neighbourhood": 3, "drop_coarse": True},
        "pure noise": {"epsilon": "0.001"},
        "with rho": {"rho": "0.2", "neighbourhood": 2},
        "with delta": {"epsilon": 3, "delta": "1e-6", "neighbourhood": 2},
    },
}
"""For each method: settings under which it is tried; `usual`, and `pure noise` where it draws, are needed."""
BASELINES = {"blur", "mosaic", "fill"}
"""Functions of the pixels, which draw nothing: what is asked of noise is not asked of them."""
SHOWS_PIXELS = {"dp-samp"}
"""Methods that show true pixels or none at all, by design and by their scope: levels get no noise."""
ONE_LEVEL: set[str] = set()
"""Methods that show one level for a whole region: in pure noise nearly always 0 or 255."""
NOISY = [name for name in PIXEL if name not in BASELINES]
ALIKE = {(n, s) for n in SETTINGS for s in SETTINGS[n] if n in BASELINES}
ALIKE |= {(name, "pure noise") for name in ("snow", "dp-samp", *ONE_LEVEL)}
"""Settings in which all releases are the same picture, or are one of few."""

SHAPES = [(1, 1), (1, 1, 1), (1, 1, 3), (9, 1), (1, 9, 3), (4, 4), (7, 5, 1), (7, 5, 3)]
SHAPES += [(33, 17), (17, 33, 3)]
HIDES_ALL = [name for name in NOISY if "metric" not in PIXEL[name].kinds and name not in ONE_LEVEL]
"""Methods whose noise hides every pixel; a metric guarantee shows the rest, such as singular vectors. Of one
level, one release is one draw, which says too little here: its audit says it."""
CASES = [(name, setting) for name, settings in SETTINGS.items() for setting in settings]
NOT_A_BUDGET = [
    0,
    -1,
    -0.5,
    math.nan,
    math.inf,
    -math.inf,
    "nan",
    "inf",
    "",
    "lots",
    True,
    [1],
    1j,
    1e-30,
    1e30,
]
NOT_A_COUNT = [0, -1, 1.5, 2.0, True, "4", math.nan, [2], 2**40]


def make(name, setting="usual", **changes):
    return PIXEL[name](**(SETTINGS[name][setting] | changes))


def uneven(shape, offset=0):
    """An image without the levels 0, 127 and 255, at which clamped noise and snow pile up."""
    levels = ((np.arange(np.prod(shape)) * 37 + offset) % 254 + 1).astype(np.uint8).reshape(shape)
    return np.where(levels == 127, np.uint8(128), levels)


def finest(name, setting):
    """Cells of one pixel, so that releases have much in which to differ."""
    own = PIXEL[name].__dataclass_fields__
    return {field: 1 for field in ("block", "wavelet") if field in own and setting != "usual"}


def test_every_method_has_settings():
    assert set(SETTINGS) == set(PIXEL)
    assert all({"usual", "pure noise"} <= set(SETTINGS[name]) for name in NOISY)
    assert all("usual" in SETTINGS[name] for name in BASELINES)


def test_every_method_has_its_name_and_words():
    for name, method in PIXEL.items():
        assert method.name == name == name.lower()
        assert method.kinds, name
        assert set(method.kinds) <= set(KINDS)
        assert method.summary, name
        assert method.source, name
        assert ">>>" in (method.__doc__ or ""), name


@pytest.mark.parametrize(("name", "setting"), CASES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_keeps_shape_and_type_and_leaves_the_input_alone(name, setting, shape):
    image = uneven(shape)
    before = image.copy()
    image.flags.writeable = False
    out = make(name, setting).release(image, bits=SeededBits(1))
    assert out.shape == shape
    assert out.dtype == np.uint8
    assert not np.shares_memory(out, image)
    assert np.array_equal(image, before)


@pytest.mark.parametrize("name", PIXEL)
def test_memory_layout_does_not_matter(name):
    image = uneven((14, 10, 3))
    odd = np.asfortranarray(image)[::-1, ::-1][::-1, ::-1]
    crop = np.pad(image, ((2, 1), (3, 0), (0, 0)))[2:-1, 3:]
    plain = make(name).release(image, bits=SeededBits(2))
    assert np.array_equal(make(name).release(odd, bits=SeededBits(2)), plain)
    assert np.array_equal(make(name).release(crop, bits=SeededBits(2)), plain)


@pytest.mark.parametrize(("name", "setting"), [case for case in CASES if case not in ALIKE])
def test_same_bits_same_release_other_bits_another(name, setting):
    image, method = uneven((48, 48, 3)) // 50 * 50, make(name, setting, **finest(name, setting))
    first = method.release(image, bits=SeededBits(3))
    assert np.array_equal(method.release(image, bits=SeededBits(3)), first)
    source = SeededBits(3)
    draws = [method.release(image, bits=source) for _ in range(2)]
    draws += [method.release(image, bits=SeededBits(4)), method.release(image, bits=SeededBits(3, "other"))]
    secure = SecureBits()
    draws += [method.release(image, bits=secure), method.release(image, bits=secure)]
    draws += [method.release(image, bits=SecureBits())]
    assert np.array_equal(draws[0], first)
    distinct = {draw.tobytes() for draw in draws}
    assert len(distinct) == len(draws)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_states_its_guarantee_before_it_draws(name, setting):
    method = make(name, setting)
    guarantee = method.guarantee(height=7, width=5, channels=3)
    assert isinstance(guarantee, Guarantee)
    assert guarantee.kind == method.kind
    assert guarantee.kind in method.kinds
    assert guarantee == method.guarantee(height=7, width=5, channels=3)
    for number in ("epsilon", "delta", "rho"):
        if guarantee.formal and getattr(method, number, None) is not None:
            assert getattr(guarantee, number) == getattr(method, number)
    json.dumps(guarantee.to_json())
    scale = method.noise_scale(height=7, width=5, channels=3)
    assert (scale is None) == (name in BASELINES | SHOWS_PIXELS)
    assert scale is None or 0 < scale < math.inf
    image = uneven((7, 5, 3)) % 2 * 100
    if name in BASELINES:
        assert method.release(image, bits=NoBits()).shape == image.shape
        return
    with pytest.raises(AssertionError, match="bits were drawn"):
        method.release(image, bits=NoBits())


@pytest.mark.parametrize("name", PIXEL)
def test_bits_are_asked_for(name):
    with pytest.raises(TypeError):
        make(name).release(uneven((4, 4)))


@pytest.mark.parametrize("name", [name for name in NOISY if name not in SHOWS_PIXELS])
@pytest.mark.parametrize("shape", [(9, 7), (9, 7, 3), (1, 33), (33, 1, 3), (16, 24, 3), (17, 17)], ids=str)
def test_no_input_pixel_is_copied_through(name, shape):
    """In pure noise, a pixel equals the input in all of 12 draws with probability below 1e-12."""
    image, method, source = uneven(shape), make(name, "pure noise"), SeededBits(5)
    copied = np.ones(shape, bool)
    for _ in range(12):
        copied &= method.release(image, bits=source) == image
    assert not copied.any()


@pytest.mark.parametrize("name", HIDES_ALL)
def test_pure_noise_does_not_show_the_input(name):
    """Means over 30 × 30 blocks and both inputs differ by less than 7 standard errors of clamped noise."""
    black, white = (np.full((240, 240), level, np.uint8) for level in (0, 255))
    means = [
        make(name, "pure noise").release(i, bits=SeededBits(k)).mean() for k, i in enumerate((black, white))
    ]
    assert abs(means[0] - means[1]) < 7 * 127.5 * math.sqrt(2) / 30


@pytest.mark.parametrize("name", PIXEL)
def test_refuses_what_is_no_8_bit_image(name):
    kinds = [np.zeros((4, 4), kind) for kind in (np.float64, np.uint16, np.int8, bool)]
    shapes = [(0, 4), (4, 0, 3), (4, 4, 0), (4, 4, 2), (4, 4, 4), (4,), (1, 4, 4, 3)]
    for image in [*kinds, *(np.zeros(shape, np.uint8) for shape in shapes)]:
        with pytest.raises(InvalidParameter) as refusal:
            make(name).release(image, bits=NoBits())
        assert refusal.value.hint
    for height, width, channels in [(0, 4, 1), (4, -1, 1), (4, 4, 0), (4.5, 4, 1), (4, True, 1)]:
        with pytest.raises(InvalidParameter):
            make(name).guarantee(height=height, width=width, channels=channels)


def fields_named(*names):
    return [
        (n, f)
        for n, method in PIXEL.items()
        for f in names
        if f in {x.name for x in dataclasses.fields(method)}
    ]


@pytest.mark.parametrize(("name", "field"), fields_named("epsilon", "rho"))
def test_refuses_budgets_that_are_none(name, field):
    for value in NOT_A_BUDGET:
        with pytest.raises(InvalidParameter) as refusal:
            make(name, **{field: value})
        assert refusal.value.name == field
        assert refusal.value.hint


@pytest.mark.parametrize(("name", "field"), fields_named("epsilon"))
def test_a_missing_budget_says_how_to_choose(name, field):
    others = {k: v for k, v in SETTINGS[name]["usual"].items() if k != field}
    for given in ({}, {field: None}):
        with pytest.raises(InvalidParameter, match=r"there is no default|give rho alone"):
            PIXEL[name](**others, **given)


@pytest.mark.parametrize(
    ("name", "field"), fields_named("block", "neighbourhood", "window", "levels", "clusters", "rank")
)
def test_refuses_counts_that_are_none(name, field):
    for value in NOT_A_COUNT:
        with pytest.raises(InvalidParameter) as refusal:
            make(name, **{field: value})
        assert refusal.value.name == field


@pytest.mark.parametrize("name", PIXEL)
def test_parameters_are_keywords_known_and_frozen(name):
    method = make(name)
    with pytest.raises(TypeError):
        PIXEL[name](5)
    with pytest.raises(TypeError):
        make(name, no_such_parameter=1)
    field = dataclasses.fields(method)[0].name
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        setattr(method, field, 1000)
    assert make(name) == method
    assert hash(make(name)) == hash(method)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_parameters_survive_json_exactly(name, setting):
    method = make(name, setting)
    stored = json.loads(json.dumps(method.parameters()))
    assert PIXEL[name](**stored) == method
    assert set(stored) == {field.name for field in dataclasses.fields(method)}


@pytest.mark.parametrize(("name", "field"), fields_named("epsilon"))
def test_budgets_are_their_shortest_decimal(name, field):
    for value in (0.1, "0.1", Fraction(1, 10), np.float32(0.1), np.float64(0.1)):
        assert getattr(make(name, **{field: value}), field) == Fraction(1, 10)
