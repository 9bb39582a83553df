"""LaMa inpainting with a network file that the user supplies."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Bool, Float32, UInt8

from dpveil.assets.confined import Confined
from dpveil.core.region import Box
from dpveil.errors import ModelError
from dpveil.faces.geometry.fill import Filling
from dpveil.io.names import shown

SIDE: Final = 512
"""Side of the network's input in pixels, to which every image is resized."""
MOST: Final = 1 << 30
"""Largest network file in bytes."""
HINT: Final = "name an ONNX file like OpenCV's inpainting_lama, a .safetensors file, or telea"
WHOLE: Final = 1 - 1e-4
"""Share of a downscaled pixel that must be outside the hole for the network to see it."""


class Lama(Filling):
    """A network with LaMa's inputs and output from an ONNX file, run by OpenCV from the hashed bytes
    in a process of its own, which a damaged file can end.

    Its inputs are "image", 1 × 3 × 512 × 512, RGB from 0 to 1, and "mask", 1 × 1 × 512 × 512, 1 in the hole;
    its output is 1 × 3 × 512 × 512, RGB from 0 to 255. It is run once when it is loaded. Raises `ModelError`
    for a file that cannot be read or has no such network.
    Source: Suvorov et al. 2022; OpenCV's model zoo, inpainting_lama.
    """

    name: ClassVar[str] = "lama"
    around: ClassVar[float] = 0.5

    def __init__(self, path: str | Path) -> None:
        self._name = shown(path)
        contents = _contents(Path(path))
        self.digest, self._network = hashlib.sha256(contents).hexdigest(), Confined(self.name, contents)
        self._try()

    def __call__(
        self, known: UInt8[np.ndarray, "h w c"], hole: Bool[np.ndarray, "h w"], part: Box
    ) -> UInt8[np.ndarray, "H W c"]:
        """Return `part` of the image with `hole` filled by the network; no pixel in the hole is read.

        A pixel of the downscaled image that overlaps the hole is set to 0 and filled. Raises `ModelError` if
        the network's output is not finite.
        """
        import cv2

        # Done first: even an overlap too small for the mask could change how a mean is rounded.
        clean = cv2.copyTo(known, (~hole).astype(np.uint8))
        small = cv2.resize(clean, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        sure = cv2.resize((~hole).astype(np.float32), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        mask = sure < WHOLE
        if known.shape[2] == 1:
            small = cv2.cvtColor(small, cv2.COLOR_GRAY2RGB)
        levels = self._run(np.where(mask[..., None], 0, small).astype(np.uint8), mask)
        filled = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
        if known.shape[2] == 1:
            filled = cv2.cvtColor(filled, cv2.COLOR_RGB2GRAY)
        height, width = hole.shape
        mode = cv2.INTER_CUBIC if max(height, width) > SIDE else cv2.INTER_AREA
        large = cv2.resize(filled, (width, height), interpolation=mode).reshape(known.shape)
        return np.asarray(large[part.slices], np.uint8).copy()

    def _run(
        self, image: UInt8[np.ndarray, "s s 3"], mask: Bool[np.ndarray, "s s"]
    ) -> Float32[np.ndarray, "s s 3"]:
        """Return the network's output, RGB from 0 to 255, for an image of its size."""
        try:
            out = self._network(image, mask.astype(np.float32))
        except ModelError as error:
            problem = f"{self._name} is not a network that OpenCV can inpaint with: {error.message}"
            raise ModelError(problem, hint=HINT) from error
        if out.shape != (1, 3, SIDE, SIDE):
            size = " × ".join(str(side) for side in out.shape)
            raise ModelError(f"{self._name} gives {size} numbers, not 1 × 3 × {SIDE} × {SIDE}", hint=HINT)
        if not np.isfinite(out).all():
            raise ModelError(f"{self._name} gives numbers that are not finite", hint=HINT)
        return np.asarray(out[0].transpose(1, 2, 0), np.float32)

    def _try(self) -> None:
        """Raise `ModelError` unless the network keeps grey around a hole grey.

        This detects networks whose output is from 0 to 1, which would fill holes with black.
        """
        mask = np.zeros((SIDE, SIDE), np.bool_)
        mask[SIDE // 4 : -SIDE // 4, SIDE // 4 : -SIDE // 4] = True
        image = np.where(mask[..., None], 0, np.full((SIDE, SIDE, 3), 128)).astype(np.uint8)
        level = float(self._run(image, mask)[~mask].mean())
        if not 64 <= level <= 192:
            raise ModelError(f"{self._name} turns level 128 into {level:.3g}", hint=HINT)


def _contents(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ModelError(f"there is no network {shown(path)}", hint=HINT)
        if path.stat().st_size > MOST:
            raise ModelError(f"{shown(path)} is larger than 1 GiB", hint=HINT)
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or "input error"
        raise ModelError(f"the network {shown(path)} cannot be read: {reason}", hint=HINT) from error
