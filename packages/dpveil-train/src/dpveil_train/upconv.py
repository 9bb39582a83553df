"""Training of `upconv`: pictures of people from their rows, and mixtures that a critic takes for real.

The generator and its identity layer are those of DeconvFaces, but pictures of one batch do not mix, as they
would by its batch normalisation. The paper trains on several expressions of each person, so that identity and
expression part by themselves. With a photo of each, mixtures are asked for other genders and expressions,
which the critic's heads look for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as crossed
from torch.nn.functional import leaky_relu

from dpveil.assets.model_cards import Card
from dpveil.codecs import Statistics, UpConv
from dpveil.codecs.network_codecs import pictures
from dpveil.codecs.upconv import CONDITIONS, SLOPE, embed_crops, generator
from dpveil.core.rationals import Json
from dpveil_train import gan
from dpveil_train.attributes import looks
from dpveil_train.gan import Adversarial, Batch, Critic, Doubling, energies_of, masked_likeness, weighted_sum
from dpveil_train.landmarks import Finder
from dpveil_train.networks import NetworkOrder, export_onnx, halve_weights, train_network
from dpveil_train.order import Progress, Trained, silent


@dataclass(frozen=True)
class Plan:
    """Sizes and hyperparameters of an `upconv`.

    `side` is that of the crop in pixels, `length` the number of outputs of the identity layer, `people` how
    many are known, `embedded` the length of the embedding in which others are approximated. `given` is the
    width of the layer of each condition, `hidden` that of the layer behind all, and of the critic's. `widths`
    are the channels of the critic, each at half the side of the one before, and of the generator in the
    reverse order; `kernel` is the side of the first of a stage's two convolutions.

    `reconstruction`, `features` and `classes` are the weights of losses beside the adversarial one, as in
    `gan`; `tether` that of squared differences between rows and the embeddings that they began as, so that
    mixtures of people mean the same to both. `rows` is the learning rate of rows, relative to the others.
    """

    side: int = 64
    length: int = 128
    people: int = 2000
    embedded: int = 32
    given: int = 32
    hidden: int = 256
    widths: tuple[int, ...] = (32, 64, 128, 256)
    kernel: int = 3
    steps: int = 9000
    batch: int = 32
    rate: float = 4e-4
    critic_rate: float = 4e-4
    rows: float = 5.0
    reconstruction: float = 100.0
    classes: float = 10.0
    features: float = 10.0
    tether: float = 0.3
    penalty: float = 10.0
    lazy: int = 4
    average: float = 0.999
    seed: int = 1
    expressive: bool = True

    @property
    def small(self) -> int:
        return self.side >> len(self.widths)


FULL: Final = Plan(
    side=128,
    length=512,
    people=5000,
    embedded=64,
    given=512,
    hidden=1024,
    widths=(32, 96, 96, 128, 128),
    kernel=5,
    steps=160_000,
    rate=2e-4,
    critic_rate=2e-4,
    lazy=1,
)
"""Sizes of DeconvFaces, on which Croft 2022 builds: 512, 1024, then 128, 128, 96, 96 and 32 channels.

Its 1000 epochs of 5000 pictures are 156 000 steps. With many more people or a longer embedding the linear
program of every face takes seconds.
"""
TINY: Final = replace(
    Plan(), side=16, length=8, people=12, embedded=6, given=4, hidden=16, widths=(8, 16), steps=4, batch=4
)
"""A plan for tests."""
PLANS: Final = {"small": Plan(), "full": FULL}


class Identities(nn.Module):  # type: ignore[misc,unused-ignore]
    """The identity layer: a row for each person, which begins as their whitened embedding, turned."""

    def __init__(self, plan: Plan, gallery: Float32[np.ndarray, "p d"]) -> None:
        super().__init__()
        known = torch.from_numpy((gallery - gallery.mean(axis=0)) / gallery.std(axis=0).clip(1e-6))
        wide = max(plan.length, known.shape[1])
        turn = torch.linalg.qr(torch.randn(wide, wide))[0][: known.shape[1], : plan.length]
        start = known @ turn * (plan.length / known.shape[1]) ** 0.5
        self.register_buffer("start", start)
        self.rows = nn.Parameter(start.clone())

    def forward(self, rows: Tensor) -> Tensor:
        """Return the codes of rows, or of mixtures of them."""
        return leaky_relu(rows, SLOPE)


class Generator(nn.Module):  # type: ignore[misc,unused-ignore]
    """Codes with `CONDITIONS` behind, n × (m + 2), to pictures n × 3 × s × s from -1 to 1."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.small = plan.small
        self.given = nn.ModuleList(nn.Linear(1, plan.given) for _ in CONDITIONS)
        self.hidden = nn.Linear(plan.length + len(CONDITIONS) * plan.given, plan.hidden)
        self.start = nn.Linear(plan.hidden, plan.widths[-1] * plan.small**2)
        widths = plan.widths[::-1]
        pairs = zip((widths[0], *widths[:-1]), widths, strict=True)
        self.stages = nn.Sequential(*(Doubling(a, b, plan.kernel) for a, b in pairs))
        self.last = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, given: Tensor) -> Tensor:
        count = len(CONDITIONS)
        parts = [given[:, :-count]]
        for number, layer in enumerate(self.given):
            at = given.shape[1] - count + number
            parts.append(leaky_relu(layer(given[:, at : at + 1]), SLOPE))
        x = leaky_relu(self.hidden(torch.cat(parts, dim=1)), SLOPE)
        x = leaky_relu(self.start(x), SLOPE).view(len(given), -1, self.small, self.small)
        out: Tensor = torch.tanh(self.last(self.stages(x)))
        return out


class Faces(gan.Faces):
    """Crops n × s × s × 3, one of a person, and conditions n × 2, with NaN for unknown expressions.

    `people` are the rows whom the generator knows, `mean` and `axes` their principal components, and
    `gallery` their embeddings.
    """

    def __init__(
        self,
        crops: UInt8[np.ndarray, "n s s 3"],
        conditions: Float32[np.ndarray, "n 2"],
        plan: Plan,
        generator: torch.Generator,
    ) -> None:
        super().__init__(crops, conditions, plan, generator)
        count = min(plan.people, len(self.rows))
        self.people = self.rows[np.linspace(0, len(self.rows) - 1, count).round().astype(int)]
        known = crops[self.people]
        self.mean, self.axes = components(pictures(known).reshape(count, -1), min(plan.embedded, count - 1))
        self.gallery = embed_crops(known, self.mean, self.axes).astype(np.float32)

    def random(self, count: int) -> Batch:
        """Return a batch of any training faces."""
        return self.of(self.rows[torch.randint(len(self.rows), (count,), generator=self.generator).numpy()])


def components(
    rows: Float32[np.ndarray, "n pixels"], count: int
) -> tuple[Float32[np.ndarray, " pixels"], Float32[np.ndarray, "d pixels"]]:
    """Return the mean and the leading principal components of pictures, rounded to 16 bits as in files."""
    mean = rows.mean(axis=0)
    away = (rows - mean).astype(np.float64)
    values, vectors = np.linalg.eigh(away @ away.T)
    axes = (away.T @ vectors[:, ::-1][:, :count] / np.sqrt(values[::-1][:count].clip(1e-9))).T
    axes = axes * np.sign(axes[np.arange(count), np.abs(axes).argmax(axis=1)])[:, None]
    return mean, axes.astype(np.float16).astype(np.float32)


UNSAID: Final = 0.5  # share of reconstructions without a gender, which the identity then has to say
MEASURED: Final = 200  # most pictures of each kind that are measured


class Trainer(Adversarial):
    """The state of a training: rows, networks, optimisers and random generator."""

    parts = ("identities", "decoder", "critic", "mean", "optimiser", "critic_optimiser")

    def __init__(self, plan: Plan, crops: np.ndarray, conditions: np.ndarray) -> None:
        super().__init__(plan)
        faces = Faces(crops, conditions, plan, self.generator)
        self.identities = Identities(plan, faces.gallery).to(self.device)
        self.decoder, critic = self.to_device(Generator(plan)), Critic(plan, heads=(1, 1, 1))
        self.mean = self.follow(self.identities, self.decoder)
        rows, weights = self.identities.parameters(), self.decoder.parameters()
        self.optimiser = self.adam((rows, plan.rows * plan.rate), (weights, plan.rate), betas=(0.5, 0.99))
        self.watch(critic, faces, betas=(0.5, 0.99))

    def learn(self) -> dict[str, Tensor]:
        plan = self.plan
        picks = torch.randint(len(self.faces.people), (plan.batch,), generator=self.generator)
        own, real = self.faces.of(self.faces.people[picks.numpy()]), self.faces.random(plan.batch)
        own, real, picks = own.to(self.device), real.to(self.device), picks.to(self.device)
        asked = self._sample_conditions()
        rows = self.identities.rows[picks]
        with self.halves():
            again = self._decode(rows, self._reconstruction_conditions(own.conditions))
            other = self._decode(self._mix_people(rows), asked)
        losses = self._generator_losses(own, again, other, asked)
        losses["tether"] = (rows - self.identities.start[picks]).square().mean()
        weights = {
            "levels": plan.reconstruction,
            "features": plan.features,
            "fools": 1.0,
            "gender": plan.classes,
            "expression": plan.classes if plan.expressive else 0.0,
            "tether": plan.tether,
        }
        self.descend(self.optimiser, weighted_sum(losses, weights), self.decoder.parameters())
        return losses | self._critic_losses(real, torch.cat([again, other]).detach())

    def _decode(self, rows: Tensor, conditions: Tensor) -> Tensor:
        out: Tensor = self.decoder(torch.cat([self.identities(rows), conditions], dim=1)).float()
        return out * self.mask

    def _mix_people(self, rows: Tensor) -> Tensor:
        """Return rows of nobody: mixtures of two people each, as others are approximated."""
        count = len(rows)
        share = torch.rand(count, 1, generator=self.generator).to(self.device)
        others = torch.randperm(count, generator=self.generator).to(self.device)
        return share * rows + (1 - share) * rows[others]

    def _reconstruction_conditions(self, conditions: Tensor) -> Tensor:
        """Return the conditions of reconstructions: their gender is left to the identity for some."""
        kept = torch.ones(conditions.shape)
        kept[:, 0] = (torch.rand(len(conditions), generator=self.generator) >= UNSAID).float()
        kept[:, 1] = float(self.plan.expressive)
        return conditions * kept.to(self.device)

    def _sample_conditions(self) -> Tensor:
        """Return conditions at random: male, female or neither, and a smile or none."""
        count = self.plan.batch
        gender = torch.randint(3, (count,), generator=self.generator) - 1
        smile = torch.randint(2, (count,), generator=self.generator) * int(self.plan.expressive)
        return torch.stack([gender, smile], dim=1).float().to(self.device)

    def _generator_losses(self, own: Batch, again: Tensor, other: Tensor, asked: Tensor) -> dict[str, Tensor]:
        (scores, gender, smile), apart = self.judge(torch.cat([again, other]), own.pictures)
        half = len(again)
        return {
            "levels": (again - own.pictures).abs().mean(),
            "features": apart,
            "fools": -scores.mean(),
            "gender": _known_cross_entropy(gender[half:], (asked[:, 0] + 1) / 2, asked[:, 0] != 0),
            "expression": crossed(smile[half:], asked[:, 1]),
        }

    def _critic_losses(self, real: Batch, made: Tensor) -> dict[str, Tensor]:
        scores, gender, smile = self.opinions(torch.cat([real.pictures, made]))
        count = len(real.pictures)
        losses = {
            "gender, real": crossed(gender[:count], (real.conditions[:, 0] + 1) / 2),
            "expression, real": _known_cross_entropy(smile[:count], real.conditions[:, 1], real.known),
        }
        return self.learn_apart(losses, scores, real.pictures, made)

    def about(self) -> dict[str, Json]:
        return {"people": len(self.faces.people), **super().about()}

    def model(self, card: Card) -> UpConv:
        plan, faces = self.plan, self.faces
        identities, network = self.mean.cpu()
        contents = halve_weights(export_onnx(network, (1, plan.length + len(CONDITIONS))))
        decoder = generator(np.frombuffer(contents, np.uint8), plan.side, plan.length)
        rows = identities.rows.detach()
        codes = identities(rows).numpy().astype(np.float64)
        spread = codes.std(axis=0).clip(1e-6)
        energy = energies_of(decoder, len(CONDITIONS), codes.mean(axis=0), np.eye(plan.length), spread)
        statistics = Statistics.of(codes, energy, seed=plan.seed)
        known = rows.numpy(), faces.gallery, faces.mean, faces.axes
        return UpConv(decoder, *known, energy, statistics, (plan.side, plan.side, 3), card)

    def metrics(self, model: UpConv) -> dict[str, Json]:
        """Return the `masked_likeness` of held-out crops, and of people."""
        held, people = self.faces.held_out[:MEASURED], self.faces.people[:MEASURED]
        found = (*masked_likeness(model, self.faces, held), *masked_likeness(model, self.faces, people))
        names = ("PSNR in dB", "SSIM", "PSNR of known people in dB", "SSIM of known people")
        return {"images": len(held), **{name: round(one, 4) for name, one in zip(names, found, strict=True)}}


def _known_cross_entropy(logits: Tensor, wanted: Tensor, known: Tensor) -> Tensor:
    each = crossed(logits, wanted, reduction="none") * known
    out: Tensor = each.sum() / known.sum().clamp(min=1)
    return out


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[UpConv]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises the errors of `train_network`.
    """
    expressive = order.plan.expressive and order.landmarks is not None
    plan = replace(order.plan, seed=order.seed, expressive=expressive)
    return train_network(UpConv.name, order, lambda *faces: Trainer(plan, *faces), progress, expression)


def expression(finder: Finder | None, crop: UInt8[np.ndarray, "s s 3"]) -> tuple[float]:
    """Return 1 for a smile and 0 for none, by the rules of `attributes.looks`."""
    marks = finder.marks(crop) if finder else None
    return (np.nan if marks is None else float(looks(marks)["smile"]),)
