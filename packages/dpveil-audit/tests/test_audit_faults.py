"""Faults planted in the product itself are seen where mutants of the audit are other laws.

Bits are seeded; a right release is rejected with probability below 1e-8 over all seeds.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpveil.faces import Attributes
from dpveil.mechanisms.latent import coordinate_noise as latent_laplace
from dpveil.mechanisms.latent import directional
from dpveil.mechanisms.pixel import DPPix, dp_svd
from dpveil.mechanisms.rank_choice import RandomisedResponse, RankChoice
from dpveil.mechanisms.scalar import ScalarMechanism, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.noise import laplace
from dpveil.noise.bits import SeededBits
from dpveil_audit.engine import planted
from dpveil_audit.runner import entries

SEED = 20261121


def larger_weights(own):
    return property(
        lambda self: own.fget(RankChoice(count=self.count, epsilon=self.epsilon * 6 / 5, near=self.near))
    )


def budgets_not_divided(own):
    def undivided(self):
        total = sum(budget for _, budget in self.costs)
        return {n: RandomisedResponse(epsilon=total, values=r.values) for n, r in own.fget(self).items()}

    return property(undivided)


def halved(own):
    return property(lambda self: own.fget(self) / 2)


FAULTS: dict[str, tuple[Any, str, Any, str]] = {
    "dp-pix": (DPPix, "sum_scale", lambda own: lambda self, **size: own(self, **size) * 4 / 5, "exact"),
    "discrete-laplace": (laplace, "draw", lambda own: lambda *given: np.abs(own(*given)), "fit"),
    "dp-svd": (dp_svd, "whole_values", lambda own: lambda *given: [2 * v for v in own(*given)], "fit"),
    "truncated-laplace": (TruncatedLaplace, "scale", halved, "exact"),
    "laplace": (Lattice, "snap", lambda own: lambda self, points: own(self, points + 1), "fit"),
    "laplace, release": (
        ScalarMechanism,
        "release",
        lambda own: lambda self, answer, bits: own(self, answer, SeededBits(SEED)),
        "same",
    ),
    "croft-metric, noise": (
        latent_laplace,
        "noisy",
        lambda own: lambda at, scales, bits: own(at, [scale * 9 / 10 for scale in scales], bits),
        "fit",
    ),
    "directional": (
        directional,
        "von_mises_fisher",
        lambda own: lambda towards, k, far, bits: own(towards, 3 * k, far, bits),
        "fit",
    ),
    "gallery": (RankChoice, "probabilities", larger_weights, "exact"),
    "attributes": (Attributes, "responses", budgets_not_divided, "exact"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_product_is_seen(name: str):
    """The gate that sees it passes what is right, as `test_audit_run` shows."""
    entry = entries()[name.partition(",")[0]]
    version = replace(entry.intact, plant=planted(name, *FAULTS[name]).plant)

    def forget():
        """Forget what cases and laws know of the product."""
        getattr(entry.intact.law, "cache_clear", int)()
        for case in entry.level.cases:
            for key in [key for key in vars(case) if key not in case.__dataclass_fields__]:
                vars(case).pop(key)

    forget()
    gate = FAULTS[name][-1]
    try:
        with version.planted():
            checks = [one for one in entry.checks(lambda name: SeededBits(SEED, name)) if one.gate == gate]
            assert list(entry.killers(version, checks)) == [gate]
    finally:
        forget()


@pytest.mark.parametrize("name", ["gallery", "attributes"])
def test_a_mutant_that_is_not_wrong_lives(name: str):
    """Mutants die of what is wrong with them."""
    entry = entries()[name]
    checks = entry.checks(lambda name: SeededBits(SEED, name))
    assert not [*entry.killers(replace(entry.intact, draw=None), [one for one in checks if not one.ties])]
