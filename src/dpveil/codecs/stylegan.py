"""StyleGAN2's generator as a decoder: codes of its W+ space, one style for each of its layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpveil.codecs.neural import EncoderDecoder


@dataclass(frozen=True, eq=False)
class StyleGAN(EncoderDecoder):
    """A code holds coordinates of W+, layers × style: leading principal components, or its own.

    The generator's noise inputs are constants of its network, so that a picture is a function of its code.
    Pictures have the pose of the code. Its networks may be four times as large as those of other codecs.
    Source: Li & Clifton 2021 §3; Karras et al. 2020.
    """

    name: ClassVar[str] = "stylegan"
    summary: ClassVar[str] = "an encoder network to the styles of StyleGAN2's generator"
    source: ClassVar[str] = "Li & Clifton 2021 §3"
    large: ClassVar[int] = 4
    bright: ClassVar[float] = 2.0
