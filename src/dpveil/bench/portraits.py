"""Photos as codes of their faces, for methods of galleries that average codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets.reference import Reference
from dpveil.assets.store import default_path
from dpveil.attacks.base import Memo
from dpveil.codecs import CODEC, Codec
from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry import Frame
from dpveil.faces.latent import GREY
from dpveil.faces.portrait import canonical

Photos = UInt8[np.ndarray, "n h w c"]
Codes = Float64[np.ndarray, "n m"]
USUAL: Final = "pca"
"""The codec that is taken unless another is named: eigenfaces, of dpveil-faces."""
KEPT: Final[Memo[Float64[np.ndarray, " m"]]] = Memo()


@dataclass(frozen=True)
class Portraits:
    """The space of a codec for photos of one person each, as `latent` reads whole photos.

    `encode` takes photos of any one size, and `decode` gives crops of the codec's canvas, n × s × s × 3. The
    face is placed by its landmarks; where none is found, the middle square is taken for one.
    """

    in_the_clear: ClassVar[tuple[str, ...]] = ()

    codec: Reference

    @classmethod
    def of(cls, codec: str | None) -> Portraits:
        """Return the space of a codec file, or of the usual codec.

        Raises `UsageError`, `InvalidParameter` and `ModelError` as `Reference.of`, and for no square canvas.
        """
        found = Reference.of(default_path(USUAL) if codec is None else codec, CODEC)
        height, width, _ = found.held.canvas
        if height != width:
            raise InvalidParameter("codec", f"{height}×{width}", "has no square canvas", hint="train another")
        return cls(found)

    def encode(self, crops: Photos) -> Codes:
        """Return the codes of the faces in photos, n × m."""
        return np.stack([self._code(photo) for photo in crops])

    def _code(self, image: UInt8[np.ndarray, "h w c"]) -> Float64[np.ndarray, " m"]:
        return KEPT(image, str(self.codec), lambda: self._read(image))

    def _read(self, image: UInt8[np.ndarray, "h w c"]) -> Float64[np.ndarray, " m"]:
        held: Codec = self.codec.held
        crop = canonical(Photo(np.ascontiguousarray(image)), Frame(held.canvas[0]))[None]
        seen = crop if held.canvas[2] == 3 else np.rint(crop @ GREY).astype(np.uint8)[..., None]
        return np.asarray(held.encode(seen)[0])

    def decode(self, codes: Codes) -> Photos:
        """Return the faces of codes in colour, n × s × s × 3."""
        held: Codec = self.codec.held
        crops = held.decode(codes)
        return np.ascontiguousarray(np.broadcast_to(crops, (*crops.shape[:3], 3)))
