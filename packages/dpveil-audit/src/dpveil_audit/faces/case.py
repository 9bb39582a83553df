"""Audit cases for methods that show a face from a gallery: galleries, inputs, versions, settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from jaxtyping import Float64, Int8, Int64, UInt8

from dpveil.assets import Reference
from dpveil.core.numbers import show
from dpveil.faces import Attributes, Gallery
from dpveil.faces.attribute_model import ATTRIBUTES, GLASSES, TONE
from dpveil.faces.face_gallery import GALLERY
from dpveil.faces.geometry.spectacles import STYLES
from dpveil.faces.kept import written
from dpveil.noise.bits import BitSource
from dpveil_audit.entry import Drawn, Level, Variant

SIDE: Final = 128
UNUSED: Final = 64 * "0"
"""Stands for the hash of a file, where there is none."""
LIGHT: Final = (180, 150, 135, 120, 90)
"""A grey level of each class of tones, from the lightest to the darkest."""
TONE_AT: Final = -4
"""Where a face shows its tone: before its other contents, its spectacles and its index."""
STYLE_AT: Final = -2
"""Where it shows the style of its spectacles, from 1; 0 is none."""
KINDS: Final = {"gallery": GALLERY, "attributes": ATTRIBUTES}
Row = tuple[int, ...]
"""The numbers in a crop, which are all that a method reads of it."""
Rows = Int64[np.ndarray, "n w"]
Numbers = Int64[np.ndarray, " n"]
Chances = tuple[Fraction, ...]
"""The probability of every outcome."""


@dataclass(frozen=True, eq=False)
class MadeGallery:
    """A synthetic gallery with one face for each of `looks`, the readings of the synthetic model.

    `values` and `labels` are as in a gallery's file. A crop's numbers are its distances. Each face shows its
    spectacles and its index.
    """

    looks: tuple[Row, ...]
    values: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, Int8[np.ndarray, " n"]]

    def __len__(self) -> int:
        """Return the number of faces."""
        return len(self.looks)

    @cached_property
    def faces(self) -> UInt8[np.ndarray, "n 1 w 3"]:
        """All faces: a line of pixels with the readings, no spectacles, and the index at its end."""
        lines = np.array([(*look, 0, number) for number, look in enumerate(self.looks)], np.uint8)
        return np.repeat(lines[:, None, :, None], 3, axis=3)

    @property
    def tones(self) -> Numbers:
        """The tone of every face, if the last attribute is the tone."""
        return np.array([look[-2] for look in self.looks], np.int64)

    def decoded(
        self, numbers: list[int], tones: Sequence[int] = (), styles: Sequence[int] = ()
    ) -> UInt8[np.ndarray, "k 1 w 3"]:
        """Return the faces with these indices; with `tones`, brought to these, and with these `styles`."""
        found = self.faces[numbers]
        if len(tones):
            found[:, :, TONE_AT] = np.reshape(tones, (-1, 1, 1))
        if len(styles):
            found[:, :, STYLE_AT] = np.reshape(styles, (-1, 1, 1)) + 1
        return found

    def distances(self, crops: UInt8[np.ndarray, "m s s 3"]) -> Float64[np.ndarray, "m n"]:
        """Return the distances of crops from every face."""
        return crops[:, 0, : len(self), 0].astype(np.float64)


@dataclass(frozen=True, eq=False)
class MadeModel:
    """A synthetic model that reads the value of each attribute from one pixel."""

    values: Mapping[str, tuple[str, ...]]

    def read(self, crops: UInt8[np.ndarray, "n h w 3"]) -> dict[str, Numbers]:
        """Return the attribute values of every crop."""
        return {name: crops[:, 0, place, 0].astype(np.int64) for place, name in enumerate(self.values)}


def reference(name: str, made: MadeGallery | MadeModel) -> Reference:
    """Return a stand-in for a file of a kind, "gallery" or "attributes"."""
    return Reference(name, UNUSED, None, KINDS[name], made)


@dataclass(frozen=True, eq=False)
class FacesCase:
    """One method with a synthetic gallery, and every crop for which its promise is checked."""

    size: ClassVar[dict[str, int]] = {"height": SIDE, "width": SIDE, "channels": 3}

    method: Gallery | Attributes
    inputs: tuple[Row, ...]

    @property
    def epsilon(self) -> Fraction:
        """The promised ε for any two crops."""
        return Fraction(self.method.guarantee(**self.size).epsilon or 0)

    @cached_property
    def gallery(self) -> MadeGallery:
        """The gallery."""
        made: MadeGallery = self.method.gallery.held
        return made

    @property
    def outcomes(self) -> int:
        """How many faces may be seen: each without spectacles, and in each style if glasses are kept."""
        glasses = isinstance(self.method, Attributes) and GLASSES in self.method.names
        return len(self.gallery) * (1 + len(STYLES) if glasses else 1)

    def seen(self, faces: Sequence[int], styles: Sequence[int]) -> tuple[int, ...]:
        """Return the outcomes of these faces in each of these styles, from 1; 0 is without."""
        return tuple(face + len(self.gallery) * style for face in faces for style in styles)

    def draw(self, rows: Rows, bits: BitSource) -> Numbers:
        """Return the outcome that the method releases for each row; -1 if it is none of them.

        A crop is as light as its row says if a tone is read, and shows the row at its left.
        """
        lines = np.zeros((len(rows), SIDE), np.uint8)
        if isinstance(self.method, Attributes) and TONE in self.method.responses:
            lines[:] = np.array(LIGHT)[rows[:, -2]][:, None]
        lines[:, : rows.shape[1]] = rows
        crops = np.broadcast_to(lines[:, None, :, None], (len(rows), SIDE, SIDE, 3))
        released = self.method.release(crops, bits=bits)
        numbers = released[:, 0, -1, 0].astype(np.int64)
        known = np.minimum(numbers, len(self.gallery) - 1)
        styles = released[:, 0, STYLE_AT, 0].astype(np.int64)
        due = self.gallery.faces[known]
        due[:, :, STYLE_AT] = styles[:, None, None]
        found = numbers + len(self.gallery) * styles
        return np.where((released == due).all(axis=(1, 2, 3)) & (found < self.outcomes), found, -1)

    def __str__(self) -> str:
        method: Any = self.method
        if isinstance(method, Attributes):
            return f"{len(self.gallery)} faces, {written(method.costs)}"
        near = "" if method.near is None else f", near = {method.near}"
        return f"{len(self.gallery)} faces, ε = {show(self.epsilon)}, {method.law}{near}"


Draw = Callable[[FacesCase, Rows, BitSource], Numbers]
DistributionOf = Callable[[FacesCase, Row], Chances]


@dataclass(frozen=True, kw_only=True)
class FacesVersion(Variant):
    """One way to choose a face: the method itself, or a mutant."""

    distribution: DistributionOf
    draw: Draw = FacesCase.draw


FacesDrawn = Drawn[FacesCase, Row]
FacesLevel = Level[FacesCase, Row]
