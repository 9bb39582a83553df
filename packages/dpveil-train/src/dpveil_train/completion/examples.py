"""Examples: what the network is told of how hair and skin look."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from dpveil.faces.geometry.layout import HAIR, SKIN

DARK: Final = 8 / 255
"""Added to levels before their ratio to a mean is taken."""
LARGEST: Final = 2.0
"""Largest of these ratios, less 1."""
SIDE: Final = 36
"""Side of a style, in pixels."""
RARE: Final = 0.03
"""Share that is added to those of the classes before their logarithms are taken."""
HALF: Final = 0.5
"""Share of a square that has to be known, so that it has a style."""


def example_of(levels: Tensor, layout: Tensor, oval: Tensor) -> Tensor:
    """Return examples, n × 7 × s × s: hair and skin relative to the face, and the layout; 0 within its oval.

    `levels` are frames n × 3 × s × s from 0 to 1, `layout` the shares of the classes, and `oval` the mask of
    the face. Ratios do not depend on the light of the photo, so that an example can be painted in another's;
    of clothes nothing is told, as they have to go on with those outside.
    """
    outside = 1 - oval
    hair, skin = (layout[:, one : one + 1] * outside for one in (HAIR, SKIN))
    person = (hair + skin) * _ratio(levels, oval)
    return torch.cat([person, layout * outside], dim=1)


def _ratio(levels: Tensor, where: Tensor) -> Tensor:
    """Return levels relative to their mean within a mask, less 1."""
    mean = (levels * where).sum((2, 3), keepdim=True) / where.sum((2, 3), keepdim=True).clamp(min=1)
    return ((levels + DARK) / (mean + DARK) - 1).clamp(-1, LARGEST)


def style_of(layout: Tensor, usual: Tensor) -> Tensor:
    """Return what is added to the logits of a layout so that it becomes like that of an example."""
    coarse = adaptive_avg_pool2d(layout, SIDE)
    style = torch.where(coarse.sum(dim=1, keepdim=True) > HALF, (coarse + RARE).log() - usual, 0.0)
    return interpolate(style, size=layout.shape[-2:], mode="bilinear", align_corners=False)


def usual_of(layouts: Tensor) -> Tensor:
    """Return the logarithms of the mean shares of the classes at each place, for `style_of`."""
    return (adaptive_avg_pool2d(layouts, SIDE).mean(dim=0, keepdim=True) + RARE).log()
