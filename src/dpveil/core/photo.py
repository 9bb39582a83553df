"""A decoded photo: fresh pixels, and the facts about its encoding that regions need."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import Json
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter

WHOLE: Final = "whole"
BOX: Final = "box"
OBJECT: Final = "object"
"""A user's box around anything but a face: methods that replace faces draw none there."""
MASK: Final = "mask"
FACE: Final = "face"
TEXT: Final = "text"
PLATE: Final = "plate"
KIND: Final = re.compile(r"[a-z][a-z0-9 -]{0,39}")
"""Names of kinds of regions: a lower-case noun, such as "licence plate"."""
CODEC: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]{0,19}")
"""Names of lossy formats, such as "JPEG"."""
SAME: Final = "which follow from the photo's pixels: the guarantee compares photos in which the same is found"
"""The end of every sentence of a certificate about something that was chosen by looking at the photo."""
ROUNDED: Final = "rounded to a public grid"
"""What certificates say of a placement in a `cell`."""
EXCEPT: Final = re.compile(r" except=[0-9,]+$")
"""The end of a request that keeps faces, at which all others may be cut."""
BESIDE: Final = (
    "where the face boxes end that were detected and kept, rounded to a public grid: they may follow from"
    f" pixels that are replaced, and may cut what is replaced; {SAME}"
)
"""What certificates say of faces beside one that was kept."""
NO_FACES: Final = {"text": TEXT, "plates": PLATE, "detected": ""}
"""The first words of requests for what is found and is no face, and the kind of that; empty for any."""
REDUCED: Final = frozenset({"palette", "1-bit", "2-bit", "4-bit"})
"""Sources of few levels: which ones, and how they are dithered, may follow from all of the original."""
BLOCKLESS: Final = REDUCED | {"PDF"}
"""Sources without blocks to grow to, though what is hidden may have left traces around it."""
MOST_CELL: Final = 1 << 24
"""The largest number of a cell."""
MOST_LETTERS: Final = 10_000
"""The longest description of a finder, in characters."""


@dataclass(frozen=True)
class Origin:
    """How a region was determined.

    `kind` is "whole", "box", "mask", "face" or a noun of a custom finder. `finder` is the description of the
    finder, one of the certificate's requests, and `number` counts from 1 among its regions. `found` is true
    if position or presence follow from the photo's pixels, `outlined` if the region follows the outline of a
    head, `fallback` if it is the whole photo because nothing was found. `grown_to` names the lossy format to
    whose blocks the region grew, or a source without blocks (`BLOCKLESS`); `escapes` says that this spreads
    traces beyond any margin, unless the owner says that a source without blocks lost nothing. `cell`
    numbers the cell of a public grid to which a face's placement was rounded. Raises `InvalidParameter`.

    >>> Origin("face", "faces", number=2, found=True, grown_to="JPEG").in_words()
    'face 2, grown to the JPEG blocks'
    """

    kind: str = BOX
    finder: str = ""
    number: int | None = None
    found: bool = False
    outlined: bool = False
    grown_to: str | None = None
    escapes: bool = False
    fallback: bool = False
    cell: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        given: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        kind, finder, codec = given["kind"], given["finder"], given["grown_to"]
        if not isinstance(kind, str) or not KIND.fullmatch(kind):
            hint = "a noun of at most 40 lower-case letters, such as licence plate"
            raise InvalidParameter("kind of region", str(kind), "is not a noun", hint=hint)
        if not isinstance(finder, str) or len(finder) > MOST_LETTERS:
            raise InvalidParameter("finder", None, f"is not a text of at most {MOST_LETTERS:,} letters")
        if self.number is not None:
            check_count(self.number, "number")
        if codec is not None and not (isinstance(codec, str) and CODEC.fullmatch(codec)):
            raise InvalidParameter("grown_to", str(codec), "is not the name of a format")
        if self.cell is not None and not all(type(n) is int and abs(n) <= MOST_CELL for n in self.cell):
            raise InvalidParameter("cell", None, "is not a tuple of whole numbers")
        for name in ("found", "outlined", "escapes", "fallback"):
            if not isinstance(given[name], bool):
                raise InvalidParameter(name, None, "is neither true nor false")

    @property
    def name(self) -> str:
        """What the region is called, in short."""
        name = self.kind if self.number is None else f"{self.kind} {self.number}"
        if self.kind == WHOLE:
            name = "whole photo, as no region was found" if self.fallback else "whole photo"
        return f"head of {name}" if self.outlined else name

    @property
    def faceless(self) -> bool:
        """Whether this is something else than a face, which methods that replace faces cover with grey."""
        return self.kind == OBJECT or NO_FACES.get(self.finder.partition(" ")[0]) in ("", self.kind)

    def in_words(self) -> str:
        """Return the label of the region: its name, and that it grew."""
        if self.grown_to is None or self.grown_to in BLOCKLESS:
            return self.name
        return f"{self.name}, grown to the {self.grown_to} blocks"

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object of a certificate: the kind, and every field that is not its default."""
        usual = {field.name: field.default for field in fields(self)}
        values = {name: getattr(self, name) for name in usual}
        told = {n: value for n, value in values.items() if n == "kind" or value != usual[n]}
        return told if self.cell is None else told | {"cell": list(self.cell)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Origin:
        """Return the origin that `to_json` wrote; raises `InvalidParameter` and `TypeError`."""
        cell = data.get("cell")
        return cls(**data) if cell is None else cls(**{**data, "cell": tuple(cell)})


ESCAPING: Final = frozenset({"WebP", "HEIC", "AVIF"}) | BLOCKLESS
"""Sources of which no margin contains all traces of a region: blocks predicted from one another, colours
chosen for the whole picture, and pictures within a page."""
BLOCKS: Final = {
    "JPEG": ((8, 1), (16, 1), (24, 1), (32, 1)),
    "WebP": ((16, 8),),
    "HEIC": ((64, 16), (1, 80)),
    "AVIF": ((128, 16), (1, 144)),
    **dict.fromkeys(BLOCKLESS, ((1, 0),)),
}
"""Sides of blocks with their margins, in pixels, of the lossy formats that are read; every `Grid` has one."""
MOST_GROWTH: Final = 160
"""Most pixels by which a region grows on a side for any other format."""


@dataclass(frozen=True)
class Grid:
    """The blocks in which a lossy format mixes pixels: lines at `x0 + i·width` and `y0 + j·height`, in
    pixels.

    The contents of a region leak to the edges of the blocks it touches and `margin` pixels beyond (docs:
    limits; chroma upsampling crosses block edges), so regions grow that far. Coordinates are those of the
    oriented photo; after a flip, the first line may not be at zero. `codec` names the format in labels.
    `lossless` is the owner's word that a source of `BLOCKLESS` lost nothing.
    Raises `InvalidParameter` for non-integers, empty blocks, negative margins, and blocks that the
    format does not have.
    """

    width: int
    height: int
    x0: int = 0
    y0: int = 0
    margin: int = 1
    codec: str = "JPEG"
    lossless: bool = False

    @classmethod
    def without_blocks(cls, codec: str) -> Grid:
        """Return the grid of a source of `BLOCKLESS`: regions do not grow, and their traces are anywhere."""
        return cls(1, 1, margin=0, codec=codec)

    @property
    def escapes(self) -> bool:
        """Whether traces of a region lie beyond any margin."""
        return self.codec in ESCAPING and not self.lossless

    def __post_init__(self) -> None:
        for name, least in (("width", 1), ("height", 1), ("margin", 0), ("x0", None), ("y0", None)):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
                problem = "is not a whole number" + ("" if least is None else f" of at least {least}")
                raise InvalidParameter(f"grid {name}", value, problem, hint="leave grids to dpveil.read")
        sides = {(self.width, self.margin), (self.height, self.margin)}
        known = BLOCKS.get(self.codec)
        if max(self.width, self.height) - 1 + self.margin > MOST_GROWTH or not sides.issubset(known or sides):
            size = f"{self.width}×{self.height}, margin {self.margin}"
            problem = f"is not of the blocks of {self.codec}"
            raise InvalidParameter("grid", size, problem, hint="leave grids to dpveil.read")


@dataclass(frozen=True, eq=False, repr=False)
class Photo:
    """An sRGB or grey photo in memory, without anything else from its file.

    `image` is uint8 of shape height × width × channels (1 or 3), range 0..255, orientation applied, and
    read-only. `grid` is set if a lossy format mixed neighbouring pixels. `notes` say what was converted.
    Raises `InvalidParameter` for another shape or type.

    >>> Photo(np.zeros((2, 3), np.uint8)).image.shape
    (2, 3, 1)
    """

    image: UInt8[np.ndarray, "h w c"]
    grid: Grid | None = None
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        """Return the size only: a representation ends up in logs, where no pixel may appear."""
        return f"Photo({self.width}×{self.height}, {self.channels} channels)"

    def __init__(
        self, image: UInt8[np.ndarray, ...], grid: Grid | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        pixels = np.array(check_image(image), order="C", copy=True)
        pixels = pixels.reshape(pixels.shape[0], pixels.shape[1], -1)
        pixels.flags.writeable = False
        object.__setattr__(self, "image", pixels)
        object.__setattr__(self, "grid", grid)
        object.__setattr__(self, "notes", notes)

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
