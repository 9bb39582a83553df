"""Which object of the frames before each detection is, and boxes followed by optical flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from dpveil.core.array_types import Bool, Float, UInt8
from dpveil.opencv import cv2

Boxes = Float[np.ndarray, "n 4"]
"""Left, top, right and bottom, in pixels."""
REACH: Final = 0.6
"""Largest distance of centres in sides of the box, where the object was just followed: people who stand side
by side are one side apart."""
FASTER: Final = 4.0  # what is added to that for each second without being followed, as it moved on
LONGEST_REACH: Final = 1.5  # largest distance whatever the time, so that nobody across the picture is taken
SCALE: Final = 1.8  # largest ratio of sides of two boxes of one object, which may turn or come nearer
NO_MATCH_COST: Final = 1e6  # the cost of pairs that do not match
BORDER: Final = 0.05
"""Distance from the picture's border, in longer sides of a box, up to which the border cuts it."""
SHARED: Final = 0.4
"""Share of the smaller of two boxes that is in the other one, from which one continues the other."""
AGREE: Final = 0.4
"""Largest distance of sides that no border cuts, in the longer side of the box, of one that is followed."""


def overlap(one: Boxes, two: Boxes) -> Float[np.ndarray, "n m"]:
    """Return the intersection over union of all pairs of boxes.

    >>> overlap(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [5, 5, 6, 6]])).round(2).tolist()
    [[0.33, 0.0]]
    """
    shared, area, areas = _intersections(one, two)
    return np.asarray(shared / np.maximum(area[:, None] + areas - shared, 1e-9))


def share(one: Boxes, two: Boxes) -> Float[np.ndarray, "n m"]:
    """Return the share of each of the first boxes that each of the others holds.

    >>> share(np.array([[0.0, 0, 2, 2]]), np.array([[1.0, 0, 3, 2], [0, 0, 9, 9]])).tolist()
    [[0.5, 1.0]]
    """
    shared, area, _ = _intersections(one, two)
    return np.asarray(shared / np.maximum(area[:, None], 1e-9))


def _intersections(
    one: Boxes, two: Boxes
) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, " n"], Float[np.ndarray, " m"]]:
    start = np.maximum(one[:, None, :2], two[None, :, :2])
    stop = np.minimum(one[:, None, 2:], two[None, :, 2:])
    area, areas = (np.maximum(boxes[:, 2:] - boxes[:, :2], 0).prod(axis=1) for boxes in (one, two))
    return np.maximum(stop - start, 0).prod(axis=2), area, areas


def cut(boxes: Boxes, width: int, height: int) -> Bool[np.ndarray, "n 4"]:
    """Return which sides of boxes are at the border of the picture or beyond it.

    >>> cut(np.array([[1.0, 50, 31, 80]]), 200, 100).tolist()
    [[True, False, False, False]]
    """
    near = BORDER * (boxes[:, 2:] - boxes[:, :2]).max(axis=1, keepdims=True)
    return np.concatenate([boxes[:, :2] <= near, boxes[:, 2:] >= (width, height) - near], axis=1)


def clip_boxes(boxes: Boxes, width: int, height: int) -> Boxes:
    """Return the parts of boxes that are in the picture."""
    return np.asarray(np.clip(boxes, 0, (width, height, width, height)))


def complete_box(
    box: Float[np.ndarray, " 4"], known: Float[np.ndarray, " 4"], width: int, height: int
) -> Float[np.ndarray, " 4"]:
    """Return a box that is cut at the border at its whole size, which that of the object before tells.

    It grows beyond the border only.

    >>> complete_box(np.array([180.0, 30, 200, 70]), np.array([150.0, 30, 190, 70]), 200, 100).tolist()
    [180.0, 30.0, 220.0, 70.0]
    """
    whole, at = box.copy(), cut(box[None], width, height)[0].reshape(2, 2)
    size, before = box[2:] - box[:2], known[2:] - known[:2]
    for axis in (0, 1):
        other = 1 - axis
        shrunk = 1.0 if at[:, other].any() else min(1.0, size[other] / before[other])
        missing = before[axis] * shrunk - size[axis]
        if missing > 0 and at[:, axis].sum() == 1:
            whole[axis] -= missing * at[0, axis]
            whole[axis + 2] += missing * at[1, axis]
    return whole


def continuations(
    held: Boxes, before: Boxes, found: Boxes, followed: Bool[np.ndarray, " n"], width: int, height: int
) -> list[tuple[int, int]]:
    """Return pairs of a track and a detection of which the border cut one, each at most once.

    An object that enters or leaves the picture has a narrow box while it is half visible. So the side that is
    cut may grow from where the track was last found (`before`), or shrink to the detection. The visible
    parts of tracks (`held`) and detections have to share `SHARED` of the smaller one, and most of all wins.
    Of a track that was `followed`, the sides that the border never cut are known, and have to agree: another
    object that enters where it stands is not this one.
    """
    from scipy.optimize import linear_sum_assignment

    if not len(held) or not len(found):
        return []
    seen, seen_found = clip_boxes(held, width, height), clip_boxes(found, width, height)
    shared = np.maximum(share(seen, seen_found), share(seen_found, seen).T)
    size, sizes = (np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-6) for boxes in (seen, seen_found))
    change = np.log(sizes[None] / size[:, None])
    cut_before, cut_found = (cut(boxes, width, height) for boxes in (before, found))
    grows, shrinks = (at[:, :2] | at[:, 2:] for at in (cut_before, cut_found))
    most = np.where(grows, np.inf, math.log(SCALE))[:, None]
    least = np.where(shrinks, -np.inf, -math.log(SCALE))[None]
    fits = ((change <= most) & (change >= least)).all(axis=2)
    at_border = (grows[:, None] | shrinks[None]).any(axis=2)
    longer = (held[:, 2:] - held[:, :2]).max(axis=1)[:, None, None]
    off = np.abs(held[:, None] - found[None]) > AGREE * longer
    moved = (off & ~cut_before[:, None] & ~cut_found[None]).any(axis=2)
    apart = ~at_border | ~fits | (shared < SHARED) | (followed[:, None] & moved)
    cost = np.where(apart, NO_MATCH_COST, 1 - shared)
    rows, columns = linear_sum_assignment(cost)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if cost[i, j] < NO_MATCH_COST]


def matches(
    held: Boxes, moved: Boxes, alone: Float[np.ndarray, " n"], found: Boxes, narrow: bool = False
) -> list[tuple[int, int]]:
    """Return pairs of a track and a detection that are one object, each at most once, at least total cost.

    Tracks are where they were last (`held`) or where their motion took them (`moved`); `alone` is for how
    many seconds they were not followed. The cost is the distance of centres in sides of the box, and the
    change of size. With `narrow`, as for doubtful detections, the distance is at most half as large.
    """
    if not len(held) or not len(found):
        return []
    reach = np.minimum(REACH + FASTER * alone, LONGEST_REACH)[:, None] * (0.5 if narrow else 1)
    size, sizes = (np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-6) for boxes in (held, found))
    centres = (found[:, :2] + found[:, 2:]) / 2
    unit = np.sqrt(size.prod(axis=1))[:, None]
    away = np.minimum(
        *(
            np.hypot(*((boxes[:, None, :2] + boxes[:, None, 2:]) / 2 - centres).transpose(2, 0, 1)) / unit
            for boxes in (held, moved)
        )
    )
    change = np.abs(np.log(sizes[None] / size[:, None])).max(axis=2)
    near = (away <= reach) & (change <= math.log(SCALE))
    if max(near.sum(axis=0).max(), near.sum(axis=1).max()) <= 1:
        return [(int(i), int(j)) for i, j in np.argwhere(near)]

    from scipy.optimize import linear_sum_assignment  # takes half a second: where there is a choice alone

    cost = np.where(near, away + change, NO_MATCH_COST)
    rows, columns = linear_sum_assignment(cost)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if cost[i, j] < NO_MATCH_COST]


Small = UInt8[np.ndarray, "k l"]
Points = Float[np.ndarray, "k 1 2"]
Sure = Bool[np.ndarray, " n"]
SMALL_SIDE: Final = 640  # longer side of small frames in pixels; smaller frames are not enlarged
GRID: Final = 6  # points on each side of a box
INNER: Final = 0.15  # share of a box on each side in which no points are, as it shows what is behind
WINDOW: Final = (13, 13)  # pixels that are compared around a point: about a third of a face of 40 pixels
LEVELS: Final = 3  # halvings of the pyramid: motion of up to 2³ half windows between two frames
BESIDE_PIXELS: Final = 64
"""Pixels around points that are looked at: half the window at the coarsest level of the pyramid, and more."""
PATCH: Final = 32  # side of a box in which contents are compared, in pixels
BACK_PIXELS: Final = 1.0
"""Largest distance in pixels between a point and where it is after following it there and back."""
LEAST_POINTS: Final = 8  # of `GRID`² that have to come back: a median of fewer says little
MOST_APART: Final = 0.08
"""Largest median distance of points from where the box's motion takes them, relative to its sides."""
SAMPLES: Final = 12  # points on each side of a box where its contents are compared in two frames
FOLLOWED_ALIKE: Final = 0.4  # correlation of these from which a box was followed, and not what is behind it
FARTHEST: Final = 0.8  # how far the contents of a box are looked for, in sides of it
FOUND_ALIKE: Final = 0.7  # correlation from which contents are alike
SMALLEST_SIDE: Final = 6  # least side in pixels of what is looked for: less is found everywhere
TEMPLATE: Final = 16  # least shorter side of what is looked for in pixels, and of what it is thinned to
ZOOM: Final = (0.9, 1.1)  # least and largest change of size between two frames; more is a wrong match
Followed = tuple[Boxes, Sure, Float[np.ndarray, " n"]]
"""Boxes, whether they are sure, and the degrees by which their contents were turned, clockwise."""


@dataclass(frozen=True, eq=False)
class GreyFrame:
    """A frame's number, its time since the first one, and a small grey copy with its scale."""

    frame: int
    seconds: Fraction
    grey: UInt8[np.ndarray, "h w"]
    scale: float


def likeness(
    one: GreyFrame, was: Float[np.ndarray, " 4"], other: GreyFrame, there: Float[np.ndarray, " 4"]
) -> float:
    """Return how alike the contents of a box in each of two frames are, whatever their brightness: -1 to 1.

    The inner part of the one is looked for in and around the other. Two faces of LFW are above 0.7 in 1 of
    100 pairs, and above 0.8 in 1 of 2000.
    """
    part, area = _patch(one, was, 1 - INNER), _patch(other, there, 1 + 2 * INNER)
    return float(cv2.matchTemplate(area, part, cv2.TM_CCOEFF_NORMED).max())


def _patch(frame: GreyFrame, box: Float[np.ndarray, " 4"], wide: float) -> UInt8[np.ndarray, "s s"]:
    """Return what is in a box that is so many times as wide and high."""
    side, scaled = round(PATCH * wide), np.asarray(box) * frame.scale
    size, middle = (scaled[2:] - scaled[:2]) * wide, (scaled[2:] + scaled[:2]) / 2
    view = np.column_stack([np.diag(size / side), middle - size / 2])
    how: Any = {"flags": cv2.INTER_AREA | cv2.WARP_INVERSE_MAP, "borderMode": cv2.BORDER_REPLICATE}
    return np.asarray(cv2.warpAffine(frame.grey, view, (side, side), **how))


def small(image: UInt8[np.ndarray, "h w 3"]) -> tuple[Small, float]:
    """Return a frame in grey with a longer side of at most `SMALL_SIDE` pixels, and its scale."""
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    scale = min(1.0, SMALL_SIDE / max(grey.shape))
    if scale < 1:
        size = tuple(max(1, round(side * scale)) for side in grey.shape[::-1])
        grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return grey, scale


def follow(before: Small, after: Small, boxes: Boxes) -> Followed:
    """Return where boxes of one frame are in another, in its pixels, which of them that is sure of, and how
    their contents were turned.

    The others stay where they are. Points in a box are followed there and back (Kalal 2010: median flow), the
    box moves by the median of those that come back, grows by the median change of their distances from there,
    and its contents are turned by the median change of their directions; boxes stay upright. Where
    few come back, as pyramids of flow blur small objects that are fast, they are followed again from where
    the contents of the box are most alike.
    """
    moved, sure, turns = _follow_flow(before, after, boxes, np.zeros((len(boxes), 2)), LEVELS)
    retry = np.flatnonzero(~sure)
    guesses = [_best_motion(before, after, boxes[n]) for n in retry]
    known = [n for n, guess in zip(retry, guesses, strict=True) if guess is not None]
    if known:
        guess = np.array([one for one in guesses if one is not None])
        moved[known], sure[known], turns[known] = _follow_flow(before, after, boxes[known], guess, 0)
    return moved, sure, turns


def _follow_flow(
    before: Small, after: Small, boxes: Boxes, guess: Float[np.ndarray, "n 2"], levels: int
) -> Followed:
    """Return the same by flow alone, which starts at a `guess` of the motion."""
    moved, sure, turns = boxes.copy(), np.zeros(len(boxes), bool), np.zeros(len(boxes))
    if not len(boxes):
        return moved, sure, turns
    start = _points(boxes, GRID)
    flat, first = (
        np.ascontiguousarray(points.reshape(-1, 1, 2), np.float32)
        for points in (start, start + guess[:, None])
    )
    there, one = _flow(before, after, flat, first, levels)
    back = np.ascontiguousarray(there - np.repeat(guess, GRID**2, axis=0)[:, None], np.float32)
    again, two = _flow(after, before, there, back, levels)
    near = np.hypot(*(again - flat)[:, 0].T) <= BACK_PIXELS
    inside = ((flat >= 0) & (flat < before.shape[::-1]))[:, 0].all(axis=1)
    good = (near & inside & one & two).reshape(len(boxes), -1)
    for n, (p, q, kept) in enumerate(zip(start, there.reshape(start.shape), good, strict=True)):
        if kept.sum() >= LEAST_POINTS:
            moved[n], sure[n], turns[n] = _move_box(boxes[n], p[kept], q[kept].astype(np.float64))
    sure &= _correlation(before, after, boxes, moved) >= FOLLOWED_ALIKE
    return np.where(sure[:, None], moved, boxes), sure, np.where(sure, turns, 0.0)


def _flow(
    before: Small, after: Small, start: Points, guess: Points, levels: int
) -> tuple[Points, Bool[np.ndarray, " k"]]:
    """Return where points are in another frame by Lucas and Kanade's method, and which of them it found."""
    # Only the part of the frames around them is looked at: pyramids of whole frames take most of the time.
    both = np.concatenate([start, guess])[:, 0]
    low = np.clip(np.floor(both.min(axis=0)) - BESIDE_PIXELS, 0, np.array(before.shape[::-1]) - 1).astype(int)
    high = np.clip(np.ceil(both.max(axis=0)) + BESIDE_PIXELS, low + 1, before.shape[::-1]).astype(int)
    part = slice(low[1], high[1]), slice(low[0], high[0])
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        np.ascontiguousarray(before[part]),
        np.ascontiguousarray(after[part]),
        (start - low).astype(np.float32),
        (guess - low).astype(np.float32),
        winSize=WINDOW,
        maxLevel=levels,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    return np.asarray(there + low, np.float32), np.asarray(found)[:, 0] > 0


def _correlation(before: Small, after: Small, boxes: Boxes, moved: Boxes) -> Float[np.ndarray, " n"]:
    """Return how alike the contents of boxes are in two frames, whatever their brightness: -1 to 1.

    What lies beyond the border in one of them does not count: objects leave the picture.
    """
    there = []
    both = np.ones((len(boxes), SAMPLES**2))
    for image, sides in ((before, boxes), (after, moved)):
        points = _points(sides, SAMPLES).astype(np.float32)
        both *= ((points >= 0) & (points < image.shape[::-1])).all(axis=2)
        there.append(cv2.remap(image, points[..., 0], points[..., 1], cv2.INTER_LINEAR).astype(np.float64))
    count = np.maximum(both.sum(axis=1, keepdims=True), 1)
    one, two = (both * (levels - (both * levels).sum(axis=1, keepdims=True) / count) for levels in there)
    size = np.sqrt((one**2).sum(axis=1) * (two**2).sum(axis=1))
    return np.asarray((one * two).sum(axis=1) / np.maximum(size, 1.0))


def _points(boxes: Boxes, count: int) -> Float[np.ndarray, "n k 2"]:
    steps = np.linspace(INNER, 1 - INNER, count)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    return np.asarray(boxes[:, None, :2] + grid * (boxes[:, None, 2:] - boxes[:, None, :2]))


def _best_motion(before: Small, after: Small, box: Float[np.ndarray, " 4"]) -> Float[np.ndarray, " 2"] | None:
    """Return the motion to where the inner part of a box is most alike, None if nothing is alike enough."""
    size = box[2:] - box[:2]
    inner = np.concatenate([box[:2] + INNER * size, box[2:] - INNER * size])
    far = inner + np.repeat([-FARTHEST, FARTHEST], 2) * np.tile(size, 2)
    ends = (np.tile(image.shape[::-1], 2) for image in (before, after))
    (left, top, right, bottom), wide = (
        np.rint(np.clip(part, 0, end)).astype(int) for part, end in zip((inner, far), ends, strict=True)
    )
    if min(right - left, bottom - top) < SMALLEST_SIDE:
        return None
    step = max(1, min(right - left, bottom - top) // TEMPLATE)
    part = np.ascontiguousarray(before[top:bottom:step, left:right:step])
    area = np.ascontiguousarray(after[wide[1] : wide[3] : step, wide[0] : wide[2] : step])
    if (np.array(area.shape) < part.shape).any() or part.std() < 1:
        return None
    _, best, _, at = cv2.minMaxLoc(cv2.matchTemplate(area, part, cv2.TM_CCOEFF_NORMED))
    return np.array(wide[:2] + np.array(at) * step - (left, top), np.float64) if best >= FOUND_ALIKE else None


def _move_box(
    box: Float[np.ndarray, " 4"], p: Float[np.ndarray, "k 2"], q: Float[np.ndarray, "k 2"]
) -> tuple[Float[np.ndarray, " 4"], bool, float]:
    """Return a box after its points `p` went to `q`, whether most of them agree, and how they turned."""
    size, middle = box[2:] - box[:2], (box[:2] + box[2:]) / 2
    was, now = _median(p), _median(q)
    radius = np.hypot(*(p - was).T)
    zoom = _zoom(radius, np.hypot(*(q - now).T))
    angle = _angle(p - was, q - now)
    turn = zoom * np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    centre = now + (middle - was) @ turn
    apart = _median(np.abs(q - now - (p - was) @ turn) / size).max()
    half = size * zoom / 2
    moved = np.concatenate([centre - half, centre + half])
    agree = bool(apart <= MOST_APART and np.isfinite(moved).all())
    return (moved, True, math.degrees(angle)) if agree else (box, False, 0.0)


def _median(values: Float[np.ndarray, "k ..."]) -> Float[np.ndarray, ...]:
    """Return the median over the first axis, as numpy does, which takes ten times as long for few values."""
    order, half = np.sort(values, axis=0), (len(values) - 1) // 2
    return np.asarray((order[half] + order[len(values) // 2]) / 2)


def _angle(before: Float[np.ndarray, "k 2"], after: Float[np.ndarray, "k 2"]) -> float:
    """Return the median change of directions in radians, clockwise; half of the points are far enough."""
    one, two = (part[:, 0] + 1j * part[:, 1] for part in (before, after))
    far = np.abs(one) >= _median(np.abs(one))
    return float(_median(np.angle((two * one.conj())[far])))


def _zoom(before: Float[np.ndarray, " k"], after: Float[np.ndarray, " k"]) -> float:
    far = before > 0
    ratio = float(_median(after[far] / before[far])) if far.any() else 1.0
    return min(max(ratio, ZOOM[0]), ZOOM[1])
