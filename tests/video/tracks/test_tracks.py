"""Tracks of patches whose places are known, by finders that miss, add and jump."""

from fractions import Fraction

import numpy as np
import pytest
from moving_world import FPS, WIDTH, Knowing, Walk, box_at, clip, facts, of, tracked, uncut

from dpveil.errors import InvalidParameter, NoRegion, RegionError
from dpveil.regions.finder import Seen
from dpveil.video.tracks import frame_search, live_track, tracker
from dpveil.video.tracks.box_flow import continuations
from dpveil.video.tracks.frame_search import Memory, TrackSettings
from dpveil.video.tracks.tracker import Found, find_tracks


def still(n):
    return 100, 60, 36, 44


def slow(n):
    return 30 + 1.2 * n, 50 + 0.3 * n, 36, 44


def fast(n):
    return 10 + 0.02 * n**2, 60, 36, 44


def swings(n):
    return 100 + 50 * np.sin(n / 5), 60 + 20 * np.sin(n / 7), 36, 44


def nears(n):
    return 100 - n / 4, 60 - n / 4, 30 + n / 2, 36 + n / 2


@pytest.mark.parametrize(
    ("walk", "every"), [*((walk, 0.2) for walk in (still, slow, fast, nears)), (swings, 0), (swings, 0.32)]
)
def test_one_object_is_one_track_that_holds_it_in_every_frame(walk, every):
    (track,) = tracked(70, [walk], every=every).tracks
    assert (track.number, track.kind, track.finder, track.score) == (1, "object", "knowing", 0.9)
    assert (track.first, track.last, track.end) == (0, 69, "end")
    assert min(uncut(track, n, walk(n)) for n in range(70)) > 0.88
    assert max(box_at(track, n)[2] / walk(n)[2] for n in range(70)) < 1.25


def test_frames_are_searched_by_their_times():
    finder = Knowing(of([still]))
    times = [*range(10), *range(30, 34)]
    known = facts(14, steps=((1, 9), (21, 1), (1, 3)))
    find_tracks(clip(14, [still], times=times), known, [finder], TrackSettings(every=0.16))
    assert finder.asked == [0, 4, 8, 10, 13]
    jitter = [0, 41, 79, 121, 160, 200, 241, 279, 320, 360]
    finder = Knowing(of([still]))
    find_tracks(
        clip(10, [still], times=jitter),
        facts(10, steps=((40, 9),), base=Fraction(1, 1000)),
        [finder],
        TrackSettings(every=0.08),
    )
    assert finder.asked == [0, 2, 4, 6, 8, 9]


def test_gaps_stay_protected():
    found = tracked(80, [slow], of([slow], missing=range(15, 50)), every=0.08)
    (track,) = found.tracks
    assert min(uncut(track, n, slow(n)) for n in range(80)) > 0.93


def test_an_object_behind_another_one_stays_protected():
    def hides(n, image):
        if 20 <= n < 36:
            image[:, 90:150] = 90

    (track,) = tracked(80, [still], of([still], missing=range(20, 36)), over=hides, every=0.08).tracks
    assert (track.first, track.last) == (0, 79)
    assert min(uncut(track, n, still(n)) for n in range(80)) > 0.93


def test_what_comes_from_behind_something_was_there_when_it_came():
    def walks(n):
        return (20 + 2 * n if n < 30 else 80 if n < 58 else 80 + 3 * (n - 58)), 60, 36, 44

    def hides(n, image):
        if n < 60:
            image[:, 70:130] = 90

    found = tracked(80, [walks], of([walks], missing=range(24, 71)), over=hides, every=0.2, gap=3)
    (track,) = found.tracks
    assert min(uncut(track, n, walks(n)) for n in range(62, 80)) > 0.88


def test_what_is_found_late_is_protected_from_before_that():
    found = tracked(60, [slow], of([slow], missing=range(40)), every=0.2, backwards=0.4)
    (track,) = found.tracks
    assert track.first == 30
    assert min(uncut(track, n, slow(n)) for n in range(30, 60)) > 0.93


def test_backwards_ends_at_cuts_and_where_flow_does_not_see_it_the_place_is_held():
    found = tracked(60, [still], of([still], missing=range(40)), cuts=[36], backwards=0.4)
    assert (found.cuts, found.tracks[0].first) == ((36,), 36)
    comes = tracked(60, [lambda n: still(n) if n >= 38 else None], backwards=0.4)
    assert comes.tracks[0].first == 30
    assert min(uncut(comes.tracks[0], n, still(n)) for n in range(30, 60)) > 0.93


def test_tracks_end_at_cuts():
    found = tracked(60, [still], cuts=[20, 41])
    assert found.cuts == (20, 41)
    assert [(t.first, t.last, t.end) for t in found.tracks] == [
        (0, 19, "cut"),
        (20, 40, "cut"),
        (41, 59, "end"),
    ]


def test_the_first_frame_of_a_shot_is_searched():
    finder = Knowing(of([still]))
    find_tracks(clip(40, [still], cuts=[22]), facts(40), [finder], TrackSettings(every=0.4))
    assert finder.asked == [0, 10, 20, 22, 32, 39]


def test_doubtful_detections_go_on_with_tracks_and_begin_none():
    def doubts(n):
        return of([still], score=0.15, sure=False)(n) if n > 5 else of([still])(n)

    (track,) = tracked(80, [still], doubts, every=0.08, gap=0.3).tracks
    assert (track.last, track.end, track.score) == (79, "end", 0.9)
    with pytest.raises(NoRegion):
        tracked(20, [still], of([still], sure=False))


def test_what_leaves_the_picture_is_not_lost():
    def leaves(n):
        return 150 + 4 * n, 60, 36, 44

    found = tracked(120, [leaves], of([leaves], missing=range(14, 200)), margin=0.2, none_lost=True, gap=1)
    (track,) = found.tracks
    assert track.end == "left"
    assert min(uncut(track, n, leaves(n)) for n in range(22)) > 0.9
    assert track.last < 60
    soon = tracked(44, [leaves], of([leaves], missing=range(14, 200)), margin=0.2, none_lost=True, gap=1)
    assert [(one.last, one.end) for one in soon.tracks] == [(track.last, "left")]  # also as the clip ends


def vanishes(n):
    return still(n) if n <= 30 else None


def test_lost_tracks_are_held_to_the_end_of_the_shot():
    found = tracked(120, [vanishes], cuts=[100], gap=1)
    assert [(t.first, t.last, t.end) for t in found.tracks] == [(0, 99, "lost")]
    assert min(uncut(found.tracks[0], n, still(n)) for n in range(100)) > 0.93


def test_lost_tracks_are_held_until_they_are_found_again_there():
    def again(n):
        return still(n) if n <= 30 or n >= 90 else None

    def elsewhere(n):
        return (20, 10, 36, 44) if n >= 90 else None

    one, two = tracked(120, [again], gap=1).tracks
    assert one.last == two.first + 90 - two.first == 90
    assert two.end == "end"
    walks = [vanishes, elsewhere]
    assert [t.last for t in tracked(120, walks, gap=1).tracks] == [119, 119]


def test_two_objects_that_pass_each_other_keep_their_tracks():
    def right(n):
        return 10 + 2 * n, 40, 36, 44

    def left(n):
        return 190 - 2 * n, 72, 36, 44

    found = tracked(90, [right, left], of([right, left], missing=range(38, 52)), every=0.08)
    assert len(found.tracks) == 2
    for walk, track in zip((right, left), found.tracks, strict=True):
        assert uncut(track, 0, walk(0)) > 0.93
        assert uncut(track, 89, walk(89)) > 0.93


@pytest.mark.parametrize("same", [True, False])
def test_who_passes_behind_another_one_keeps_the_track_and_nobody_else_does(monkeypatch, same):
    forwards = Memory.forwards

    def carried_off(self, now, boxes):
        """Flow follows whoever passes in front, and takes that for who is behind."""
        places = forwards(self, now, boxes)
        front = left(now.frame)[0] + 6
        away = np.array([front, 62, front + 24, 92]), True, 0.0
        behind = [20 < now.frame < 36 and box[2] - box[0] < 40 for box in boxes]
        return [away if hidden else place for place, hidden in zip(places, behind, strict=True)]

    monkeypatch.setattr(Memory, "forwards", carried_off)

    def right(n):
        return 5 + 4 * n, 60, 24, 30

    def left(n):
        return 205 - 4 * n, 50, 44, 56

    def seen(n):
        return of([left] if 15 <= n < 38 else [right, left])(n)

    def other(n):
        return None if same or n < 30 else right(n)

    first = right if same else lambda n: right(n) if n < 22 else None
    found = tracked(54, [first, left, other], seen, every=0.08)
    assert len(found.tracks) == (2 if same else 3)
    assert {(track.last, track.end) for track in found.tracks} >= {(53, "end")}
    assert not same or min(uncut(found.tracks[0], n, right(n)) for n in (*range(15), *range(38, 54))) > 0.93


def test_kinds_and_finders_are_apart():
    def both(n):
        return [Seen("text", still(n), None), Seen("plate", still(n), None)]

    found = tracked(30, [still], both)
    assert sorted((t.kind, t.score) for t in found.tracks) == [("plate", None), ("text", None)]
    finders = [Knowing(of([still]), name) for name in ("one", "two", "one")]
    found = find_tracks(clip(30, [still]), facts(30), finders)
    assert sorted(track.finder for track in found.tracks) == ["one", "two"]


def noise(n):
    rng = np.random.default_rng(n)
    return [Seen("object", (x, y, 20, 20), 0.5) for x, y in rng.uniform(0, 100, (4, 2))]


@pytest.mark.parametrize("gap", [0.04, 2])
def test_there_is_a_limit_of_tracks_that_end_or_go_on(monkeypatch, gap):
    monkeypatch.setattr(tracker, "MOST_TRACKS", 30)
    with pytest.raises(RegionError, match=r"the clip has more than 30 tracks up to frame \d+ \(\d\.\d\d s\)"):
        tracked(40, [still], noise, every=0, gap=gap, margin=0)


def test_there_is_a_limit_of_keys_of_tracks_that_end_or_go_on(monkeypatch):
    monkeypatch.setattr(tracker, "MOST_KEYS", 5)
    with pytest.raises(RegionError, match="more than 5 keys"):
        tracked(40, [still], noise, every=0, gap=0.04, margin=0)
    monkeypatch.setattr(live_track, "CHUNK", 6)
    with pytest.raises(RegionError, match="more than 5 keys"):
        tracked(40, [swings], every=0)


def test_the_past_that_is_kept_does_not_grow(monkeypatch):
    sizes, add = [], frame_search.Memory.add

    def watched(self, moment):
        add(self, moment)
        sizes.append(len(self))

    monkeypatch.setattr(frame_search.Memory, "add", watched)
    tracked(60, [still], backwards=0.4)
    assert max(sizes) == 0.4 * FPS


def test_a_search_that_fails_ends_it():
    def fails(n):
        raise RegionError("the detector failed")

    with pytest.raises(RegionError, match="the detector failed"):
        tracked(10, [still], fails)


@pytest.mark.parametrize("given", [{"every": -1}, {"every": 3}])
def test_settings_are_checked(given):
    with pytest.raises(InvalidParameter):
        TrackSettings(**given)


# Objects in front of others: none is given up that comes out again, and tracks of one object merge.


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
    found = tracked(85, [large, walk], tells(walk, range(80, 85)), none_lost=True)
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
    found = tracked(count, [large], tells(part, since=since), over=over, none_lost=True, **settings)
    return next(track for track in found.tracks if track.end == "merged")


def test_what_never_comes_out_is_the_same_object_and_ends_where_that_began():
    assert merged(60).last == 40
    assert merged(80, gap=0.4, cuts=[65]).last == 40


def test_both_are_lost_as_one_where_none_is_found_any_more():
    def seen(n):
        return tells(part)(n) if n < 47 else []

    found = tracked(75, [large], seen, gap=0.4)
    assert [(track.last, track.end) for track in found.tracks] == [(40, "merged"), (74, "lost")]


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

    found = tracked(85, [enters, stands], both, none_lost=True)
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

    often = {"gap": 0.28, "margin": 0.28, "every": 0, "none_lost": True}
    (track,) = tracked(78, [goes], seen, **often).tracks
    assert (track.last, track.end) == (77, "end")
    (track,) = tracked(110, [goes], seen, cuts=[78], **often).tracks
    assert (track.last, track.end) == (77, "cut")
    (track,) = tracked(79, [goes], seen, **often | {"none_lost": False}).tracks
    assert track.end == "lost"
