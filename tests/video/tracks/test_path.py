"""Keys: few, and lines between them that hold every place."""

import numpy as np
import pytest
from moving_world import HEIGHT, WIDTH, drawn, smooth

from dpveil.video.tracks.box_flow import FASTER, LONGEST_REACH, REACH, follow, matches, small
from dpveil.video.tracks.live_track import CHUNK, NEAR_DEGREES, NEWS_DEGREES, SPIN_DEGREES, TOLERANCE, Path


def held(keys, frame, box):
    frames = [key.frame for key in keys]
    x, y, w, h = (np.interp(frame, frames, [getattr(key, side) for key in keys]) for side in "xywh")
    return bool(
        (np.array([x, y]) <= box[:2] + 1e-4).all() and (np.array([x + w, y + h]) >= box[2:] - 1e-4).all()
    )


def path_of(boxes, first=0):
    path = Path()
    for n, box in enumerate(boxes, start=first):
        path.add(n, np.array(box, np.float64))
    return path


WALKS = {
    "accelerates": lambda t: 20 + 0.02 * t**2,
    "oscillates": lambda t: 200 + 60 * np.sin(t / 4),
    "jumps": lambda t: 20 + 90 * (t > 70),
    "trembles": lambda t: 50 + np.random.default_rng(int(t)).normal(0, 4),
}


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("count", [1, 2, 3, 150, CHUNK + 200])
def test_lines_between_keys_hold_every_place(name, count):
    lefts = [WALKS[name](t) for t in range(count)]
    boxes = [(x, 5.3 + x / 9, x + 41.7, 60.2 + x / 7) for x in lefts]
    keys = path_of(boxes, first=7).as_keys()
    assert (keys[0].frame, keys[-1].frame) == (7, 6 + count)
    assert all(held(keys, n, np.array(box)) for n, box in enumerate(boxes, start=7))
    assert len({key.frame for key in keys}) == len(keys) <= count


def test_boxes_grow_by_no_more_than_the_tolerance():
    boxes = [(x := 200 + 60 * np.sin(t / 4), 10, x + 50, 70) for t in range(200)]
    path = path_of(boxes)
    for key in path.as_keys():
        x = boxes[key.frame][0]
        assert x - 50 * TOLERANCE - 1 <= key.x <= x
        assert x + 50 <= key.x + key.w <= x + 50 + 50 * TOLERANCE + 1
    assert len(path) < 100


def test_noise_of_a_still_box_makes_two_keys_and_motion_at_one_speed_too():
    rng = np.random.default_rng(5)
    still = [np.array([40, 40, 90, 100]) + rng.uniform(-1.2, 1.2, 4) for _ in range(300)]
    assert len(path_of(still).as_keys()) == 2
    assert len(path_of([(3.1 * t, 2 * t, 3.1 * t + 30, 2 * t + 30) for t in range(100)]).as_keys()) == 2


def test_turns_are_on_lines_and_wrap_around():
    path = path_of([(abs(t - 20) * 2, 0, abs(t - 20) * 2 + 40, 40) for t in range(100)])
    for frame, roll, yaw in ((10, 170, 0), (30, -170, 30), (50, -150, 0)):
        path.turn(frame, roll, yaw)
    turns = {key.frame: (key.roll, key.yaw) for key in path.as_keys()}
    assert turns[20] in ((-180, 15), (180, 15))
    assert turns[30] == (-170, 30)
    assert turns[0] == (170, 0)
    assert turns[99] == (-150, 0)
    assert not path.turn(60, -150 + NEWS_DEGREES, 0)
    assert path.turn(70, 0, 0)


def swung(frames, turns, drift=0.0):
    """Return the keys of a head that swings by 100°, of which `turns` are known, and flow drifts."""
    path, roll = Path(), lambda n: 100 * np.sin(n / 10)
    for n in range(frames):
        path.add(n, np.array([0, 0, 40, 40], np.float64), roll(n) + drift * n)
        if n in turns:
            path.turn(n, (roll(n) + 180) % 360 - 180, 0, roll(n) + drift * n)
    keys = path.as_keys()
    told = np.interp(range(frames), [k.frame for k in keys], np.unwrap([k.roll for k in keys], period=360))
    return np.abs(told - [roll(n) for n in range(frames)]).max(), len(keys)


@pytest.mark.parametrize("count", [120, CHUNK + 200])
def test_between_landmarks_heads_roll_as_they_were_followed(count):
    off, keys = swung(count, range(10, count, 25))
    assert off < NEAR_DEGREES[0] + SPIN_DEGREES + 1
    assert keys < count / 3
    off, _ = swung(count, range(10, count, 25), drift=0.4)
    assert off < NEAR_DEGREES[0] + SPIN_DEGREES + 1 + 25 * 0.4
    assert swung(count, [10])[0] < NEAR_DEGREES[0] + SPIN_DEGREES + 1


# Boxes are followed where their texture goes, and it is known where it is not seen.


def grey(place, seed=1, background=9):
    image = smooth(HEIGHT, WIDTH, background).copy()
    if place is not None:
        drawn(image, place, seed)
    return small(image)[0]


def edges(place):
    x, y, w, h = place
    return np.array([[x, y, x + w, y + h]], np.float64)


@pytest.mark.parametrize("place", [(60, 50, 40, 48), (47, 42, 40, 48), (54, 46, 42, 50), (53, 47, 38, 46)])
def test_a_box_moves_and_grows_with_its_texture(place):
    before = 54, 48, 40, 48
    moved, sure, _ = follow(grey(before), grey(place), edges(before))
    assert sure.tolist() == [True]
    assert np.abs(moved - edges(place)).max() < 1.6


@pytest.mark.parametrize("motion", [(14, 0), (18, 4), (22, -6), (26, 8)])
def test_small_objects_that_are_fast_are_followed(motion):
    before, after = (100, 60, 36, 44), (100 + motion[0], 60 + motion[1], 36, 44)
    moved, sure, _ = follow(grey(before, 0, 1000), grey(after, 0, 1000), edges(before))
    assert sure.tolist() == [True]
    assert np.abs(moved - edges(after)).max() < 1


def test_what_disappears_or_is_covered_is_not_followed():
    before = 54, 48, 40, 48
    for other in (grey(None), grey(before, seed=2), np.full((HEIGHT, WIDTH), 90, np.uint8)):
        moved, sure, _ = follow(grey(before), other, edges(before))
        assert sure.tolist() == [False]
        assert (moved == edges(before)).all()


@pytest.mark.parametrize("turn", [-9, 3, 10])
def test_a_box_stays_upright_and_tells_how_its_texture_was_turned(turn):
    import cv2

    before, middle = smooth(HEIGHT, WIDTH, 5, 8), (110.0, 80.0)
    after = cv2.warpAffine(before, cv2.getRotationMatrix2D(middle, -turn, 1.0), (WIDTH, HEIGHT))
    box = edges((86, 52, 48, 56))
    moved, sure, turns = follow(small(before)[0], small(after)[0], box)
    assert sure.tolist() == [True]
    assert abs(turns[0] - turn) < 0.5
    assert np.abs(moved - box).max() < 1
    gone = follow(small(before)[0], np.full((HEIGHT, WIDTH), 90, np.uint8), box)
    assert gone[2].tolist() == [0.0]


# Detections go to the tracks that they fit best, all together.


def boxes(*lefts, size=20.0, top=0.0):
    return np.array([(x, top, x + size, top + size) for x in lefts]).reshape(-1, 4)


ALONE = np.zeros(2)


def test_what_is_too_far_or_of_another_size_is_another_object():
    held = boxes(0)
    assert matches(held, held, ALONE[:1], boxes(REACH * 20 - 0.1)) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(REACH * 20 + 0.1)) == []
    assert matches(held, held, ALONE[:1], boxes(-7.5, size=35, top=-7.5)) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(-8.5, size=37, top=-8.5)) == []
    assert matches(held, held, ALONE[:1], boxes(5.5, size=9, top=5.5)) == []
    assert matches(held, held, ALONE[:1], boxes(), narrow=True) == []
    assert matches(boxes(), boxes(), ALONE[:0], held) == []


def test_what_was_not_followed_may_be_farther_and_doubtful_ones_nearer():
    held, far = boxes(0), boxes((REACH + FASTER / 10) * 20 - 0.1)
    assert matches(held, held, np.array([0.1]), far) == [(0, 0)]
    assert matches(held, held, np.array([0.09]), far) == []
    assert matches(held, held, np.array([99.0]), boxes(LONGEST_REACH * 20 + 0.1)) == []
    assert matches(held, held, ALONE[:1], boxes(REACH * 10 - 0.1), narrow=True) == [(0, 0)]
    assert matches(held, held, ALONE[:1], boxes(REACH * 10 + 0.1), narrow=True) == []
