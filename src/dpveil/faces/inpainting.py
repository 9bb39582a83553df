"""What surrounds a new face: a network completes the head, or Telea's method inpaints."""

from __future__ import annotations

from typing import Final

from dpveil.assets.reference import Kind
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.fill import Telea

TELEA: Final = "telea"
INPAINTING: Final = Kind(
    noun="network",
    option="inpainting",
    written="telea, or completion sha256:…",
    hint="name a .safetensors file of a network that completes heads, or telea",
    kinds={Completion.name: Completion},
    holds=Completion,
    default=Completion.name,
    built_in=TELEA,
    build=Telea,
)
"""Files of networks that complete heads. "default" is that of dpveil-faces or, if that is not installed,
"telea", OpenCV's inpainting, which needs no file."""
