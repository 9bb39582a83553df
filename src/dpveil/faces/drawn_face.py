"""What a draw releases of a face: a crop of another face, or a head of a gallery."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dpveil.core.array_types import Int64, UInt8
from dpveil.core.region import Box
from dpveil.faces.attribute_model import TONE
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.head_picture import UNIT_FRAME, Step, View
from dpveil.faces.geometry.protection import PROTECT_FACE
from dpveil.faces.geometry.surroundings_seen import Around
from dpveil.faces.geometry.tone import tone_class
from dpveil.faces.head_gallery import HeadGallery
from dpveil.faces.surroundings_network import SurroundingsNetwork

SURE: Final = {"age": 4.0, "perceived-race": 4.0, "gender": 12.0}
"""Attributes that are read around a face, and factors of the scores of that model: a likely value is shown
more often than it is true. Gender is nearly always the likeliest: anything else shows at first sight."""
CUT_OFF: Final = ("beard", "glasses", "fringe")
"""What would end at the edge of an inner face: shown there only if it was drawn or chosen."""
DIM_LIGHT: Final = 4.0
"""CIE L* that is added to that of the face: dim light is commoner than the darker of two tones of skin."""
BACKDROPS: Final = (
    (128, 134, 140),
    (158, 152, 142),
    (104, 118, 134),
    (142, 130, 114),
    (168, 172, 174),
    (112, 124, 114),
    (92, 94, 102),
    (150, 160, 170),
)
"""Colours of backdrops: greys, most of them cool or warm."""
DIM: Final = 0.22  # share of the light that is missing at a backdrop's corners
PORTRAIT: Final = 0.62
"""Side of the square of a head's frame that a portrait shows in its middle, in sides of that frame."""
TOP: Final = 0.14  # row of the frame at which that square begins


class Released(ABC):
    """A released face: it depends on nothing private but a draw that a guarantee covers."""

    number: int
    """Chooses a backdrop where nothing of the photo is seen."""
    model: SurroundingsNetwork | None = None
    """Reads what is around the face, if there is such a network."""

    @abstractmethod
    def after(self, step: Step) -> Released:
        """Return the same, followed by post-processing of its picture."""

    @abstractmethod
    def view(self, yaw: int | None, person: int | None = None) -> View:
        """Return the face as it is seen, turned to a yaw in degrees (None: as it is).

        `person` is what `person` returned, or None for a portrait.
        """

    def person(self, around: Around | None) -> int | None:
        """Return who of a gallery is shown, or None if it is nobody's head.

        `around` is what stays of the photo around it, or None for a portrait.
        """
        return None

    @abstractmethod
    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the face in a canonical crop, uint8 sRGB."""


@dataclass(frozen=True, eq=False)
class CropFace(Released):
    """A released crop of another face, uint8 sRGB, in its `frame`."""

    picture: UInt8[np.ndarray, "s s 3"]
    frame: Frame

    @property
    def number(self) -> int:  # type: ignore[override]
        return zlib.crc32(self.picture.tobytes())

    def after(self, step: Step) -> CropFace:
        return replace(self, picture=step(self.picture))

    def view(self, yaw: int | None, person: int | None = None) -> View:
        return View.of_crop(self.picture, self.frame, yaw)

    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        return self.picture


@dataclass(frozen=True, eq=False)
class HeadFace(Released):
    """A head, or face alone, of a gallery: one of `persons`, by a `number` of 64 bits that was drawn.

    It suits what stays around the face, a function of pixels outside of all regions: tones are the likelier
    the nearer they are to that of the skin, and gender, age and race those that `model`, if there is one,
    reads there, each as probable as it says. `own_yaw` is a yaw that was drawn or chosen as an attribute.
    """

    gallery: HeadGallery | FaceGallery
    persons: Int64[np.ndarray, " p"]
    number: int
    own_yaw: int | None = None
    model: SurroundingsNetwork | None = None
    steps: tuple[Step, ...] = ()

    def after(self, step: Step) -> HeadFace:
        return replace(self, steps=(*self.steps, step))

    def person(self, around: Around | None) -> int:
        """Return the person who is shown: by chances that depend on what is around, and the number.

        Chances in floating point are good enough, for no guarantee depends on them.
        """
        chances = np.ones(len(self.persons))
        if around is not None and len(self.persons) > 1:
            for name in CUT_OFF if around.protect == PROTECT_FACE else ():
                label = self.gallery.looks(name)
                if label is not None and (chances * (label[self.persons] == 0)).any():
                    chances *= label[self.persons] == 0
            tones = self.gallery.looks(TONE)
            if around.cheeks is not None and tones is not None:
                away = np.abs(tones[self.persons] - tone_class(DIM_LIGHT + float(around.cheeks[0])))
                chances *= np.exp(-2 * (away - away[chances > 0].min()) ** 2.0)
            others = ~np.isin(self.persons, list(around.shown))
            if (chances * others).any():
                chances *= others
            if self.model is not None:
                chances = self._suiting(self.model, around, chances)
        upto = np.cumsum(chances / chances.sum())
        at = int(np.searchsorted(upto, self.number / 2**64, side="right"))
        return int(self.persons[min(at, len(upto) - 1)])

    def _suiting(self, model: SurroundingsNetwork, around: Around, chances: np.ndarray) -> np.ndarray:
        """Return the chances of persons who suit what the model reads around the face.

        Every value is as probable as the model says, however many persons have it: of the last of `SURE`
        exactly, of the others among those who have that.
        """
        scores = model.scores(around.picture).astype(np.float64)
        for name, factor in SURE.items():
            looks = self.gallery.looks(name)
            if looks is None or name not in model.values:
                continue
            own = scores[model.columns[name]] * factor
            share, kept = np.exp(own - own.max()), looks[self.persons]
            mass = np.bincount(kept, chances, minlength=len(share))
            chances = chances * (share / np.maximum(mass, 1e-300))[kept]
        return chances

    def view(self, yaw: int | None, person: int | None = None) -> View:
        """Return the head, turned to its own yaw or else to that of its place."""
        turned = yaw if self.own_yaw is None else self.own_yaw
        return self.gallery.view(self.person(None) if person is None else person, turned).after(self.steps)

    def crop(self, frame: Frame) -> UInt8[np.ndarray, "s s 3"]:
        """Return the head in a canonical crop before a backdrop, or the face as it is."""
        if isinstance(self.gallery, FaceGallery):
            view = self.view(None)
            levels, _ = view.on(between(UNIT_FRAME, frame, HeadFrame(1)), Box(0, 0, frame.size, frame.size))
            return np.asarray(np.rint(levels), np.uint8)
        box = Box(0, 0, frame.size, frame.size)
        return before_backdrop(self, between(UNIT_FRAME, frame, HeadFrame(1)), box)


def before_backdrop(face: Released, place: Similarity, box: Box) -> UInt8[np.ndarray, "h w 3"]:
    """Return a face before a backdrop, in a box of a picture that `place` maps to a head's frame."""
    levels, alpha = face.view(None).on(place, box, "alpha")
    behind = backdrop(face.number, box.h, box.w).astype(np.float32)
    shown = behind + alpha * (levels - behind)
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8)


def portrait(face: HeadFace, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    scale = PORTRAIT / min(height, width)
    x = 0.5 - scale * width / 2 + scale / 2 - 0.5
    y = TOP + PORTRAIT / 2 - scale * height / 2 + scale / 2 - 0.5
    return before_backdrop(face, Similarity(scale, 0.0, x, y), Box(0, 0, width, height))


def backdrop(number: int, height: int, width: int) -> UInt8[np.ndarray, "h w 3"]:
    """Return a plain backdrop that is lit in its middle."""
    down, across = (np.linspace(-1, 1, size, dtype=np.float32) for size in (height, width))
    light = 1 - np.float32(DIM) * (down[:, None] ** 2 + across**2) / 2
    colour = np.array(BACKDROPS[number % len(BACKDROPS)], np.float32)
    return np.rint(light[..., None] * colour).astype(np.uint8)
