"""The lossy photos on which growth is audited, and its mutants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil.regions import grow
from dpveil.release.saving import Release
from dpveil_audit.entry import Level
from dpveil_audit.faces.growth import GrowthCase, GrowthVersion, released, with_growth
from dpveil_audit.faces.photos import FACTORS, SAMPLINGS, Encoding

HEIGHT, WIDTH = 45, 61
"""Neither 8 nor 16 divides them."""
PLACES: Final = (
    (Box(18, 17, 13, 9),),
    (Box(31, 15, 1, 1),),
    (Box(16, 16, 16, 16),),
    (Box(40, 33, 21, 12),),
    (Box(60, 44, 1, 1),),
    (Box(0, 0, 3, 2),),
    (Box(8, 8, 8, 8), Box(16, 8, 8, 8)),
    (Box(32, 0, 9, 45), Box(41, 20, 1, 1)),
)
"""In the middle, one pixel at the edge of a block, a block, ragged ends, corners, touching boxes."""
QUALITIES: Final = (95, 100, 50, 75, 20)
KINDS: Final = (*SAMPLINGS, *FACTORS, "grey", "CMYK")


def _case(where: tuple[Box, ...], masked: bool = False, **encoding: Any) -> GrowthCase:
    return GrowthCase(Encoding(**encoding), HEIGHT, WIDTH, where, masked)


def _quick() -> tuple[GrowthCase, ...]:
    """Return every sampling in every place, and every orientation; qualities alternate."""
    turned = [
        _case(PLACES[turn % 4], sampling=kind, turn=turn, quality=95)
        for turn in range(2, 9)
        for kind in ("4:2:2", "4:2:0")
    ]
    straight = [
        _case(
            where, sampling=kind, quality=QUALITIES[(row + column) % 3], progressive=(row + column) % 4 == 3
        )
        for row, kind in enumerate(KINDS[:-1])
        for column, where in enumerate(PLACES)
    ]
    masks = [
        _case(where, True, sampling=kind, quality=95) for kind in ("4:2:0", "grey") for where in PLACES[:4:3]
    ]
    masks += [_case(PLACES[0], True, sampling="4:2:0", turn=turn, quality=95) for turn in (3, 6)]
    lossy = [
        _case(where, format="webp", masked=masked)
        for where, masked in ((PLACES[0], False), (PLACES[3], True))
    ]
    first = (*straight[::9], straight[6], *turned[::3], *masks, *lossy)
    return tuple(dict.fromkeys((*first, *straight, *turned)))


def _deep() -> tuple[GrowthCase, ...]:
    """Return all of it with every quality, orientation and kind, and photos of other sizes."""
    cases = [
        _case(where, sampling=kind, quality=quality, turn=turn, progressive=turn % 2 == 0)
        for kind in KINDS
        for quality in QUALITIES
        for turn, where in enumerate(PLACES, 1)
    ]
    sizes = [
        replace(case, height=height, width=width, boxes=(Box(width - 1, height - 1, 1, 1), Box(0, 0, 1, 1)))
        for height, width in ((1, 1), (2, 40), (40, 2), (16, 16), (17, 33))
        for case in cases[:: len(PLACES)]
    ]
    masks = [replace(case, masked=True, boxes=case.boxes[:1]) for case in cases[::7]]
    webp = [
        _case(where, format="webp", quality=quality, turn=turn)
        for where in PLACES
        for quality, turn in ((10, 1), (90, 6))
    ]
    return (*cases, *sizes, *masks, *webp)


LEVELS: Final[dict[str, Level[GrowthCase, None]]] = {
    "quick": Level(_quick()),
    "deep": Level((*_quick(), *_deep())),
}
INTACT: Final = GrowthVersion(name="intact")


def _with(photo: Photo, **changes: Any) -> Photo:
    return Photo(photo.image, photo.grid and replace(photo.grid, **changes))


def _eights(region: Region, photo: Photo) -> Region:
    grid = photo.grid or Grid(8, 8)
    return grow(region, _with(photo, width=8, height=8, x0=grid.x0 % 8, y0=grid.y0 % 8))


def _left_and_top(region: Region, photo: Photo) -> Region:
    box, wide = region.box, grow(region, photo)
    height, width = box.y + box.h - wide.box.y, box.x + box.w - wide.box.x
    mask = None if wide.mask is None else wide.mask[:height, :width]
    return replace(wide, box=Box(wide.box.x, wide.box.y, width, height), mask=mask)


def _without_ragged(region: Region, photo: Photo) -> Region:
    """Grow only to the last whole block."""
    grid, box, wide = photo.grid or Grid(8, 8), region.box, grow(region, photo).box
    right = max(box.x + box.w, min(wide.x + wide.w, photo.width // grid.width * grid.width))
    bottom = max(box.y + box.h, min(wide.y + wide.h, photo.height // grid.height * grid.height))
    return (
        grow(region, photo)
        if region.mask is not None
        else replace(grow(region, photo), box=Box(wide.x, wide.y, right - wide.x, bottom - wide.y))
    )


def _nearest(region: Region, photo: Photo) -> Region:
    """Move edges to the nearest block edge, even if that shrinks the region."""
    grid, box, wide = photo.grid or Grid(8, 8), region.box, grow(region, photo)
    if region.mask is not None:
        return wide
    near = (box.x - wide.box.x <= grid.width // 2, box.y - wide.box.y <= grid.height // 2)
    x, y = (wide.box.x if near[0] else box.x), (wide.box.y if near[1] else box.y)
    return replace(wide, box=Box(x, y, wide.box.x + wide.box.w - x, wide.box.y + wide.box.h - y))


def _upright(region: Region, photo: Photo) -> Region:
    """Use the block edges of the stored picture, although it was mirrored."""
    return grow(region, _with(photo, x0=0, y0=0))


def _lying(region: Region, photo: Photo) -> Region:
    """Swap width and height of blocks, as if the photo had not been rotated."""
    grid = photo.grid or Grid(8, 8)
    return grow(region, _with(photo, width=grid.height, height=grid.width))


def _thin(region: Region, photo: Photo) -> Region:
    """Grow the box but not the mask in it."""
    wide = grow(region, photo)
    if region.mask is None or wide.mask is None:
        return wide
    mask = np.zeros_like(wide.mask)
    y, x = region.box.y - wide.box.y, region.box.x - wide.box.x
    mask[y : y + region.box.h, x : x + region.box.w] = region.mask
    return replace(wide, mask=mask)


def _last_left_out(photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource) -> Release:
    """List every region in the certificate, but leave the last of several unprotected."""
    release = released(photo, asked, method, bits)
    some = released(photo, asked[: max(1, len(asked) - 1)], method, bits)
    return replace(release, image=some.image)


def _listed_as_asked(
    photo: Photo, asked: tuple[Region, ...], method: PixelMethod, bits: BitSource
) -> Release:
    """Grow regions, but list them as requested."""
    release = released(photo, asked, method, bits)
    records = tuple(region.record for region in asked)
    return replace(release, certificate=replace(release.certificate, regions=records))


MUTANTS: Final = (
    with_growth("regions not grown", lambda region, photo: region),
    with_growth("blocks of 8 for any chroma", _eights),
    with_growth(
        "without the pixel for chroma interpolation",
        lambda region, photo: grow(region, _with(photo, margin=0, codec="none")),
    ),
    with_growth("block lines not mirrored", _upright),
    with_growth("block sizes not rotated", _lying),
    with_growth("grown to the left and top only", _left_and_top),
    with_growth("grown to the last whole block only", _without_ragged),
    with_growth("grown to the nearest block line", _nearest),
    with_growth("box grown, mask not", _thin),
    GrowthVersion(name="last of several regions not grown", release=_last_left_out),
    GrowthVersion(name="ungrown regions listed", gates=("release", "stated"), release=_listed_as_asked),
    with_growth(
        "traces of WebP not stated", lambda region, photo: replace(grow(region, photo), origin=region.origin)
    ),
)
