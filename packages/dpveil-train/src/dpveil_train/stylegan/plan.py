"""Sizes and hyperparameters of `stylegan`: small ones for two cores, and StyleGAN2's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dpveil.errors import InvalidParameter

SMALLEST: Final = 4
"""Side of the generator's constant, in pixels."""
MOST: Final = 4096
"""Most coordinates of a code."""


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of a `stylegan`.

    `side` is that of the crop in pixels. `channels` are those of the generator at 4, 8, 16, … pixels; `style`
    is the length of each layer's code. `widths` are the channels of the encoder and of the critic, each at
    half the side of the one before, and `hidden` is the width between the encoder's last map and its code.
    `components` is the number of coordinates of the codec, principal components of W+; or 0 for W+ itself.
    `reconstruction` and `features` are the weights of losses beside the adversarial one, which is `realism`;
    `penalty` is that of R1, every `lazy` steps. `mapping` counts the layers from Gaussian codes to styles.

    What can be switched off: `realism` (0), `mapped`, faces of random styles in training, and `grained`, the
    constant noise inputs.
    """

    side: int = 64
    channels: tuple[int, ...] = (128, 128, 128, 64, 32)
    style: int = 64
    widths: tuple[int, ...] = (32, 64, 128, 256)
    hidden: int = 256
    mapping: int = 4
    components: int = 128
    steps: int = 9000
    batch: int = 24
    rate: float = 2e-3
    encoder_rate: float = 4e-4
    critic_rate: float = 4e-4
    reconstruction: float = 10.0
    features: float = 2.0
    realism: float = 0.3
    penalty: float = 1.0
    lazy: int = 8
    average: float = 0.999
    seed: int = 1
    mapped: bool = True
    grained: bool = True
    masked: bool = True

    def __post_init__(self) -> None:
        if self.side != SMALLEST << (len(self.channels) - 1):
            hint = f"a side of {SMALLEST << (len(self.channels) - 1)}, or one number more for each doubling"
            raise InvalidParameter("channels", self.channels, f"do not lead to {self.side} pixels", hint=hint)
        if not 0 <= self.components <= min(self.length, MOST) or (not self.components and self.length > MOST):
            hint = f"at most {min(self.length, MOST)}"
            raise InvalidParameter("components", self.components, "are not of these styles", hint=hint)

    @property
    def layers(self) -> int:
        """The number of layers that take a style of their own: 18 at 1024 pixels."""
        return 2 * len(self.channels)

    @property
    def length(self) -> int:
        """The number of coordinates of W+."""
        return self.layers * self.style

    @property
    def small(self) -> int:
        """The side at which the encoder's last convolution works, in pixels."""
        return self.side >> len(self.widths)


FULL: Final = Plan(
    side=256,
    channels=(512, 512, 512, 512, 256, 128, 64),
    style=512,
    widths=(64, 128, 256, 512, 512, 512),
    hidden=512,
    mapping=8,
    components=512,
    steps=400_000,
    batch=32,
    penalty=1.0,
    lazy=16,
)
"""StyleGAN2's generator for 256 pixels (Karras et al. 2020): W+ of 14 × 512."""
TINY: Final = replace(
    Plan(),
    side=16,
    channels=(8, 8, 8),
    style=4,
    widths=(8, 16),
    hidden=16,
    mapping=2,
    components=8,
    steps=4,
    batch=4,
)
"""A plan for tests."""
PLANS: Final = {"small": Plan(), "full": FULL}
