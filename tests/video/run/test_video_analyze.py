"""Plans of clips: what is found, what a user names, and what they say of tracks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("av")

from clips_made import FRAMES, HEIGHT, WIDTH, make_clip

from dpveil.errors import InvalidParameter, NoRegion, TooWeak
from dpveil.mechanisms.pixel import Fill
from dpveil.regions import Finder
from dpveil.regions.finder import Seen
from dpveil.video import analyze
from dpveil.video.reading import open_clip, pick_frames

METHOD: dict[str, Any] = {"method": "dp-pix", "epsilon": 2, "block": 8, "neighbourhood": 4}


class Blinking(Finder):
    """Finds a face in the left half, if the frame is light there."""

    kind = "face"
    description = "blinking"

    def __call__(self, photo: Any) -> Any:
        raise NotImplementedError

    def find_in_frame(self, photo: Any) -> list[Seen]:
        return [Seen("face", (4, 8, 16, 16), 0.9)] if photo.image[28:, :8].mean() > 60 else []


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return make_clip(tmp_path / "clip.mp4", cut=20)


@pytest.mark.parametrize("regions", ["whole", "8,8,16,16", ["8,8,16,16", "20,8,8,8"]])
def test_what_a_user_names_is_drawn_once_whatever_is_cut(clip: Path, regions: Any) -> None:
    plan = analyze(clip, regions=regions, **METHOD)
    count = len(regions) if isinstance(regions, list) else 1
    assert [(track.first, track.last, track.end) for track in plan.tracks] == [(0, FRAMES - 1, "end")] * count
    assert plan.total.epsilon == 2 * count
    assert len(plan.draws) == count


def test_a_box_stays_where_it_was_named_whatever_passes_it(tmp_path: Path) -> None:
    """What moves in the box would take it along if it were followed: every frame hides all of it."""
    plan = analyze(make_clip(tmp_path / "moves.mp4"), Fill(), regions="4,8,16,16")
    for frame in range(FRAMES):
        assert plan.scene.hidden_mask(frame)[8:24, 4:20].all()


MASKED = np.zeros((HEIGHT, WIDTH), np.bool_)
MASKED[4:8, 3:9] = True


def test_what_is_found_ends_at_a_cut_and_stands_beside_what_is_named(clip: Path) -> None:
    told = []
    plan = analyze(
        clip,
        regions=[Blinking(), "30,4,8,8"],
        keep=[1],
        link=[(2, 3)],
        progress=lambda *step: told.append(step),
        **METHOD,
    )
    assert plan.cuts == (20,)
    assert [track.kind for track in plan.tracks] == ["box", "face", "face"]
    assert [track.number for track in plan.tracks] == [1, 2, 3]
    assert [track.visible for track in plan.tracks] == [True, False, False]
    assert [track.person for track in plan.tracks] == [None, 1, 1]
    assert len(plan.draws) == 1
    assert told[-1] == ("analyzing", FRAMES, FRAMES)


def test_nothing_found_is_refused_or_all_is_replaced(tmp_path: Path) -> None:
    dark = make_clip(tmp_path / "dark.mp4")

    class Blind(Blinking):
        def find_in_frame(self, photo: Any) -> list[Seen]:
            return []

    with pytest.raises(NoRegion):
        analyze(dark, regions=Blind(), **METHOD)
    with pytest.raises(NoRegion):
        analyze(dark, regions=Blind(), if_none="others", **METHOD)
    for way in ("whole", "others+whole"):
        plan = analyze(dark, regions=Blind(), if_none=way, **METHOD)
        assert [(track.kind, track.keys[0].w) for track in plan.tracks] == [("whole", WIDTH)]
    for way in ("copy", "others+copy"):
        with pytest.raises(InvalidParameter, match="is not for clips"):
            analyze(dark, regions=Blind(), if_none=way, **METHOD)
    with pytest.raises(InvalidParameter, match="is unknown"):
        analyze(dark, regions=Blind(), if_none="other", **METHOD)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"keep": [7]}, "keep = 7 is no track"),
        ({"link": [(1, 9)]}, "link = 9 is no track"),
        ({"link": [(1, 2), (2, 1)]}, "is linked twice"),
        ({"keep": [1, 2]}, "no track is replaced"),
        ({"keep_audio": True}, "without sound"),
        ({"every": -1}, "every"),
    ],
)
def test_what_cannot_be_is_named(clip: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words) as caught:
        analyze(clip, regions=["8,8,16,16", "20,8,8,8"], **METHOD, **more)
    assert caught.value.__class__.__module__ == "dpveil.errors"


def test_a_plan_that_promises_too_little_is_refused(clip: Path) -> None:
    with pytest.raises(TooWeak):
        analyze(clip, regions="whole", at_least="strong", **METHOD)


def test_frames_are_picked_in_order_wherever_they_are(clip: Path) -> None:

    opened = open_clip(clip)
    assert [frame.index for frame in pick_frames(opened, [30, 2, 2, 35, 0])] == [0, 2, 30, 35]
