"""Training of a denoiser from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from dpveil.assets.cards import Card
from dpveil.assets.network import Network
from dpveil.assets.store import save
from dpveil.core.numbers import Json
from dpveil.metrics import psnr
from dpveil.postprocessing.denoiser import JOB, DenoiserNetwork
from dpveil_train.denoiser.network import UNet
from dpveil_train.denoiser.releases import Draws, cut, released
from dpveil_train.devices import best, compiled, halves
from dpveil_train.network_orders import PlannedOrder, costs, learned, read_faces
from dpveil_train.onnx_export import exported, halved
from dpveil_train.order import Progress, Trained, silent

EVERY: Final = 20
"""One picture in this many is held out."""
MEASURED: Final = 200
"""Most held-out pictures that are measured."""


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters: `side` of the picture in pixels, `widths` of the U-Net at each halving."""

    side: int = 96
    widths: tuple[int, ...] = (24, 48, 96, 160)
    steps: int = 4000
    batch: int = 16
    rate: float = 1e-3
    slope: float = 0.5
    average: float = 0.998
    seed: int = 1


PLANS: Final = {"small": Plan(), "full": Plan(widths=(64, 128, 256, 512), steps=100_000, batch=64, rate=5e-4)}
TINY: Final = Plan(side=32, widths=(8, 16), steps=4, batch=2)
"""A plan for tests."""
PARTS: Final = ("network", "mean", "optimiser")


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(PlannedOrder):
    """An order for a denoiser; it needs no landmarks."""

    plan: Plan = PLANS["small"]


class Trainer:
    """The state of a training."""

    def __init__(self, plan: Plan, crops: UInt8[np.ndarray, "n s s 3"]) -> None:
        torch.manual_seed(plan.seed)
        self.plan, self.crops, self.done, self.spent = plan, crops, 0, 0.0
        self.device = best()
        self.network = UNet(plan.widths).to(self.device).to(memory_format=torch.channels_last)
        self.mean = copy.deepcopy(self.network).requires_grad_(requires_grad=False)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=plan.rate, betas=(0.9, 0.99))
        compiled(self.device, self.network)
        held = np.arange(len(crops)) % EVERY == 0
        self.held_out, self.rows = np.flatnonzero(held), np.flatnonzero(~held)

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        parts = {name: getattr(self, name).state_dict() for name in PARTS}
        return {**parts, "done": self.done, "spent": self.spent}

    def take_up(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.done, self.spent = state["done"], state["spent"]

    def pairs(self, rows: np.ndarray, number: int) -> tuple[Tensor, Tensor]:
        """Return releases of these faces, and the faces, n × 3 × s × s from -1 to 1, by a number."""
        draws = Draws(self.plan.seed, f"releases {number}")
        faces = [cut(self.crops[row], self.plan.side, draws) for row in rows]
        noisy = [released(face, draws) for face in faces]
        return _planes(noisy), _planes(faces)

    def step(self) -> dict[str, float]:
        """Make one training step and return the losses; its randomness follows from its number."""
        started = time.monotonic()
        draws = Draws(self.plan.seed, f"faces {self.done}")
        rows = np.array([int(draws.one_of(self.rows.tolist())) for _ in range(self.plan.batch)])
        noisy, clean = (one.to(self.device) for one in self.pairs(rows, self.done))
        part = self.done / self.plan.steps
        factor = min(1.0, (self.done + 1) / 100) * (0.03 + 0.97 * (0.5 + 0.5 * math.cos(math.pi * part)))
        for group in self.optimiser.param_groups:
            group["lr"] = self.plan.rate * factor
        with halves(self.device):
            made = self.network(noisy.contiguous(memory_format=torch.channels_last)).float()
        losses = {"level": (made - clean).abs().mean(), "slope": _slopes(made, clean)}
        total = losses["level"] + self.plan.slope * losses["slope"]
        self.optimiser.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        self._averaged()
        self.done += 1
        self.spent += time.monotonic() - started
        return {name: float(value.detach()) for name, value in losses.items()}

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _averaged(self) -> None:
        weight = min(self.plan.average, (1 + self.done) / (10 + self.done))
        for own, new in zip(self.mean.parameters(), self.network.parameters(), strict=True):
            own.lerp_(new, 1 - weight)


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[DenoiserNetwork]:
    """Train the network on shards, evaluate it, and write the model and its card.

    Raises as `generators.orders.train`.
    """
    order.check()
    crops, _, failed = read_faces(order, progress)
    plan = replace(order.plan, seed=order.seed)
    trainer = Trainer(plan, crops)
    kept = learned(trainer, order, DenoiserNetwork.name, len(crops), progress)
    settings = {**order.settings(), **costs(trainer, len(trainer.rows))}
    card = Card(DenoiserNetwork.name, order.data, order.terms, order.seed, settings)
    model = network_of(trainer, card)
    model = model.with_card(replace(card, metrics=measured(model, trainer)))
    digest = save(model, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(model, digest, len(crops), failed)


def network_of(trainer: Trainer, card: Card) -> DenoiserNetwork:
    """Return the averaged network, with weights of 16 bits."""
    shape = (1, 3, trainer.plan.side, trainer.plan.side)
    contents = np.frombuffer(halved(exported(trainer.mean.cpu(), shape)), np.uint8)
    return DenoiserNetwork(Network.of(contents, shape, shape, JOB, 1.5), trainer.plan.side, card)


def measured(model: DenoiserNetwork, trainer: Trainer) -> dict[str, Json]:
    """Return the mean PSNR in dB of held-out releases, and of what the network makes of them."""
    draws = Draws(0, "held out")
    found = []
    for row in trainer.held_out[:MEASURED]:
        face = cut(trainer.crops[row], trainer.plan.side, draws)
        noisy = released(face, draws)
        found.append([psnr(face, one, data_range=255) for one in (noisy, model(noisy))])
    before, after = np.mean(np.minimum(found, 100), axis=0)
    return {
        "images": len(found),
        "PSNR in dB of releases": round(float(before), 2),
        "PSNR in dB": round(float(after), 2),
    }


def _planes(pictures: list[UInt8[np.ndarray, "s s 3"]]) -> Tensor:
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 127.5 - 1


def _slopes(made: Tensor, clean: Tensor) -> Tensor:
    """Return the mean absolute error of differences between neighbouring pixels, at three scales."""
    total = torch.zeros((), device=made.device)
    missed = made - clean
    for step in (1, 2, 4):
        for dim in (2, 3):
            rest = missed.shape[dim] - step
            change = missed.narrow(dim, step, rest) - missed.narrow(dim, 0, rest)
            total = total + change.abs().mean() / 6
    return total
