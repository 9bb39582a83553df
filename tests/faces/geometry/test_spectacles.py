"""Spectacles are drawn around the eyes, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from geometry_made import placed
from test_completion import made as network

from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry import recombine, turn
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.spectacles import STYLES, Dressed, with_glasses

SKIN = np.full((128, 128, 3), (200, 160, 140), np.uint8)


@pytest.mark.parametrize("style", STYLES)
def test_rims_surround_the_eyes_and_the_rest_of_the_face_stays(style: str) -> None:
    before = SKIN.copy()
    changed = np.abs(with_glasses(SKIN, style).astype(int) - SKIN).max(axis=2)
    assert (before == SKIN).all()
    assert not changed[:15].any()
    assert not changed[66:].any()
    (right, left) = (Frame(128).points()[pair].mean(axis=0) for pair in ([0, 1], [2, 3]))
    for x, y in np.rint([right, left]).astype(int):
        rows, columns = changed[y - 20 : y + 24, x], changed[y + 2, x - 23 : x + 24]
        assert changed[y, x] < 60, "an eye is seen through its lens"
        for half in (rows[:18], rows[25:], columns[:20], columns[27:]):
            assert half.max() > 15, "there is a rim on each side of an eye"


def test_glasses_are_refused_where_they_do_not_fit() -> None:
    with pytest.raises(InvalidParameter, match="monocle"):
        with_glasses(SKIN, "monocle")
    with pytest.raises(InvalidParameter, match="crop"):
        with_glasses(SKIN[:100], "round")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("yaw", "wide"), [(None, 0.89), (2, 0.68), (-2, 0.68)])
def test_whole_spectacles_are_put_on_a_completed_head(
    yaw: int | None, wide: float, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network sees no more than an oval, which is narrower than they are."""
    monkeypatch.setattr(turn, "yaw_of", lambda crop, frame: 0.0)
    image = np.full((200, 200, channels), 120, np.uint8)
    there = placed(Box(20, 10, 160, 180), unit=90.0)
    place = replace(there, cell=Cell(15, 0, 9, 9, yaw))
    bare, dressed = (
        recombine(image, [place], [crop], filling=network(), turned=True).astype(int)
        for crop in (SKIN, Dressed(SKIN, "plastic"))
    )
    columns = np.flatnonzero((np.abs(dressed - bare).max(axis=2) > 40).any(axis=0))
    assert (columns[-1] - columns[0]) / 90 == pytest.approx(wide, rel=0.04)
    plain = Dressed(SKIN, "round").after(lambda crop: crop // 2)
    assert (plain.crop == with_glasses(SKIN // 2, "round")).all()
