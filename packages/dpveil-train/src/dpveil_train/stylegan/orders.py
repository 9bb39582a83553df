"""Training of `stylegan` from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

import errno
import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs import StyleGAN
from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter
from dpveil.io.writing import refusal
from dpveil_train.generators.export import measured
from dpveil_train.network_orders import PlannedOrder, costs, learned, read_faces
from dpveil_train.order import Progress, Trained, silent
from dpveil_train.stylegan.conversion import read_generator
from dpveil_train.stylegan.export import codec_of
from dpveil_train.stylegan.plan import PLANS, Plan
from dpveil_train.stylegan.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(PlannedOrder):
    """An order for a `stylegan`: with a `generator`, a checkpoint of somebody's, only an encoder is trained.

    Sizes of the generator then are those of the checkpoint. It takes no `landmarks`: poses are in the code.
    """

    plan: Plan = PLANS["small"]
    generator: Path | None = None

    @property
    def beside(self) -> Path:
        """The file of networks for torch."""
        return self.out.with_suffix(".pt")

    def check(self) -> None:
        """Raise `InvalidParameter` or `OutputError` if a file cannot be written, before anything is read."""
        super().check()
        if self.landmarks is not None:
            raise InvalidParameter("landmarks", None, "are not for stylegan", hint="leave them out")
        if self.beside.exists():
            if not self.replace:
                raise refusal(self.beside, FileExistsError(errno.EEXIST, ""))
            if self.generator is not None and self.beside.samefile(self.generator):
                raise InvalidParameter(
                    "out", str(self.out), "would replace the generator", hint="another name"
                )

    def settings(self) -> dict[str, Json]:
        """Return the settings that determine the network together with the images and the seed."""
        own: dict[str, Json] = {}
        if self.generator is not None:
            own["generator_sha256"] = hashlib.sha256(self.generator.read_bytes()).hexdigest()
        return {**super().settings(), **own}


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[StyleGAN]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Beside the model, networks for torch are written for `projection`, with the ending .pt. Raises the
    errors of `read_generator`, `network_orders.read_faces`, `NetworkOrder.check` and of writing.
    """
    order.check()
    generator: dict[str, Tensor] | None = None
    if order.generator is not None:
        plan, generator = read_generator(order.generator, order.plan)
        order = replace(order, plan=plan)
    crops, conditions, failed = read_faces(order, progress)
    trainer = Trainer(replace(order.plan, seed=order.seed), crops, conditions, generator)
    kept = learned(trainer, order, StyleGAN.name, len(crops), progress)
    settings = {**order.settings(), **costs(trainer, len(trainer.faces.rows))}
    codec = codec_of(trainer, Card(StyleGAN.name, order.data, order.terms, order.seed, settings))
    codec = codec.with_card(replace(codec.card, metrics=measured(codec, trainer.faces)))
    digest = save(codec, order.out, replace=order.replace)
    write_networks(trainer, order.beside)
    kept.unlink(missing_ok=True)
    return Trained(codec, digest, len(crops), failed)


def write_networks(trainer: Trainer, path: Path) -> None:
    """Write a training's averaged networks and its critic, for `projection.read_networks`."""
    encoder, synthesis = trainer.mean
    parts = {"encoder": encoder, "synthesis": synthesis, "critic": trainer.critic}
    new = path.with_name(f"{path.name}.new")
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save({"plan": asdict(trainer.plan), **state}, new)
    new.replace(path)
