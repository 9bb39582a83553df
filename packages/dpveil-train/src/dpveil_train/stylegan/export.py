"""A trained encoder and generator as a codec."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from dpveil.assets.cards import Card
from dpveil.codecs import StyleGAN
from dpveil_train.generators.export import joined
from dpveil_train.generators.noise import Basis
from dpveil_train.stylegan.networks import fixed
from dpveil_train.stylegan.trainer import Trainer


def codec_of(trainer: Trainer, card: Card) -> StyleGAN:
    """Return the codec of a training's averaged networks, with weights of 16 bits."""
    plan, (encoder, synthesis) = trainer.plan, trainer.mean.cpu()

    def basis_of(codes: Tensor) -> Basis:
        basis = Basis.of(codes)
        if plan.components:
            return replace(basis, rows=basis.rows[: plan.components])
        return replace(basis, rows=torch.eye(plan.length))

    return joined(StyleGAN, (encoder, fixed(synthesis)), trainer.faces, plan.length, basis_of, card)
