"""The trained network as dpveil's file."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from dpveil.assets.cards import Card
from dpveil.faces.geometry.completion import PLANES, Completion
from dpveil.faces.geometry.hair import Hair
from dpveil.training.onnx_export import exported, halved


def completion_of(network: nn.Module, side: int, card: Card, hair: Hair, *, seed: int = 0) -> Completion:
    """Return the network for frames of `side` × `side` pixels, with public noise from this seed."""
    noise = torch.randn(side, side, generator=torch.Generator().manual_seed(seed)).numpy()
    given = (noise, hair.styles, hair.likely, hair.colours)
    noise, *arrays = (a.astype(np.float16).astype(np.float32) for a in given)
    contents = halved(exported(network, (1, PLANES, side, side)))
    made = Completion(contents, noise, Hair.of_arrays(*arrays), card)
    _ = made.tried
    return made
