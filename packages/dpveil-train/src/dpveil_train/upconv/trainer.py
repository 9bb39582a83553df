"""Training of `upconv`: pictures of people from their rows, and mixtures that a critic takes for real.

The paper trains on several expressions of each person, so that identity and expression part by themselves.
With a photo of each, mixtures are asked for other genders and expressions, which the critic's heads look for.
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
from torch.nn.functional import binary_cross_entropy_with_logits as crossed

from dpveil_train.devices import best, compiled, halves
from dpveil_train.generators.networks import Critic
from dpveil_train.upconv.faces import Batch, Faces
from dpveil_train.upconv.networks import Generator, Identities
from dpveil_train.upconv.plan import Plan

PARTS: Final = ("identities", "decoder", "critic", "mean", "optimiser", "critic_optimiser")
"""Attributes of `Trainer` whose state is in a checkpoint."""
UNSAID: Final = 0.5
"""Share of reconstructions without a gender, which the identity then has to say."""


class Trainer:
    """The state of a training: rows, networks, optimisers and random generator."""

    def __init__(self, plan: Plan, crops: np.ndarray, conditions: np.ndarray) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent, self.device = plan, 0, 0.0, best()
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.faces = Faces(crops, conditions, plan, self.generator)
        self.mask = self.faces.mask.to(self.device)
        where: dict[str, Any] = {"device": self.device, "memory_format": torch.channels_last}
        self.identities = Identities(plan, self.faces.gallery).to(self.device)
        self.decoder = Generator(plan).to(**where)
        self.critic = Critic(plan, others=1).to(**where)
        both = [self.identities, self.decoder]
        self.mean = torch.nn.ModuleList(copy.deepcopy(both)).requires_grad_(requires_grad=False)
        groups = [
            {"params": list(self.identities.parameters()), "part": plan.rows * plan.rate},
            {"params": list(self.decoder.parameters()), "part": plan.rate},
        ]
        self.optimiser = torch.optim.Adam(groups, lr=plan.rate, betas=(0.5, 0.99))
        own = [{"params": list(self.critic.parameters()), "part": plan.critic_rate}]
        self.critic_optimiser = torch.optim.Adam(own, lr=plan.critic_rate, betas=(0.5, 0.99))
        compiled(self.device, self.decoder, self.critic)

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
        picks = torch.randint(len(self.faces.people), (self.plan.batch,), generator=self.generator)
        own, real = self.faces.of(self.faces.people[picks.numpy()]), self.faces.random(self.plan.batch)
        own, real, picks = own.to(self.device), real.to(self.device), picks.to(self.device)
        asked = self._asked()
        rows = self.identities.rows[picks]
        with halves(self.device):
            again = self._made(rows, self._said(own.conditions))
            other = self._made(self._mixed(rows), asked)
        losses = self._generated(own, again, other, asked)
        losses["tether"] = (rows - self.identities.start[picks]).square().mean()
        total = torch.stack([weight * losses[name] for name, weight in self._weights.items()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.decoder.parameters(), 10.0)
        self.optimiser.step()
        losses |= self._criticised(real, torch.cat([again, other]).detach())
        self._averaged()
        self.done += 1
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    @property
    def _weights(self) -> dict[str, float]:
        plan = self.plan
        return {
            "levels": plan.reconstruction,
            "features": plan.features,
            "fools": 1.0,
            "gender": plan.classes,
            "expression": plan.classes if plan.expressive else 0.0,
            "tether": plan.tether,
        }

    def _made(self, rows: Tensor, conditions: Tensor) -> Tensor:
        out: Tensor = self.decoder(torch.cat([self.identities(rows), conditions], dim=1)).float()
        return out * self.mask

    def _mixed(self, rows: Tensor) -> Tensor:
        """Return rows of nobody: mixtures of two people each, as others are approximated."""
        count = len(rows)
        share = torch.rand(count, 1, generator=self.generator).to(self.device)
        others = torch.randperm(count, generator=self.generator).to(self.device)
        return share * rows + (1 - share) * rows[others]

    def _said(self, conditions: Tensor) -> Tensor:
        """Return the conditions of reconstructions: their gender is left to the identity for some."""
        kept = torch.ones(conditions.shape)
        kept[:, 0] = (torch.rand(len(conditions), generator=self.generator) >= UNSAID).float()
        kept[:, 1] = float(self.plan.expressive)
        return conditions * kept.to(self.device)

    def _asked(self) -> Tensor:
        """Return conditions at random: male, female or neither, and a smile or none."""
        count = self.plan.batch
        gender = torch.randint(3, (count,), generator=self.generator) - 1
        smile = torch.randint(2, (count,), generator=self.generator) * int(self.plan.expressive)
        return torch.stack([gender, smile], dim=1).float().to(self.device)

    def _generated(self, own: Batch, again: Tensor, other: Tensor, asked: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=False)
        with halves(self.device):
            scores, gender, smile, seen = self.critic(torch.cat([again, other]))
            with torch.no_grad():
                *_, wanted = self.critic(own.pictures)
        half = len(again)
        apart = [(a[:half].float() - b.float()).abs().mean() for a, b in zip(seen, wanted, strict=True)]
        return {
            "levels": (again - own.pictures).abs().mean(),
            "features": torch.stack(apart).mean(),
            "fools": -scores.float().mean(),
            "gender": _told(gender[half:], (asked[:, 0] + 1) / 2, asked[:, 0] != 0),
            "expression": _told(smile[half:, 0], asked[:, 1], torch.ones_like(asked[:, 0])),
        }

    def _criticised(self, real: Batch, made: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=True)
        with halves(self.device):
            scores, gender, smile, _ = self.critic(torch.cat([real.pictures, made]))
        count = len(real.pictures)
        every = torch.ones(count, device=self.device)
        losses = {
            "apart": scores[count:].float().mean() - scores[:count].float().mean(),
            "gender, real": _told(gender[:count], (real.conditions[:, 0] + 1) / 2, every),
            "expression, real": _told(smile[:count, 0], real.conditions[:, 1], real.known),
        }
        total = torch.stack(list(losses.values())).sum() + 1e-3 * scores.float().square().mean()
        if self.done % self.plan.lazy == 0:
            losses["penalty"] = self._penalty(real.pictures, made[:count])
            total = total + self.plan.penalty * self.plan.lazy * losses["penalty"]
        self.critic_optimiser.zero_grad(set_to_none=True)
        total.backward()
        self.critic_optimiser.step()
        return losses

    def _penalty(self, real: Tensor, made: Tensor) -> Tensor:
        """Return the gradient penalty between real and made pictures (Gulrajani et al. 2017)."""
        share = torch.rand(len(real), 1, 1, 1, generator=self.generator).to(self.device)
        mixed = (real + share * (made - real)).requires_grad_()
        (slope,) = torch.autograd.grad(self.critic.forward(mixed)[0].sum(), mixed, create_graph=True)
        out: Tensor = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        return out

    def _rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        factor = min(1.0, (self.done + 1) / 200) * (0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * part)))
        for optimiser in (self.optimiser, self.critic_optimiser):
            for group in optimiser.param_groups:
                group["lr"] = group["part"] * factor

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for mean, now in zip(self.mean, (self.identities, self.decoder), strict=True):
            for own, new in zip(mean.parameters(), now.parameters(), strict=True):
                own.lerp_(new, 1 - weight)


def _told(logits: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Return the mean cross entropy over the faces of which the answer is known."""
    each = crossed(logits.float(), wanted, reduction="none") * known
    out: Tensor = each.sum() / known.sum().clamp(min=1)
    return out
