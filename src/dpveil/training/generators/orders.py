"""Training of `gan` from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs import GAN
from dpveil.codecs.neural import shown
from dpveil.core.numbers import Json
from dpveil.metrics import psnr, ssim
from dpveil.training.generators.export import codec_of
from dpveil.training.generators.plan import PLANS, Plan
from dpveil.training.generators.trainer import Trainer
from dpveil.training.network_orders import PlannedOrder, learned, read_faces
from dpveil.training.order import Progress, Trained, silent

MEASURED: Final = 400
"""Most held-out pictures that are measured."""


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(PlannedOrder):
    """An order for a `gan`. Without `landmarks` no pose is known, and the decoder learns none."""

    plan: Plan = PLANS["small"]


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[GAN]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises the errors of `network_orders.read_faces`, of `Order.check` and of writing.
    """
    order.check()
    crops, conditions, failed = read_faces(order, progress)
    plan = replace(order.plan, seed=order.seed, posed=order.plan.posed and order.landmarks is not None)
    trainer = Trainer(plan, crops, conditions)
    kept = learned(trainer, order, GAN.name, len(crops), progress)
    about = {"images": len(trainer.faces.rows), "hours": round(trainer.spent / 3600, 2)}
    settings = {**order.settings(), **about}
    codec = codec_of(trainer, Card(GAN.name, order.data, order.terms, order.seed, settings))
    codec = codec.with_card(replace(codec.card, metrics=measured(codec, trainer)))
    digest = save(codec, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(codec, digest, len(crops), failed)


def measured(codec: GAN, trainer: Trainer) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, each at most 100.

    What lies beyond the public ellipse is grey in both.
    """
    crops = trainer.faces.crops[trainer.faces.held_out[:MEASURED]]
    crops = np.where(shown(codec.canvas[0])[..., None], crops, np.uint8(128))
    pairs = zip(crops, codec.decode(codec.encode(crops)), strict=True)
    found = [(psnr(crop, seen, data_range=255), ssim(crop, seen, data_range=255)) for crop, seen in pairs]
    noise, likeness = np.mean(np.minimum(found, 100), axis=0)
    return {
        "images": len(found),
        "PSNR in dB": round(float(noise), 2),
        "SSIM": round(float(likeness), 4),
    }
