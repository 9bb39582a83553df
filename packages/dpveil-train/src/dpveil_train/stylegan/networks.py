"""StyleGAN2's generator (Karras et al. 2020), an encoder to its styles, and a critic.

A picture is a function of its styles: the noise inputs are constants of the network, pictures of one batch do
not mix, and nothing leads from an encoder's map to the generator's.
"""

from __future__ import annotations

import copy
import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, leaky_relu, linear, pixel_shuffle

from dpveil_train.generators.networks import SLOPE, halving
from dpveil_train.stylegan.plan import SMALLEST, Plan

GAIN: Final = math.sqrt(2)
"""Gain of activations."""
LEAST: Final = 1e-8
"""What is added to the norms of modulated weights."""
SLOW: Final = 0.01
"""Learning rate of the mapping network, relative to that of the generator."""
TAPS: Final = ((0.25, 0.75, 0.0), (0.0, 0.75, 0.25))
"""The filter 1, 3, 3, 1 at even and at odd places of a map of twice the side."""


class Affine(nn.Module):  # type: ignore[misc,unused-ignore]
    """A linear layer with an equalised learning rate."""

    def __init__(self, before: int, width: int, bias: float = 0.0, rate: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, before) / rate)
        self.bias = nn.Parameter(torch.full((width,), bias))
        self.gain, self.rate = rate / math.sqrt(before), rate

    def forward(self, x: Tensor) -> Tensor:
        """Return n × width."""
        return linear(x, _scaled(self.weight, self.gain), _scaled(self.bias, self.rate))


class Doubling(nn.Module):  # type: ignore[misc,unused-ignore]
    """Twice the side by the filter 1, 3, 3, 1, with zeros beyond the map, and a `margin` of 0 or 1 pixels."""

    def __init__(self, channels: int, margin: int) -> None:
        super().__init__()
        taps = torch.tensor(TAPS)
        phases = (taps[:, None, :, None] * taps[None, :, None, :]).reshape(4, 1, 3, 3)
        self.register_buffer("phases", phases.repeat(channels, 1, 1, 1), persistent=False)
        self.channels, self.margin = channels, margin

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of twice the side, and the margin all around."""
        x = conv2d(x, self.phases.to(x.dtype), padding=1 + self.margin, groups=self.channels)
        x = pixel_shuffle(x, 2)
        return x[:, :, 1:-1, 1:-1] if self.margin else x


class Modulated(nn.Module):  # type: ignore[misc,unused-ignore]
    """A convolution whose input channels are scaled by a style; demodulated, its outputs have unit variance.

    Scaling inputs and outputs is the same as scaling the weights of each picture (Karras et al. 2020 eq. 1,
    3), and needs one convolution for all.
    """

    def __init__(
        self, before: int, width: int, style: int, size: int, *, doubled: bool = False, plain: bool = False
    ) -> None:
        super().__init__()
        self.style = Affine(style, before, bias=1.0)
        self.weight = nn.Parameter(torch.randn(width, before, size, size))
        self.gain, self.plain = 1 / math.sqrt(before * size * size), plain
        self.doubling = Doubling(before, margin=1) if doubled else None
        self.padding = 0 if doubled else size // 2
        self.register_buffer("least", torch.full((width,), LEAST), persistent=False)
        self.register_buffer("squares", None)

    def fix(self) -> None:
        """Scale the weights, and sum their squares over the pixels of the kernel, once and for all."""
        self.weight.mul_(self.gain)
        self.gain = 1.0
        self.squares = self.weight.square().sum(dim=(2, 3))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """Return the map."""
        weight = _scaled(self.weight, self.gain)
        scale = self.style(style)
        x = x * scale.reshape(-1, self.weight.shape[1], 1, 1)
        if self.doubling is not None:
            x = self.doubling(x)
        x = conv2d(x, weight, padding=self.padding)
        if self.plain:
            return x
        squares = weight.square().sum(dim=(2, 3)) if self.squares is None else self.squares
        norm = torch.sqrt(linear(scale * scale, squares, self.least.to(scale.dtype)))
        return x / norm.reshape(-1, len(self.weight), 1, 1)


class Styled(nn.Module):  # type: ignore[misc,unused-ignore]
    """A modulated convolution, constant noise of a learned strength, a bias and an activation."""

    def __init__(self, before: int, width: int, plan: Plan, side: int, *, doubled: bool = False) -> None:
        super().__init__()
        self.conv = Modulated(before, width, plan.style, 3, doubled=doubled)
        self.register_buffer("noise", torch.randn(1, 1, side, side))
        self.strength = nn.Parameter(torch.zeros(()), requires_grad=plan.grained)
        self.bias = nn.Parameter(torch.zeros(1, width, 1, 1))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """Return the map."""
        noise = self.noise if self.strength is None else self.noise * self.strength
        x = self.conv(x, style) + noise + self.bias
        return leaky_relu(x, SLOPE) * GAIN


class Coloured(nn.Module):  # type: ignore[misc,unused-ignore]
    """A map as a picture: a modulated convolution of one pixel, and a bias."""

    def __init__(self, before: int, plan: Plan) -> None:
        super().__init__()
        self.conv = Modulated(before, 3, plan.style, 1, plain=True)
        self.bias = nn.Parameter(torch.zeros(1, 3, 1, 1))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
        """Return the picture."""
        return self.conv(x, style) + self.bias


class Synthesis(nn.Module):  # type: ignore[misc,unused-ignore]
    """W+ codes n × (layers · style), one layer after another, to pictures n × 3 × s × s around -1 to 1."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        first, *more = plan.channels
        self.start = nn.Parameter(torch.randn(1, first, SMALLEST, SMALLEST))
        befores = (first, *plan.channels[:-1])[1:]
        sides = [SMALLEST << step for step in range(1, len(plan.channels))]
        self.first = Styled(first, first, plan, SMALLEST)
        self.doubled = nn.ModuleList(
            Styled(a, b, plan, side, doubled=True) for a, b, side in zip(befores, more, sides, strict=True)
        )
        self.same = nn.ModuleList(Styled(b, b, plan, side) for b, side in zip(more, sides, strict=True))
        self.colours = nn.ModuleList(Coloured(width, plan) for width in plan.channels)
        self.doubling = Doubling(3, margin=0)

    def forward(self, codes: Tensor) -> Tensor:
        """Return the pictures, not bounded."""
        length = self.plan.style
        styles = [codes[:, at * length : (at + 1) * length] for at in range(self.plan.layers)]
        x = self.first(self.start, styles[0])
        picture: Tensor = self.colours[0](x, styles[1])
        for step, (doubled, same) in enumerate(zip(self.doubled, self.same, strict=True)):
            at = 2 * step + 1
            x = same(doubled(x, styles[at]), styles[at + 1])
            picture = self.doubling(picture) + self.colours[step + 1](x, styles[at + 2])
        return picture


class Mapping(nn.Module):  # type: ignore[misc,unused-ignore]
    """Gaussian codes n × style to styles n × style; only training uses it."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Affine(plan.style, plan.style, rate=SLOW) for _ in range(plan.mapping))

    def forward(self, x: Tensor) -> Tensor:
        """Return the styles."""
        x = x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + LEAST)
        for layer in self.layers:
            x = leaky_relu(layer(x), SLOPE) * GAIN
        return x


class Encoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × s × s from -1 to 1 to W+ codes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        self.stages = nn.Sequential(*(halving(a, b) for a, b in zip(befores, plan.widths, strict=True)))
        self.inner = nn.Conv2d(plan.widths[-1], plan.hidden, plan.small)
        self.code = nn.Linear(plan.hidden, plan.length)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the codes, not bounded."""
        out: Tensor = self.code(leaky_relu(self.inner(self.stages(pictures)).flatten(1), SLOPE))
        return out


class Critic(nn.Module):  # type: ignore[misc,unused-ignore]
    """A critic of realism; it takes pictures one by one, without statistics of their batch."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 4, stride=2, padding=1), nn.LeakyReLU(SLOPE))
            for a, b in zip(befores, plan.widths, strict=True)
        )
        flat = plan.widths[-1] * plan.small**2
        self.head = nn.Sequential(
            nn.Linear(flat, plan.hidden), nn.LeakyReLU(SLOPE), nn.Linear(plan.hidden, 1)
        )

    def forward(self, pictures: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return scores and the features of each stage."""
        seen, x = [], pictures
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        return self.head(x.flatten(1))[:, 0], seen


def fixed(synthesis: Synthesis) -> Synthesis:
    """Return a copy for export, whose weights are scaled and summed once and for all."""
    made: Synthesis = copy.deepcopy(synthesis).eval().requires_grad_(requires_grad=False)
    for module in made.modules():
        if isinstance(module, Modulated):
            module.fix()
        elif isinstance(module, Affine):
            module.weight.mul_(module.gain)
            module.bias.mul_(module.rate)
            module.gain = module.rate = 1.0
        elif isinstance(module, Styled):
            module.noise.mul_(module.strength)
            module.strength = None
    return made


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    """Return the product, or the tensor itself if the factor is 1, so that an export has no such node."""
    return tensor if factor == 1 else tensor * factor
