"""Mixtures of known faces: least absolute deviations, and the sign that the papers print (errata E3)."""

from __future__ import annotations

import numpy as np
import pytest
from printed_deviations import printed

from dpveil.codecs import upconv
from dpveil.codecs.upconv import RULES, approximate
from dpveil.errors import DataError, InvalidParameter
from dpveil.noise.bits import SeededBits

KNOWN, LONG = 9, 40


def numbers(*shape: int, stream: str = "") -> np.ndarray:
    found: np.ndarray = SeededBits(7, stream).words(int(np.prod(shape))).reshape(shape) / 2.0**63 - 1
    return found


GALLERY = numbers(KNOWN, LONG)
SIMPLEX = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0, 0])
FREE = np.array([1.5, -0.8, 0.25, 0, -2, 0, 1, 0, 0.5])


def test_errata_e3_the_printed_sign_negates_free_weights() -> None:
    target = FREE @ GALLERY
    assert np.allclose(printed(target, GALLERY, None), -FREE, atol=1e-7)
    ours = approximate(target[None], GALLERY, weights="free")
    assert np.allclose(ours.weights[0], FREE, atol=1e-7)
    noisy = target + 0.3 * numbers(LONG, stream="noise")
    ours = approximate(noisy[None], GALLERY, weights="free")
    assert np.allclose(printed(noisy, GALLERY, None), -ours.weights[0], atol=1e-6)
    assert ours.deviations[0] > 1


def test_errata_e3_on_the_simplex_the_printed_sign_leads_away() -> None:
    target = SIMPLEX @ GALLERY
    wrong = printed(target, GALLERY, 0)
    assert wrong.sum() == pytest.approx(1)
    assert np.abs(wrong - SIMPLEX).sum() > 0.5
    assert np.abs(wrong @ GALLERY - target).sum() > 0.2 * np.abs(target).sum()
    assert np.allclose(approximate(target[None], GALLERY).weights[0], SIMPLEX, atol=1e-7)


@pytest.mark.parametrize("weights", RULES)
def test_no_other_weights_come_nearer(weights: str) -> None:
    """Against 2 000 random weights around the found ones, of what is allowed."""
    target = numbers(1, LONG, stream="target")
    found = approximate(target, GALLERY, weights=weights)
    assert found.deviations[0] == pytest.approx(np.abs(target - found.weights @ GALLERY).sum())
    tried = found.weights[0] + 0.1 * numbers(2000, KNOWN, stream="tried")
    if weights == "simplex":
        tried = np.abs(tried)
        tried /= tried.sum(axis=1, keepdims=True)
    assert np.abs(target - tried @ GALLERY).sum(axis=1).min() >= found.deviations[0] - 1e-9


def test_free_weights_deviate_no_more_than_those_of_the_simplex() -> None:
    targets = numbers(5, LONG, stream="target")
    simplex, free = (approximate(targets, GALLERY, weights=rule) for rule in RULES)
    assert (free.deviations < simplex.deviations).all()
    assert np.allclose(simplex.weights.sum(axis=1), 1, atol=1e-12)
    assert simplex.weights.min() >= 0


def test_one_face_is_the_whole_mixture() -> None:
    found = approximate(numbers(2, LONG, stream="target"), GALLERY[:1])
    assert found.weights.tolist() == [[1.0], [1.0]]


def test_what_has_no_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    target = numbers(1, LONG, stream="target")
    with pytest.raises(InvalidParameter, match="mixtures of others"):
        approximate(target, np.vstack([GALLERY, GALLERY[:1]]), weights="free")
    with pytest.raises(InvalidParameter, match="mixtures of others"):
        approximate(target, numbers(LONG + 1, LONG), weights="free")
    for wrong in (np.full((1, LONG), np.nan), target[0], target[:0]):
        with pytest.raises(InvalidParameter, match="targets"):
            approximate(wrong, GALLERY)
    with pytest.raises(InvalidParameter, match="gallery"):
        approximate(target, np.full((2, LONG), np.inf))
    with pytest.raises(InvalidParameter, match="do not fit"):
        approximate(target, GALLERY[:, 1:])
    with pytest.raises(InvalidParameter, match="simplex or free"):
        approximate(target, GALLERY, weights="convex")
    result = type("Result", (), {"status": 4, "message": "trouble", "x": None})
    monkeypatch.setattr(upconv, "linprog", lambda *given, **more: result)
    with pytest.raises(DataError, match="trouble"):
        approximate(target, GALLERY)
