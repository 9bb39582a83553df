"""What surrounds a new face: a network completes the head, or Telea's method or a user's network inpaints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpveil.assets.reference import Kind
from dpveil.assets.store import SUFFIX, load
from dpveil.faces.geometry.completion import Completion
from dpveil.faces.geometry.fill import Telea
from dpveil.faces.geometry.lama import HINT, Lama

TELEA: Final = "telea"


def _read(path: Path, kinds: Mapping[str, Any]) -> tuple[Lama | Completion, str]:
    if path.suffix.lower() == SUFFIX:
        return load(path, {Completion.name: Completion})
    network = Lama(path)
    return network, network.digest


INPAINTING: Final = Kind(
    noun="network",
    option="inpainting",
    written="telea, or completion sha256:…",
    hint=HINT,
    kinds={Lama.name: Lama, Completion.name: Completion},
    holds=Lama | Completion,
    read=_read,
    default=Completion.name,
    built_in=TELEA,
    build=Telea,
)
"""Files of networks that complete heads or inpaint. "default" is that of dpveil-faces or, if that is not
installed, "telea", OpenCV's inpainting, which needs no file."""
