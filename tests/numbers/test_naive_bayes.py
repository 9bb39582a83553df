"""The estimator: scikit-learn's own checks, what it refuses, what it promises, and what it learns."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpveil import SeededBits
from dpveil.errors import InvalidParameter, UsageError
from dpveil.numbers import PrivateGaussianNB, naive_bayes

GENEROUS = 100_000
"""Next to no noise: the checks of scikit-learn are about behaviour, some of them about accuracy."""


def blobs(count=600):
    return make_blobs(count, centers=[[-1, 0], [1, 1]], cluster_std=0.5, random_state=0)


def model(**settings):
    return PrivateGaussianNB(
        **({"epsilon": 5, "bounds": (-4, 4), "classes": [0, 1], "random_state": 3} | settings)
    )


@parametrize_with_checks([PrivateGaussianNB(epsilon=GENEROUS, bounds=(-20, 20))])
def test_scikit_learn_checks(estimator, check):
    """None is expected to fail; two are skipped by scikit-learn, for pandas and array-API settings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# What it refuses


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": None}, "no default"),
        ({"epsilon": 0}, "not above 0"),
        ({"bounds": None}, "public knowledge"),
        ({"bounds": (1, 0)}, "not below"),
        ({"bounds": (0, float("inf"))}, "not below"),
        ({"bounds": ([0, 0, 0], 1)}, "do not fit 2 features"),
        ({"bounds": 3}, "do not fit"),
        ({"mechanism": "lapace"}, "unknown"),
        ({"relation": "m-pixels"}, "unknown"),
        ({"mechanism": "staircase", "relation": "any-database"}, "keeps"),
        ({"spread": "range"}, "unknown"),
        ({"neighbours": "shuffled"}, "unknown"),
        ({"parts": (1, 2)}, "three numbers"),
        ({"parts": (1, 0, 2)}, "three numbers"),
        ({"floor": 0}, "not above 0"),
        ({"classes": [0]}, "lack the label"),
        ({"classes": 2}, "not a list"),
        ({"random_state": 1.5}, "whole number"),
        ({"random_state": -1}, "seed"),
    ],
)
def test_refuses_in_one_line_and_draws_nothing(settings, words):
    bits = SeededBits(1)
    with pytest.raises(InvalidParameter, match=words) as raised:
        model(**({"random_state": bits} | settings)).fit(*blobs())
    assert "\n" not in str(raised.value)
    assert bits.words(2).tolist() == SeededBits(1).words(2).tolist()


def test_a_source_of_bits_is_never_copied():
    with pytest.raises(UsageError, match="same bits"):
        clone(model(random_state=SeededBits(1)))


# What it promises


def test_the_guarantee_states_the_total_the_neighbours_and_what_is_shown():
    fitted = model(random_state=None).fit(*blobs())
    guarantee = fitted.guarantee_
    assert (guarantee.kind, guarantee.epsilon, guarantee.relation.name) == ("pure", 5, "database-record")
    assert "replaced" in guarantee.scope.covers
    assert fitted.for_publication_
    assert not any("labels occur" in shown or "seed" in shown for shown in guarantee.scope.in_the_clear)
    assert fitted.split_ == dict.fromkeys(("count", "mean", "deviation"), Fraction(1, 2))


def test_replaced_records_get_half_the_split_of_added_ones_and_parts_are_kept():
    added = model(neighbours="added", parts=(2, 4, 4)).fit(*blobs())
    assert added.split_ == {"count": Fraction(1), "mean": Fraction(1), "deviation": Fraction(1)}
    assert added.guarantee_.epsilon == model().fit(*blobs()).guarantee_.epsilon == 5
    assert "added or removed" in added.guarantee_.scope.covers


def test_seeds_and_labels_taken_from_the_table_are_told():
    fitted = model(classes=None).fit(*blobs())
    told = " ".join(fitted.guarantee_.scope.in_the_clear)
    assert "which labels occur" in told
    assert "not for publication" in told
    assert not fitted.for_publication_


def test_public_classes_that_nobody_has_are_released_all_the_same():
    fitted = model(classes=["c", "a", "b"]).fit(blobs()[0], np.array(["a", "b"])[blobs()[1]])
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert fitted.class_count_[2] >= 1
    assert np.isfinite(fitted.theta_).all()


def test_no_learned_number_is_outside_the_bounds_or_below_the_floor():
    for seed in range(5):
        fitted = model(epsilon="0.01", bounds=([-1, 0], [1, 5]), random_state=seed, floor="0.02").fit(
            *blobs(60)
        )
        width = np.array([2, 5])
        assert (np.abs(fitted.theta_ - [0, 2.5]) <= width / 2).all()
        deviations = fitted.var_**0.5 / width
        assert (deviations >= 0.02 - 1e-12).all()
        assert (deviations <= 1 + 1e-12).all()
        assert fitted.class_prior_.sum() == pytest.approx(1)
        assert np.isfinite(fitted.predict_log_proba(1e6 * blobs(60)[0])).all()


# What it learns


@pytest.mark.parametrize("spread", naive_bayes.SPREADS)
def test_without_noise_it_is_gaussian_naive_bayes(spread):
    x, y = blobs()
    fitted, plain = model(epsilon=10**7, spread=spread).fit(x, y), GaussianNB().fit(x, y)
    assert fitted.class_count_.tolist() == plain.class_count_.tolist()
    assert fitted.theta_ == pytest.approx(plain.theta_, abs=1e-3)
    assert fitted.var_ == pytest.approx(plain.var_, abs=1e-3)
    inside = x[(np.abs(x) < 4).all(axis=1)]
    assert fitted.predict_proba(inside) == pytest.approx(plain.predict_proba(inside), abs=0.02)


def test_it_is_pickled_and_cross_validated_like_any_other():
    x, y = blobs()
    fitted = model(random_state=None).fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301  our own bytes
    assert (again.predict(x) == fitted.predict(x)).all()
    assert cross_val_score(model(epsilon=20), x, y, cv=3).min() > 0.9
