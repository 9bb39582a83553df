"""Sizes and hyperparameters of `upconv`: small ones for two cores, and those of DeconvFaces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of an `upconv`.

    `side` is that of the crop in pixels, `length` the number of outputs of the identity layer, `people` how
    many are known, `embedded` the length of the embedding in which others are approximated. `given` is the
    width of the layer of each condition, `hidden` that of the layer behind all, and of the critic's. `widths`
    are the channels of the critic, each at half the side of the one before, and of the generator in the
    reverse order; `kernel` is the side of the first of a stage's two convolutions.

    `reconstruction`, `features` and `classes` are the weights of losses beside the adversarial one, as in
    `gan`; `tether` that of squared differences between rows and the embeddings that they began as, so that
    mixtures of people mean the same to both. `rows` is the learning rate of rows, relative to the others.
    """

    side: int = 64
    length: int = 128
    people: int = 2000
    embedded: int = 32
    given: int = 32
    hidden: int = 256
    widths: tuple[int, ...] = (32, 64, 128, 256)
    kernel: int = 3
    steps: int = 9000
    batch: int = 32
    rate: float = 4e-4
    critic_rate: float = 4e-4
    rows: float = 5.0
    reconstruction: float = 100.0
    classes: float = 10.0
    features: float = 10.0
    tether: float = 0.3
    penalty: float = 10.0
    lazy: int = 4
    average: float = 0.999
    seed: int = 1
    expressive: bool = True

    @property
    def small(self) -> int:
        """The side at which the generator begins, in pixels."""
        return self.side >> len(self.widths)


FULL: Final = Plan(
    side=128,
    length=512,
    people=5000,
    embedded=64,
    given=512,
    hidden=1024,
    widths=(32, 96, 96, 128, 128),
    kernel=5,
    steps=160_000,
    rate=2e-4,
    critic_rate=2e-4,
    lazy=1,
)
"""Sizes of DeconvFaces, on which Croft 2022 builds: 512, 1024, then 128, 128, 96, 96 and 32 channels.

Its 1000 epochs of 5000 pictures are 156 000 steps. With many more people or a longer embedding the linear
program of every face takes seconds.
"""
TINY: Final = replace(
    Plan(), side=16, length=8, people=12, embedded=6, given=4, hidden=16, widths=(8, 16), steps=4, batch=4
)
"""A plan for tests."""
PLANS: Final = {"small": Plan(), "full": FULL}
