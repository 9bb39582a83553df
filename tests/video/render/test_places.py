"""Courses of heads: what is replaced holds every face of the cells, and nothing finer than cells shows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from render_made import HEIGHT, WIDTH, drawn_heads, frames, moving, rendered, scene_of

from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import PITCH, RATIO, ROLLS, side
from dpveil.faces.geometry.head_frame import MIDDLE, outline
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.video.facts import Key
from dpveil.video.places import NEAR_SIDES, BoxCourse, HeadPath, cell_at, region_around, smooth_path

TURN = 2 * math.pi / ROLLS
KEYS = (
    Key(0, 300, 200, 90, 120, 0, 0),
    Key(7, 340, 210, 100, 130, 20, 30),
    Key(15, 330, 260, 150, 190, -15, -45),
    Key(40, 60, 250, 60, 80, 120, None),
    Key(60, 80, 240, 50, 70, -170, 10),
)


def pose(length: float, turn: float, x: float, y: float) -> Similarity:
    """Return the map to a frame with a side of 1, written independently of `HeadPath`."""
    scale, c, s = 1 / length, math.cos(turn), math.sin(turn)
    # p ↦ scale·R(-turn)·(p - centre) + MIDDLE - 1/2
    right, down = scale * (c * (x - 0.5) + s * (y - 0.5)), scale * (-s * (x - 0.5) + c * (y - 0.5))
    return Similarity(scale, -turn, MIDDLE[0] - 0.5 - right, MIDDLE[1] - 0.5 - down)


def nearly(cells: list, rng: np.random.Generator) -> np.ndarray:
    """Return side, turn and centre of a face at a random corner or place of each cell."""
    found, before = [], 0.0
    for cell in cells:
        length = side(cell.scale)
        off = rng.choice([-0.4999, 0.4999], 4) if rng.random() < 0.7 else rng.uniform(-0.5, 0.5, 4)
        turn = before + (TURN * cell.roll - before + math.pi) % (2 * math.pi) - math.pi
        centre = (np.array([cell.across, cell.down]) + 0.5 + off[2:]) * PITCH * length
        found.append([length * (RATIO[0] / RATIO[1]) ** off[0], turn + TURN * off[1], *centre])
        before = turn
    return np.array(found)


@pytest.mark.parametrize("protect", sorted(PROTECTIONS))
def test_what_is_replaced_holds_every_face_of_two_cells_that_moves_on_a_line(protect: str) -> None:
    """Faces lie at the corners of cells, and move on lines between keys; their own shape is `one`."""
    rng = np.random.default_rng(1)
    course = HeadPath(KEYS, protect)
    one = PROTECTIONS[protect].one
    for _ in range(12):
        nodes = nearly(list(course.cells), rng)
        for frame in rng.uniform(0, 60, 8):
            face = pose(*(float(np.interp(frame, course.frames, part)) for part in nodes.T))
            head, shape = course.outline(frame)
            away = outline((0.0, 0.0, *one.half))
            away[:, 1] *= np.where(away[:, 1] > 0, one.below, 1)
            away[:, 0] *= np.where(away[:, 0] < 0, shape.left, shape.right)
            ends = away + MIDDLE
            assert shape.larger(1.0001).holds(head.to(face.back(ends - 0.5)) + 0.5).all()


def test_keys_that_move_within_their_cells_change_nothing() -> None:
    rng = np.random.default_rng(2)
    track = moving(roll=3, yaw=4)
    scene = scene_of([track])
    cells = scene.course(track).cells
    moved = []
    for key, cell in zip(track.keys, cells, strict=True):
        tries = (
            replace(key, x=key.x + int(a), y=key.y + int(b), w=key.w + int(c), roll=key.roll + int(d), yaw=2)
            for a, b, c, d in rng.integers(-2, 3, (200, 4))
        )
        moved.append(next(k for k in tries if cell_at(k, "head") == cell and (k.x, k.w) != (key.x, key.w)))
    other = scene_of([replace(track, keys=tuple(moved))])
    first, second = rendered(scene), rendered(other)
    for frame in frames(21):
        assert (first.frame(frame) == second.frame(frame)).all()


def test_a_head_that_trembles_within_two_cells_is_shown_still() -> None:
    rng = np.random.default_rng(3)
    keys = [
        Key(f, 300 + int(rng.integers(-3, 4)), 200, 90 + int(rng.integers(-2, 3)), 120)
        for f in range(0, 100, 5)
    ]
    course = HeadPath(keys, "head")
    assert len({cell.across for cell in course.cells}) > 1
    shown = [course.pose_at(frame) for frame in range(100)]
    assert np.ptp([one.back(np.zeros((1, 2)))[0, 0] for one in shown]) < 0.05
    assert np.ptp([one.scale for one in shown]) < 1e-6


def test_a_head_is_shown_near_the_line_between_its_keys() -> None:
    rng = np.random.default_rng(4)
    middle = np.array([MIDDLE]) - 0.5
    for _ in range(30):
        times = np.cumsum(rng.choice([1, 2, 5, 12, 55], 6))
        most = rng.choice([3, 30])  # pixels a frame by which it changes its motion between two keys
        speed = np.cumsum(rng.uniform(-most, most, (5, 2)), axis=0)
        at = np.cumsum([[400, 300], *speed * np.diff(times)[:, None]], axis=0).astype(int).tolist()
        keys = [Key(int(f), x, y, 90, 120) for f, (x, y) in zip(times, at, strict=True)]
        course = HeadPath(keys, "face")
        length = float(side(course.cells[0].scale))
        for frame in range(int(times[0]), int(times[-1]) + 1):
            off = course.pose_at(frame).back(middle) - course.outline(frame)[0].back(middle)
            if all(abs(frame - f) > 1 for f in times):  # a bend takes at least a frame on each side
                assert np.abs(off).max() <= (PITCH / 2 + NEAR_SIDES) * length + 1


def test_the_calmest_lines_stay_within_intervals_and_bend_no_more_than_they_have_to() -> None:
    at = np.arange(0.0, 60, 5)
    straight = 0.31 * at
    cells, half = np.floor([straight, straight % 2, 0 * at]) + 0.5, np.full((3, len(at)), 0.5)
    cells[1] = np.arange(len(at)) % 2
    line, still, same = smooth_path(at, cells, half)
    assert (np.abs(line - cells[0]) <= 0.5).all()
    assert np.abs(np.diff(line, 2)).max() < 0.3 * np.abs(np.diff(cells[0], 2)).max()
    assert np.abs(np.diff(line) - 5 * 0.31).max() < 0.2
    assert (still == 0.5).all()
    assert (same == 0.5).all()
    assert smooth_path(at[:1], cells[:1, :1], half[:1, :1]).tolist() == [[0.5]]
    two = smooth_path(at[:2], np.array([[0.5, 9.5]]), np.full((1, 2), 0.5))
    assert two[0] == pytest.approx([1, 9], abs=0.05)


def test_turns_cross_over_a_moment_and_do_not_flicker() -> None:
    yaws = [8, 12, 8, 12, 8, 45, 45, 8]
    course = HeadPath([Key(10 * n, 100, 100, 60, 80, 0, yaw) for n, yaw in enumerate(yaws)], "head")
    assert course.yaws == {0, 2}
    assert course.faces(20, 4) == [(0, 1.0)]
    assert course.faces(70, 4) == [(2, 1.0)]
    for frame in np.linspace(0, 80, 200):
        found = course.faces(frame, 4)
        assert sum(share for _, share in found) == pytest.approx(1)
        assert all(0 <= share <= 1 for _, share in found)
    before, after = (dict(course.faces(frame, 4)) for frame in (44.9, 45.1))
    assert before[0] == pytest.approx(0.525)
    assert after[0] == pytest.approx(0.475)


@pytest.mark.parametrize("yaw", [-60, -35, -20, 0, 20, 35, 60])
def test_a_face_that_turns_is_ahead_of_the_middle_of_its_box(yaw: int) -> None:
    """As landmarks place it in photos: its far side is replaced, too."""
    key = Key(0, 300, 200, 120, 156, 0, yaw)
    cell = cell_at(key, "face")
    middle = cell.pose.back(np.zeros((1, 2)))[0, 0]
    aside = 0.33 * key.w * np.sin(np.radians(np.clip(yaw, -40, 40)))
    assert middle == pytest.approx(key.x + key.w / 2 - 0.5 + aside, abs=side(cell.scale) * PITCH)
    far = key.x + key.w / 2 + np.sign(yaw) * 0.4 * key.w, key.y + 0.4 * key.h
    assert yaw == 0 or cell.shape("face").holds(cell.pose.to(np.array([far])) + 0.5).all()


@pytest.mark.parametrize("protect", sorted(PROTECTIONS))
def test_polygons_hold_every_pixel_of_a_shape(protect: str) -> None:
    import cv2

    rng = np.random.default_rng(4)
    for _ in range(25):
        left, right = rng.choice([1.0, 1.3, 1.6], 2)
        shape = replace(PROTECTIONS[protect].whole, left=float(left), right=float(right))
        head = pose(
            float(np.exp(rng.uniform(1, 5.3))),
            *(float(n) for n in rng.uniform((-4, -40, -40), (4, 200, 160))),
        )
        exact, found = shape.region(head, WIDTH, HEIGHT), region_around(shape, head, WIDTH, HEIGHT)
        if exact is None:
            continue
        masks = np.zeros((2, HEIGHT, WIDTH), np.uint8)
        masks[0][exact[0].slices] = 1 if exact[1] is None else exact[1]
        assert found is not None
        masks[1][found.box.slices] = found.mask
        assert (masks[1] >= masks[0]).all()
        assert (masks[1] <= cv2.dilate(masks[0], np.ones((13, 13), np.uint8))).all() or masks[0].sum() < 20


def test_boxes_hold_what_moves_on_lines_and_show_rounded_edges_alone() -> None:
    rng = np.random.default_rng(5)
    keys = [
        Key(10 * n, *(int(v) for v in rng.integers((-20, -20, 20, 20), (120, 90, 60, 60)))) for n in range(6)
    ]
    course = BoxCourse(keys, margin=0, rounded=True)
    for frame in range(51):
        left, top, w, h = (
            float(np.interp(frame, course.frames, [getattr(k, n) for k in keys])) for n in "xywh"
        )
        box = course.box(frame, WIDTH, HEIGHT)
        low, high = (
            (max(0, math.floor(left)), max(0, math.floor(top))),
            (math.ceil(left + w), math.ceil(top + h)),
        )
        if box is None:
            assert low[0] >= WIDTH or low[1] >= HEIGHT or high[0] <= 0 or high[1] <= 0
            continue
        assert (box.x, box.y) <= low
        assert box.x <= low[0]
        assert box.y <= low[1]
        assert box.x + box.w >= min(WIDTH, high[0])
        assert box.y + box.h >= min(HEIGHT, high[1])
    sizes = np.array([max(k.w, k.h) for k in keys])
    assert ((course.edges % 2) == 0).all() or sizes.min() < 16
    assert (course.edges[0] % 2 == 0).all()


def test_nothing_of_what_lies_beyond_the_picture_is_replaced() -> None:
    track = moving(at=(300, 40))
    scene = scene_of([track])
    assert scene.spot(track, 0).region is None
    there = moving(at=(-25, -20))
    region = scene_of([there]).spot(there, 3).region
    assert region is not None
    assert region.box.inside(WIDTH, HEIGHT)


@pytest.mark.parametrize("protect", sorted(PROTECTIONS))
def test_what_is_replaced_is_the_outline_and_a_users_box(protect: str) -> None:
    track = moving(roll=20)
    scene = scene_of([track], drawn_heads(protect=protect) if protect != "face" else None)
    course = scene.course(track)
    head, shape = course.outline(7)
    spot = scene.spot(track, 7)
    wanted = region_around(shape, head, WIDTH, HEIGHT, masked=PROTECTIONS[course.protect].masked)
    assert spot.region is not None
    assert wanted is not None
    assert spot.region.box == wanted.box
    assert np.array_equal(spot.region.mask, wanted.mask) or spot.region.mask is wanted.mask
    own = moving(kind="box")
    box = scene_of([own]).box_course(own).box(7, WIDTH, HEIGHT)
    assert box is not None
    hidden = scene_of([own]).hidden_mask(7)
    assert hidden[box.slices].all()


@pytest.mark.parametrize("protect", sorted(PROTECTIONS))
def test_what_is_replaced_holds_the_box_of_a_key_whatever_its_sides(protect: str) -> None:
    rng = np.random.default_rng(10)
    size, down = PROTECTIONS[protect].holds
    for w, h, roll in rng.integers((20, 20, -90), (200, 200, 90), (60, 3)):
        key = Key(0, 100, 80, int(w), int(h), int(roll), 45)
        head, shape = HeadPath([key], protect).outline(0)
        middle = key.x + key.w / 2 - 0.5, key.y + key.h * (0.5 + down) - 0.5
        ends = outline((*middle, size * key.w / 2, size * key.h / 2))
        assert shape.far(head.to(ends) + 0.5).max() <= 1
