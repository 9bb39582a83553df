"""Sound mechanisms for the FaceIDP figures: noise on public boxes, by the utility that they reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.accounting.zcdp import zcdp_epsilon
from dpveil.codecs import Dictionary
from dpveil.mechanisms.latent import BoxGaussian, BoxLaplace, BoxTruncatedLaplace, LatentMechanism
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_research.intervals import clustered_mean
from dpveil_research.results import Row, estimate

DELTA: Final = Fraction(1, 10**6)
TOP: Final = 255
OVER, UNDER = "epsilon over utility", "utility over epsilon"
LAPLACE, EQUAL = "box-laplace", "box-laplace, equal shares"
TRUNCATED, GAUSSIAN = "box-truncated-laplace", "box-gaussian"
PURE: Final = ("10", "30", "100", "300", "1000", "3000", "10000", "30000", "100000")
RHO: Final = ("1", "10", "100", "1000", "10000", "100000", "1000000", "10000000")
RECOGNISED: Final = (LAPLACE, GAUSSIAN)
"""The mechanisms whose releases are shown to the recogniser."""
Codes = Float64[np.ndarray, "n m"]


@dataclass(frozen=True)
class Sound:
    """A mechanism as a function of its budget, and the budgets that are tried."""

    make: Callable[[str], LatentMechanism]
    budgets: tuple[str, ...]

    def epsilon(self, budget: str) -> float:
        """Return ε: the budget of a pure guarantee, or the ε of ρ-zCDP at δ = 10⁻⁶."""
        return float(zcdp_epsilon(budget, DELTA)) if self.budgets is RHO else float(budget)


SOUND: Final = {
    LAPLACE: Sound(lambda epsilon: BoxLaplace(epsilon=epsilon), PURE),
    EQUAL: Sound(lambda epsilon: BoxLaplace(epsilon=epsilon, allocation="equal"), PURE),
    TRUNCATED: Sound(lambda epsilon: BoxTruncatedLaplace(epsilon=epsilon), PURE),
    GAUSSIAN: Sound(lambda rho: BoxGaussian(rho=rho), RHO),
}


def curves(codec: Dictionary, codes: Codes, people: Sequence[str], seed: int) -> tuple[list[Row], list[Row]]:
    """Return ε by utility and utility by ε: squared errors in the span of the atoms, over all faces."""
    gram = codec.atoms.astype(np.float64) @ codec.atoms.T / TOP**2
    over, under = [], []
    for series, sound in SOUND.items():
        for budget in sound.budgets:
            mechanism = sound.make(budget)
            drawn = mechanism.release(codes, codec.statistics, bits=SeededBits(seed, f"{series} {budget}"))
            errors = np.einsum("nm,mk,nk->n", drawn - codes, gram, drawn - codes)
            utility = estimate("utility", clustered_mean(errors, people))
            epsilon = estimate("epsilon", (sound.epsilon(budget),) * 3)
            promise = str(mechanism.guarantee(codec.statistics))
            labels = {"series": series, "guarantee": promise, "n": str(len(codes))}
            over.append({"sweep": OVER, "x": utility["utility"], **labels, **epsilon})
            under.append({"sweep": UNDER, "x": epsilon["epsilon"], **labels, **utility})
    return over, under


def mechanism_at(over: Sequence[Row], series: str, utility: float) -> LatentMechanism:
    """Return the mechanism that reaches a utility, with a budget interpolated between those tried."""
    sound = SOUND[series]
    tried = [float(row["x"]) for row in over if row["series"] == series]
    reached = np.log(np.minimum.accumulate(tried))
    budgets = np.log([float(budget) for budget in sound.budgets])
    found = float(np.exp(np.interp(np.log(utility), reached[::-1], budgets[::-1])))
    return sound.make(f"{found:.4g}")


def decoded(
    codec: Dictionary,
    crop: UInt8[np.ndarray, "s s 3"],
    mechanism: LatentMechanism,
    draws: int,
    bits: BitSource,
) -> UInt8[np.ndarray, "n s s 3"]:
    """Return `draws` released pictures of a crop, each from its own draw."""
    codes = np.repeat(codec.encode(crop[None]), draws, axis=0)
    return codec.decode(mechanism.release(codes, codec.statistics, bits=bits))
