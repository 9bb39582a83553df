"""How the traits of drawn heads are drawn: exactly by their weights, each from bits of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
import pytest
from people import people

from dpveil.faces.attribute_model import VALUES
from dpveil.faces.drawn import traits
from dpveil.faces.drawn.traits import MEASURES, TOTAL, drawn
from dpveil.noise.bits import SeededBits


def weights(table: Mapping) -> Iterator[Mapping[str, int]]:
    """Yield every table of weights in a table."""
    if all(isinstance(value, int) for value in table.values()):
        yield table
        return
    for inner in table.values():
        yield from weights(inner)


TABLES = {
    name: value
    for name, value in vars(traits).items()
    if name.isupper() and isinstance(value, dict) and name not in ("NAMES",)
}


def test_nobody_is_drawn_more_often_than_the_weights_say() -> None:
    """4000 heads: each count lies within 6.2 deviations, which fails by chance with 1 of 10⁹ a count."""
    heads = people(4000, seed=12)
    for name, table in (
        ("gender", traits.GENDER),
        ("age", traits.AGE),
        ("tone", traits.TONE),
        ("pose", traits.POSE),
    ):
        found = Counter(getattr(one, name) for one in heads)
        for value, weight in table.items():
            p = weight / TOTAL
            assert abs(found[value] - 4000 * p) < 6.2 * (4000 * p * (1 - p)) ** 0.5
    both = Counter((one.gender, one.age) for one in heads)
    assert (
        max(
            abs(both[gender, age] - 4000 * (p := traits.GENDER[gender] * traits.AGE[age] / TOTAL**2))
            / (4000 * p * (1 - p)) ** 0.5
            for gender, age in product(traits.GENDER, traits.AGE)
        )
        < 6.2
    )
    assert all(abs(np.mean([one.of(name) for one in heads])) < 6.2 * 0.58 / 4000**0.5 for name in MEASURES)


@pytest.mark.parametrize("name", ["gender", "age", "pose", "smile"])
def test_what_is_kept_is_kept_and_the_rest_is_drawn(name: str) -> None:
    for value in VALUES[name]:
        bits = SeededBits(4)
        heads = [drawn(bits, {name: value}) for _ in range(60)]
        assert {getattr(one, name) for one in heads} == {value}
        assert len({one.tone for one in heads}) == 5


def test_a_perceived_race_is_kept_as_a_law_of_tones() -> None:
    for value in VALUES["perceived-race"]:
        bits = SeededBits(4)
        found = {drawn(bits, {"perceived-race": value}).tone for _ in range(300)}
        assert found == {*traits.TONE_OF[value]}
