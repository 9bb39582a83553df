"""Training of `gan`: reconstruction, a Wasserstein critic, a classifier and a regressor of pose.

No path leads from a picture to its decoding but the code: there are no skip connections, and pictures of one
batch do not mix, as they would by batch statistics. Source: Croft thesis §6.4–6.5, tables 6.1 and 6.2, losses
6.21–6.30.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np
import torch
from jaxtyping import Float32, Float64, UInt8
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as crossed
from torch.nn.functional import interpolate

from dpveil.assets.model_cards import Card
from dpveil.assets.networks import Network
from dpveil.codecs import GAN, Codec, Statistics
from dpveil.codecs.network_codecs import CONDITIONS, EncoderDecoder, ellipse_mask
from dpveil.core.rationals import Json
from dpveil.mechanisms.latent.coordinate_noise import affordable
from dpveil_train import networks
from dpveil_train.codecs import likeness
from dpveil_train.networks import NetworkOrder, export_onnx, halve_weights, held_out, train_network
from dpveil_train.order import Progress, Trained, silent


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of a `gan`.

    `side` is that of the crop in pixels, `length` the number of coordinates of a code. `widths` are the
    channels of the encoder, each at half the side of the one before, of the decoder in the reverse order, and
    of the critic, unless it has `critic`. `reconstruction`, `classes`, `poses` and `features` are the weights
    of losses beside the adversarial one (Croft thesis eq. 6.29; AttGAN's 100, 10), `critic_poses` that of
    poses of real faces (eq. 6.30), `penalty` that of the gradient penalty, which is computed every `lazy`
    steps. `budgets` is the range of ε that noise in training is drawn for, in the metric of `pca-basis` at
    `ratio`. `posed` gives the decoder yaw and pitch.

    `printed` takes what the thesis prints: the layers of table 6.1, with batch normalisation and transpose
    convolutions; errors of poses in deviations; poses asked for that are normal draws around a face's own;
    and one ε for each batch. Without it: group normalisation and up-convolutions; radians; poses of other
    faces; and an ε for each face.
    """

    side: int = 64
    length: int = 128
    widths: tuple[int, ...] = (32, 64, 128, 256)
    critic: tuple[int, ...] = ()
    hidden: int = 256
    steps: int = 9000
    batch: int = 32
    rate: float = 4e-4
    critic_rate: float = 4e-4
    reconstruction: float = 100.0
    classes: float = 10.0
    poses: float = 20.0
    critic_poses: float = 20.0
    features: float = 10.0
    penalty: float = 10.0
    lazy: int = 4
    budgets: tuple[float, float] = (100.0, 1000.0)
    ratio: float = 1.5
    epoch: int = 600
    average: float = 0.999
    seed: int = 1
    posed: bool = True
    printed: bool = False

    @property
    def small(self) -> int:
        """The side at which the encoder's last convolution works, in pixels."""
        return self.side >> len(self.widths)


FULL: Final = Plan(
    side=128,
    length=2048,
    widths=(64, 128, 256, 512, 1024, 1024),
    critic=(64, 128, 256, 512, 1024),
    hidden=1024,
    steps=400_000,
    batch=32,
    rate=2e-4,
    critic_rate=2e-4,
    reconstruction=200.0,
    classes=1.0,
    poses=30.0,
    critic_poses=3.0,
    features=0.0,
    lazy=1,
    ratio=1.3,
    printed=True,
)
"""Croft's thesis: tables 6.1 and 6.2, losses 6.21-6.30 with the weights of §6.8.2. Docs, "Codecs", list what
differs."""
TINY: Final = replace(Plan(), side=16, length=8, widths=(8, 16), hidden=16, steps=4, batch=4, epoch=2)
"""A plan for tests."""
PLANS: Final = {"small": Plan(), "full": FULL}


GROUPS: Final = 8  # groups of the group normalisation
SLOPE: Final = 0.2  # negative slope of leaky ReLUs


def normal(width: int, *, printed: bool = False) -> tuple[nn.Module, nn.Module]:
    return nn.BatchNorm2d(width) if printed else nn.GroupNorm(GROUPS, width), nn.LeakyReLU(SLOPE)


def halving(before: int, width: int, *, printed: bool = False) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(before, width, 4, stride=2, padding=1), *normal(width, printed=printed))


class Encoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × s × s from -1 to 1 to codes n × m."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        pairs, printed = zip(befores, plan.widths, strict=True), plan.printed
        self.stages = nn.Sequential(*(halving(a, b, printed=printed) for a, b in pairs))
        self.code: nn.Module = nn.Conv2d(plan.widths[-1], plan.length, plan.small)
        if printed:
            self.code = nn.Sequential(self.code, *normal(plan.length, printed=True))

    def forward(self, pictures: Tensor) -> Tensor:
        out: Tensor = self.code(self.stages(pictures)).flatten(1)
        return out


def convolution(before: int, width: int, kernel: int = 3) -> list[nn.Module]:
    """Return a convolution that keeps the side of a map, its normalisation and its activation."""
    return [nn.Conv2d(before, width, kernel, padding=kernel // 2), *normal(width)]


class Doubling(nn.Module):  # type: ignore[misc,unused-ignore]
    """A stage that doubles the side of a map: an up-convolution and another convolution."""

    def __init__(self, before: int, width: int, kernel: int = 3) -> None:
        super().__init__()
        self.inner = nn.Sequential(*convolution(before, width, kernel), *convolution(width, width))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(interpolate(x, scale_factor=2.0, mode="nearest"))
        return out


def transposed(before: int, width: int) -> nn.Sequential:
    """Return a stage that doubles the side of a map by a transpose convolution."""
    layer = nn.ConvTranspose2d(before, width, 4, stride=2, padding=1)
    return nn.Sequential(layer, *normal(width, printed=True))


class Decoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Codes with `CONDITIONS` behind, n × (m + 3), to pictures n × 3 × s × s from -1 to 1."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.small, widths, given = plan.small, plan.widths[::-1], plan.length + len(CONDITIONS)
        self.start: nn.Module = nn.Linear(given, widths[0] * plan.small**2)
        if plan.printed:  # of a map of one pixel this layer is the transpose convolution that makes the first
            self.first = nn.Sequential(*normal(widths[0], printed=True))
            pairs = zip((widths[0], *widths), widths[:-1], strict=False)
            self.stages = nn.Sequential(*(transposed(a, b) for a, b in pairs))
            self.last: nn.Module = nn.ConvTranspose2d(widths[-2], 3, 4, stride=2, padding=1)
        else:
            afters = (*widths[1:], widths[-1])
            self.first = nn.Identity()
            self.stages = nn.Sequential(*(Doubling(a, b) for a, b in zip(widths, afters, strict=True)))
            self.last = nn.Conv2d(afters[-1], 3, 3, padding=1)

    def forward(self, given: Tensor) -> Tensor:
        x = self.start(given).view(len(given), -1, self.small, self.small)
        out: Tensor = torch.tanh(self.last(self.stages(self.first(x))))
        return out


class Critic(nn.Module):  # type: ignore[misc,unused-ignore]
    """A critic of realism, and classifiers or regressors of as many numbers as `heads` say, on one trunk.

    It takes pictures one by one, without statistics of their batch.
    """

    def __init__(self, plan: Any, heads: tuple[int, ...] = (1, 1, 2), *, normalised: bool = True) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(a, b, 4, stride=2, padding=1),
                nn.InstanceNorm2d(b, affine=True) if normalised else nn.Identity(),
                nn.LeakyReLU(SLOPE),
            )
            for a, b in zip(befores, plan.widths, strict=True)
        )
        flat = plan.widths[-1] * plan.small**2
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(flat, plan.hidden), nn.LeakyReLU(SLOPE), nn.Linear(plan.hidden, count))
            for count in heads
        )

    def forward(self, pictures: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return what each head says (n numbers, or n × count), scores first, and each stage's features."""
        seen, x = [], pictures
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        said = [head(x.flatten(1)) for head in self.heads]
        return [one[:, 0] if one.shape[1] == 1 else one for one in said], seen


GRID: Final = 33  # number of budgets of which training draws


@dataclass(frozen=True, eq=False)
class Basis:
    """Principal components of codes: `mean` (m), orthonormal `rows` (m × m) in order of decreasing variance,
    and the lowest and highest values, and deviations, of the codes in them.
    """

    mean: Tensor
    rows: Tensor
    low: Tensor
    high: Tensor
    deviations: Tensor

    @classmethod
    def of(cls, codes: Tensor) -> Basis:
        codes = codes.double()
        mean = codes.mean(dim=0)
        _, rows = torch.linalg.eigh((codes - mean).T @ (codes - mean) / len(codes))
        rows = rows.T.flip(0)
        rows = rows * torch.where(rows.sum(dim=1, keepdim=True) < 0, -1.0, 1.0)
        inside = (codes - mean) @ rows.T
        spread = inside.std(dim=0, unbiased=False).clamp(min=1e-6)
        ends = inside.amin(dim=0) - 1e-6, inside.amax(dim=0) + 1e-6
        return cls(*(one.float() for one in (mean, rows, *ends, spread)))

    def noisy(self, codes: Tensor, plan: Plan, generator: torch.Generator) -> Tensor:
        """Return codes with the noise of `pca-basis`, each for an ε drawn from the plan's `budgets`, or all
        for one ε if it is `printed`.

        Components that ε does not afford have their mean.
        """
        width = (self.high - self.low).double().numpy()
        steps = np.linspace(*plan.budgets, GRID)
        spread = self.deviations.double().numpy()
        kept = [affordable(width, spread, Fraction(str(plan.ratio)), Fraction(step)) for step in steps]
        drawn = torch.randint(GRID, (1 if plan.printed else len(codes),), generator=generator)
        drawn = drawn.expand(len(codes))
        epsilon = torch.tensor(steps, dtype=torch.float32)[drawn]
        count = torch.tensor(kept)[drawn]
        inside = torch.maximum(torch.minimum((codes - self.mean) @ self.rows.T, self.high), self.low)
        uniform = torch.rand(inside.shape, generator=generator) - 0.5
        laplace = -uniform.sign() * torch.log1p(-2 * uniform.abs().clamp(max=0.49999))
        scale = count[:, None] * (self.high - self.low) / epsilon[:, None]
        shown = torch.arange(codes.shape[1]) < count[:, None]
        inside = torch.where(shown, inside + scale * laplace, torch.zeros(()))
        inside = torch.maximum(torch.minimum(inside, self.high), self.low)
        out: Tensor = inside @ self.rows + self.mean
        return out


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures n × 3 × s × s from -1 to 1, their conditions n × 3, and whether their pose is `known`."""

    pictures: Tensor
    conditions: Tensor
    known: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(self.pictures.to(device), self.conditions.to(device), self.known.to(device))


class Faces:
    """Crops n × s × s × 3 and conditions n × 3, NaN where unknown; `generator` is the only randomness."""

    def __init__(
        self,
        crops: UInt8[np.ndarray, "n s s 3"],
        conditions: Float32[np.ndarray, "n 3"],
        plan: Any,
        generator: torch.Generator,
    ) -> None:
        self.crops = crops
        self.conditions = torch.from_numpy(conditions)
        self.plan, self.generator = plan, generator
        self.mask = torch.from_numpy(ellipse_mask(plan.side))
        self.held_out, self.rows = held_out(len(crops))

    def random(self, count: int) -> Batch:
        """Return a batch of training faces, half of them mirrored."""
        picks = self.rows[torch.randint(len(self.rows), (count,), generator=self.generator).numpy()]
        return self.of(picks, torch.rand(count, generator=self.generator) < 0.5)

    def of(self, rows: np.ndarray, mirrored: Tensor | None = None) -> Batch:
        pictures = torch.from_numpy(self.crops[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1
        conditions = self.conditions[rows].clone()
        if mirrored is not None:
            pictures = torch.where(mirrored[:, None, None, None], pictures.flip(3), pictures)
            yaw = CONDITIONS.index("yaw")
            conditions[:, yaw] *= 1 - 2 * mirrored.float()
        known = conditions.isfinite().all(dim=1)
        return Batch(pictures * self.mask, conditions.nan_to_num(), known)


SEEN: Final = 4096  # codes of which the principal components are computed


class Adversarial(networks.Trainer):
    """A training of networks that a `critic` judges, which learns beside them from the same `faces`."""

    critic: Any
    critic_optimiser: torch.optim.Optimizer
    faces: Any

    def watch(self, critic: nn.Module, faces: Faces, betas: tuple[float, float]) -> None:
        """Take a critic, and the faces that are learned from."""
        self.critic = self.to_device(critic)
        self.critic_optimiser = self.adam((self.critic.parameters(), self.plan.critic_rate), betas=betas)
        self.faces, self.rows, self.mask = faces, faces.rows, faces.mask.to(self.device)

    def judge(self, made: Tensor, real: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return what the critic, which learns nothing from it, says of pictures, and the mean difference of
        its features of the first of them from those of real ones.
        """
        self.critic.requires_grad_(requires_grad=False)
        with self.halves():
            said, seen = self.critic(made)
            with torch.no_grad():
                _, wanted = self.critic(real)
        pairs = zip(seen, wanted, strict=True)
        apart = torch.stack([(a[: len(b)].float() - b.float()).abs().mean() for a, b in pairs]).mean()
        return [one.float() for one in said], apart

    def opinions(self, pictures: Tensor) -> list[Tensor]:
        """Return what the critic says of pictures, from which it learns."""
        self.critic.requires_grad_(requires_grad=True)
        with self.halves():
            said, _ = self.critic(pictures)
        return [one.float() for one in said]

    def learn_apart(
        self, losses: dict[str, Tensor], scores: Tensor, real: Tensor, made: Tensor, **weights: float
    ) -> dict[str, Tensor]:
        """Let the critic tell real pictures, whose `scores` come first, from made ones, beside other losses.

        With the gradient penalty between both (Gulrajani et al. 2017).
        """
        count, plan = len(real), self.plan
        losses = {"apart": scores[count:].mean() - scores[:count].mean(), **losses}
        total = weighted_sum(losses, {name: weights.get(name, 1.0) for name in losses})
        total = total + 1e-3 * scores.square().mean()
        if self.done % plan.lazy == 0:
            share = torch.rand(count, 1, 1, 1, generator=self.generator).to(self.device)
            mixed = (real + share * (made[:count] - real)).requires_grad_()
            (slope,) = torch.autograd.grad(self.critic(mixed)[0][0].sum(), mixed, create_graph=True)
            losses["penalty"] = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
            total = total + plan.penalty * plan.lazy * losses["penalty"]
        self.descend(self.critic_optimiser, total)
        return losses


class Trainer(Adversarial):
    """The state of a training: networks, optimisers, principal components and random generator."""

    parts = ("encoder", "decoder", "critic", "mean", "optimiser", "critic_optimiser")

    def __init__(self, plan: Plan, crops: np.ndarray, conditions: np.ndarray) -> None:
        super().__init__(plan)
        self.encoder, self.decoder = self.to_device(Encoder(plan)), self.to_device(Decoder(plan))
        critic = Critic(replace(plan, widths=plan.critic or plan.widths))
        self.mean = self.follow(self.encoder, self.decoder)
        self.both = [*self.encoder.parameters(), *self.decoder.parameters()]
        self.optimiser = self.adam((self.both, plan.rate), betas=(0.5, 0.99))
        self.watch(critic, Faces(crops, conditions, plan, self.generator), betas=(0.5, 0.99))
        self.unit = self._unit_of_poses().to(self.device)
        self.basis: Basis | None = None

    def state(self) -> dict[str, Any]:
        return {**super().state(), "basis": None if self.basis is None else vars(self.basis)}

    def take_up(self, state: dict[str, Any]) -> None:
        super().take_up(state)
        self.basis = None if state["basis"] is None else Basis(**state["basis"])

    def _unit_of_poses(self) -> Tensor:
        """Return the unit of errors of yaw and pitch: a radian, or their deviations."""
        poses = self.faces.conditions[torch.from_numpy(self.rows), 1:]
        known = poses[poses.isfinite().all(dim=1)]
        if not self.plan.printed or len(known) < 2:
            return torch.ones(2)
        return known.std(dim=0).clamp(min=1e-6)

    def learn(self) -> dict[str, Tensor]:
        plan = self.plan
        if self.done and self.done % plan.epoch == 0:
            self.basis = Basis.of(self._codes(SEEN))
        own = self.faces.random(plan.batch).to(self.device)
        asked = self._sample_conditions(own)
        with self.halves():
            codes = self.encoder(own.pictures)
            again = self._decode(codes, own.conditions)
            noisy = codes.float()
            if self.basis is not None:
                noisy = self.basis.noisy(noisy.cpu(), plan, self.generator).to(self.device)
            other = self._decode(noisy, asked)
        losses = self._generator_losses(own, again, other, asked)
        weights = {
            "levels": plan.reconstruction,
            "features": plan.features,
            "fools": 1.0,
            "gender": plan.classes,
            "pose": plan.poses if plan.posed else 0.0,
        }
        self.descend(self.optimiser, weighted_sum(losses, weights), self.both)
        return losses | self._critic_losses(own, torch.cat([again, other]).detach())

    def _sample_conditions(self, own: Batch) -> Tensor:
        """Return other conditions: a gender at random, and the poses of other faces, or near a face's own."""
        count = len(own.pictures)
        if self.plan.printed:
            asked = own.conditions.clone()
            moved = torch.randn(count, 2, generator=self.generator).to(self.device)
            asked[:, 1:] += self.unit * moved
        else:
            asked = own.conditions[torch.randperm(count, generator=self.generator).to(self.device)]
        asked[:, 0] = (2.0 * torch.randint(2, (count,), generator=self.generator) - 1).to(self.device)
        return asked

    def _decode(self, codes: Tensor, conditions: Tensor) -> Tensor:
        """Return pictures of codes in conditions, of which the decoder sees no pose if the plan has none."""
        kept = torch.ones(len(CONDITIONS))
        kept[1:] = float(self.plan.posed)
        out: Tensor = self.decoder(torch.cat([codes, conditions * kept.to(self.device)], dim=1)).float()
        return out * self.mask

    def _generator_losses(self, own: Batch, again: Tensor, other: Tensor, asked: Tensor) -> dict[str, Tensor]:
        (scores, gender, pose), apart = self.judge(torch.cat([again, other]), own.pictures)
        half = len(again)
        return {
            "levels": (again - own.pictures).abs().mean(),
            "features": apart,
            "fools": -scores.mean(),
            "gender": crossed(gender[half:], (asked[:, 0] + 1) / 2),
            "pose": _squares(pose[half:] / self.unit, asked[:, 1:] / self.unit, own.known),
        }

    def _critic_losses(self, own: Batch, made: Tensor) -> dict[str, Tensor]:
        scores, gender, pose = self.opinions(torch.cat([own.pictures, made]))
        count = len(own.pictures)
        losses = {
            "gender, real": crossed(gender[:count], (own.conditions[:, 0] + 1) / 2),
            "pose, real": _squares(pose[:count] / self.unit, own.conditions[:, 1:] / self.unit, own.known),
        }
        weights = {"pose, real": self.plan.critic_poses}
        return self.learn_apart(losses, scores, own.pictures, made, **weights)

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def _codes(self, most: int) -> Tensor:
        rows = self.faces.rows[:most]
        seen = (self.faces.of(rows[at : at + 64]).pictures for at in range(0, len(rows), 64))
        self.encoder.eval()  # else batches would mix, and count as seen
        codes = torch.cat([self.encoder(pictures.to(self.device)).cpu() for pictures in seen])
        self.encoder.train()
        return codes

    def model(self, card: Card) -> GAN:
        encoder, decoder = self.mean.cpu()
        return make_codec(GAN, (encoder, decoder), self.faces, self.plan.length, Basis.of, card)

    def metrics(self, model: EncoderDecoder) -> dict[str, Json]:
        return reconstruction_metrics(model, self.faces)


def weighted_sum(losses: dict[str, Tensor], weights: dict[str, float]) -> Tensor:
    return torch.stack([weight * losses[name] for name, weight in weights.items()]).sum()


def _squares(found: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    """Return the mean squared error of poses over the faces whose pose is known (thesis eq. 6.25)."""
    weight = known.float()[:, None]
    out: Tensor = ((found - wanted) ** 2 * weight).mean(dim=1).sum() / weight.sum().clamp(min=1)
    return out


MOST: Final = 20_000  # training codes of which the statistics are computed
STEP: Final = 0.5  # half of the difference by which energies are computed, in deviations of a component
Made = TypeVar("Made", bound=EncoderDecoder)
MEASURED: Final = 400  # most held-out pictures that are measured


def make_codec(
    kind: type[Made],
    networks: tuple[nn.Module, nn.Module],
    faces: Faces,
    count: int,
    basis_of: Callable[[Tensor], Basis],
    card: Card,
) -> Made:
    """Return the codec of an encoder to `count` numbers and a decoder, with statistics of training faces."""
    side = faces.plan.side
    shapes = (1, 3, side, side), (1, count + len(kind.conditions))
    parts = [
        np.frombuffer(halve_weights(export_onnx(network, shape)), np.uint8)
        for network, shape in zip(networks, shapes, strict=True)
    ]
    encoder, decoder = kind.networks(parts[0], parts[1], side, count)
    rows = faces.rows[:MOST]
    seen = (faces.of(rows[at : at + 64]).pictures.numpy() for at in range(0, len(rows), 64))
    codes = np.stack([encoder(one[None])[0] for batch in seen for one in batch])
    basis = basis_of(torch.from_numpy(codes))
    mean, turn = basis.mean.numpy(), basis.rows.numpy()
    inside = (codes - mean).astype(np.float64) @ turn.T.astype(np.float64)
    spread = inside.std(axis=0)
    energy = energies_of(decoder, len(kind.conditions), mean, turn, spread)
    statistics = Statistics.of(inside, energy, seed=faces.plan.seed, deviations=spread)
    more: dict[str, Any] = {"canvas": (side, side, 3), "card": card}
    return kind(encoder, decoder, mean, turn, energy, statistics, **more)


def masked_likeness(codec: Codec, faces: Faces, rows: np.ndarray) -> tuple[float, float]:
    """Return the mean PSNR in dB and SSIM of crops after encoding and decoding.

    What lies beyond the public ellipse is grey in both.
    """
    crops = np.where(ellipse_mask(codec.canvas[0])[..., None], faces.crops[rows], np.uint8(128))
    return likeness(zip(crops, codec.decode(codec.encode(crops)), strict=True))


def reconstruction_metrics(codec: Codec, faces: Faces) -> dict[str, Json]:
    """Return the `masked_likeness` of held-out crops."""
    rows = faces.held_out[:MEASURED]
    noise, alike = masked_likeness(codec, faces, rows)
    return {"images": len(rows), "PSNR in dB": round(noise, 2), "SSIM": round(alike, 4)}


def energies_of(
    decoder: Network, conditions: int, mean: np.ndarray, basis: np.ndarray, spread: np.ndarray
) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of the change of the mean picture per unit of each component, in levels."""
    none = np.zeros(conditions, np.float32)
    found = []
    for row, deviation in zip(basis, spread, strict=True):
        ends = [
            decoder(np.concatenate([mean + sign * STEP * deviation * row, none])[None].astype(np.float32))
            for sign in (-1, 1)
        ]
        change = (ends[1] - ends[0]).astype(np.float64) * 127.5 / (2 * STEP * deviation)
        found.append(float((change**2).sum()))
    return np.asarray(np.maximum(np.array(found), 1e-9))


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[GAN]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises the errors of `train_network`.
    """
    plan = replace(order.plan, seed=order.seed, posed=order.plan.posed and order.landmarks is not None)
    return train_network(GAN.name, order, lambda *faces: Trainer(plan, *faces), progress)
