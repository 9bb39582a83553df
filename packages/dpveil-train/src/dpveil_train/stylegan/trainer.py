"""Training of `stylegan`: its generator decodes an encoder's codes, and draws random styles beside.

The published generator is trained from noise alone, which collapses in the time that two cores have; as the
decoder of an autoencoder it does not. Losses: levels, features of the critic, and realism (non-saturating,
with the gradient penalty R1: Karras et al. 2020).
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from dpveil_train.devices import best, compiled, halves
from dpveil_train.generators.faces import Faces
from dpveil_train.stylegan.networks import Critic, Encoder, Mapping, Synthesis
from dpveil_train.stylegan.plan import Plan

PARTS: Final = ("encoder", "synthesis", "mapping", "critic", "mean", "optimiser", "critic_optimiser")
"""Attributes of `Trainer` whose state is in a checkpoint."""
WARM: Final = 200
"""Steps in which the learning rates rise."""


class Trainer:
    """The state of a training. With a `generator`, the state of `Synthesis`, only the encoder is learned."""

    def __init__(
        self,
        plan: Plan,
        crops: np.ndarray,
        conditions: np.ndarray,
        generator: dict[str, Tensor] | None = None,
    ) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent, self.given = plan, 0, 0.0, generator is not None
        self.device = best()
        where: dict[str, Any] = {"device": self.device, "memory_format": torch.channels_last}
        self.encoder = Encoder(plan).to(**where)
        self.synthesis = Synthesis(plan).to(self.device)
        if generator is not None:
            self.synthesis.load_state_dict(generator)
            self.synthesis.requires_grad_(requires_grad=False)
        self.mapping = Mapping(plan).to(self.device)
        self.critic = Critic(plan).to(**where)
        self.mean = torch.nn.ModuleList(copy.deepcopy([self.encoder, self.synthesis])).requires_grad_(
            requires_grad=False
        )
        made = [*self.synthesis.parameters(), *self.mapping.parameters()]
        groups = [
            {"params": list(self.encoder.parameters()), "rate": plan.encoder_rate},
            {"params": [one for one in made if one.requires_grad], "rate": plan.rate},
        ]
        self.optimiser = torch.optim.Adam(groups, betas=(0.0, 0.99))
        own = [{"params": list(self.critic.parameters()), "rate": plan.critic_rate}]
        self.critic_optimiser = torch.optim.Adam(own, betas=(0.0, 0.99))
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.faces = Faces(crops, conditions, plan, self.generator)
        self.mask = self.faces.mask.to(self.device)
        compiled(self.device, self.encoder, self.synthesis, self.critic)

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

    def step(self) -> dict[str, float]:
        """Make one training step and return the losses."""
        started = time.monotonic()
        self._rates()
        own = self.faces.random(self.plan.batch).pictures.to(self.device)
        with halves(self.device):
            codes = self.encoder(own)
            if self.plan.mapped and not self.given:
                codes = torch.cat([codes, self._styles(len(own) // 2)])
            made = self.synthesis(codes)
        made = made.float() * self.mask
        losses = self._generated(own, made)
        total = torch.stack([weight * losses[name] for name, weight in self._weights.items()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        for group in self.optimiser.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], 10.0)
        self.optimiser.step()
        losses |= self._criticised(own, made.detach())
        self._averaged()
        self.done += 1
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    @property
    def _weights(self) -> dict[str, float]:
        plan = self.plan
        return {"levels": plan.reconstruction, "features": plan.features, "fools": plan.realism}

    def _styles(self, count: int) -> Tensor:
        """Return W+ codes of random styles: one up to a random layer, another one from there on."""
        plan = self.plan
        drawn = (torch.randn(count, plan.style, generator=self.generator) for _ in range(2))
        one, other = (self.mapping(each.to(self.device)) for each in drawn)
        at = torch.randint(1, plan.layers + 1, (count, 1, 1), generator=self.generator)
        first = (torch.arange(plan.layers)[None, :, None] < at).to(self.device)
        out: Tensor = torch.where(first, one[:, None], other[:, None]).flatten(1)
        return out

    def _generated(self, own: Tensor, made: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=False)
        with halves(self.device):
            scores, seen = self.critic(made)
            with torch.no_grad():
                _, wanted = self.critic(own)
        count = len(own)
        apart = [(a[:count].float() - b.float()).abs().mean() for a, b in zip(seen, wanted, strict=True)]
        return {
            "levels": (made[:count] - own).abs().mean(),
            "features": torch.stack(apart).mean(),
            "fools": softplus(-scores.float()).mean(),
        }

    def _criticised(self, own: Tensor, made: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=True)
        with halves(self.device):
            scores, _ = self.critic(torch.cat([own, made]))
        real, unreal = scores[: len(own)].float(), scores[len(own) :].float()
        losses = {"told apart": softplus(-real).mean() + softplus(unreal).mean()}
        total = losses["told apart"]
        if self.done % self.plan.lazy == 0:
            pictures = own.clone().requires_grad_()
            scored = self.critic.forward(pictures)[0].sum()
            (slope,) = torch.autograd.grad(scored, pictures, create_graph=True)
            losses["penalty"] = slope.square().sum(dim=(1, 2, 3)).mean()
            total = total + 0.5 * self.plan.penalty * self.plan.lazy * losses["penalty"]
        self.critic_optimiser.zero_grad(set_to_none=True)
        total.backward()
        self.critic_optimiser.step()
        return losses

    def _rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        factor = min(1.0, (self.done + 1) / WARM) * (0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * part)))
        for group in (*self.optimiser.param_groups, *self.critic_optimiser.param_groups):
            group["lr"] = group["rate"] * factor

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for mean, now in zip(self.mean, (self.encoder, self.synthesis), strict=True):
            for own, new in zip(mean.parameters(), now.parameters(), strict=True):
                own.lerp_(new, 1 - weight)
