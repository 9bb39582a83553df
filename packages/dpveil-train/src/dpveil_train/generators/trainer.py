"""Training of `gan`: reconstruction, a Wasserstein critic, a classifier and a regressor of pose.

Source: Croft thesis §6.4–6.5, losses 6.21–6.30.
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

from dpveil.codecs.gan import CONDITIONS
from dpveil_train.devices import best, compiled, halves
from dpveil_train.generators.faces import Batch, Faces
from dpveil_train.generators.networks import Critic, Decoder, Encoder
from dpveil_train.generators.noise import Basis
from dpveil_train.generators.plan import Plan

SEEN: Final = 4096
"""Codes of which the principal components are computed."""
PARTS: Final = ("encoder", "decoder", "critic", "mean", "optimiser", "critic_optimiser")
"""Attributes of `Trainer` whose state is in a checkpoint."""


class Trainer:
    """The state of a training: networks, optimisers, principal components and random generator."""

    def __init__(self, plan: Plan, crops: np.ndarray, conditions: np.ndarray) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.done, self.spent, self.device = plan, 0, 0.0, best()
        where: dict[str, Any] = {"device": self.device, "memory_format": torch.channels_last}
        self.encoder = Encoder(plan).to(**where)
        self.decoder = Decoder(plan).to(**where)
        self.critic = Critic(plan).to(**where)
        self.mean = torch.nn.ModuleList(copy.deepcopy([self.encoder, self.decoder])).requires_grad_(
            requires_grad=False
        )
        both = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimiser = torch.optim.Adam(both, lr=plan.rate, betas=(0.5, 0.99))
        self.critic_optimiser = torch.optim.Adam(
            self.critic.parameters(), lr=plan.critic_rate, betas=(0.5, 0.99)
        )
        self.generator = torch.Generator().manual_seed(plan.seed)
        self.faces = Faces(crops, conditions, plan, self.generator)
        self.mask = self.faces.mask.to(self.device)
        self.basis: Basis | None = None
        compiled(self.device, self.encoder, self.decoder, self.critic)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        basis = None if self.basis is None else vars(self.basis)
        about = {"done": self.done, "spent": self.spent, "plan": asdict(self.plan), "basis": basis}
        return {**parts, **about, "generator": self.generator.get_state()}

    def take_up(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.basis = None if state["basis"] is None else Basis(**state["basis"])
        self.done, self.spent = state["done"], state["spent"]

    def step(self) -> dict[str, float]:
        """Make one training step and return the losses."""
        started = time.monotonic()
        if self.plan.noisy and self.done and self.done % self.plan.epoch == 0:
            self.basis = Basis.of(self._codes(SEEN))
        self._rates()
        own = self.faces.random(self.plan.batch).to(self.device)
        asked = self._asked(own)
        with halves(self.device):
            codes = self.encoder(own.pictures)
            again = self.decoder(codes, self._given(own.conditions))
            noisy = codes.float()
            if self.basis is not None:
                noisy = self.basis.noisy(noisy.cpu(), self.plan.budgets, self.generator).to(self.device)
            other = self.decoder(noisy, self._given(asked))
        again, other = (picture.float() * self.mask for picture in (again, other))
        losses = self._generated(own, again, other, asked)
        total = torch.stack([weight * losses[name] for name, weight in self._weights.items()]).sum()
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.optimiser.param_groups[0]["params"], 10.0)
        self.optimiser.step()
        losses |= self._criticised(own, torch.cat([again, other]).detach())
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
            "pose": plan.poses if plan.posed else 0.0,
        }

    def _asked(self, own: Batch) -> Tensor:
        """Return other conditions: a gender at random, and the poses of other faces."""
        count = len(own.pictures)
        asked = own.conditions[torch.randperm(count, generator=self.generator).to(self.device)]
        asked[:, 0] = (2.0 * torch.randint(2, (count,), generator=self.generator) - 1).to(self.device)
        return asked

    def _given(self, conditions: Tensor) -> Tensor:
        """Return the conditions that the decoder sees: without pose, if the plan has none."""
        kept = torch.ones(len(CONDITIONS))
        kept[1:] = float(self.plan.posed)
        return conditions * kept.to(self.device)

    def _generated(self, own: Batch, again: Tensor, other: Tensor, asked: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=False)
        with halves(self.device):
            scores, gender, pose, seen = self.critic(torch.cat([again, other]))
            with torch.no_grad():
                *_, wanted = self.critic(own.pictures)
        half = len(again)
        apart = [(a[:half].float() - b.float()).abs().mean() for a, b in zip(seen, wanted, strict=True)]
        return {
            "levels": (again - own.pictures).abs().mean(),
            "features": torch.stack(apart).mean(),
            "fools": -scores.float().mean(),
            "gender": crossed(gender[half:].float(), (asked[:, 0] + 1) / 2),
            "pose": _squares(pose[half:].float(), asked[:, 1:], own.known),
        }

    def _criticised(self, own: Batch, made: Tensor) -> dict[str, Tensor]:
        self.critic.requires_grad_(requires_grad=True)
        with halves(self.device):
            scores, gender, pose, _ = self.critic(torch.cat([own.pictures, made]))
        count = len(own.pictures)
        losses = {
            "apart": scores[count:].float().mean() - scores[:count].float().mean(),
            "gender, real": crossed(gender[:count].float(), (own.conditions[:, 0] + 1) / 2),
            "pose, real": _squares(pose[:count].float(), own.conditions[:, 1:], own.known),
        }
        total = losses["apart"] + losses["gender, real"] + self.plan.poses * losses["pose, real"]
        total = total + 1e-3 * scores.float().square().mean()
        if self.done % self.plan.lazy == 0:
            losses["penalty"] = self._penalty(own.pictures, made[:count])
            total = total + self.plan.penalty * self.plan.lazy * losses["penalty"]
        self.critic_optimiser.zero_grad(set_to_none=True)
        total.backward()
        self.critic_optimiser.step()
        return losses

    def _penalty(self, real: Tensor, made: Tensor) -> Tensor:
        """Return the gradient penalty between real and made pictures (Gulrajani et al. 2017)."""
        share = torch.rand(len(real), 1, 1, 1, generator=self.generator).to(self.device)
        mixed = (real + share * (made - real)).requires_grad_()
        scores = self.critic.forward(mixed)[0]
        (slope,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
        out: Tensor = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        return out

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _codes(self, most: int) -> Tensor:
        """Return the codes of the first training faces by the present encoder."""
        rows = self.faces.rows[:most]
        seen = (self.faces.of(rows[at : at + 64]).pictures for at in range(0, len(rows), 64))
        return torch.cat([self.encoder(pictures.to(self.device)).cpu() for pictures in seen])

    def _rates(self) -> None:
        part = min(1.0, self.done / self.plan.steps)
        factor = min(1.0, (self.done + 1) / 200) * (0.05 + 0.95 * (0.5 + 0.5 * math.cos(math.pi * part)))
        for optimiser, rate in (
            (self.optimiser, self.plan.rate),
            (self.critic_optimiser, self.plan.critic_rate),
        ):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for mean, now in zip(self.mean, (self.encoder, self.decoder), strict=True):
            for own, new in zip(mean.parameters(), now.parameters(), strict=True):
                own.lerp_(new, 1 - weight)


def _squares(found: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Return the mean squared error of poses over the faces whose pose is known (thesis eq. 6.25)."""
    weight = known.float()[:, None]
    out: Tensor = ((found - wanted) ** 2 * weight).mean(dim=1).sum() / weight.sum().clamp(min=1)
    return out
