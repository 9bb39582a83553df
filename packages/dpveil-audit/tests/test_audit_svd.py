"""The audit of dp-svd has its own grid and distances: what the method makes of its values is no measure."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dpveil.mechanisms.pixel import DPSVD, dp_svd
from dpveil_audit.pixel.gates import exact_gate, same_gate
from dpveil_audit.pixel.methods.dp_svd import AUDIT


def failed():
    """Return the gates without draws that reject the method as it is now."""
    quick = AUDIT.levels["quick"]
    found = [*same_gate(AUDIT.intact, quick.fit[1].case), *exact_gate(AUDIT.intact, quick.exact[1], AUDIT)]
    return {finding.gate for finding in found if not finding.passed}


def test_a_method_that_is_right_passes():
    assert failed() == set()


def test_values_that_move_twice_as_far_as_they_should_are_seen(monkeypatch):
    """The audit took the distance from the method's own values: it grew with them."""
    real = dp_svd.whole_values
    monkeypatch.setattr(dp_svd, "whole_values", lambda values, pixels: [2 * v for v in real(values, pixels)])
    assert "same" in failed()


@pytest.mark.parametrize("part", [Fraction(1, 2), Fraction(99, 100)])
def test_a_diameter_that_images_exceed_is_seen(monkeypatch, part):
    real = DPSVD.guarantee

    def less(self, **size):
        promised = real(self, **size)
        return replace(promised, diameter=promised.diameter * part)

    monkeypatch.setattr(DPSVD, "guarantee", less)
    assert failed() == {"exact"}
