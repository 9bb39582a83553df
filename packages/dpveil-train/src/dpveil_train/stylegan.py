"""Training of `stylegan`: StyleGAN2's generator decodes an encoder's codes, and draws random styles beside.

The published generator is trained from noise alone, which collapses in the time that two cores have; as the
decoder of an autoencoder it does not. Losses: levels, features of the critic, and realism (non-saturating,
with the gradient penalty R1: Karras et al. 2020). A picture is a function of its styles: the noise inputs are
constants of the network, pictures of one batch do not mix, and nothing leads from an encoder's map to the
generator's.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, leaky_relu, linear, pixel_shuffle, softplus

from dpveil.assets.model_cards import Card
from dpveil.codecs import StyleGAN
from dpveil.core.rationals import Json
from dpveil.errors import InvalidParameter
from dpveil_train import gan
from dpveil_train.gan import SLOPE, Adversarial, Basis, Critic, Faces, halving, weighted_sum
from dpveil_train.networks import NetworkOrder, train_network
from dpveil_train.order import Progress, Trained, silent

SMALLEST: Final = 4  # side of the generator's constant, in pixels
MOST: Final = 4096  # most coordinates of a code


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of a `stylegan`.

    `side` is that of the crop in pixels. `channels` are those of the generator at 4, 8, 16, … pixels; `style`
    is the length of each layer's code. `widths` are the channels of the encoder and of the critic, each at
    half the side of the one before, and `hidden` is the width between the encoder's last map and its code.
    `components` is the number of coordinates of the codec, principal components of W+; or 0 for W+ itself.
    `reconstruction` and `features` are the weights of losses beside the adversarial one, which is `realism`;
    `penalty` is that of R1, every `lazy` steps. `mapping` counts the layers from Gaussian codes to styles.
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


GAIN: Final = math.sqrt(2)  # gain of activations
LEAST: Final = 1e-8  # what is added to the norms of modulated weights
SLOW: Final = 0.01  # learning rate of the mapping network, relative to that of the generator
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
        return linear(x, _scale(self.weight, self.gain), _scale(self.bias, self.rate))


class Doubling(nn.Module):  # type: ignore[misc,unused-ignore]
    """Twice the side by the filter 1, 3, 3, 1, with zeros beyond the map, and a `margin` of 0 or 1 pixels."""

    def __init__(self, channels: int, margin: int) -> None:
        super().__init__()
        taps = torch.tensor(TAPS)
        phases = (taps[:, None, :, None] * taps[None, :, None, :]).reshape(4, 1, 3, 3)
        self.register_buffer("phases", phases.repeat(channels, 1, 1, 1), persistent=False)
        self.channels, self.margin = channels, margin

    def forward(self, x: Tensor) -> Tensor:
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
        weight = _scale(self.weight, self.gain)
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
        self.strength = nn.Parameter(torch.zeros(()))
        self.bias = nn.Parameter(torch.zeros(1, width, 1, 1))

    def forward(self, x: Tensor, style: Tensor) -> Tensor:
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
        out: Tensor = self.code(leaky_relu(self.inner(self.stages(pictures)).flatten(1), SLOPE))
        return out


def freeze(synthesis: Synthesis) -> Synthesis:
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


def _scale(tensor: Tensor, factor: float) -> Tensor:
    """Return the product, or the tensor itself if the factor is 1, so that an export has no such node."""
    return tensor if factor == 1 else tensor * factor


class Trainer(Adversarial):
    """The state of a training. With a `generator`, the state of `Synthesis`, only the encoder is learned."""

    parts = ("encoder", "synthesis", "mapping", "critic", "mean", "optimiser", "critic_optimiser")

    def __init__(
        self,
        plan: Plan,
        crops: np.ndarray,
        conditions: np.ndarray,
        generator: dict[str, Tensor] | None = None,
    ) -> None:
        super().__init__(plan)
        self.given = generator is not None
        self.encoder = self.to_device(Encoder(plan))
        self.synthesis = Synthesis(plan).to(self.device)
        if generator is not None:
            self.synthesis.load_state_dict(generator)
            self.synthesis.requires_grad_(requires_grad=False)
        self.mapping = Mapping(plan).to(self.device)
        critic = Critic(plan, heads=(1,), normalised=False)
        self.mean = self.follow(self.encoder, self.synthesis)
        made = [*self.synthesis.parameters(), *self.mapping.parameters()]
        self.sets = [*self.encoder.parameters()], [one for one in made if one.requires_grad]
        rates = plan.encoder_rate, plan.rate
        self.optimiser = self.adam(*zip(self.sets, rates, strict=True), betas=(0.0, 0.99))
        self.watch(critic, Faces(crops, conditions, plan, self.generator), betas=(0.0, 0.99))

    def learn(self) -> dict[str, Tensor]:
        plan = self.plan
        own = self.faces.random(plan.batch).pictures.to(self.device)
        with self.halves():
            codes = self.encoder(own)
            if not self.given:
                codes = torch.cat([codes, self._styles(len(own) // 2)])
            made = self.synthesis(codes)
        made = made.float() * self.mask
        losses = self._generator_losses(own, made)
        weights = {"levels": plan.reconstruction, "features": plan.features, "fools": plan.realism}
        self.descend(self.optimiser, weighted_sum(losses, weights), *self.sets)
        return losses | self._critic_losses(own, made.detach())

    def _styles(self, count: int) -> Tensor:
        """Return W+ codes of random styles: one up to a random layer, another one from there on."""
        plan = self.plan
        drawn = (torch.randn(count, plan.style, generator=self.generator) for _ in range(2))
        one, other = (self.mapping(each.to(self.device)) for each in drawn)
        at = torch.randint(1, plan.layers + 1, (count, 1, 1), generator=self.generator)
        first = (torch.arange(plan.layers)[None, :, None] < at).to(self.device)
        out: Tensor = torch.where(first, one[:, None], other[:, None]).flatten(1)
        return out

    def _generator_losses(self, own: Tensor, made: Tensor) -> dict[str, Tensor]:
        (scores,), apart = self.judge(made, own)
        levels = (made[: len(own)] - own).abs().mean()
        return {"levels": levels, "features": apart, "fools": softplus(-scores).mean()}

    def _critic_losses(self, own: Tensor, made: Tensor) -> dict[str, Tensor]:
        (scores,) = self.opinions(torch.cat([own, made]))
        total = softplus(-scores[: len(own)]).mean() + softplus(scores[len(own) :]).mean()
        losses = {"told apart": total}
        if self.done % self.plan.lazy == 0:
            pictures = own.clone().requires_grad_()
            scored = self.critic(pictures)[0][0].sum()
            (slope,) = torch.autograd.grad(scored, pictures, create_graph=True)
            losses["penalty"] = slope.square().sum(dim=(1, 2, 3)).mean()
            total = total + 0.5 * self.plan.penalty * self.plan.lazy * losses["penalty"]
        self.descend(self.critic_optimiser, total)
        return losses

    def model(self, card: Card) -> StyleGAN:
        plan, (encoder, synthesis) = self.plan, self.mean.cpu()

        def basis_of(codes: Tensor) -> Basis:
            basis = Basis.of(codes)
            rows = basis.rows[: plan.components] if plan.components else torch.eye(plan.length)
            return replace(basis, rows=rows)

        both = encoder, freeze(synthesis)
        return gan.make_codec(StyleGAN, both, self.faces, plan.length, basis_of, card)

    def metrics(self, model: StyleGAN) -> dict[str, Json]:
        return gan.reconstruction_metrics(model, self.faces)


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[StyleGAN]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises the errors of `read_generator` and of `train_network`.
    """
    from dpveil_train.stylegan_checkpoints import read_generator

    order.check()
    generator: dict[str, Tensor] | None = None
    if order.generator is not None:
        plan, generator = read_generator(order.generator, order.plan)
        order = replace(order, plan=plan)
    plan = replace(order.plan, seed=order.seed)

    def make(crops: np.ndarray, conditions: np.ndarray) -> Trainer:
        return Trainer(plan, crops, conditions, generator)

    return train_network(StyleGAN.name, order, make, progress)
