"""Errata about more than one method; those about one stand with its tests (docs/errata.md)."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import dpveil
from dpveil.accounting.meaning import success_bound
from dpveil.catalogue import build
from dpveil.core.registry import PIXEL
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPPix, SSIMExponential
from dpveil_audit.pixel.methods.ssim_exponential import clipped_ssim as clipped_ssim
from dpveil_audit.pixel.methods.ssim_exponential import log_distribution, ssim

SIZE = {"height": 24, "width": 20, "channels": 1}


def budget(method: str) -> dict[str, object]:
    """Return the first kind of budget that a method takes, with what else it requires."""
    typical = PIXEL[method].typical
    for settings in ({"epsilon": 1, **typical}, {"rho": 1, **typical}, {"delta": "1e-6", **typical}, typical):
        try:
            build(method, settings)
        except InvalidParameter:
            continue
        return settings
    raise AssertionError(f"no budget is known for {method}")


def without_output(release: dpveil.Release) -> dict[str, object]:
    return {**json.loads(release.certificate.to_text()), "output": None}


def test_errata_e8_a_face_box_leaves_the_person_in_the_clear() -> None:
    photo = np.arange(40 * 30, dtype=np.uint32).reshape(40, 30).astype(np.uint8)
    face = dpveil.obfuscate(photo, "dp-pix", epsilon=1, block=4, regions="5,6,10,12")
    outside = np.ones((40, 30), bool)
    outside[6:18, 5:15] = False
    assert np.array_equal(face.image[outside, 0], photo[outside])
    scope = face.certificate.guarantees[0].scope
    assert "everything outside the region" in scope.in_the_clear
    assert "position and size of the region" in scope.in_the_clear
    whole = dpveil.obfuscate(photo, "dp-pix", epsilon=1, block=4)
    assert "everything outside the region" not in whole.certificate.guarantees[0].scope.in_the_clear
    assert face.certificate.guarantees[0].relation == dpveil.Relation("any-image")  # and never "any person"


def test_errata_e9_nothing_but_pixels_depends_on_the_photo() -> None:
    dark = np.zeros((24, 20, 1), np.uint8)
    busy = (np.arange(480) * 37 % 256).astype(np.uint8).reshape(24, 20, 1)
    for method in PIXEL:
        settings = {**budget(method), "regions": ["whole", "3,3,9,9"], "bits": dpveil.SeededBits(5)}
        first, second = (
            without_output(dpveil.obfuscate(photo, method, **settings)) for photo in (dark, busy)
        )
        assert first == second


def test_errata_e9_bounds_taken_from_the_photo_lose_everything() -> None:
    flat = np.full((24, 20), 90, np.uint8)
    neighbour = flat.copy()
    neighbour[0, 0] = 91

    def published_scale(photo: np.ndarray) -> Fraction:
        spread = int(photo.max()) - int(photo.min())
        return Fraction(spread * photo.size)  # at ε = 1: sensitivity from the private photo itself

    # No noise on one photo and noise on its neighbour: the exact mean is released with certainty, or hardly.
    assert published_scale(flat) == 0
    assert published_scale(neighbour) > 0
    assert DPPix(epsilon=1).sum_scale(**SIZE) == 255 * 480


@pytest.mark.parametrize("photo", [np.zeros((24, 20), np.uint8), np.full((24, 20), 255, np.uint8)])
def test_errata_e9_noise_reaches_flat_photos_too(photo: np.ndarray) -> None:
    method = DPPix(epsilon=1, block=4, neighbourhood=16)
    released = method.release(photo, bits=dpveil.SeededBits(8))
    # 30 cells, scale 255 levels, clamped on one side: all untouched has probability 2^-30 or less.
    assert not np.array_equal(released, photo)


def test_errata_e2_ssim_below_zero_costs_more_than_promised() -> None:
    pair = ([141, 73, 73, 0], [1, 93, 94, 192])
    published, clipped = (
        float(np.abs(np.subtract(*(log_distribution(x, 6.0, 4, quality) for x in pair))).max())
        for quality in (ssim, clipped_ssim)
    )
    assert round(published, 3) == 12.145  # where 2ε′ = 12 is promised
    assert clipped < 12
    assert SSIMExponential(epsilon=12, window=2).exponent(height=2, width=2, channels=1) == 6


def test_errata_e2_windows_by_area_are_too_few() -> None:
    method = SSIMExponential(epsilon=60, block=16)
    face = {"height": 112, "width": 92, "channels": 1}
    assert (method.windows(**face), method.windows(height=112, width=92, channels=3)) == (6, 18)
    published = 60 * (3 * 16) ** 2 / (2 * 112 * 92)  # theorem 2 with pixelation: ε′ = ε·p²·b²/(2·n·c)
    assert 2 * method.windows(**face) * published > 1.34 * 60
    assert 2 * method.windows(**face) * method.exponent(**face) == 60


def test_errata_guess_of_two_at_epsilon_1_is_right_at_most_73_percent() -> None:
    """Randomised response reaches e^ε / (1 + e^ε), which is 0.75 at ε = ln 3 and not before."""

    def bound(epsilon: float) -> float:
        pure = dpveil.Guarantee(
            kind="pure", epsilon=epsilon, relation=dpveil.Relation("any-image"), scope=dpveil.Scope("a face")
        )
        return success_bound(pure, 2)

    assert bound(1) == pytest.approx(math.e / (1 + math.e)) == pytest.approx(0.731, abs=1e-3)
    assert bound(1) < 0.75 == pytest.approx(bound(math.log(3)))
