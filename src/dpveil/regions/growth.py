"""How regions grow to the blocks of a lossy photo, and what they cut out because it is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpveil.core.array_types import Bool
from dpveil.core.photo import ESCAPING, BlockGrid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError, TooNear


def grow(region: Region, photo: Photo) -> Region:
    """Return `region` grown to all blocks it touches and the margin beyond, clipped to the photo.

    A mask grows in the same way. Pixels that the region keeps, and those that would have to grow into them
    (`box_growing_into`), are first removed from it; raises `RegionError` if they are in its core, or nothing
    is left. If the photo has no grid, or there is nothing to grow into, the region does not grow; otherwise
    its origin records that it did. WebP, HEIC, AVIF, palettes, few bits and PDF pages spread traces beyond
    any margin, which the origin records too.

    >>> photo = Photo(np.zeros((64, 64), np.uint8), BlockGrid(16, 16))
    >>> grow(Region(Box(20, 20, 4, 4)), photo).record.in_words()
    'box, grown to the JPEG blocks: 18×18 pixels at 15,15'
    """
    region, grid = _cut(region, photo.grid), photo.grid
    if grid is None:
        return region
    box = grown_box(region.box, grid, photo.width, photo.height)
    mask = None if region.mask is None else grown_mask(region.mask, region.box, box, grid)
    pixels = box.w * box.h if mask is None else int(mask.sum())
    if pixels == region.pixels and (region.covers(photo) or grid.codec not in ESCAPING):
        return region
    origin = replace(region.origin, grown_to=grid.codec, escapes=grid.escapes)
    return replace(region, box=box, mask=mask, origin=origin, before=region)


def box_growing_into(box: Box, grid: BlockGrid | None) -> Box:
    """Return the box of all pixels whose growth reaches `box`; it may extend beyond the photo.

    A pixel grows to its block and the margin around that, so these are the blocks that touch `box` with the
    margin around it.
    """
    if grid is None:
        return box
    left, right = _blocks(box.x - grid.margin, box.x + box.w + grid.margin, grid.x0, grid.width)
    top, bottom = _blocks(box.y - grid.margin, box.y + box.h + grid.margin, grid.y0, grid.height)
    return Box(left, top, right - left, bottom - top)


def kept_zone(kept: Region, grid: BlockGrid | None) -> Region:
    """Return the pixels that a region keeps, and those whose growth reaches them (`box_growing_into`)."""
    if grid is None:
        return kept
    zone, box = box_growing_into(kept.box, grid), kept.box
    mask = np.zeros((zone.h, zone.w), np.bool_)
    own = np.ones((box.h, box.w), np.bool_) if kept.mask is None else kept.mask
    mask[box.y - zone.y :, box.x - zone.x :][: box.h, : box.w] = own
    for axis in (0, 1):
        mask = _dilate(mask, axis, grid.margin)
    for axis, first, size in ((0, zone.y - grid.y0, grid.height), (1, zone.x - grid.x0, grid.width)):
        mask = _fill_blocks(mask, axis, first, size)
    return replace(kept, box=zone, mask=mask)


def _cut(region: Region, grid: BlockGrid | None) -> Region:
    """Return the region without the pixels it keeps, and without those that would grow into them."""
    near = list[Region]()
    for kept in region.kept:  # the box around it is cut out, or if the core reaches into that, it alone
        zone = kept_zone(replace(kept, mask=None), grid)
        if region.core is not None and region.core.meets(zone):
            zone = kept_zone(kept, grid)
            if region.core.meets(zone):
                raise TooNear(kept.label, region.label)
        near += [zone] if region.meets(zone) else []
    if not near:
        return region
    box = region.box
    mask = np.ones((box.h, box.w), np.bool_) if region.mask is None else region.mask.copy()
    for zone in near:
        top, left = max(0, zone.box.y - box.y), max(0, zone.box.x - box.x)
        part = mask[top : zone.box.y + zone.box.h - box.y, left : zone.box.x + zone.box.w - box.x]
        rows, columns = max(0, box.y - zone.box.y), max(0, box.x - zone.box.x)
        held = True if zone.mask is None else zone.mask[rows:, columns:][: part.shape[0], : part.shape[1]]
        part[...] &= np.logical_not(held)
    if not mask.any():
        raise RegionError(f"nothing is left of {region.label} beside what is kept", hint="keep fewer faces")
    return replace(region, mask=mask)


def grown_box(box: Box, grid: BlockGrid, width: int, height: int) -> Box:
    """Return the grown `box`, clipped to a photo of `width` × `height` pixels."""
    left, right = _blocks(box.x, box.x + box.w, grid.x0, grid.width)
    top, bottom = _blocks(box.y, box.y + box.h, grid.y0, grid.height)
    left, top = max(0, left - grid.margin), max(0, top - grid.margin)
    right, bottom = min(width, right + grid.margin), min(height, bottom + grid.margin)
    return Box(left, top, right - left, bottom - top)


def _blocks(start: int, stop: int, line: int, step: int) -> tuple[int, int]:
    return line + (start - line) // step * step, line - (line - stop) // step * step


def grown_mask(
    mask: Bool[np.ndarray, "h w"], box: Box, grown: Box, grid: BlockGrid
) -> Bool[np.ndarray, "H W"]:
    """Return `mask`, which has the shape of `box`, grown by blocks and margin, in the shape of `grown`."""
    full = np.zeros((grown.h, grown.w), np.bool_)
    top, left = box.y - grown.y, box.x - grown.x
    full[top : top + box.h, left : left + box.w] = mask
    for axis, first, size in ((0, grown.y - grid.y0, grid.height), (1, grown.x - grid.x0, grid.width)):
        full = _fill_blocks(full, axis, first, size)
    for axis in (0, 1):
        full = _dilate(full, axis, grid.margin)
    return full


def _fill_blocks(mask: Bool[np.ndarray, "h w"], axis: int, first: int, size: int) -> Bool[np.ndarray, "h w"]:
    # Blocks along the axis start at multiples of `size`; `first` is the coordinate of the first pixel.
    length = mask.shape[axis]
    starts = np.concatenate(([0], np.arange(-first % size or size, length, size)))
    touched = np.logical_or.reduceat(mask, starts, axis=axis)
    return np.repeat(touched, np.diff(np.append(starts, length)), axis=axis)


def _dilate(mask: Bool[np.ndarray, "h w"], axis: int, margin: int) -> Bool[np.ndarray, "h w"]:
    along = np.moveaxis(mask, axis, 0)
    wider = along.copy()
    for shift in range(1, min(margin, len(along) - 1) + 1):
        wider[shift:] |= along[:-shift]
        wider[:-shift] |= along[shift:]
    return np.moveaxis(wider, 0, axis)
