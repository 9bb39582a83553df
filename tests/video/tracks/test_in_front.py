"""Objects in front of others: none is given up that comes out again, and tracks of one object merge."""

import numpy as np
import pytest
from moving_world import WIDTH, Walk, of, tracked, uncut

from dpveil.errors import RegionError
from dpveil.regions.finder import Seen
from dpveil.video.tracks.finding import Found
from dpveil.video.tracks.following import continuations


def large(n):
    return 40, 40, 90, 90


def comes_out(when):
    """Return who stands in front of `large`, and walks out of it to the right."""
    return lambda n: (float(np.clip(60 + 6 * (n - when), 60, 180)), 60, 40, 50)


def tells(walk: Walk, found=(), since=25):
    """Return what tells of `large` since a frame, and of `walk` until frame 22 and where it is `found`."""
    return lambda n: [
        *(of([large])(n) if n >= since else []),
        *(of([walk])(n) if n <= 22 or n in found else []),
    ]


def shown(found: Found, walk: Walk, frames) -> list[int]:
    """Return the frames in which no track holds half of what can be seen."""
    return [n for n in frames if max((uncut(track, n, walk(n)) for track in found.tracks), default=0) < 0.5]


def test_who_walks_out_of_a_larger_one_that_was_found_later_is_followed():
    walk = comes_out(45)
    found = tracked(85, [large, walk], tells(walk, range(80, 85)), on_lost="refuse")
    assert shown(found, walk, range(85)) == []
    assert [track.end for track in found.tracks] == ["end", "end"]


def test_who_walked_out_and_is_not_found_there_is_lost():
    walk = comes_out(45)
    found = tracked(85, [large, walk], tells(walk), gap=0.6)
    assert shown(found, walk, range(85)) == []
    assert "lost" in {track.end for track in found.tracks}


def part(n):
    return 60, 60, 40, 50


def merged(count, over=lambda n, image: None, since=25, **settings):
    """Return the track that merges, of a part of `large`, which itself is found later."""
    found = tracked(count, [large], tells(part, since=since), over=over, on_lost="refuse", **settings)
    return next(track for track in found.tracks if track.end == "merged")


def test_what_never_comes_out_is_the_same_object_and_ends_where_that_began():
    assert merged(60).last == 40
    assert merged(80, gap=0.4, cuts=[65]).last == 40


def test_both_are_lost_as_one_where_none_is_found_any_more():
    def seen(n):
        return tells(part)(n) if n < 47 else []

    found = tracked(75, [large], seen, gap=0.4)
    assert [(track.last, track.end) for track in found.tracks] == [(40, "merged"), (74, "lost")]


def still(n):
    return 100, 60, 36, 44


def passes(when, stays=0):
    """Return who comes from the left, stands in front of `still` from about `when` on, and walks on."""
    return lambda n: (102 + 4 * (min(n - when, 0) + max(n - when - stays, 0)), 61, 38, 46)


def test_who_stands_behind_another_one_of_the_same_size_is_held():
    walk = passes(30, 12)

    def both(n):
        return of([still, walk] if n < 22 else [walk])(n)

    found = tracked(85, [still, walk], both, gap=1)
    assert shown(found, still, [*range(22), *range(52, 85)]) == []
    assert "lost" in {track.end for track in found.tracks}


def test_who_is_seen_again_behind_another_one_was_there_when_it_went_on():
    walk = passes(30, 8)

    def both(n):
        return of([still] if n < 12 else [walk] if n < 56 else [still, walk])(n)

    found = tracked(80, [still, walk], both)
    assert shown(found, still, [*range(24), *range(48, 80)]) == []


def stands(n):
    return 195, 60, 40, 50


def enters(n):
    """Return who comes in over the border behind `stands`, and stays half visible."""
    return None if n < 38 else (max(226, 244 - 3 * (n - 38)), 58, 40, 52)


def test_who_enters_does_not_take_the_track_of_who_stands_there():
    def both(n):
        x, y, _, h = enters(n) or (WIDTH, 0, 0, 0)
        half = [Seen("object", (x, y, WIDTH - x, h), 0.9)] if x <= 230 else []
        return [*(of([stands])(n) if n <= 37 or n >= 80 else []), *half]

    found = tracked(85, [enters, stands], both, on_lost="refuse")
    assert shown(found, stands, range(85)) == []


def test_sides_that_no_border_cut_agree_where_the_track_was_followed():
    size, known, lost = (WIDTH, 160), np.array([True]), np.array([False])
    held, narrow = np.array([[195.0, 60, 235, 110]]), np.array([[226.0, 58, 240, 110]])
    assert continuations(held, held, narrow, known, *size) == []
    assert continuations(held, held, narrow, lost, *size) == [(0, 0)]
    nearer = np.array([[214.0, 58, 240, 110]])
    assert continuations(held, held, nearer, known, *size) == [(0, 0)]
    half, full = np.array([[226.0, 60, 240, 110]]), np.array([[196.0, 60, 236, 110]])
    assert continuations(half - np.array([30.0, 0, 30, 0]), half, full, known, *size) == [(0, 0)]
    assert continuations(full + np.array([28.0, 0, 28, 0]), full, half, known, *size) == [(0, 0)]
    cut = np.array([[226.0, 60, 240, 110]])
    assert continuations(held + np.array([20.0, 0, 20, 0]), cut, narrow, known, *size) == [(0, 0)]
    assert continuations(np.array([[226.0, 90, 240, 140]]), cut, narrow, known, *size) == []


def test_what_is_protected_to_the_end_of_its_shot_is_not_lost():
    def goes(n):
        return still(n) if n < 72 else None

    def seen(n):
        return of([still])(n) if n < 70 else []

    often = {"gap": 0.28, "margin": 0.28, "every": 0, "on_lost": "refuse"}
    (track,) = tracked(78, [goes], seen, **often).tracks
    assert (track.last, track.end) == (77, "end")
    (track,) = tracked(110, [goes], seen, cuts=[78], **often).tracks
    assert (track.last, track.end) == (77, "cut")
    with pytest.raises(RegionError, match="is lost"):
        tracked(79, [goes], seen, **often)
