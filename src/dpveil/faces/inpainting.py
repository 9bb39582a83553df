"""Inpainting around a new head: Telea's method, or the file of a user's network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dpveil.assets.reference import Kind
from dpveil.faces.geometry.fill import Telea
from dpveil.faces.geometry.lama import HINT, Lama

TELEA: Final = "telea"


def _read(path: Path, kinds: Mapping[str, Any]) -> tuple[Lama, str]:
    network = Lama(path)
    return network, network.digest


INPAINTING: Final = Kind(
    noun="network",
    option="inpainting",
    written="telea, or lama sha256:…",
    hint=HINT,
    kinds={Lama.name: Lama},
    holds=Lama,
    read=_read,
    built_in=TELEA,
    build=Telea,
)
"""The kind of file that is a network which fills; "telea" is OpenCV's own rule, and needs none."""
