"""Growth: extends a region to every pixel where a lossy format may have left traces of it (docs: limits).

What the region keeps unchanged is cut out first, with every pixel that may have left traces in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool

from dpveil.core.photo import BLOCKS, ESCAPING, MOST_GROWTH, Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError


def grow(region: Region, photo: Photo) -> Region:
    """Return `region` grown to all blocks it touches and the margin beyond, clipped to the photo.

    A mask grows in the same way. Pixels that the region keeps, and those that would have to grow into them
    (`reach`), are first removed from it; raises `RegionError` if they are in its core, or nothing is left. If
    the photo has no grid, or there is nothing to grow into, the region does not grow; otherwise its origin
    records that it did. WebP, HEIC, AVIF, palettes, few bits and PDF pages spread traces beyond any margin,
    which the origin records too.

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
    if pixels == region.pixels and (region.covers(photo) or grid.codec not in ESCAPING):
        return region
    origin = replace(region.origin, grown_to=grid.codec, escapes=grid.escapes)
    return replace(region, box=box, mask=mask, origin=origin)


def reach(box: Box, grid: Grid | None) -> Box:
    """Return the box of all pixels whose growth reaches `box`; it may extend beyond the photo.

    A pixel grows to its block and the margin around that, so these are the blocks that touch `box` with the
    margin around it.
    """
    if grid is None:
        return box
    left, right = _blocks(box.x - grid.margin, box.x + box.w + grid.margin, grid.x0, grid.width)
    top, bottom = _blocks(box.y - grid.margin, box.y + box.h + grid.margin, grid.y0, grid.height)
    return Box(left, top, right - left, bottom - top)


def _cut(region: Region, grid: Grid | None) -> Region:
    """Return the region without the pixels it keeps, and without those that would grow into them."""
    zones = [reach(kept.box, grid) for kept in region.kept]
    for kept, zone in zip(region.kept, zones, strict=True):
        if region.core is not None and region.core.touches(zone):
            raise RegionError(
                f"{kept.label} stays, and {region.label} is so near that its region reaches into it",
                hint="let both stay, if other faces are replaced, or replace both",
            )
    near = [zone for zone in zones if region.touches(zone)]
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


def growths(asked: Box, grown: Box, codec: str | None, width: int, height: int) -> tuple[int, int] | None:
    """Return by how many pixels a format's blocks can have grown `asked` to `grown`, at least and at most.

    All that is within the least of a mask is then in the grown mask, and nothing beyond the most. None if no
    grid of the format gives `grown`. Of formats that are not read only a bound is known.

    >>> growths(Box(20, 20, 4, 4), Box(15, 15, 18, 18), "JPEG", 64, 64)
    (1, 16)
    >>> growths(Box(20, 20, 4, 4), Box(15, 15, 19, 18), "JPEG", 64, 64) is None
    True
    """
    if codec not in BLOCKS:
        most = 0 if codec is None else MOST_GROWTH
        return (0, most) if all(0 <= more <= most for more in grown.beyond(asked)) else None
    across = asked.x, asked.x + asked.w, grown.x, grown.x + grown.w, width
    down = asked.y, asked.y + asked.h, grown.y, grown.y + grown.h, height
    fits = [[block for block in BLOCKS[codec] if _could(*axis, *block)] for axis in (across, down)]
    margins = {margin for _, margin in fits[0]} & {margin for _, margin in fits[1]}
    ends = [side - 1 + margin for side, margin in (*fits[0], *fits[1]) if margin in margins]
    return (min(margins), max(ends)) if margins else None


def one_grid(boxes: Sequence[Box], codec: str, width: int, height: int) -> bool:
    """Return whether all boxes can have grown to the blocks of one grid of a format.

    >>> one_grid([Box(15, 15, 18, 18), Box(47, 15, 34, 18)], "JPEG", 99, 99)
    True
    >>> one_grid([Box(15, 15, 18, 18), Box(48, 15, 34, 18)], "JPEG", 99, 99)
    False
    """
    ends = [(b.x, b.x + b.w, width) for b in boxes], [(b.y, b.y + b.h, height) for b in boxes]
    known = BLOCKS.get(codec, ())
    margins = [{own for step, own in known if len(_lines(axis, step, own)) <= 1} for axis in ends]
    return not known or bool(margins[0] & margins[1])


def _lines(ends: Sequence[tuple[int, int, int]], step: int, margin: int) -> set[int]:
    """Return where lines of blocks lie, modulo their distance, by ends that the photo does not clip."""
    first = {(first + margin) % step for first, _, _ in ends if first > 0}
    return first | {(last - margin) % step for _, last, end in ends if last < end}


def _could(start: int, stop: int, first: int, last: int, end: int, step: int, margin: int) -> bool:
    """Return whether `_outward` makes (`first`, `last`) of (`start`, `stop`) by blocks at some place."""
    before, after = start - first - margin, last - margin - stop
    left = before < step and (before >= 0 or first == 0)
    right = after < step and (after >= 0 or last == end)
    clipped = first == 0 or last == end
    return (
        first >= 0 and last <= end and left and right and (clipped or (last - first - 2 * margin) % step == 0)
    )


def grown_mask(mask: Bool[np.ndarray, "h w"], box: Box, grown: Box, grid: Grid) -> Bool[np.ndarray, "H W"]:
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
    """Return `mask` with every block of `size` pixels along `axis` filled in which a pixel is set.

    `first` is the coordinate of the first pixel; blocks start at multiples of `size`.
    """
    length = mask.shape[axis]
    starts = np.unique(np.concatenate(([0], np.arange(-first % size, length, size))))
    touched = np.logical_or.reduceat(mask, starts, axis=axis)
    return np.repeat(touched, np.diff(np.append(starts, length)), axis=axis)


def _dilate(mask: Bool[np.ndarray, "h w"], axis: int, margin: int) -> Bool[np.ndarray, "h w"]:
    """Return `mask` dilated by `margin` pixels along `axis`, in both directions."""
    along = np.moveaxis(mask, axis, 0)
    wider = along.copy()
    for shift in range(1, min(margin, len(along) - 1) + 1):
        wider[shift:] |= along[:-shift]
        wider[:-shift] |= along[shift:]
    return np.moveaxis(wider, 0, axis)
