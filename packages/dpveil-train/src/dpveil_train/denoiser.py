"""Training of the network that takes the noise of pixel methods from faces, on releases of public faces.

It is a small U-Net. It sees released pixels only, so skip connections leak nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import cv2
import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor, nn
from torch.nn.functional import interpolate

from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.core.rationals import Json
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian, MSEExponential, Snow
from dpveil.metrics import psnr
from dpveil.noise.bits import SeededBits
from dpveil.postprocessing.steps import JOB, DenoiserNetwork
from dpveil_train import networks
from dpveil_train.gan import convolution
from dpveil_train.networks import NetworkOrder, export_onnx, halve_weights, held_out, train_network
from dpveil_train.order import Progress, Trained, silent


def block(before: int, width: int) -> nn.Sequential:
    return nn.Sequential(*convolution(before, width), *convolution(width, width))


class UNet(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × s × s from -1 to 1 to pictures; s is a multiple of 2^(number of widths - 1)."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        pairs = list(zip(widths[::-1][:-1], widths[::-1][1:], strict=True))
        self.up = nn.ModuleList(block(deep + fine, fine) for deep, fine in pairs)
        self.halve = nn.ModuleList(nn.Conv2d(w, w, 2, stride=2) for w in widths[:-1])
        self.last = nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        x, seen = pictures, []
        for number, stage in enumerate(self.down):
            x = stage(x)
            if number < len(self.halve):
                seen.append(x)
                x = self.halve[number](x)
        for stage, fine in zip(self.up, reversed(seen), strict=True):
            x = stage(torch.cat([interpolate(x, scale_factor=2.0, mode="nearest"), fine], dim=1))
        out: Tensor = torch.tanh(self.last(x))
        return out


BLOCKS: Final = (1, 2, 3, 4, 6, 8, 12, 16)  # sides of blocks, in pixels of the picture
SCALES: Final = (2.0, 400.0)  # noise scales, in grey levels
SHARES: Final = (0.05, 0.6)  # values of δ for Snow
RATES: Final = (30.0, 30_000.0)  # values of ε for the exponential mechanism of a pixel's error
LEVELS: Final = 255
ZOOM: Final = (0.7, 1.0)
"""Part of a crop that a picture shows: boxes of detectors hold less than the crops do."""

T = TypeVar("T")
Picture = UInt8[np.ndarray, "s s 3"]


class Draws:
    """Numbers at random, which follow from a seed and a label."""

    def __init__(self, seed: int, label: str) -> None:
        self.bits = SeededBits(seed, label)

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * float(self.bits.words(1)[0]) / 2.0**64

    def log_uniform(self, low: float, high: float) -> float:
        """Return a number between two others, whose logarithm is uniform."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.uniform(0, 1) * len(choices)) % len(choices)]


def random_release(face: Picture, draws: Draws) -> Picture:
    """Return a release of a face by a method and a budget that are drawn at random."""
    method = draws.one_of(METHODS)(draws)
    out: Picture = method.release(face, bits=draws.bits)
    return out


def cut(crop: Picture, side: int, draws: Draws) -> Picture:
    """Return a random part of a crop, mirrored or not, as a picture."""
    size = len(crop) * draws.uniform(*ZOOM)
    left, top = (draws.uniform(0, len(crop) - size) for _ in range(2))
    scale = side / size
    matrix = scale * np.eye(2, 3)
    matrix[:, 2] = 0.5 * scale - 0.5 - scale * np.array([left, top])
    out = cv2.warpAffine(crop, matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
    return np.ascontiguousarray(out[:, ::-1] if draws.uniform(0, 1) < 0.5 else out)


def _scale(draws: Draws) -> tuple[int, float]:
    """Return a block and a noise scale; noise on a block is at most that on a pixel."""
    return draws.one_of(BLOCKS), draws.log_uniform(*SCALES)


def _laplace(draws: Draws) -> DPPix:
    """Return `dp-pix` with noise of scale 255·m/(b²·ε) levels, for m = 1."""
    block, scale = _scale(draws)
    return DPPix(epsilon=round(LEVELS * 3 / (block**2 * scale), 9), block=block, neighbourhood=1)


def _gaussian(draws: Draws) -> DPPixGaussian:
    """Return `dp-pix-gaussian` with a deviation of about that many levels."""
    block, scale = _scale(draws)
    rho = (LEVELS / block**2 / scale) ** 2 * 3 / 2
    return DPPixGaussian(rho=round(rho, 9), block=block, neighbourhood=1)


def _snow(draws: Draws) -> Snow:
    return Snow(delta=round(draws.uniform(*SHARES), 3))


def _exponential(draws: Draws) -> MSEExponential:
    block, rate = draws.one_of(BLOCKS[:5]), draws.log_uniform(*RATES)
    return MSEExponential(epsilon=round(rate, 3), block=block)


METHODS: Final[tuple[Callable[[Draws], Any], ...]] = (
    _laplace,
    _laplace,
    _gaussian,
    _snow,
    _exponential,
)
"""What makes a method at random; Laplace noise twice as often."""


MEASURED: Final = 200  # most held-out pictures that are measured


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
TINY: Final = Plan(side=32, widths=(8, 16), steps=4, batch=2)  # a plan for tests


class Trainer(networks.Trainer):
    """The state of a training."""

    parts = ("network", "mean", "optimiser")
    warm, floor = 100, 0.03

    def __init__(self, plan: Plan, crops: UInt8[np.ndarray, "n s s 3"]) -> None:
        super().__init__(plan)
        self.crops = crops
        self.network = self.to_device(UNet(plan.widths))
        self.mean = self.follow(self.network)
        self.optimiser = self.adam((self.network.parameters(), plan.rate), betas=(0.9, 0.99))
        self.held_out, self.rows = held_out(len(crops))

    def pairs(self, rows: np.ndarray, number: int) -> tuple[Tensor, Tensor]:
        """Return releases of these faces, and the faces, n × 3 × s × s from -1 to 1, by a number."""
        draws = Draws(self.plan.seed, f"releases {number}")
        faces = [cut(self.crops[row], self.plan.side, draws) for row in rows]
        noisy = [random_release(face, draws) for face in faces]
        return _planes(noisy), _planes(faces)

    def learn(self) -> dict[str, Tensor]:
        """Learn from one batch, whose randomness follows from the step's number, and return the losses."""
        draws = Draws(self.plan.seed, f"faces {self.done}")
        rows = np.array([int(draws.one_of(self.rows.tolist())) for _ in range(self.plan.batch)])
        noisy, clean = (one.to(self.device) for one in self.pairs(rows, self.done))
        with self.halves():
            made = self.network(noisy.contiguous(memory_format=torch.channels_last)).float()
        losses = {"level": (made - clean).abs().mean(), "slope": _slopes(made, clean)}
        total = losses["level"] + self.plan.slope * losses["slope"]
        self.descend(self.optimiser, total, self.network.parameters(), most=1.0)
        return losses

    def model(self, card: Card) -> DenoiserNetwork:
        shape = (1, 3, self.plan.side, self.plan.side)
        contents = np.frombuffer(halve_weights(export_onnx(self.mean.cpu()[0], shape)), np.uint8)
        return DenoiserNetwork(Network.of(contents, shape, shape, JOB, 1.5), self.plan.side, card)

    def metrics(self, model: DenoiserNetwork) -> dict[str, Json]:
        """Return the mean PSNR in dB of held-out releases, and of what the network makes of them."""
        draws, found = Draws(0, "held out"), []
        for row in self.held_out[:MEASURED]:
            face = cut(self.crops[row], self.plan.side, draws)
            noisy = random_release(face, draws)
            found.append([psnr(face, one, data_range=255) for one in (noisy, model(noisy))])
        before, after = np.mean(np.minimum(found, 100), axis=0)
        levels = {"PSNR in dB of releases": round(float(before), 2), "PSNR in dB": round(float(after), 2)}
        return {"images": len(found), **levels}


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[DenoiserNetwork]:
    """Train the network on shards, evaluate it, and write the model and its card.

    Raises the errors of `train_network`.
    """
    plan = replace(order.plan, seed=order.seed)
    return train_network(DenoiserNetwork.name, order, lambda crops, _: Trainer(plan, crops), progress)


def _planes(pictures: list[UInt8[np.ndarray, "s s 3"]]) -> Tensor:
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 127.5 - 1


def _slopes(made: Tensor, clean: Tensor) -> Tensor:
    total = torch.zeros((), device=made.device)
    missed = made - clean
    for step in (1, 2, 4):
        for dim in (2, 3):
            rest = missed.shape[dim] - step
            change = missed.narrow(dim, step, rest) - missed.narrow(dim, 0, rest)
            total = total + change.abs().mean() / 6
    return total
