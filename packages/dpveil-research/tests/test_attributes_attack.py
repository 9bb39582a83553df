"""The attackers of the attributes method, in a made world in which their best is known."""

from __future__ import annotations

import numpy as np
import pytest
from made_nobody import crop, gallery, model

from dpveil.errors import UsageError
from dpveil.faces import Attributes
from dpveil.noise.bits import SeededBits
from dpveil_research.attributes import (
    Held,
    by_embedding,
    by_law,
    by_learning,
    by_parrot,
    by_telling,
    difference,
    likelihoods,
    of,
    prices,
    read_people,
    row,
)

GALLERY, MODEL = gallery(each=1), model()
NAMES = tuple(f"person {number}" for number in range(8))
LOOKS = {"gender": np.arange(8) % 2, "age": np.arange(8) // 2 % 4}
"""Everybody has a combination of their own."""


def method(attributes):
    return Attributes(attributes=attributes, gallery=GALLERY, model=MODEL)


def held(photos=50):
    looks = {name: np.repeat(places, photos) for name, places in LOOKS.items()}
    rng = np.random.default_rng(1)
    return Held(NAMES, photos, rng.normal(size=(8 * photos, 4)), looks, rng.normal(size=(len(GALLERY), 4)))


def released(own, times, seed=3):
    """Return which faces are shown for everybody's crop, and whose crops they were."""
    crops = np.stack([crop({name: places[k] for name, places in LOOKS.items()}, seed=k) for k in range(8)])
    faces = {face.tobytes(): number for number, face in enumerate(GALLERY.faces)}
    shown = own.release(np.tile(crops, (times, 1, 1, 1)), bits=SeededBits(seed))
    return np.array([faces[face.tobytes()] for face in shown]), list(NAMES) * times


@pytest.mark.parametrize("attributes", ["none", "gender=1", "gender=2,age=1", "gender=1,glasses=1"])
def test_likelihoods_are_the_law_of_the_draws(attributes):
    own = method(attributes)
    chances = likelihoods(own)
    assert chances.shape[1] == 5 * len(GALLERY)
    assert np.allclose(chances.sum(axis=1), 1)
    seen = chances.max(axis=0) > 0
    assert seen.sum() == len(GALLERY) * (5 if "glasses" in attributes else 1)
    chances = chances[:, seen]
    ratios = np.log(chances.max(axis=0) / chances.min(axis=0))
    assert ratios.max() <= float(own.guarantee(height=9, width=9, channels=3).epsilon) + 1e-9


def test_who_knows_the_law_is_right_as_often_as_nobody_can_exceed():
    """The best guess is the true one where both answers were kept; 7 standard deviations around it."""
    own = method("gender=2,age=1")
    shown, people = released(own, 100)
    best = float(np.prod([response.kept for response in own.responses.values()]))
    found = by_law(held(), own, shown, people)
    assert abs(found.rate - best) < 7 * (best * (1 - best) / len(people)) ** 0.5
    parrot = by_parrot(held(), shown[:8].repeat(50), shown, people)
    learned = by_learning(held(), shown[:8].repeat(50), shown, people)
    for other in (by_embedding(held(), shown, people), parrot, learned):
        assert other.rate <= found.rate + 7 * (best * (1 - best) / len(people)) ** 0.5


def test_who_is_told_what_is_kept_beats_who_sees_a_release():
    own = method("gender=2,age=1")
    shown, people = released(own, 30)
    looks = {name: np.tile(places, 30) for name, places in LOOKS.items()}
    told = by_telling(held(), ("gender", "age"), looks, people)
    assert told.rate == 1  # combinations are all different here
    assert by_law(held(), own, shown, people).rate < 0.9
    half = by_telling(held(), ("gender",), looks, people)
    assert half.rate == pytest.approx(1 / 4)


def test_nothing_kept_leaves_chance():
    own = method("none")
    shown, people = released(own, 20)
    assert by_law(held(), own, shown, people).rate == pytest.approx(1 / 8)
    assert by_telling(held(), (), {}, people).rate == pytest.approx(1 / 8)


def test_prices_follow_from_the_law():
    crops = np.stack([crop({"gender": k % 2, "age": k % 4}, seed=k) for k in range(8)])
    wrong = np.array([1, 1, 0, 1, 0, 1, 0, 1])  # one label of eight that the model does not read
    rows = prices(MODEL, crops, {"gender": wrong})
    found = {(one["attribute"], one["epsilon"]): one for one in rows}
    kept = np.e**2 / (np.e**2 + 1)
    assert float(found["gender", "2"]["kept"]) == pytest.approx(kept, abs=1e-4)
    assert float(found["gender", "2"]["label"]) == pytest.approx(7 / 8 * kept + (1 - kept) / 8, abs=1e-4)
    assert found["smile", "2"]["label"] == ""


def test_rows_have_intervals_over_people():
    one = row("LFW", "none", "strongest", of(np.array([1.0, 0.0, 1.0, 0.0]), ["a", "a", "b", "b"], 0.25))
    assert (one["mean"], one["low"], one["high"], one["people"]) == ("0.50000", "0.50000", "0.50000", "2")


def test_differences_have_intervals_around_them_also_below_zero():
    apart = np.array([-0.5, 0.1, -0.3, 0.1, -0.1, -0.3])
    one = difference("LFW", "none", "apart", apart, list("abcdef"))
    low, mean, high = (float(one[name]) for name in ("low", "mean", "high"))
    assert mean == pytest.approx(apart.mean(), abs=1e-4)
    assert -0.5 <= low < mean < high <= 0.1


def test_a_folder_without_photos_is_refused(tmp_path):
    with pytest.raises(UsageError, match="--data"):
        read_people(tmp_path, 10, print)
