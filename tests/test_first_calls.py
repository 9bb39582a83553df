"""Shapes are still checked: in every test, wherever the options of pytest say so."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest

import first_calls
from dpveil.mechanisms.pixel.cells import cell_sums

WRONG = np.zeros((4, 4), np.uint8)


@pytest.mark.parametrize("turn", range(2))
def test_a_wrong_shape_is_noticed_in_every_test(turn):
    with pytest.raises(jaxtyping.TypeCheckError, match="h w c"):
        cell_sums(WRONG, 2)
    for _ in range(2 * first_calls.CHECKED):
        cell_sums(WRONG[..., None], 2)


def test_the_first_calls_of_a_test_are_checked_and_those_of_the_next_again(monkeypatch):
    seen = []
    call = first_calls.first_calls(lambda: seen.append("checked"), lambda: seen.append("plain"))
    for _ in range(2):
        monkeypatch.setattr(first_calls.Now, "test", first_calls.Now.test + 1)
        for _ in range(first_calls.CHECKED + 1):
            call()
    assert seen == ["checked"] * first_calls.CHECKED + ["plain"] + ["checked"] * first_calls.CHECKED + [
        "plain"
    ]
