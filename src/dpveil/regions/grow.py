"""Growth: extends a region to every pixel that a lossy format may have leaked it to (docs: limits).

Boxes that stay as they are are cut out first, with every pixel whose traces they may hold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from dpveil.core.photo import ESCAPING, Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError


def grow(region: Region, photo: Photo) -> Region:
    """Return `region` grown to all blocks it touches and the margin beyond, clipped to the photo.

    A mask grows block by block too. Of what the region keeps nothing is replaced, and nothing that would have
    to grow into it is covered (`reach`). Without a grid, or if there is nothing to grow into, the region is
    returned unchanged; otherwise its origin says that it grew. WebP, HEIC and AVIF spread traces beyond any
    margin: any region but the whole photo grows there, so its origin says so and certificates name them.

    >>> photo = Photo(np.zeros((64, 64), np.uint8), Grid(16, 16))
    >>> grow(Region(Box(20, 20, 4, 4)), photo).record.in_words()
    'box, grown to the JPEG blocks: 18×18 pixels at 15,15'
    """
    region, grid = _cut(region, photo.grid), photo.grid
    if grid is None:
        return region
    box = grown_box(region.box, grid, photo.width, photo.height)
    mask = None if region.mask is None else grown_mask(region.mask, region.box, box, grid)
    pixels = box.w * box.h if mask is None else int(mask.sum())
    if pixels == region.pixels:
        return region
    origin = replace(region.origin, grown_to=grid.codec, escapes=grid.codec in ESCAPING)
    return replace(region, box=box, mask=mask, origin=origin)


def reach(box: Box, grid: Grid | None) -> Box:
    """Return a box around every pixel that grows into `box`; it may leave the photo.

    Growth fills the pixel's block, and then takes in the margin: so these are the blocks that touch `box`
    with the margin around it.
    """
    if grid is None:
        return box
    left, right = _blocks(box.x - grid.margin, box.x + box.w + grid.margin, grid.x0, grid.width)
    top, bottom = _blocks(box.y - grid.margin, box.y + box.h + grid.margin, grid.y0, grid.height)
    return Box(left, top, right - left, bottom - top)


def _cut(region: Region, grid: Grid | None) -> Region:
    """Return the region without what it keeps, and without what would grow into that."""
    near = [zone for zone in (reach(box, grid) for box in region.kept) if region.touches(zone)]
    if not near:
        return region
    box = region.box
    mask = np.ones((box.h, box.w), np.bool_) if region.mask is None else region.mask.copy()
    for zone in near:
        top, left = max(0, zone.y - box.y), max(0, zone.x - box.x)
        mask[top : zone.y + zone.h - box.y, left : zone.x + zone.w - box.x] = False
    if not mask.any():
        raise RegionError(f"nothing is left of {region.label} beside what is kept", hint="keep fewer faces")
    return replace(region, mask=mask)


def grown_box(box: Box, grid: Grid, width: int, height: int) -> Box:
    """Return the grown `box`, clipped to a photo of `width` × `height` pixels."""
    left, right = _outward(box.x, box.x + box.w, grid.x0, grid.width, grid.margin, width)
    top, bottom = _outward(box.y, box.y + box.h, grid.y0, grid.height, grid.margin, height)
    return Box(left, top, right - left, bottom - top)


def _outward(start: int, stop: int, line: int, step: int, margin: int, end: int) -> tuple[int, int]:
    first, last = _blocks(start, stop, line, step)
    return max(0, first - margin), min(end, last + margin)


def _blocks(start: int, stop: int, line: int, step: int) -> tuple[int, int]:
    return line + (start - line) // step * step, line - (line - stop) // step * step


def grown_mask(mask: Bool[np.ndarray, "h w"], box: Box, grown: Box, grid: Grid) -> Bool[np.ndarray, "H W"]:
    """Return `mask`, given in `box`, grown to blocks and margin and given in the box `grown`."""
    full = np.zeros((grown.h, grown.w), np.bool_)
    top, left = box.y - grown.y, box.x - grown.x
    full[top : top + box.h, left : left + box.w] = mask
    for axis, first, size in ((0, grown.y - grid.y0, grid.height), (1, grown.x - grid.x0, grid.width)):
        full = _fill_blocks(full, axis, first, size)
    for axis in (0, 1):
        full = _dilate(full, axis, grid.margin)
    return full


def _fill_blocks(mask: Bool[np.ndarray, "h w"], axis: int, first: int, size: int) -> Bool[np.ndarray, "h w"]:
    """Set all of a run of `size` along `axis` where any of it is set; the first pixel lies at `first`."""
    length = mask.shape[axis]
    starts = np.unique(np.concatenate(([0], np.arange(-first % size, length, size))))
    touched = np.logical_or.reduceat(mask, starts, axis=axis)
    return np.repeat(touched, np.diff(np.append(starts, length)), axis=axis)


def _dilate(mask: Bool[np.ndarray, "h w"], axis: int, margin: int) -> Bool[np.ndarray, "h w"]:
    """Set what lies at most `margin` pixels along `axis` from what is set."""
    along = np.moveaxis(mask, axis, 0)
    wider = along.copy()
    for shift in range(1, min(margin, len(along) - 1) + 1):
        wider[shift:] |= along[:-shift]
        wider[:-shift] |= along[shift:]
    return np.moveaxis(wider, 0, axis)
