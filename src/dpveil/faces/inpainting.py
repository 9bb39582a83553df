"""What is around a new head: a network completes it, or Telea's method or a user's network fills."""

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
"""The kind of file that is a network which fills. "default" is that of dpveil-faces, or where it is not
installed "telea", OpenCV's own rule, which needs no file."""
