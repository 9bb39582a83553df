"""The photos on which recombination is audited, and its mutants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import cv2
import numpy as np

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.faces.geometry import Placed, recombine
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.heads import Heads
from dpveil.mechanisms.placement import Placement
from dpveil.noise.bits import BitSource
from dpveil.postprocessing import Step
from dpveil_audit.entry import Level
from dpveil_audit.faces.photos import Encoding, Pixels, Places, places
from dpveil_audit.faces.recombination import RecombinationCase, RecombinationVersion

ONE: Final = (Box(35, 22, 9, 11),)
CORNER: Final = (Box(0, 49, 9, 10),)
TWO: Final = (Box(22, 20, 9, 11), Box(38, 25, 11, 13))
"""Overlapping regions."""
BESIDE: Final = (Box(9, 20, 7, 9), Box(43, 20, 7, 9))
"""Regions with a common edge and no common pixel."""
POINT: Final = (Box(84, 60, 1, 1),)
LARGE: Final = (Box(10, 5, 65, 55),)
"""A face whose region is the whole photo."""
WIDE: Final = (Box(140, 90, 105, 120),)
"""A face in a photo large enough for filling to scale its surroundings down: see `geometry.fill.FINE`."""
Crops = Sequence[Pixels]
Put = Callable[[Pixels, Sequence[Placed], Crops], Pixels]


def _quick() -> tuple[RecombinationCase, ...]:
    """Return settings of every kind; those that reject most mutants come first."""
    case = RecombinationCase
    return (
        case(TWO),
        case((), height=40, width=61),
        case(ONE, encoding=Encoding("4:2:0", 90)),
        case(CORNER),
        case(ONE, scene="dark"),
        case(ONE, scene="without colour"),
        case(ONE, scene="dark", channels=1),
        case(TWO, protect="head"),
        case(TWO, protect="face", scene="dark"),
        case(ONE, protect="face", channels=1, encoding=Encoding("grey", 60), margin="0"),
        case(WIDE, height=331, width=421, protect="head"),
        case(ONE, angle=0.4),
        case(BESIDE),
        case(TWO, steps=("median:3", "gaussian:2"), margin="0"),
        case(POINT),
        case(LARGE),
        case(TWO, encoding=Encoding("4:2:2", 95, turn=6)),
        case(CORNER, encoding=Encoding("grey", 60), channels=1),
        case(TWO, figures=True, protect="head"),
        case(WIDE, height=331, width=421, encoding=Encoding("4:2:0", 90), figures=True),
        case((), height=40, width=61, figures=True),
    )


def _deep() -> tuple[RecombinationCase, ...]:
    every = [
        RecombinationCase(boxes, scene=scene, protect=protect, angle=angle, margin=margin)
        for boxes in (ONE, TWO, BESIDE, CORNER, LARGE)
        for scene in ("textured", "dark", "without colour")
        for protect, angle, margin in (
            ("box", None, "0.5"),
            ("box", 1.2, "0.35"),
            ("head", 0.2, "0"),
            ("face", 0.3, "0"),
        )
    ]
    stored = [
        replace(case, encoding=Encoding(kind, 95, turn=turn), channels=1 if kind == "grey" else 3)
        for kind in ("4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "grey")
        for turn, case in enumerate((every[0], every[9], every[18], every[27], every[2]), 1)
    ]
    more = [
        RecombinationCase(BESIDE, margin="0.25"),
        RecombinationCase((), height=31, width=9, channels=1),
        RecombinationCase((), height=1, width=1),
        RecombinationCase(WIDE, height=480, width=640, scene="without colour"),
        replace(every[9], height=200, width=301),
    ]
    return (*every, *stored, *more)


LEVELS: Final[dict[str, Level[RecombinationCase, None]]] = {
    "quick": Level(_quick()),
    "deep": Level((*_quick(), *_deep())),
}
INTACT: Final = RecombinationVersion(name="intact")
HIDDEN: Final = ("hidden",)
OUTSIDE: Final = ("outside",)


def wrong(name: str, put: Put, **changes: Any) -> RecombinationVersion:
    """Return a mutant that puts released crops back in another way."""

    def draw(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
        if not isinstance(treated, Heads):
            return treated.draw(bits, steps)
        released = list(treated.method.release(_crops(treated), bits=bits))
        for step in steps:
            released = [step(crop) for crop in released]
        return put(treated.photo.image, treated.places, released)

    return RecombinationVersion(name=name, draw=draw, **changes)


def _crops(heads: Heads) -> Pixels:
    return np.stack([one.crop(heads.photo) for one in heads.places])


def _hidden(image: Pixels, faces: Sequence[Placed]) -> Places:
    return places([one.region for one in faces], *image.shape[:2])


def _eroded(region: Region, by: int) -> Region:
    """Return a region without its outermost pixels, or unchanged if none would be left."""
    box = region.box
    full = np.ones((box.h, box.w), np.bool_) if region.mask is None else region.mask
    window = np.ones((2 * by + 1, 2 * by + 1), np.uint8)
    inner = cv2.erode(full.astype(np.uint8), window, borderType=cv2.BORDER_CONSTANT, borderValue=0) > 0
    return replace(region, mask=inner) if inner.any() else region


def _smaller(faces: Sequence[Placed], by: int) -> list[Placed]:
    return [replace(one, region=_eroded(one.region, by)) for one in faces]


def _filled_from_hidden(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Fill a hole that leaves out the outermost hidden pixels."""
    out, inner = recombine(image, faces, crops), _smaller(faces, 2)
    inside = _hidden(image, inner)
    out[inside] = recombine(image, inner, crops)[inside]
    return out


def _toned(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Take colours from the whole photo, hidden pixels included."""
    match = match_of(image, np.zeros(image.shape[:2], np.bool_))
    return recombine(image, faces, [_levels(match(crop.astype(np.float32))) for crop in crops])


def _toned_by_face(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Make every crop as bright as what it replaces."""
    means = [float(image[one.region.box.slices].mean()) for one in faces]
    return recombine(image, faces, [_levels(c * (m / 128)) for c, m in zip(crops, means, strict=True)])


def _levels(levels: np.ndarray) -> Pixels:
    whole: Pixels = np.clip(np.rint(levels), 0, 255).astype(np.uint8)
    return whole


def _feathered(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Blend the seam into the photo within the region."""
    out, inside = recombine(image, faces, crops), _hidden(image, faces)
    seam = inside & ~_hidden(image, _smaller(faces, 2))
    out[seam] = _levels((out[seam].astype(np.float32) + image[seam]) / 2)
    return out


def _one_by_one(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Put every face into the original photo, with the other faces."""
    out = image.copy()
    for one, crop in zip(faces, crops, strict=True):
        inside = _hidden(image, [one])
        out[inside] = recombine(image, [one], [crop])[inside]
    return out


def _where_it_is(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Put every face exactly where the one that it replaces was."""
    return recombine(image, [replace(one, pose=one.exact or one.pose) for one in faces], crops)


def _softened(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Smooth the photo at the seam, from both sides, before faces are put back."""
    inside = _hidden(image, faces).astype(np.uint8)
    seam = (cv2.dilate(inside, np.ones((5, 5), np.uint8)) > inside)[..., None]
    soft = cv2.blur(image, (5, 5)).reshape(image.shape)
    return recombine(np.where(seam, soft, image), faces, crops)


def _smooth_after(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Smooth over the seam after faces were put back, which changes unlisted pixels."""
    out = recombine(image, faces, crops)
    inside = _hidden(image, faces).astype(np.uint8)
    seam = (cv2.dilate(inside, np.ones((3, 3), np.uint8)) > inside)[..., None]
    return np.where(seam, cv2.blur(out, (3, 3)).reshape(out.shape), out)


def _left_out(image: Pixels, faces: Sequence[Placed], crops: Crops) -> Pixels:
    """Leave out the last row and column of the photo, as an off-by-one range would."""
    out = recombine(image, faces, crops)
    out[-1], out[:, -1] = image[-1], image[:, -1]
    return out


def _not_released(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    """Put back what the method read."""
    if not isinstance(treated, Heads):
        return treated.draw(bits, steps)
    return recombine(treated.photo.image, treated.places, list(_crops(treated)))


def _beside(treated: Placement, bits: BitSource, steps: Sequence[Step]) -> Pixels:
    """Keep the photo itself beside the middle square of a portrait."""
    out = treated.draw(bits, steps)
    if isinstance(treated, Heads):
        return out
    image: Pixels = treated.photo.image  # type: ignore[attr-defined]
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    kept = np.ones((height, width, 1), np.bool_)
    kept[top : top + side, left : left + side] = False
    return np.where(kept, image, out).astype(np.uint8)


MUTANTS: Final = (
    wrong("filled from hidden pixels", _filled_from_hidden, gates=HIDDEN),
    wrong("colours of the whole photo", _toned, gates=HIDDEN),
    wrong("colours of the original face", _toned_by_face, gates=HIDDEN),
    wrong("seam feathered into the photo", _feathered, gates=HIDDEN),
    wrong(
        "mask eroded by a pixel",
        lambda image, faces, crops: recombine(image, _smaller(faces, 1), crops),
        gates=("hidden", "copy"),
    ),
    wrong("each face filled on its own", _one_by_one, gates=HIDDEN),
    wrong("placement not rounded", _where_it_is, gates=HIDDEN),
    wrong("seam blurred before", _softened, gates=("hidden", "outside")),
    wrong("seam blurred after", _smooth_after, gates=OUTSIDE),
    wrong("last row and column left out", _left_out, gates=("hidden", "copy")),
    wrong(
        "less listed than replaced",
        recombine,
        gates=OUTSIDE,
        listed=lambda treated: [_eroded(region, 1) for region in treated.regions],
    ),
    RecombinationVersion(name="original crop put back", gates=HIDDEN, draw=_not_released),
    RecombinationVersion(
        name="faces in a JPEG not grown",
        gates=HIDDEN,
        treated=lambda made: made.case.treated(Photo(made.photo.image)),
    ),
    RecombinationVersion(name="photo kept around a portrait", gates=("hidden", "copy"), draw=_beside),
)
