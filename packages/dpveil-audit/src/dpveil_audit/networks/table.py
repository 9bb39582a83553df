"""The audit entry of `latent`, with codecs of networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dpveil.codecs import GAN, StyleGAN, UpConv
from dpveil.faces import Latent
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.networks.case import NetworkCase, NetworkDrawn, NetworkLevel, NetworkVersion, Row
from dpveil_audit.networks.gates import alone_gate, around_gate, beyond_gate, bound_gate
from dpveil_audit.networks.mutants import INTACT, MUTANTS

DRAWS: Final = 1500
PAIRS: Final[tuple[tuple[Row, Row], ...]] = (
    ((0, 0, 0), (255, 255, 0)),
    ((128, 128, 0), (128, 128, 255)),
    ((140, 128, 255), (0, 255, 0)),
)
"""Codes beyond opposite corners of the box; equal codes of two genders; one inside, and another gender."""


@dataclass(frozen=True, kw_only=True)
class NetworkAudit(Entry[NetworkVersion, NetworkLevel]):
    """The audit of the road from a crop to a decoded face."""

    def checks(self, level: NetworkLevel, bits: Bits) -> Iterator[Check[NetworkVersion]]:
        """Yield every gate with every setting."""
        yield from computed("around", around_gate, level.exact)
        yield from computed("alone", alone_gate, level.exact)
        yield from computed("beyond", beyond_gate, level.exact)
        yield from drawn("bound", bound_gate, level.drawn, bits)


TOLD: Final = NetworkCase(GAN, (("epsilon", "0.5"), ("attributes", "gender=0.5")))
CLIPPED: Final = NetworkCase(GAN, (("epsilon", 1), ("mechanism", "box-laplace")))
STYLED: Final = NetworkCase(StyleGAN, (("epsilon", 1),), likely=True)
MIXED: Final = NetworkCase(UpConv, (("epsilon", "0.5"), ("attributes", "gender=0.5")))
MORE: Final = (
    NetworkCase(StyleGAN, (("epsilon", 4), ("mechanism", "box-laplace"), ("clip", 10))),
    NetworkCase(GAN, (("epsilon", 8), ("attributes", "gender=0.5")), likely=True),
)
QUICK: Final = NetworkLevel(
    (TOLD, CLIPPED, STYLED, MIXED),
    tuple(NetworkDrawn(case, DRAWS, pairs=PAIRS) for case in (TOLD, CLIPPED)),
)
DEEP: Final = QUICK.more(MORE)
"""With draws of `upconv`, too, whose encoder solves a linear program for every face."""
AUDITS: Final = {
    Latent.name: NetworkAudit(
        intact=INTACT,
        mutants=MUTANTS,
        levels={
            "quick": QUICK,
            "deep": replace(DEEP, drawn=(*DEEP.drawn, NetworkDrawn(MIXED, DRAWS, pairs=PAIRS))),
        },
    )
}


def networks() -> dict[str, NetworkAudit]:
    """Return the audit of `latent`, by its name."""
    return AUDITS
