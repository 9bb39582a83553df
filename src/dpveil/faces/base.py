"""The role of a face-space method: canonical crops of faces in, crops of other faces out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.assets.reference import AssetField
from dpveil.core.parameters import OneOf
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry import Frame
from dpveil.faces.inpainting import INPAINTING
from dpveil.mechanisms.method import Method, check_bits
from dpveil.noise.bits import BitSource

Crops = UInt8[np.ndarray, "n s s 3"]

PROTECT: Final = ("box", "head")
PLACING: Final = ("auto", "landmarks", "box")


@dataclass(frozen=True, kw_only=True)
class FaceMethod(Method):
    """A method that sees a face as a crop of its `frame` and returns another face as such a crop.

    What it returns is a function of a draw that `guarantee` covers, and of nothing else of the crop. Where
    the crop lay in a photo is not its matter: the road says what that shows. `guarantee` and `parameters`
    need no model file, so that a certificate is verified without one; `prepare` loads it.

    `protect` is what of a photo is replaced: "box", all around any head that could be there, or "head", a
    mask that shows the head's silhouette. `placing` is how the face is put into place: "landmarks" refuses a
    face whose landmarks are not sure, "box" takes its box alone, "auto" takes landmarks where they are sure.
    `inpainting` is what fills the rest of what is replaced: "telea", or the file of a network as
    `geometry.lama` takes it; in certificates its hash.
    """

    regions: ClassVar[str] = "faces"

    protect: OneOf = OneOf(*PROTECT, default="box")
    placing: OneOf = OneOf(*PLACING, default="auto")
    inpainting: AssetField = AssetField(INPAINTING)

    @property
    @abstractmethod
    def frame(self) -> Frame:
        """The canonical crop that this method takes and returns; may load a model."""

    @abstractmethod
    def _draw(self, crops: Crops, bits: BitSource) -> Crops:
        """Return one released crop for every crop: the only place where noise meets faces."""

    def noise_scale(self, *, height: int, width: int, channels: int) -> None:
        """Return None: levels get no noise of their own."""
        return

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        """Raise what would keep a face from being put back, such as a network that is not at hand.

        Methods with files of their own add to this.
        """
        _ = self.inpainting.held

    def release(self, crops: Crops, *, bits: BitSource) -> Crops:
        """Return a released crop for every crop, uint8 n × s × s × 3 of `frame`; each costs the guarantee.

        `bits` is the only randomness. Raises `InvalidParameter` for other input, and `ModelError`.
        """
        side = self.frame.size
        if crops.dtype != np.uint8 or crops.ndim != 4 or crops.shape[1:] != (side, side, 3):
            shape = f"are not uint8 n × {side} × {side} × 3"
            raise InvalidParameter("crops", f"{crops.dtype} {crops.shape}", shape, hint="crops of its frame")
        return self._draw(crops, check_bits(bits))
