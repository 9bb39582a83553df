"""Training of the completion network: reconstruction first, then with an adversarial loss too."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

from dpveil.assets.cards import Card
from dpveil.faces.geometry.completion import PLANES, Completion
from dpveil.faces.geometry.hair import Hair
from dpveil.faces.geometry.layout import HAIR, LOOK, STRIDE
from dpveil_train import networks
from dpveil_train.completion.network import (
    Completer,
    Critics,
    Looks,
    each,
    laid_out,
    over,
    reconstruction,
    sharpened,
    spread,
)
from dpveil_train.completion.scenes import Maker, Scenes, example_of, soft, style_of, usual_of
from dpveil_train.networks import exported, halved, quantised

EXACT: Final = ("/stem/", "/last/")
"""Layers that see and give colours, which stay in 32 bits."""
EVERY: Final = 20
"""People whose number is a multiple of this are held out."""


@dataclass(frozen=True)
class Plan:
    """Hyperparameters: steps, learning rates and weights of the losses.

    `side` is that of the frame in pixels. The adversarial loss starts at the fraction `critic_from` of
    `steps`. `slope`, `kept`, `adversarial` and `features` are weights relative to the loss of levels, which
    alone would paint unknown areas without texture. `average` is the decay of the exponential moving average.
    `swapped` is the share of scenes with the example of another photo, where the critics judge alone, and
    `same`, the weight of how much its look is missed there. `unlooked` is the share without any example.
    `others` is the share of scenes with another person's face or one of the gallery while there is a critic:
    beside such faces nothing but the critic says what is right, and with a third of them, and a critic that
    weighs 0.15, it painted patterns there. `guessed` is the share of scenes that are painted to the layout
    that the network guesses; there, too, the critic alone says what is right.
    """

    steps: int = 4000
    batch: int = 16
    side: int = 144
    critic_from: float = 0.33
    rate: float = 1e-3
    critic_rate: float = 8e-4
    slope: float = 0.2
    kept: float = 0.5
    adversarial: float = 0.12
    features: float = 0.5
    others: float = 0.0
    swapped: float = 0.25
    same: float = 0.5
    unlooked: float = 0.2
    look_rate: float = 2e-3
    layout_rate: float = 1e-3
    average: float = 0.999
    seed: int = 1


ROUGH: Final = 0.05
"""Standard deviation of the noise that is added to looks in training."""
BEFORE: Final = 0.25
"""Weight of the weights before the critics in the network that is kept."""


class Trainer(networks.Trainer):
    """The state of a training, on the processor: networks, optimisers and random generator."""

    parts = ("net", "looks", "critic", "mean", "before", "optimiser", "critic_optimiser")

    def __init__(
        self,
        plan: Plan,
        photos: np.ndarray,
        people: np.ndarray,
        faces: np.ndarray,
        layouts: np.ndarray,
        yaws: np.ndarray,
    ) -> None:
        super().__init__(plan)
        self.device = torch.device("cpu")
        self.net, self.critic, self.looks = (self.placed(one()) for one in (Completer, Critics, Looks))
        self.mean = self.follow(self.net)
        self.before = copy.deepcopy(self.mean)
        self.sets = [[*one.parameters()] for one in (self.net.painter, self.net.layout, self.looks)]
        rates = plan.rate, plan.layout_rate, plan.look_rate
        self.optimiser = self.adam(*zip(self.sets, rates, strict=True), betas=(0.5, 0.99))
        self.critic_optimiser = self.adam((self.critic.parameters(), plan.critic_rate), betas=(0.0, 0.99))
        held = people % EVERY == 0
        self.held_out, self.rows = np.flatnonzero(held), np.flatnonzero(~held)
        self.usual = usual_of(soft(np.asarray(layouts[:: max(1, len(layouts) // 500)])))
        self.maker = Maker(photos, self.rows, faces, plan.side, self.generator, layouts, yaws)

    def learn(self) -> dict[str, Tensor]:
        """Learn from one batch, and return the losses."""
        plan = self.plan
        against = self.done >= plan.critic_from * plan.steps
        swapped = int(plan.swapped * plan.batch) if against else 0
        scenes = self.maker.random(plan.batch, int(plan.others * plan.batch) if against else 0, swapped)
        looked = torch.arange(plan.batch) < plan.batch - int(plan.unlooked * plan.batch)
        seen = scenes.seen.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):
            look = self.looks(scenes.example).float()
            look = (look + ROUGH * torch.randn(look.shape, generator=self.generator)) * each(looked)
            logits = self.net.layout(seen).float()
            layout = torch.where(each(scenes.swapped), self.styled(logits, scenes.other), scenes.layout)
            painted = self.net.painter(seen, layout, spread(look)).float()
        losses = reconstruction(scenes, painted, looked, scenes.swapped)
        losses |= {"layout": laid_out(scenes, logits)}
        total = losses["level"] + plan.slope * losses["slope"] + plan.kept * losses["kept"] + losses["layout"]
        if against:
            given = torch.cat([scenes.hidden, layout], dim=1)
            losses |= self._adversarial(scenes, painted, given, ~scenes.swapped)
            losses["same"] = self._same(scenes, painted, layout, look)
            total = total + plan.adversarial * losses["fools"] + plan.features * losses["features"]
            total = total + plan.same * losses["same"]
        self.descend(self.optimiser, total, *self.sets, most=1.0)
        if against:
            losses["critic"] = self._criticise(scenes, painted.detach(), given)
        return losses

    def average(self) -> None:
        """Move the averages towards the networks; up to the critics, keep them."""
        super().average()
        if self.done + 1 <= self.plan.critic_from * self.plan.steps:
            self.before.load_state_dict(self.mean.state_dict())

    def styled(self, logits: Tensor, layout: Tensor) -> Tensor:
        """Return the layout that the painter is given for these logits and an example's layout."""
        return sharpened(logits.detach() + style_of(layout, self.usual))

    def _same(self, scenes: Scenes, painted: Tensor, layout: Tensor, look: Tensor) -> Tensor:
        """Return how much the look of what is painted misses that of another photo's example."""
        rows = scenes.swapped
        whole = scenes.composed(painted)[rows]
        self.looks.requires_grad_(requires_grad=False)
        with torch.autocast("cpu", torch.bfloat16):
            again = self.looks(example_of((whole + 1) / 2, layout[rows], scenes.oval[rows])).float()
        self.looks.requires_grad_(requires_grad=True)
        weight = avg_pool2d((layout[:, HAIR : HAIR + 1] * scenes.hidden)[rows], STRIDE)
        apart = ((again - look[rows].detach()).abs() * weight).sum()
        return apart / (LOOK * weight.sum()).clamp(min=1)

    def _adversarial(
        self, scenes: Scenes, painted: Tensor, given: Tensor, certain: Tensor
    ) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=False)
        with torch.autocast("cpu", torch.bfloat16):
            ours = self.critic(scenes.composed(painted), given)
            with torch.no_grad():
                real = self.critic(scenes.truth * scenes.counts, scenes.given)
        own = scenes.own & certain
        pairs = [pair for (_, a), (_, b) in zip(ours, real, strict=True) for pair in zip(a, b, strict=True)]
        apart = [(a.float() - b.float())[own].abs().mean() for a, b in pairs]
        fools = [-over(scores, scenes.hidden) for scores, _ in ours]
        return {"fools": torch.stack(fools).mean(), "features": torch.stack(apart).mean()}

    def _criticise(self, scenes: Scenes, painted: Tensor, given: Tensor) -> Tensor:
        self.critic.requires_grad_(requires_grad=True)
        both = torch.cat([scenes.truth * scenes.counts, scenes.composed(painted)])
        with torch.autocast("cpu", torch.bfloat16):
            judged = self.critic(both, torch.cat([scenes.given, given]))
        halves = [scores.float().chunk(2) for scores, _ in judged]
        margins = [side for real, fake in halves for side in (relu(1 - real), relu(1 + fake))]
        loss = torch.stack([over(margin, scenes.hidden) for margin in margins]).sum() / len(halves)
        self.descend(self.critic_optimiser, loss)
        return loss.detach()

    def set_rates(self) -> None:
        """Set the learning rates of the next step: they are lower against critics."""
        part = min(1.0, self.done / self.plan.steps)
        down = 0.08 + 0.92 * (0.5 + 0.5 * math.cos(math.pi * part))
        factor = min(1.0, (self.done + 1) / 100) * down
        slower = (0.3, 1.0, 0.15) if part >= self.plan.critic_from else (1.0, 1.0, 1.0)
        for group, slow in zip(self.optimiser.param_groups, slower, strict=True):
            group["lr"] = group["rate"] * factor * slow
        for group in self.critic_optimiser.param_groups:
            group["lr"] = group["rate"] * max(0.3, down)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def shipped(self) -> Completer:
        """Return the network to keep: its painter is a weighted mean of the averaged ones before and
        after the critics.

        Critics alone leave patterns (network interpolation, Wang et al. 2018).
        """
        out: Completer = copy.deepcopy(self.mean[0])
        for own, old in zip(out.painter.parameters(), self.before[0].painter.parameters(), strict=True):
            own.lerp_(old, BEFORE)
        return out


def completion_of(
    network: nn.Module,
    side: int,
    card: Card,
    hair: Hair,
    given: Sequence[Float32[np.ndarray, "1 18 s s"]] = (),
    *,
    seed: int = 0,
) -> Completion:
    """Return the network for frames of `side` × `side` pixels, with public noise from this seed.

    It is in 8 bits if examples of what it will be `given` say between what its numbers are.
    """
    noise = torch.randn(side, side, generator=torch.Generator().manual_seed(seed)).half().float().numpy()
    contents = exported(network, (1, PLANES, side, side))
    contents = halved(quantised(contents, given, exact=EXACT) if given else contents)
    made = Completion(contents, noise, Hair.of_arrays(hair.tensors()), card)
    _ = made.tried
    return made
