"""One suite for every latent mechanism in the table."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from latent_spaces import FLAT, UNEVEN

from dpveil.accounting import compose
from dpveil.core.guarantee import Guarantee
from dpveil.core.registry import LATENT
from dpveil.errors import InvalidParameter, NoiseError, UnsupportedRelation
from dpveil.mechanisms.latent.base import STEPS
from dpveil.noise.bits import SecureBits, SeededBits
from sources import NoBits

SETTINGS = {
    "croft-metric": {"usual": {"epsilon": 20}, "every option": {"epsilon": "1/3", "clip": "12.5"}},
    "box-laplace": {
        "usual": {"epsilon": 20},
        "every option": {"epsilon": "1/3", "clip": 40, "allocation": "equal"},
    },
    "box-truncated-laplace": {
        "usual": {"epsilon": 20},
        "every option": {"epsilon": "1/3", "clip": 40, "allocation": "1-2=3"},
    },
    "pca-basis": {"usual": {"epsilon": 20}, "every option": {"epsilon": 3, "clip": "12.5", "ratio": 200}},
    "directional": {"usual": {"epsilon": 20}, "every option": {"epsilon": "1/3", "clip": 40}},
    "box-gaussian": {"usual": {"rho": 20}, "every option": {"rho": "1/3", "clip": 40}},
}
CASES = [(name, setting) for name, settings in SETTINGS.items() for setting in settings]
LITTLE = {"box-truncated-laplace": {"epsilon": "0.1"}, "pca-basis": {"ratio": "1e9"}}
"""For next to no budget: truncated draws take the longer, the less ε is; components have to be afforded."""
NOT_A_BUDGET = [0, -1, math.nan, math.inf, "lots", "", True, [1], 1e-30, 1e30, None]
CODES = np.array([[0.0, 7.0, 0.1], [0.9, 2.0, 0.25], [-1.0, 12.0, 0.0]])


def budget(name):
    """The name of the field that says what a release may cost."""
    return "rho" if name == "box-gaussian" else "epsilon"


def make(name, setting="usual", **changes):
    return LATENT[name](**(SETTINGS[name][setting] | changes))


def test_every_mechanism_has_settings():
    assert set(SETTINGS) == set(LATENT)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_states_its_guarantee_before_it_draws(name, setting):
    mechanism = make(name, setting)
    guarantee = mechanism.guarantee(UNEVEN)
    assert isinstance(guarantee, Guarantee)
    assert guarantee.kind == mechanism.kind
    stated = getattr(guarantee, budget(name))
    assert stated == Fraction(str(SETTINGS[name][setting][budget(name)])) == getattr(mechanism, budget(name))
    assert guarantee.relation.name == "latent-cell"
    assert "3 coordinates" in guarantee.scope.covers
    if guarantee.kind == "metric":
        assert guarantee.diameter == (2 if name == "directional" else 1)
        assert "2^-16" in guarantee.metric
        assert STEPS == 2**16
    json.dumps(guarantee.to_json())
    mechanism.prepare(UNEVEN)
    with pytest.raises(AssertionError, match="bits were drawn"):
        mechanism.release(CODES, UNEVEN, bits=NoBits())


@pytest.mark.parametrize("name", [name for name in LATENT if LATENT[name].metric])
def test_other_distances_are_never_added_up(name):
    """Boxes of another clip, and components that another budget affords, have distances of their own."""

    def promise(codec="a", **settings):
        mechanism = make(name, **settings)
        return replace(mechanism.guarantee(UNEVEN), distance=mechanism.distance_data(codec))

    first, others = promise(), [promise(clip="2.5"), promise(codec="b"), make(name).guarantee(UNEVEN)]
    for other in others:
        with pytest.raises(UnsupportedRelation):
            compose([first, other])
    more = promise(epsilon=30)
    assert compose([first, first]).epsilon == 2 * first.epsilon
    if name == "pca-basis":
        with pytest.raises(UnsupportedRelation):
            compose([first, more])
        with pytest.raises(UnsupportedRelation):
            compose([first, promise(ratio=1)])
    else:
        assert compose([first, more]).epsilon == 50


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_releases_are_points_of_the_grid_inside_of_the_box(name, setting):
    mechanism = make(name, setting)
    codes = np.tile(CODES, (200, 1))
    before = codes.copy()
    codes.flags.writeable = False
    released = mechanism.release(codes, UNEVEN, bits=SeededBits(1))
    assert np.array_equal(codes, before)
    assert released.shape == codes.shape
    assert released.dtype == np.float64
    box = UNEVEN.bounds(mechanism.clip)
    steps = (released - box.low) / box.width * STEPS
    assert np.all((released >= box.low) & (released <= box.high + 1e-12))
    assert np.allclose(steps, np.rint(steps), atol=1e-6)
    assert mechanism.release(codes[:0], UNEVEN, bits=SeededBits(1)).shape == (0, 3)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_codes_beyond_the_box_are_as_its_edge(name, setting):
    """A guarantee over the box must not see what is outside: the same bits give the same release."""
    mechanism = make(name, setting)
    box = UNEVEN.bounds(mechanism.clip)
    edge, far = box.high[None], box.high[None] + np.array([[1e-9, 1e300, 5.0]])
    outs = [mechanism.release(codes, UNEVEN, bits=SeededBits(2)) for codes in (edge, far)]
    assert np.array_equal(*outs)


@pytest.mark.parametrize("name", LATENT)
def test_what_lies_within_half_a_step_is_one_point(name):
    mechanism, box = make(name), UNEVEN.bounds()
    step = box.width / STEPS
    point = box.low + step * np.array([[1000, 40_000, 7]] * 20)
    shifts = (0.0, 0.4, -0.4, 0.9)
    outs = [mechanism.release(point + shift * step, UNEVEN, bits=SeededBits(3)) for shift in shifts]
    assert np.array_equal(outs[0], outs[1])
    assert np.array_equal(outs[0], outs[2])
    assert not np.array_equal(outs[0], outs[3])


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_same_bits_same_release_other_bits_another(name, setting):
    mechanism = make(name, setting)
    first = mechanism.release(CODES, UNEVEN, bits=SeededBits(4))
    assert np.array_equal(mechanism.release(CODES, UNEVEN, bits=SeededBits(4)), first)
    source = SecureBits()
    draws = [
        first,
        *(mechanism.release(np.zeros((40, 3)), UNEVEN, bits=b) for b in (SeededBits(5), source, source)),
    ]
    assert len({draw.tobytes() for draw in draws}) == 4


@pytest.mark.parametrize("name", LATENT)
@pytest.mark.parametrize(
    "codes",
    [np.zeros((2, 2)), np.zeros(3), np.full((1, 3), np.nan), np.full((1, 3), -np.inf), np.zeros((1, 3, 1))],
    ids=["short", "one", "nan", "inf", "deep"],
)
def test_codes_of_another_domain_are_refused(name, codes):
    with pytest.raises(InvalidParameter, match="codes"):
        make(name).release(codes, UNEVEN, bits=NoBits())


@pytest.mark.parametrize("name", LATENT)
def test_bits_are_asked_for(name):
    with pytest.raises(TypeError):
        make(name).release(CODES, UNEVEN)
    for none in (None, 7, np.random.default_rng(1)):
        with pytest.raises(InvalidParameter, match="bits"):
            make(name).release(CODES, UNEVEN, bits=none)


@pytest.mark.parametrize("name", LATENT)
def test_refuses_budgets_that_are_none(name):
    for value in NOT_A_BUDGET:
        with pytest.raises(InvalidParameter) as refusal:
            make(name, **{budget(name): value})
        assert refusal.value.name == budget(name)
        assert refusal.value.hint


@pytest.mark.parametrize("name", LATENT)
def test_there_is_no_default_budget(name):
    with pytest.raises(InvalidParameter, match=r"there is no default") as refusal:
        LATENT[name]()
    assert refusal.value.name == budget(name)


@pytest.mark.parametrize("name", ["croft-metric", "box-laplace"])
def test_noise_that_cannot_be_drawn_is_refused_before(name):
    mechanism = make(name, epsilon="1e-12")
    with pytest.raises(NoiseError):
        mechanism.prepare(FLAT)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_parameters_survive_json_and_are_frozen(name, setting):
    mechanism = make(name, setting)
    stored = json.loads(json.dumps(mechanism.parameters()))
    assert LATENT[name](**stored) == mechanism
    assert set(stored) == {field.name for field in dataclasses.fields(mechanism)}
    assert hash(make(name, setting)) == hash(mechanism)
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        setattr(mechanism, budget(name), 1000)
    with pytest.raises(TypeError):
        LATENT[name](5)


@pytest.mark.parametrize("name", LATENT)
def test_pure_noise_does_not_show_the_code(name):
    """At ε = 1e-6 both corners give nearly the same law on each side; 7 standard errors of a fair coin."""
    little = {budget(name): "1e-6"} | LITTLE.get(name, {})
    box = FLAT.bounds()
    means, count = [], 1000 if name == "directional" else 4000
    for seed, corner in enumerate((box.low, box.high)):
        codes = np.tile(corner, (count, 1))
        released = make(name, **little).release(codes, FLAT, bits=SeededBits(seed))
        means.append(((released - box.low) / box.width).mean(axis=0))
    assert np.all(np.abs(means[0] - means[1]) < 7 * 0.5 * math.sqrt(2 / count))
