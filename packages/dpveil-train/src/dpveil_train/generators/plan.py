"""Sizes and hyperparameters of a neural codec's training: a small one for two cores, and the papers' own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dpveil.errors import InvalidParameter


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of a `gan`.

    `side` is that of the crop in pixels, `length` the number of coordinates of a code. `widths` are the
    channels of the encoder and of the critic, each at half the side of the one before; of the decoder, in
    the reverse order. `reconstruction`, `classes`, `poses` and `features` are the weights of losses beside
    the adversarial one (Croft thesis eq. 6.29; AttGAN's 100, 10), `penalty` that of the gradient penalty,
    which is computed every `lazy` steps. `budgets` is the range of ε that noise in training is drawn for, in
    the metric of `pca-basis`.

    What figure 6.2 of the thesis switches off: `spatial` makes the code a map instead of 1 × 1 × n, `noisy`
    adds noise to codes in training, `posed` gives the decoder yaw and pitch, `masked` hides what lies beyond
    an ellipse.
    """

    side: int = 64
    length: int = 128
    widths: tuple[int, ...] = (32, 64, 128, 256)
    hidden: int = 256
    steps: int = 9000
    batch: int = 32
    rate: float = 4e-4
    critic_rate: float = 4e-4
    reconstruction: float = 100.0
    classes: float = 10.0
    poses: float = 20.0
    features: float = 10.0
    penalty: float = 10.0
    lazy: int = 4
    budgets: tuple[float, float] = (100.0, 1000.0)
    epoch: int = 600
    average: float = 0.999
    seed: int = 1
    spatial: bool = False
    noisy: bool = True
    posed: bool = True
    masked: bool = True

    def __post_init__(self) -> None:
        if self.spatial and self.length % self.small**2:
            hint = f"a multiple of {self.small**2}, as the map has {self.small} × {self.small} cells"
            raise InvalidParameter("length", self.length, "does not fill the map", hint=hint)

    @property
    def small(self) -> int:
        """The side at which the encoder's last convolution works, in pixels."""
        return self.side >> len(self.widths)


FULL: Final = Plan(
    side=128,
    length=2048,
    widths=(64, 128, 256, 512, 1024, 1024),
    hidden=1024,
    steps=400_000,
    batch=32,
    rate=2e-4,
    critic_rate=2e-4,
    lazy=1,
)
"""Sizes of Croft's thesis, tables 6.1 and 6.2."""
TINY: Final = replace(Plan(), side=16, length=8, widths=(8, 16), hidden=16, steps=4, batch=4, epoch=2)
"""A plan for tests."""
PLANS: Final = {"small": Plan(), "full": FULL}
