"""Training of the completion network: reconstruction first, then with an adversarial loss too."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, relu

from dpveil.faces.geometry.completion import PLANES
from dpveil.faces.geometry.layout import HAIR, neck
from dpveil.faces.geometry.looks import LOOK, STRIDE
from dpveil_train.completion.examples import example_of, style_of, usual_of
from dpveil_train.completion.export import taken_up
from dpveil_train.completion.losses import each, laid_out, over, reconstruction
from dpveil_train.completion.network import Completer, Critics, Looks, sharpened, spread
from dpveil_train.completion.scenes import Maker, Scenes, soft

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


class Trainer:
    """The state of a training: networks, optimisers and random generator, for checkpoints."""

    def __init__(
        self,
        plan: Plan,
        photos: np.ndarray,
        people: np.ndarray,
        faces: np.ndarray,
        layouts: np.ndarray,
        yaws: np.ndarray,
    ) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent = plan, 0, 0.0
        self.net = Completer().to(memory_format=torch.channels_last)
        self.critic = Critics().to(memory_format=torch.channels_last)
        self.looks = Looks().to(memory_format=torch.channels_last)
        self.mean = copy.deepcopy(self.net).requires_grad_(requires_grad=False)
        self.before = copy.deepcopy(self.mean)
        self.optimiser = torch.optim.Adam(
            [
                {"params": list(self.net.painter.parameters()), "rate": plan.rate, "against": 0.3},
                {"params": list(self.net.layout.parameters()), "rate": plan.layout_rate, "against": 1.0},
                {"params": list(self.looks.parameters()), "rate": plan.look_rate, "against": 0.15},
            ],
            lr=plan.rate,
            betas=(0.5, 0.99),
        )
        self.critic_optimiser = torch.optim.Adam(
            self.critic.parameters(), lr=plan.critic_rate, betas=(0.0, 0.99)
        )
        self.generator = torch.Generator().manual_seed(plan.seed)
        held = people % EVERY == 0
        self.held_out = np.flatnonzero(held)
        self.usual = usual_of(soft(np.asarray(layouts[:: max(1, len(layouts) // 500)])))
        self.maker = Maker(photos, np.flatnonzero(~held), faces, plan.side, self.generator, layouts, yaws)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        about = {"done": self.done, "spent": self.spent, "plan": asdict(self.plan)}
        return {**parts, **about, "generator": self.generator.get_state()}

    def take_up(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.done, self.spent = state["done"], state["spent"]

    def begin(self, network: bytes) -> None:
        """Begin from the weights of an exported network; its critics are new."""
        taken_up(self.net, network, (1, PLANES, self.plan.side, self.plan.side))
        for other in (self.mean, self.before):
            other.load_state_dict(self.net.state_dict())

    def step(self) -> dict[str, float]:
        """Make one training step and return the losses."""
        started, plan = time.monotonic(), self.plan
        against = self.done >= plan.critic_from * plan.steps
        self._rates()
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
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.net.painter.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(self.net.layout.parameters(), 1.0)
        torch.nn.utils.clip_grad_norm_(self.looks.parameters(), 1.0)
        self.optimiser.step()
        if against:
            losses["critic"] = self._criticise(scenes, painted.detach(), given)
        self._averaged()
        self.done += 1
        if self.done <= plan.critic_from * plan.steps:
            self.before.load_state_dict(self.mean.state_dict())
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    def guess(self, logits: Tensor) -> Tensor:
        """Return the layout that the painter is given for these logits of the network."""
        return sharpened(logits.detach() + torch.from_numpy(neck(self.plan.side)))

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
        self.critic_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.critic_optimiser.step()
        return loss.detach()

    def _rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        down = 0.08 + 0.92 * (0.5 + 0.5 * math.cos(math.pi * part))
        up = min(1.0, (self.done + 1) / 100)
        start = self.plan.critic_from
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * up * down * (group["against"] if part >= start else 1.0)
        for group in self.critic_optimiser.param_groups:
            group["lr"] = self.plan.critic_rate * max(0.3, down)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for own, new in zip(self.mean.parameters(), self.net.parameters(), strict=True):
            own.lerp_(new, 1 - weight)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def shipped(self) -> Completer:
        """Return the network to keep: its painter is a weighted mean of the averaged ones before and
        after the critics.

        Critics alone leave patterns (network interpolation, Wang et al. 2018).
        """
        out: Completer = copy.deepcopy(self.mean)
        for own, old in zip(out.painter.parameters(), self.before.painter.parameters(), strict=True):
            own.lerp_(old, BEFORE)
        return out

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def painted(self, scenes: Scenes, *, looked: bool = True) -> Tensor:
        """Return the scenes with their hidden part painted by the averaged network, as their examples."""
        net, look = self.shipped(), spread(self.looks(scenes.example))
        logits = net.layout(scenes.seen)
        layout = self.styled(logits, scenes.other) if looked else self.guess(logits)
        out: Tensor = net.painter(scenes.seen, layout, look if looked else 0 * look).clamp(-1, 1)
        return scenes.truth + scenes.hidden * (out - scenes.truth)


ROUGH: Final = 0.05
"""Standard deviation of the noise that is added to looks in training."""
BEFORE: Final = 0.25
"""Weight of the weights before the critics in the network that is kept."""
PARTS: Final = ("net", "looks", "critic", "mean", "before", "optimiser", "critic_optimiser")
"""Attributes of `Trainer` whose state is in a checkpoint."""
