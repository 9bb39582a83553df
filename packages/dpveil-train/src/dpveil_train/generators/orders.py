"""Training of `gan` from labelled shards to its file; it goes on where it was interrupted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpveil.assets.cards import Card
from dpveil.assets.store import save
from dpveil.codecs import GAN
from dpveil_train.generators.export import codec_of, measured
from dpveil_train.generators.plan import PLANS, Plan
from dpveil_train.generators.trainer import Trainer
from dpveil_train.network_orders import PlannedOrder, costs, learned, read_faces
from dpveil_train.order import Progress, Trained, silent


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
    settings = {**order.settings(), **costs(trainer, len(trainer.faces.rows))}
    codec = codec_of(trainer, Card(GAN.name, order.data, order.terms, order.seed, settings))
    codec = codec.with_card(replace(codec.card, metrics=measured(codec, trainer.faces)))
    digest = save(codec, order.out, replace=order.replace)
    kept.unlink(missing_ok=True)
    return Trained(codec, digest, len(crops), failed)
