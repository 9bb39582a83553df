"""Training of `upconv` from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs import UpConv
from dpveil.codecs.neural import shown
from dpveil.core.numbers import Json
from dpveil.metrics import psnr, ssim
from dpveil_train.attribute_models import looks
from dpveil_train.landmarks import Finder
from dpveil_train.network_orders import PlannedOrder, costs, learned, read_faces
from dpveil_train.order import Progress, Trained, silent
from dpveil_train.upconv.export import codec_of
from dpveil_train.upconv.plan import PLANS, Plan
from dpveil_train.upconv.trainer import Trainer

MEASURED: Final = 200
"""Most pictures of each kind that are measured."""


@dataclass(frozen=True, kw_only=True)
class NetworkOrder(PlannedOrder):
    """An order for an `upconv`. Without `landmarks` no expression is known, and the generator learns none."""

    plan: Plan = PLANS["small"]


def train(order: NetworkOrder, progress: Progress = silent) -> Trained[UpConv]:
    """Train the codec on labelled shards, evaluate it, and write the model and its card.

    Raises the errors of `network_orders.read_faces`, of `Order.check` and of writing.
    """
    order.check()
    crops, conditions, failed = read_faces(order, progress, expression)
    expressive = order.plan.expressive and order.landmarks is not None
    plan = replace(order.plan, seed=order.seed, expressive=expressive)
    trainer = Trainer(plan, crops, conditions)
    kept = learned(trainer, order, UpConv.name, len(crops), progress)
    about = {"people": len(trainer.faces.people), **costs(trainer, len(trainer.faces.rows))}
    settings = {**order.settings(), **about}
    codec = codec_of(trainer, Card(UpConv.name, order.data, order.terms, order.seed, settings))
    codec = codec.with_card(replace(codec.card, metrics=measured(codec, trainer)))
    digest = save(codec, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(codec, digest, len(crops), failed)


def expression(finder: Finder | None, crop: UInt8[np.ndarray, "s s 3"]) -> tuple[float]:
    """Return 1 for a smile and 0 for none, by the rules of `attribute_models.looks`."""
    marks = finder.marks(crop) if finder else None
    return (np.nan if marks is None else float(looks(marks)["smile"]),)


def measured(codec: UpConv, trainer: Trainer) -> dict[str, Json]:
    """Return the mean PSNR in dB and SSIM of held-out crops after encoding and decoding, and of people.

    What lies beyond the public ellipse is grey in both.
    """
    faces, found = trainer.faces, []
    for rows in (faces.held_out[:MEASURED], faces.people[:MEASURED]):
        crops = np.where(shown(codec.canvas[0])[..., None], faces.crops[rows], np.uint8(128))
        pairs = list(zip(crops, codec.decode(codec.encode(crops)), strict=True))
        noise = np.mean([min(100.0, psnr(crop, seen, data_range=255)) for crop, seen in pairs])
        found += [float(noise), float(np.mean([ssim(crop, seen, data_range=255) for crop, seen in pairs]))]
    names = ("PSNR in dB", "SSIM", "PSNR of known people in dB", "SSIM of known people")
    count = len(faces.held_out[:MEASURED])
    return {"images": count, **{name: round(one, 4) for name, one in zip(names, found, strict=True)}}
