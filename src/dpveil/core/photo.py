"""A decoded photo: fresh pixels, and the facts about its encoding that regions need."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.jpeg_blocks import JpegBlocks
from dpveil.core.region_origin import BLOCKLESS
from dpveil.errors import InvalidParameter

ESCAPING: Final = frozenset({"WebP", "HEIC", "AVIF"}) | BLOCKLESS
"""Sources of which no margin contains all traces of a region: blocks predicted from one another, colours
chosen for the whole picture, and pictures within a page."""


@dataclass(frozen=True)
class BlockGrid:
    """The blocks of pixels that a lossy format mixes: lines at `x0 + i·width`, `y0 + j·height`, in pixels.

    The contents of a region leak to the edges of the blocks it touches and `margin` pixels beyond (docs:
    limits; chroma upsampling crosses block edges), so regions grow that far. Coordinates are those of the
    oriented photo; after a flip, the first line may not be at zero. `codec` names the format in labels.
    `lossless` is the owner's word that a source of `BLOCKLESS` lost nothing.
    """

    width: int
    height: int
    x0: int = 0
    y0: int = 0
    margin: int = 1
    codec: str = "JPEG"
    lossless: bool = False

    @classmethod
    def without_blocks(cls, codec: str) -> BlockGrid:
        """Return the grid of a source of `BLOCKLESS`: regions do not grow, and their traces are anywhere."""
        return cls(1, 1, margin=0, codec=codec)

    @property
    def escapes(self) -> bool:
        """Whether traces of a region lie beyond any margin."""
        return self.codec in ESCAPING and not self.lossless


@dataclass(frozen=True, eq=False, repr=False)
class Photo:
    """An sRGB or grey photo in memory, without anything else from its file.

    `image` is uint8 of shape height × width × channels (1 or 3), range 0..255, orientation applied, and
    read-only. `grid` is set if a lossy format mixed neighbouring pixels. `notes` say what was converted.
    `blocks` reads those of a JPEG that holds these pixels, if they can be written again without loss.
    Raises `InvalidParameter` for another shape or type.

    >>> Photo(np.zeros((2, 3), np.uint8)).image.shape
    (2, 3, 1)
    """

    image: UInt8[np.ndarray, "h w c"]
    grid: BlockGrid | None = None
    notes: tuple[str, ...] = field(default=())
    blocks: Callable[[], JpegBlocks] | None = None

    def __repr__(self) -> str:
        """Return the size only: a representation ends up in logs, where no pixel may appear."""
        return f"Photo({self.width}×{self.height}, {self.channels} channels)"

    def __init__(
        self,
        image: UInt8[np.ndarray, ...],
        grid: BlockGrid | None = None,
        notes: tuple[str, ...] = (),
        blocks: Callable[[], JpegBlocks] | None = None,
    ) -> None:
        pixels = np.array(check_image(image), order="C", copy=True)
        pixels = pixels.reshape(pixels.shape[0], pixels.shape[1], -1)
        pixels.flags.writeable = False
        object.__setattr__(self, "image", pixels)
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "notes", notes)
        object.__setattr__(self, "blocks", blocks)

    def as_lossless(self) -> Photo:
        """Return the photo with its owner's word that its palette, bit depth or PDF page lost nothing."""
        if self.grid is None or self.grid.codec not in BLOCKLESS:
            return self
        return Photo(self.image, replace(self.grid, lossless=True), self.notes)

    @property
    def height(self) -> int:
        """Rows of the oriented photo."""
        return int(self.image.shape[0])

    @property
    def width(self) -> int:
        """Columns of the oriented photo."""
        return int(self.image.shape[1])

    @property
    def channels(self) -> int:
        """1 for grey, 3 for sRGB."""
        return int(self.image.shape[2])


def check_unmasked(array: object, name: str) -> None:
    """Raise `InvalidParameter` for an array of `numpy.ma`: its masked elements have no defined value."""
    masked = sys.modules.get("numpy.ma")  # whose import takes as long as the rest of NumPy's
    kind = getattr(masked, "MaskedArray", None)  # another thread may be importing it
    if kind is not None and isinstance(array, kind):
        raise InvalidParameter(name, None, "is a masked array", hint="give its .filled(...)")


def check_image(image: object) -> UInt8[np.ndarray, ...]:
    """Return `image` if it is uint8, h × w or h × w × (1 or 3), and not empty; else `InvalidParameter`."""
    check_unmasked(image, "image")
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        kind = f"{image.dtype} array" if isinstance(image, np.ndarray) else type(image).__name__
        hint = (
            "give the name of its file, which also tells orientation and JPEG blocks; or uint8 levels 0..255"
        )
        raise InvalidParameter("image", kind, "is not a uint8 array", hint=hint)
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)) or image.size == 0:
        shape = "×".join(map(str, image.shape))
        raise InvalidParameter("image", shape, "has no such shape", hint="h×w, h×w×1 or h×w×3, not empty")
    return image
